/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Processes that confine themselves (agent/net/confine.h), for tests as root: each runs in a child
 * of the test, with an empty directory of root.  What goes wrong in the child fails the test.
 */
#ifndef IOCOM_CONFINED_H
#define IOCOM_CONFINED_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent/net/confine.h"

#define CONFINED_UID	 64990
#define CONFINED_GID	 64991
#define CONFINED_WAIT_MS 10000

/* In a child: what went wrong goes to the test, and the child ends. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			confined_fails(__FILE__, __LINE__, #condition);                            \
	} while (0)

/* Memory of the test and its child. */
struct confined_page {
	char failed[300];
	struct confined got;
	struct iocom_err err;
	int rc, number;
};

extern struct confined_page *confined;
extern char *confined_directory;

/* For cmocka_run_group_tests. */
int confined_set_up(void **state);
int confined_tear_down(void **state);

/* --- in the test ---------------------------------------------------------------------------- */

pid_t confined_start(void (*run)(void *arg), void *arg);
/* Waits until the child calls confined_waits; then lets it go on. */
void confined_await(void);
void confined_let_go(void);
void confined_ends_well(pid_t pid);
/* Whether PID, a child or one of the subreaper, is killed soon without our doing. */
bool confined_is_killed(pid_t pid);
void confined_run(void (*run)(void *arg), void *arg); /* both */
/* The line NAME in the status of task TASK of process PID. */
const char *confined_status(pid_t pid, const char *task, const char *name);

/* --- in the child --------------------------------------------------------------------------- */

_Noreturn void confined_fails(const char *file, int line, const char *what);
void confined_waits(void);
/* Call confine_early and confine_late, which must succeed. */
void confined_early(void);
void confined_late(void);

#endif
