/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The machines of the papers (MODEL 5.8), and one of our own, by name.
 *
 *   fc        FC Table 5.1
 *   acm       ACM Table I disk; processor, memory, network of FC (O-40)
 *   acm-ageN  ACM Table IV disks after N years in the node of System A; from age 4 on the printed
 *             seek times repeat the bandwidth column (E-9): acm-ageN has the intended times,
 *             acm-ageN-printed the printed ones
 *   com       COM Table 1; buffer as in FC, requests as in ACM (the paper prints neither)
 *   vax       ZAT: 1 MIPS, 4 MB, Ethernet; the disk serves 40 blocks of 1 KB per second
 *   acm-a..e  ACM Table VI: systems of six groups of ten; the bandwidth selects the age
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cluster.h"

struct named_machine {
	const char *name;
	struct sim_machine machine;
};

/* cpu, cores, ram, buffer, fixed, disk, request, sd, network */
#define AGED(fixed, disk) 100, 1, 480, 64, fixed, disk, 256, 51.2, 12.5

static const struct named_machine machines[] = {
	{"fc", {800, 1, 640, 160, 8, 40, 250, 50, 125}},
	{"acm", {800, 1, 640, 160, 5.4 + 3, 31, 256, 51.2, 125}},
	{"acm-age1", {AGED(5.3 + 3, 20)}},
	{"acm-age2", {AGED(5.89 + 3.33, 14.3)}},
	{"acm-age3", {AGED(6.54 + 3.69, 10.2)}},
	{"acm-age4", {AGED(7.27 + 4.11, 7.29)}},
	{"acm-age5", {AGED(8.08 + 4.56, 5.21)}},
	{"acm-age6", {AGED(8.98 + 5.07, 3.72)}},
	{"acm-age4-printed", {AGED(7.29 + 4.11, 7.29)}},
	{"acm-age5-printed", {AGED(5.21 + 4.56, 5.21)}},
	{"acm-age6-printed", {AGED(3.72 + 5.07, 3.72)}},
	{"com", {1000, 1, 1000, 160, 8, 40, 256, 51.2, 125}},
	{"vax", {1, 1, 4, 0.4, 24, 1, 1, 0, 1.25}},
	/* our own machine for traces: a present-day machine whose memory is unknown */
	{"host", {1000, 1, 0, 0, 0.2, 500, 256, 0, 125}},
};
#define MACHINES (sizeof(machines) / sizeof(machines[0]))

/* A group of Table VI: CPU speed, memory and the age of the disk. */
struct group {
	double mips, ram_mb;
	unsigned int age;
};
#define SLOW  50, 320
#define PLAIN 100, 480
#define QUICK 150, 640
#define FAST  200, 800

static const struct system {
	const char *name;
	bool printed;
	struct group groups[SIM_GROUPS];
} systems[] = {
	{"acm-a", false, {{PLAIN, 1}, {PLAIN, 1}, {PLAIN, 1}, {PLAIN, 1}, {PLAIN, 1}, {PLAIN, 1}}},
	{"acm-b", false, {{PLAIN, 1}, {QUICK, 1}, {QUICK, 1}, {SLOW, 1}, {PLAIN, 1}, {SLOW, 1}}},
	{"acm-c", false, {{PLAIN, 3}, {QUICK, 1}, {QUICK, 1}, {SLOW, 3}, {PLAIN, 1}, {SLOW, 3}}},
	{"acm-d", false, {{SLOW, 3}, {FAST, 1}, {FAST, 1}, {SLOW, 2}, {SLOW, 2}, {SLOW, 3}}},
	{"acm-e", false, {{SLOW, 5}, {FAST, 2}, {FAST, 1}, {SLOW, 5}, {SLOW, 4}, {SLOW, 6}}},
	{"acm-e-printed", true, {{SLOW, 5}, {FAST, 2}, {FAST, 1}, {SLOW, 5}, {SLOW, 4}, {SLOW, 6}}},
};
#define SYSTEMS (sizeof(systems) / sizeof(systems[0]))

const char *sim_machine_name(unsigned int i)
{
	return i < MACHINES ? machines[i].name : NULL;
}

int sim_machine_by_name(const char *name, struct sim_machine *m)
{
	for (size_t i = 0; i < MACHINES; i++) {
		if (strcmp(machines[i].name, name) == 0) {
			*m = machines[i].machine;
			return 0;
		}
	}
	return -ENOENT;
}

const char *sim_system_name(unsigned int i)
{
	return i < SYSTEMS ? systems[i].name : NULL;
}

static struct sim_machine group_machine(const struct group *g, bool printed)
{
	char name[24];
	struct sim_machine m;

	snprintf(name, sizeof(name), "acm-age%u%s", g->age,
		 printed && g->age > 3 ? "-printed" : "");
	if (sim_machine_by_name(name, &m))
		abort(); /* a row of the table above is missing */
	m.cpu_mips = g->mips;
	m.ram_mb = g->ram_mb;
	return m;
}

int sim_system_by_name(const char *name, struct sim_machine groups[SIM_GROUPS])
{
	for (size_t i = 0; i < SYSTEMS; i++) {
		const struct system *s = &systems[i];

		if (strcmp(s->name, name) != 0)
			continue;
		for (unsigned int k = 0; k < SIM_GROUPS; k++)
			groups[k] = group_machine(&s->groups[k], s->printed);
		return 0;
	}
	return -ENOENT;
}

static bool machines_within(double x, double least)
{
	return isfinite(x) && x >= least && x <= 1e12;
}

const char *sim_machine_check(const struct sim_machine *m)
{
	const double positive = 1e-9;

	if (!machines_within(m->cpu_mips, positive))
		return "cpu must be above 0 MIPS";
	if (!machines_within(m->cores, 1))
		return "cores must be 1 or more";
	if (!machines_within(m->ram_mb, 0) || !machines_within(m->buffer_mb, 0))
		return "ram and buffer must be 0 MB or more";
	if (m->ram_mb > 0 && m->buffer_mb >= m->ram_mb)
		return "buffer must be less than ram";
	if (!machines_within(m->disk_fixed_ms, 0))
		return "fixed must be 0 ms or more";
	if (!machines_within(m->disk_mb_per_s, positive))
		return "disk must be above 0 MB/s";
	if (!machines_within(m->request_kb, 0) || !machines_within(m->request_sd_kb, 0))
		return "request and sd must be 0 KB or more";
	if (!machines_within(m->network_mb_per_s, positive))
		return "net must be above 0 MB/s";
	return NULL;
}
