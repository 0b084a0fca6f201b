/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom doctor`: looks at all that an agent needs and says what is wrong.
 *
 * Each check adds one line to the report.  The report is one JSON document; the
 * text that people read is printed from it, so both say the same.
 *
 *   cmd_doctor.c     options, order        doctor_kernel.c   kernel, hooks, monitor, limits
 *   doctor.c         the report            doctor_tools.c    munge, clock, criu
 *   doctor_node.c    configuration, directories    doctor_ports.c   ports
 *   doctor_agent.c   the running agent
 */
#ifndef IOCOM_DOCTOR_H
#define IOCOM_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "balancer/settings/settings.h"

/* Ordered: the worst is the report's. */
enum doctor_state {
	DOCTOR_SKIPPED,	 /* not looked at: not needed, or not permitted */
	DOCTOR_OK,	 /* as it should be */
	DOCTOR_DEGRADED, /* works, less well; says what is lost */
	DOCTOR_BROKEN,	 /* an agent would not start, or not work as configured */
};

struct doctor {
	const char *config;  /* --config FILE, or NULL */
	const char *run_dir; /* where the agent is asked */
	const char *path;    /* where programs are looked for, as $PATH; may be NULL */
	bool root;
	bool no_agent; /* none is expected to run */
	/* What the running agent uses; else the configuration, or the defaults where it cannot
	 * be read. */
	struct settings set;
	bool configured; /* `set` is what iocomd uses, or would */
	pid_t agent_pid; /* of the agent that answered; 0: none */
	enum doctor_state worst;
	bool failed;			   /* out of memory for a line: there is no report */
	json_t *checks, *hooks, *degraded; /* arrays of the report */
};

/* 0 or -ENOMEM. */
int doctor_init(struct doctor *d);
void doctor_deinit(struct doctor *d);
/*
 * Adds one line: CHECK's name, its state, a sentence without a full stop, and what to
 * do about it (NULL: nothing).  Result: the check's object for further members,
 * borrowed; NULL when memory is out (json_object_set_new takes that).
 */
__attribute__((format(printf, 5, 6))) json_t *doctor_add(struct doctor *d, const char *check,
							 enum doctor_state state,
							 const char *advice, const char *fmt, ...);
/* The whole report, the caller's; NULL when memory is out. */
json_t *doctor_report(const struct doctor *d);
/* For people, at most WIDTH columns wide (0: each check on one line), COLOUR or not. */
void doctor_print(const json_t *report, FILE *out, unsigned width, bool colour);

/* The checks.  They add lines and return nothing: a check that fails is a line, too. */
void doctor_kernel(struct doctor *d);
void doctor_limits(struct doctor *d);
void doctor_config(struct doctor *d); /* fills `set`: before all that follow */
/* Puts what a running agent was told into `set`: before all that follow. */
void doctor_agent(struct doctor *d);
void doctor_directories(struct doctor *d);
void doctor_ports(struct doctor *d);
void doctor_munge(struct doctor *d);
void doctor_clock(struct doctor *d);

/* CLOCK_MONOTONIC in milliseconds. */
double doctor_now_ms(void);
void doctor_criu(struct doctor *d);

/*
 * Whether only root can change the file PATH (resolved; each directory above it, too).
 * 0; -EPERM with WHY as a sentence; negative errno.
 */
int doctor_trusted(const char *path, char *why, size_t size);

#endif
