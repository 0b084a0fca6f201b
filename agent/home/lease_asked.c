/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Shims that ask home for their jobs' leases; see leases.h. */
#include <errno.h>
#include <string.h>

#include "user/clock.h"
#include "agent/jobs/leases.h"

/* Of what is given up the journal has it yet: its shim is to be told. */
static int find_secret(struct agent *a, const struct lease_held *held, const char *job,
		       uint8_t secret[RENEWAL_SECRET], struct iocom_err *err)
{
	int rc;

	if (held && held->renews) {
		memcpy(secret, held->secret, RENEWAL_SECRET);
		return 0;
	}
	rc = journal_lease_secret(a->journal, job, secret, err);
	if (rc == -ENOENT)
		return iocom_err_set(err, rc, "renewal refused: job %s never had a lease here",
				     job);
	return rc;
}

/* Whether ASK comes from the job's shim, and for the first time. */
static int lease_asked_check(struct agent *a, const struct renewal_ask *ask,
			     const uint8_t secret[RENEWAL_SECRET], struct iocom_err *err)
{
	int rc;

	if (!renewal_ask_true(ask, secret))
		return iocom_err_set(err, -EACCES,
				     "renewal refused: it is not signed by the supervisor of job "
				     "%s",
				     ask->job);
	/* A journal that cannot be written renews nothing: what it forgets could be shown again. */
	rc = journal_lease_number(a->journal, ask->job, ask->number, err);
	if (rc == -EALREADY)
		return iocom_err_set(err, rc,
				     "renewal refused: number %llu for job %s was here before (a "
				     "replay)",
				     (unsigned long long)ask->number, ask->job);
	if (rc)
		agent_journal_failed(a, err);
	return rc;
}

int lease_asked(struct agent *a, const void *payload, uint32_t length,
		uint8_t answer[RENEWAL_ANSWER], struct iocom_err *err)
{
	uint8_t secret[RENEWAL_SECRET];
	struct renewal_ask ask;
	struct lease_held *held;
	int rc;

	if (renewal_ask_unpack(&ask, payload, length)) {
		a->counters.leases_refused++;
		return iocom_err_set(err, -EBADMSG, "renewal refused: it is malformed");
	}
	held = lease_find(a, ask.job);
	rc = find_secret(a, held, ask.job, secret, err);
	if (!rc)
		rc = lease_asked_check(a, &ask, secret, err);
	if (!rc && held) {
		held->until_ns = clock_boot_ns() + held->lease_ms * CLOCK_NS_PER_MS;
		a->counters.leases_renewed++;
	} else {
		a->counters.leases_refused++;
	}
	if (!rc && !held)
		log_provoked(
			&a->log, LOG_L_WARNING,
			"renewal refused: job %s has no lease any more: it is over, or was given "
			"to another",
			ask.job);
	if (!rc)
		renewal_answer_pack(answer, secret, ask.job, ask.number, held != NULL);
	explicit_bzero(secret, sizeof(secret));
	return rc;
}
