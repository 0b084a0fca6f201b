/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom rsh`, whose options are those of ssh: rsh_options.c reads them. */
#ifndef IOCOM_RSH_H
#define IOCOM_RSH_H

#include <stdbool.h>

#define RSH_FAILED 255 /* as ssh */

struct rsh {
	const char *user, *run_dir, *node, *escape; /* borrowed; NULL: not given */
	char *host;				    /* what `user` and `node` point into */
	bool null, verbose, background, tell;
	bool terminal, no_terminal;
	char *env;    /* ",NAME,NAME": to go along besides what a login has; NULL: none */
	char **words; /* of the command; none: a login */
};

#define RSH_DONE 1 /* help or version was printed */
/* 0 go on; RSH_DONE; RSH_FAILED with the sentence on standard error. */
int rsh_parse(struct rsh *rsh, int argc, char **argv);
void rsh_fini(struct rsh *rsh);
/* Says TEXT and WHAT on standard error.  RSH_FAILED. */
int rsh_usage(const char *text, const char *what);

/*
 * GO in a process of its own and of its own session, which gets a descriptor for
 * --status-fd.  In the caller: 0 once its command has started, else GO's status.
 */
int rsh_background(int (*go)(void *arg, int report_fd), void *arg);

#endif
