/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Handles shims that renew their jobs' leases at home; see leases.h. */
#include <errno.h>
#include <string.h>

#include "user/clock.h"
#include "agent/home/home_leases.h"

/* The journal still has the secret of a lost job: its shim must be told. */
static int find_secret(struct home *home, const struct lease_held *held, const char *job,
		       uint8_t secret[RENEWAL_SECRET], struct iocom_err *err)
{
	int rc;

	if (held && held->renews) {
		memcpy(secret, held->secret, RENEWAL_SECRET);
		return 0;
	}
	rc = journal_lease_secret(home->journal, job, secret, err);
	if (rc == -ENOENT)
		return iocom_err_set(err, rc, "renewal refused: job %s never had a lease here",
				     job);
	return rc;
}

/*
 * Replaces SECRET by the key that signed ASK: the one that is derived from it, or SECRET itself, of
 * which shims from before there was a derived one have nothing else.  Returns false: neither did.
 */
static bool renewal_find_key(const struct renewal_ask *ask, uint8_t secret[RENEWAL_SECRET])
{
	uint8_t key[SECRET_KEY];
	bool derived;

	_Static_assert(SECRET_KEY == RENEWAL_SECRET && SECRET_BYTES == RENEWAL_SECRET, "same size");
	secret_derive(key, secret, SECRET_RENEWAL, ask->job, "");
	derived = renewal_ask_true(ask, key);
	if (derived)
		memcpy(secret, key, RENEWAL_SECRET);
	explicit_bzero(key, sizeof(key));
	return derived || renewal_ask_true(ask, secret);
}

/*
 * Checks that ASK comes from the job's shim, and for the first time.  SECRET becomes the key for
 * the answer.
 */
static int renewal_check(struct home *home, const struct renewal_ask *ask,
			 uint8_t secret[RENEWAL_SECRET], struct iocom_err *err)
{
	int rc;

	if (!renewal_find_key(ask, secret))
		return iocom_err_set(err, -EACCES,
				     "renewal refused: it is not signed by the supervisor of job "
				     "%s",
				     ask->job);
	/*
	 * Without a writable journal nothing is renewed: a question that it forgets could be
	 * replayed.  It need not be on the disk: if a power cut undoes it, a replay makes home wait
	 * longer for this lease, never shorter, and its answer serves nobody.  Nor need the answer
	 * wait: after a power cut home gives each lease that it knows its whole time again.
	 */
	rc = journal_lease_number(home->journal, ask->job, ask->number, err);
	if (rc == -EALREADY)
		return iocom_err_set(
			err, rc,
			"renewal refused: number %llu for job %s was used before (a replay)",
			(unsigned long long)ask->number, ask->job);
	if (rc)
		base_journal_failed(home->base, err);
	return rc;
}

int home_renew(void *arg, const void *payload, uint32_t length, uint8_t answer[RENEWAL_ANSWER],
	       struct iocom_err *err)
{
	struct home *home = arg;
	uint8_t secret[RENEWAL_SECRET];
	struct renewal_ask ask;
	struct lease_held *held;
	int rc;

	if (renewal_ask_unpack(&ask, payload, length)) {
		home->base->counters->leases_refused++;
		return iocom_err_set(err, -EBADMSG, "renewal refused: it is malformed");
	}
	held = lease_find(home, ask.job);
	rc = find_secret(home, held, ask.job, secret, err);
	if (!rc)
		rc = renewal_check(home, &ask, secret, err);
	if (!rc && held) {
		held->until_ns = loop_boot_ns(home->base->loop) + held->lease_ms * CLOCK_NS_PER_MS;
		home->base->counters->leases_renewed++;
	} else {
		home->base->counters->leases_refused++;
	}
	if (!rc && !held)
		log_provoked(
			home->base->log, LOG_L_WARNING,
			"renewal refused: job %s has no lease any more: it is over, or was given "
			"to another",
			ask.job);
	if (!rc)
		renewal_answer_pack(answer, secret, ask.job, ask.number, held != NULL);
	explicit_bzero(secret, sizeof(secret));
	return rc;
}
