/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The papers' real applications as kinds of a generator; see applications.h.
 *
 * For its six, ACM gives: the share of I/O in the execution alone (Figure 11); that LU takes
 * considerably longest (Figure 10); that there are few writes and read-only data is duplicated (no
 * initial data to move); and that the jobs of one application are alike (constant values).  We
 * choose the rest: LU takes four times as long as the others; requests of the study's 256 KB and
 * no hits in the buffer (the share is time at the disk); 2 % of the bytes are written; parallel
 * jobs, with 2-32 tasks and a barrier every 100 ms as in the study's synthetic jobs.  The access
 * rate follows from the share s and the disk's E(s):
 *
 * 	lambda = s / ((1 - s) E(s))      per ms of computation
 *
 * For its five, COM says what they compute but gives no number.  We choose 16 tasks, one message
 * per barrier, and rates and sizes within its synthetic study (0.1-0.5 per ms, 512 KB-2 MB) that
 * suit what the tasks exchange: rare large images (Render), parts of a grid (Semi, Vortex),
 * frequent small positions or concentrations (Molecular, React).  All are communication-intensive,
 * as in COM: at 1 Gbps they spend more time on messages than on computation (O-29), rate x size
 * > 125 KB/ms.
 */
#include "sim/workload/applications.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#define REQUEST_KB	  256.0
#define REQUEST_SD_KB	  51.2 /* a fifth, as in FC (O-39) */
#define WRITTEN		  0.02
#define BARRIER_MS	  100.0
#define COM_TASKS	  16
#define COM_IO_PER_MS	  1e-5 /* 0.01 per second (COM 6.1) */
#define COM_FAULTS_PER_MS 1e-5

static const struct {
	const char *name;
	double io_share;
	double length; /* execution time alone, relative to that of Dmine */
} io_applications[] = {
	{"Dmine", 0.74, 1}, {"Pgrep", 0.36, 1},	   {"LU", 0.99, 4},
	{"Titan", 0.24, 1}, {"Cholesky", 0.40, 1}, {"DB2", 0.82, 1},
};

static const struct {
	const char *name;
	double messages_per_ms, message_kb;
} com_applications[] = {
	{"Render", 0.1, 2000}, {"Molecular", 0.5, 512}, {"Semi", 0.2, 1000},
	{"React", 0.4, 512},   {"Vortex", 0.3, 512},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static double service_ms(double request_kb)
{
	return APPLICATION_DISK_FIXED_MS + request_kb / APPLICATION_DISK_MB_PER_S;
}

static void fill_io(unsigned int i, struct generator_kind *kind)
{
	double s = io_applications[i].io_share;

	*kind = (struct generator_kind){
		.share = 1,
		.cpu_factor = io_applications[i].length * (1 - s),
		.io_per_ms = s / ((1 - s) * service_ms(REQUEST_KB)),
		.request_kb = REQUEST_KB,
		.request_sd_kb = REQUEST_SD_KB,
		.requests = -1,
		.memory_mean_mb = 4,
		.faults_per_ms = 0.5,
		.write_fraction = WRITTEN,
		.parallel_share = 1,
		.tasks_min = 2,
		.tasks_max = 32,
		.barrier_ms = BARRIER_MS,
	};
	snprintf(kind->name, sizeof(kind->name), "%s", io_applications[i].name);
}

static void applications_fill_com(unsigned int i, struct generator_kind *kind)
{
	*kind = (struct generator_kind){
		.share = 1,
		.cpu_factor = 1,
		.io_per_ms = COM_IO_PER_MS,
		.request_kb = REQUEST_KB,
		.request_sd_kb = REQUEST_SD_KB,
		.requests = -1,
		.memory_mean_mb = 4,
		.faults_per_ms = COM_FAULTS_PER_MS,
		.parallel_share = 1,
		.tasks_min = COM_TASKS,
		.tasks_max = COM_TASKS,
		.barrier_ms = 1 / com_applications[i].messages_per_ms,
		.messages_per_ms = com_applications[i].messages_per_ms,
		.message_kb = com_applications[i].message_kb,
	};
	snprintf(kind->name, sizeof(kind->name), "%s", com_applications[i].name);
}

int application_kind(const char *name, struct generator_kind *kind)
{
	for (unsigned int i = 0; i < COUNT(io_applications); i++) {
		if (!strcasecmp(io_applications[i].name, name)) {
			fill_io(i, kind);
			return 0;
		}
	}
	for (unsigned int i = 0; i < COUNT(com_applications); i++) {
		if (!strcasecmp(com_applications[i].name, name)) {
			applications_fill_com(i, kind);
			return 0;
		}
	}
	return -ENOENT;
}

const char *application_name(enum application_group group, unsigned int i)
{
	if (group == APPLICATION_IO)
		return i < COUNT(io_applications) ? io_applications[i].name : NULL;
	return i < COUNT(com_applications) ? com_applications[i].name : NULL;
}

double application_io_share(const struct generator_kind *kind)
{
	double io = kind->io_per_ms * service_ms(kind->request_kb);

	return io / (1 + io);
}
