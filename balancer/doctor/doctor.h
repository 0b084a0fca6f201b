/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom doctor` checks all that an agent needs and says what is wrong.
 *
 * Each check adds one line to the report.  The report is one JSON document; the
 * text for people is printed from it, so both say the same.
 *
 *   cmd_doctor.c     options, order        doctor_kernel.c   kernel, hooks, monitor, limits
 *   doctor.c         the report            doctor_tools.c    munge, clock, criu
 *   doctor_node.c    configuration, directories    doctor_ports.c   ports
 *   doctor_agent.c   the running agent     doctor_access.c   PAM, the audit log
 *   doctor_net.c     its network part           doctor_owner.c    the owner's rules
 *   doctor_moves.c   jobs that move
 */
#ifndef IOCOM_DOCTOR_H
#define IOCOM_DOCTOR_H

#include <jansson.h>
#include <msgpack.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "balancer/settings/settings.h"

/* In ascending order: the report has the worst state of its lines. */
enum doctor_state {
	DOCTOR_SKIPPED,	 /* not checked: not needed or not permitted */
	DOCTOR_OK,	 /* as it should be */
	DOCTOR_DEGRADED, /* works less well; the line says what is lost */
	DOCTOR_BROKEN,	 /* an agent would not start or not work as configured */
};

struct doctor {
	const char *config;  /* --config FILE, or NULL */
	const char *run_dir; /* directory of the agent to ask */
	const char *path;    /* where to look for programs, as $PATH; may be NULL */
	bool root;
	bool no_agent; /* no agent is expected to run */
	/*
	 * The running agent's settings; else the configuration, or the defaults if it is
	 * unreadable.
	 */
	struct settings set;
	bool configured; /* `set` is what iocomd uses or would use */
	pid_t agent_pid; /* pid of the agent that answered; 0: none answered */
	enum doctor_state worst;
	bool failed; /* there was no memory for a line, so there is no report */
	json_t *checks, *hooks, *degraded; /* arrays of the report */
};

/* Returns 0 or -ENOMEM. */
int doctor_init(struct doctor *d);
void doctor_deinit(struct doctor *d);
/*
 * Adds one line: the name of CHECK, its state, a sentence without a full stop, and the advice
 * what to do (NULL: nothing).  Returns the check's object, borrowed, for further members; NULL
 * if out of memory (json_object_set_new accepts that).
 */
__attribute__((format(printf, 5, 6))) json_t *doctor_add(struct doctor *d, const char *check,
							 enum doctor_state state,
							 const char *advice, const char *fmt, ...);
/* The whole report, which the caller owns; NULL: out of memory. */
json_t *doctor_report(const struct doctor *d);
/* Prints for people, at most WIDTH columns wide (0: each check on one line), in COLOUR or not. */
void doctor_print(const json_t *report, FILE *out, unsigned width, bool colour);

/* The checks.  They add lines and return nothing, because a failed check is a line, too. */
void doctor_kernel(struct doctor *d);
void doctor_limits(struct doctor *d);
void doctor_config(struct doctor *d); /* fills `set`: call it before all functions below */
/*
 * Asks the agent at RUN_DIR, if root runs it, for REQUEST; WHO (may be NULL) learns who runs it.
 * Returns 0 and ANSWER, or negative errno with the reason in ERR.
 */
int doctor_agent_ask(const char *run_dir, const msgpack_sbuffer *request, struct ucred *who,
		     json_t **answer, struct iocom_err *err);
/* Puts a running agent's settings into `set`: call it before all that follow. */
void doctor_agent(struct doctor *d);
void doctor_directories(struct doctor *d);
void doctor_ports(struct doctor *d);
void doctor_net(struct doctor *d);
void doctor_owner(struct doctor *d);
void doctor_munge(struct doctor *d);
void doctor_clock(struct doctor *d);
void doctor_pam(struct doctor *d);
void doctor_audit(struct doctor *d);

/* CLOCK_MONOTONIC in milliseconds. */
double doctor_now_ms(void);
void doctor_criu(struct doctor *d);
void doctor_moves(struct doctor *d);

/*
 * Runs PROGRAM with WORDS (at most 6, then NULL) and an empty environment.  Returns its wait
 * status, with what it says in OUT; -1: it was not started, or was killed because it took too long.
 */
int doctor_run(const char *program, const char *const *words, char *out, size_t size);

#endif
