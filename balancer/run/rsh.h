/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom rsh` has the options of ssh; rsh_options.c reads them. */
#ifndef IOCOM_RSH_H
#define IOCOM_RSH_H

#include <stdbool.h>

#define RSH_FAILED 255 /* as ssh does */

struct rsh {
	const char *user, *run_dir, *node, *escape; /* borrowed; NULL: not given */
	char *host;				    /* what `user` and `node` point into */
	bool null, verbose, background, tell;
	bool terminal, no_terminal;
	char *env;    /* ",NAME,NAME": variables to pass besides those of a login; NULL: none */
	char **words; /* the words of the command; none: it is a login */
};

#define RSH_DONE 1 /* help or version was printed */
/* Returns 0: go on; RSH_DONE; RSH_FAILED with a sentence that says why on standard error. */
int rsh_parse(struct rsh *rsh, int argc, char **argv);
void rsh_fini(struct rsh *rsh);
/* Prints TEXT and WHAT on standard error.  Returns RSH_FAILED. */
int rsh_usage(const char *text, const char *what);

/*
 * Runs GO in a process and session of its own, with a descriptor for --status-fd.  The caller
 * gets 0 once the command has started, else GO's status.
 */
int rsh_background(int (*go)(void *arg, int report_fd), void *arg);

#endif
