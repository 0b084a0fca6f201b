/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What is learned of the communication of a class of parallel jobs with a number of tasks
 * ("CLASS@TASKS"): who sends how much to whom in a run, and the pattern.
 *
 * A run moves each pair half-way to what it measured, as profile.h does; a pair that it could not
 * see, because both ranks were on one node and talk by shared memory, stays as it was.  A pair of
 * the pattern that no run has seen gets the mean of those alike that were: of the same distance
 * between the ranks, or of the same direction between master and slaves.
 */
#ifndef IOCOM_PROFILE_TALK_H
#define IOCOM_PROFILE_TALK_H

#include "balancer/profile/profile.h"
#include "user/exchange/join.h"

#define PROFILE_PAIRS_MAX      4096 /* that are kept, those with most bytes */
#define PROFILE_TALK_TASKS_MAX 1024 /* of larger gangs nothing is learned */

struct profile_pair {
	uint16_t from, to;
	bool seen; /* measured, not concluded from the pattern */
	double bytes, messages;
};

struct profile_talk {
	uint32_t runs, tasks;
	enum pattern_kind pattern;
	uint32_t master; /* of PATTERN_MASTER */
	struct profile_pair *pairs;
	size_t n;
};

/* The key of a class's runs with TASKS tasks.  Returns 0 or -ENAMETOOLONG. */
int profile_talk_class(const char *class_name, uint32_t tasks, char out[PROFILE_CLASS_MAX]);
/*
 * Makes what one run measured into TALK, with the pairs that it could not see, as far as the
 * pattern tells; LAST, what earlier runs measured, has others (NULL: nothing).  Returns 0; -E2BIG:
 * too many tasks; -ENODATA: nothing was sent; -ENOMEM.
 */
int profile_talk_merge(struct profile_talk *talk, const struct join *join,
		       const struct profile_talk *last);
void profile_talk_fini(struct profile_talk *talk);
/* Learns from one run; CLASS_NAME is that of profile_talk_class.  Returns 0 or negative errno. */
int profile_talk_learn(struct profile_store *store, uid_t uid, const char *class_name,
		       const struct join *join, struct iocom_err *err);
/* Returns 0: TALK is the caller's; -ENOENT: nothing is known; -EIO, -ENOMEM. */
int profile_talk_get(struct profile_store *store, uid_t uid, const char *class_name,
		     struct profile_talk *talk, struct iocom_err *err);
/*
 * T_COM of RANK if all others were at other nodes: what it sends and receives at MB_PER_S, and
 * MESSAGE_MS for each message.
 */
double profile_talk_com_ms(const struct profile_talk *talk, uint32_t rank, double mb_per_s,
			   double message_ms);

#endif
