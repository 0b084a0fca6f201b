/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See talk_learn.h. */
#include "agent/home/talk_learn.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/home/home_own.h"
#include "balancer/profile/profile_talk.h"
#include "user/gang_name.h"
#include "user/monitor/job_times.h"

struct ended {
	bool found, well;
};

static void talk_learn_look(void *arg, const struct journal_job *job)
{
	struct ended *e = arg;

	e->found = job->at_home;
	e->well = job->end_ns && !job->exit_kind && !job->exit_value;
}

/* Returns the number of GANG's parts if all have ended well, else 0. */
static uint32_t talk_learn_parts(struct home *home, uid_t uid, const char *gang)
{
	char job[SPEC_JOB_MAX];

	for (uint32_t n = 0; n < GANG_PARTS_MAX; n++) {
		struct ended e = {0};

		if (gang_part_name(gang, n, job) ||
		    journal_find(home->journal, job, uid, talk_learn_look, &e) || !e.found)
			return n;
		if (!e.well)
			return 0;
	}
	return GANG_PARTS_MAX;
}

/* Reads what part NUMBER, which there is, said.  Returns 0; -EBADMSG, -ENOMEM. */
static int talk_learn_read(struct home *home, const char *gang, uint32_t number,
			   struct exchange *said)
{
	char job[SPEC_JOB_MAX];
	struct iocom_err err = {0};
	void *report;
	size_t length;
	int rc;

	if (gang_part_name(gang, number, job) ||
	    journal_talk_get(home->journal, job, &report, &length, &err))
		return 0; /* it sent nothing */
	rc = exchange_unpack(said, report, length);
	free(report);
	return rc;
}

/* Joins N parts; those that said nothing are empty. */
static void talk_learn_join(struct home *home, uid_t uid, const char *class_name,
			    const struct exchange *said, size_t n)
{
	struct join_part *parts = calloc(n, sizeof(*parts));
	char key[PROFILE_CLASS_MAX];
	struct iocom_err err = {0};
	struct join join = {0};
	int rc = parts ? 0 : -ENOMEM;

	for (size_t i = 0; parts && i < n; i++)
		parts[i].said = &said[i];
	if (!rc)
		rc = join_parts(&join, parts, n, 0, NULL,
				job_times_mb_per_s(home->base->set->network_mb_per_s));
	if (!rc && !profile_talk_class(class_name, join.tasks, key))
		rc = profile_talk_learn(home->profiles, uid, key, &join, &err);
	if (rc) {
		home->base->counters->runs_not_learned++;
		if (rc != -EBUSY && *err.text)
			base_journal_failed(home->base, &err);
	}
	join_fini(&join);
	free(parts);
}

void talk_learn(struct home *home, uid_t uid, const char *class_name, const char *job)
{
	char gang[SPEC_JOB_MAX];
	struct exchange *said;
	uint32_t n;
	int rc = 0;

	if (!*class_name || !gang_part_of(job, gang, NULL))
		return;
	/* Of a part that is still running, or failed, or says what cannot be read: nothing. */
	n = talk_learn_parts(home, uid, gang);
	if (!n)
		return;
	said = calloc(n, sizeof(*said));
	if (!said) {
		home->base->counters->runs_not_learned++;
		return;
	}
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = talk_learn_read(home, gang, i, &said[i]);
	if (!rc)
		talk_learn_join(home, uid, class_name, said, n);
	for (uint32_t i = 0; i < n; i++)
		exchange_fini(&said[i]);
	free(said);
}
