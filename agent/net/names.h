/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Looks up the addresses of hosts for the network part, which can open no file and no socket of
 * the name service:
 *
 *   names_ask --> queue --> socket pair --> helper process, NAMES_WORKERS threads: getaddrinfo
 *   names_found <-- loop <-- socket pair <--'
 *
 * The helper is forked before the network part confines itself.  It is the same user without
 * capabilities, but sees the machine's files (resolv.conf, hosts, nsswitch.conf, the modules of
 * the name service) and has no filter of system calls.  What it answers is checked as a
 * stranger's.  It cannot be started again: without it the network part ends, and root starts both
 * anew.
 *
 * Changes are seen: glibc reads hosts at each look-up, resolv.conf when it has changed (since
 * 2.26), and nsswitch.conf likewise (since 2.33).
 *
 * A look-up lasts as long as the resolver tries; a host whose servers are dead takes one worker for
 * that time.  Asks for one host share one look-up.  A numeric host never goes to the helper.
 */
#ifndef IOCOM_NAMES_H
#define IOCOM_NAMES_H

#include <netinet/in.h>
#include <stddef.h>
#include <sys/types.h>

#include "agent/base/loop.h"
#include "agent/gate/net_limits.h"
#include "iocom/err.h"

#define NAMES_WORKERS	    4
#define NAMES_ADDRESSES_MAX 8
/* All workers busy for so long without an answer of any: the helper hangs. */
#define NAMES_HUNG_NS  (600 * 1000000000ull)
#define NAMES_START_MS 10000

/* --- the helper -------------------------------------------------------------------------- */

struct names_helper {
	int fd; /* the channel to it, close-on-exec */
	pid_t pid;
};

/*
 * Forks the helper, which becomes UID and GID, and waits until it has.  Call it as root, with one
 * thread.  It ends when the channel is closed, or with its parent; nobody need wait for it.
 * Returns 0; negative errno with the reason in ERR: there is no helper.
 */
int names_start(uid_t uid, gid_t gid, struct names_helper *helper, struct iocom_err *err);

/* --- asking it ---------------------------------------------------------------------------- */

struct names;

struct names_answer {
	size_t n; /* 0: not found */
	/* Numeric, IPv6 without brackets or scope, in the order in which to try them. */
	char addresses[NAMES_ADDRESSES_MAX][INET6_ADDRSTRLEN];
	const char *why; /* if not found; else NULL */
};

/* ANSWER is borrowed, and never NULL.  It may ask and forget, but not free the struct names. */
typedef void (*names_found)(void *arg, const struct names_answer *answer);

struct names_config {
	struct loop *loop; /* borrowed */
	int fd;		   /* of names_start; taken, also when names_new fails */
	/*
	 * Called once, from the loop, after all asks were answered "not found": the helper is gone,
	 * hangs, or has sent what is no answer.  Must not free the struct names.
	 */
	void (*broken)(void *arg, const char *why);
	void *arg;
};

/* Returns 0 or negative errno with the reason in ERR. */
int names_new(struct names **names, const struct names_config *config, struct iocom_err *err);
void names_free(struct names *names); /* asks are dropped without an answer; NULL is fine */

/*
 * Asks for HOST (a name, or numeric, IPv6 with or without brackets) in the name of ARG, which has
 * one ask at a time.  Returns 0: FOUND is called once, from the loop, or before this returns (the
 * host is numeric, or there is no helper: NAMES is NULL or broken); or ARG waits for HOST already,
 * and keeps its place.  Otherwise FOUND is not called: -EINVAL: no host, or it is longer than
 * IOCOM_ADDRESS_MAX - 1; -EBUSY: ARG waits for another host; -ENOBUFS: NAMES_ASKS_MAX; -ENOMEM.
 */
int names_ask(struct names *names, const char *host, names_found found, void *arg);
/* Drops the ask of ARG, if there is one.  NAMES may be NULL. */
void names_forget(struct names *names, const void *arg);
size_t names_waiting(const struct names *names); /* asks without an answer; NULL: 0 */

#endif
