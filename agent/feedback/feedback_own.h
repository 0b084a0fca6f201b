/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the feedback controller share. */
#ifndef IOCOM_FEEDBACK_OWN_H
#define IOCOM_FEEDBACK_OWN_H

#include "agent/base/question_thread.h"
#include "agent/feedback/feedback.h"
#include "agent/feedback/hand.h"
#include "iocom/rules.h"

#define FEEDBACK_STEPS 16 /* the newest ones are kept */

struct feedback_step {
	uint64_t real_ns;
	double from_mb, to_mb, wanted_mb;
	const char *why; /* static */
	bool dry;
};

/* The buffer that is applied, and how it follows the one that is wanted. */
struct feedback_buffer {
	double memory_mb; /* of the node, when this began; 0: not begun */
	double applied_mb, wanted_mb, least_mb, most_mb;
	double error_mb;      /* after the last sample; 0 within the band */
	int sign;	      /* of the error */
	unsigned persisted;   /* samples in a row with this sign */
	const char *why;      /* of the last sample; static */
	const char *moved_by; /* why the wanted one moved last; static */
	int bound;	      /* -1 at the least, 1 at the most, as was logged */
	uint32_t ended;	      /* jobs since the last sample */
};

struct feedback {
	struct feedback_config config;
	const struct base *base;
	enum settings_feedback_mode mode;
	struct settings_feedback set; /* as the controllers were made by */
	struct rules *weights, *rules;
	unsigned recalled;	       /* slowdowns taken from the journal */
	uint64_t ran;		       /* jobs that ran here and ended */
	double slowdown_sum, slowdown; /* of those since the last sample; their mean at the last */
	struct feedback_buffer buffer;
	struct feedback_step steps[FEEDBACK_STEPS]; /* a ring */
	uint64_t nsteps;			    /* ever */
	uint64_t sample_ns;			    /* when the next one is due (CLOCK_BOOTTIME) */
	uint64_t samples;

	struct cgroup_mounts mounts;
	bool mounted;
	struct iocom_err mounts_err;
	struct hand *hand; /* NULL: there are no mounts */
	struct question_thread *thread;
	bool turning; /* a turn is under way */
	/* What the last turn found. */
	struct hand_job *jobs;
	size_t njobs;
	char failure[256]; /* the last one; "" */
	/* What jobs had read when the last turn began. */
	struct feedback_read {
		char job[SPEC_JOB_MAX];
		double read_mb, recent_mb; /* in all; lately */
	} * reads;
	size_t nreads;
};

/* --- feedback.c --- */

/* Says how the buffer is held on this machine, or why not. */
void feedback_holds(const struct feedback *feedback, char *out, size_t size);

/* --- feedback_node.c --- */

/*
 * Shows the predictive controller the jobs, and fills OUTCOME's resources: what the gradient
 * controller looks at.  Returns 0 or negative errno.
 */
int feedback_look(const struct feedback *feedback, const struct iocom_vector *own,
		  const struct guest_running *jobs, size_t njobs, struct rules_outcome *outcome);

/* --- feedback_buffer.c --- */

/* Begins with the bounds of the settings and MEMORY_MB. */
void feedback_buffer_begin(struct feedback *feedback, double memory_mb);
/* Takes a sample; the rules want WANTED_MB because of WHY.  Returns true after a step. */
bool feedback_buffer_sample(struct feedback *feedback, double wanted_mb, const char *why);

/* --- feedback_turn.c --- */

/* Begins a turn of the hand with the buffer as it is applied now, unless one is under way. */
void feedback_turn(struct feedback *feedback);
/* Counts and logs what the hand did. */
void feedback_account(struct feedback *feedback, const struct hand_done *done);

#endif
