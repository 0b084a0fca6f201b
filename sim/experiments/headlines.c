/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The headlines of the papers; see headlines.h. */
#include "sim/experiments/headlines.h"

#include <string.h>

#define WHY_SPREAD                                                                                 \
	"Spreading a job saves waiting for the few other tasks at home; its messages take as "     \
	"long as before."

static const struct headline headlines[] = {
	{.id = "SLD-RE",
	 .claim = "IOCM-RE improves by 24.5 % on average",
	 .says = "Placing new jobs by the load of disks too (IOCM-RE) lowers slowdown, against "
		 "CPU-RE "
		 "and MEM-RE",
	 .reason = "The gain grows with the load, and the slides do not say theirs."},
	{.id = "SLD-RE",
	 .claim = "... by 30.7 % at most",
	 .says = "the same, at most",
	 .reason = "The gain grows with the load, and the slides do not say theirs."},
	{.id = "SLD-PM",
	 .claim = "IOCM-PM improves by 56.6 % on average over IOCM-RE",
	 .says = "Moving running jobs too (IOCM-PM) lowers slowdown further, against IOCM-RE",
	 .reason = "New jobs are already placed where disks are free, so moving running ones adds "
		   "little."},
	{.id = "FC-5.3",
	 .claim = "WAL over CM 476 % on average",
	 .says = "Weighing I/O, memory and CPU (WAL) improves slowdown, against CPU and memory "
		 "only "
		 "(CM)",
	 .reason = "CM moves jobs away from machines that are short of memory, which helps their "
		   "disks as well."},
	{.id = "FC-5.3",
	 .claim = "WAL-FC over WAL 125 % on average",
	 .says = "A feedback controller of weights and buffers (WAL-FC) improves slowdown, against "
		 "WAL",
	 .reason = "The printed controller changes the buffer by half a megabyte per unit of "
		   "slowdown: it stays near its start."},
	{.id = "FC-5.3",
	 .claim = "WAL-FC over WAL up to 282 %",
	 .says = "the same, at most",
	 .reason = "The printed controller changes the buffer by half a megabyte per unit of "
		   "slowdown: it stays near its start."},
	{.id = "ACM-3",
	 .claim = "IOCM-RE is significantly better than CPU and MEM",
	 .says = "With much I/O, I/O-aware placement (IOCM-RE) beats placement by CPU or memory"},
	{.id = "ACM-9",
	 .claim = "mean slowdown improves by at least 23.6 %",
	 .says = "Six real applications: I/O-aware balancing (IOCM-PM) lowers slowdown, at least",
	 .reason = "LU asks more of the disks than all of them have, so no placement helps it "
		   "much."},
	{.id = "ACM-9",
	 .claim = "... by up to 88.0 %",
	 .says = "the same, at most",
	 .reason =
		 "The other policies leave only a few running tasks at home; avoiding that cannot "
		 "save more."},
	{.id = "ACM-15",
	 .claim = "IOCM-RE over CPU-RE up to a factor of 5",
	 .says = "Unequal machines: I/O-aware placement (IOCM-RE) is faster than CPU-RE, at most",
	 .reason = "CPU-RE ignores the disks, so its loss grows with the load."},
	{.id = "ACM-15",
	 .claim = "IOCM-RE over MEM-RE up to a factor of 3",
	 .says = "the same, against MEM-RE"},
	{.id = "COM-ABS",
	 .claim = "... by 74 % on average",
	 .says = "Balancing messages too (COM-aware) improves slowdown, against CPU-, MEM- and "
		 "IO-aware",
	 .reason = "A third of the cases have too few messages to be placed differently."},
	{.id = "COM-ABS",
	 .claim = "slowdown improves by up to 206 %",
	 .says = "the same, at most",
	 .reason = WHY_SPREAD},
	{.id = "COM-10b",
	 .claim = "... by 42.2 % on average",
	 .says = "Five applications: COM-aware lowers slowdown",
	 .reason = WHY_SPREAD},
	{.id = "COM-10b",
	 .claim = "a single application improves by up to 75.9 %",
	 .says = "the same, at most",
	 .reason = WHY_SPREAD},
	{.id = "ZAT-ABS",
	 .claim = "the choice is right in 55 to 88 % of the cases",
	 .says = "Load vectors choose the faster of two machines for a command",
	 .printed = "0.55 to 0.88"},
	{.id = "ZAT-9.4.1",
	 .claim = "the run queue wins more often than real-valued cpu_idle",
	 .says = "The length of the run queue tells more than the idle time of the processor"},
};

const struct headline *headline_at(size_t i)
{
	return i < sizeof(headlines) / sizeof(headlines[0]) ? &headlines[i] : NULL;
}

int headline_find(const struct headline *h, const struct experiment *e)
{
	for (int i = 0; e && e->claims && e->claims[i].text; i++)
		if (!strcmp(e->claims[i].text, h->claim))
			return i;
	return -1;
}
