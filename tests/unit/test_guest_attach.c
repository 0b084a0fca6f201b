/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Clients that come to a job later, and what is kept of jobs that are over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/guest/replays.h"
#include "agent/guest/tickets.h"
#include "tests/lib/full_disk.h"
#include "tests/lib/guest_stage.h"
#include "tests/unit/guest_accounts.h"
#include "user/clock.h"
#include "user/process_slot.h"
#include "user/record.h"

#define MB (1ull << 20)

static const struct gstage_reader anna = {.uid = GSTAGE_UID}, bert = {.uid = 1001}, root = {0};

/* --- clients --------------------------------------------------------------------------------- */

static void test_a_running_job(void **state)
{
	const struct gstage_reader here = {.uid = GSTAGE_UID, .local = true};
	const struct gstage_reader here_bert = {.uid = 1001, .local = true};
	const struct gstage_reader elsewhere = {.uid = GSTAGE_UID, .node = "n7"};

	(void)state;
	gstage_run("n2-1-1", 10);
	assert_int_equal(gstage_attach("n2-1-1", &anna), 0);
	assert_int_equal(gstage_attach("n2-1-1", &here), 0);
	assert_int_equal(gstage_attach("n2-1-1", &root), 0);
	/* Nobody else learns which jobs a user has. */
	assert_int_equal(gstage_attach("n2-1-1", &here_bert), -ENOENT);
	assert_int_equal(gstage_attach("n2-1-9", &here), -ENOENT);
	assert_int_equal(gstage_attach("n2-1-1", &bert), -EACCES);
	assert_int_equal(gstage_attach("n2-1-9", &anna), -EACCES);
	assert_int_equal(gstage_attach("n2-1-1", &elsewhere), -EACCES);
	gstage.forged = true;
	assert_int_equal(gstage_attach("n2-1-1", &anna), -EACCES);
	gstage.forged = false;
	gstage.munged_rc = -EHOSTDOWN;
	assert_int_equal(gstage_attach("n2-1-1", &anna), -EHOSTDOWN);
	gstage.munged_rc = 0;
	shims.attach_rc = -EAGAIN;
	assert_int_equal(gstage_attach("n2-1-1", &anna), -EAGAIN);
	shims.attach_rc = -ESRCH; /* the shim is about to report that the job ended */
	assert_int_equal(gstage_attach("n2-1-1", &anna), -EAGAIN);
	trace_compare(__func__);
}

/* A message is obeyed only once, even if agents restart meanwhile. */
static void test_shown_again(void **state)
{
	const struct gstage_reader once = {.uid = GSTAGE_UID,
					   .nonce = "0123456789abcdef0123456789abcdef"};

	(void)state;
	gstage_run("n2-1-1", 10);
	full_disk_break("", 1, FULL_DISK_ALWAYS);
	assert_int_equal(gstage_attach("n2-1-1", &once), -EIO);
	full_disk_mend();
	assert_int_equal(gstage_attach("n2-1-1", &once), 0);
	assert_int_equal(gstage_attach("n2-1-1", &once), -EACCES);
	shim_record("n2-1-1")->lives = true;
	shim_record("n2-1-1")->found.started.pid = 10;
	gstage_restart();
	assert_int_equal(gstage_attach("n2-1-1", &once), -EACCES);
	gstage_pass(100);
	gstage_show();
	trace_compare(__func__);
}

/*
 * Only the journal knows this job: a client is told its end, but a client that wants the output is
 * refused.
 */
static void test_an_ended_job(void **state)
{
	const struct gstage_reader again = {.uid = GSTAGE_UID, .resume = "00ff"};

	(void)state;
	gstage_run("n2-1-1", 10);
	shim_exited("n2-1-1", 0, 3);
	gstage_pass(100);
	assert_int_equal(gstage_attach("n2-1-1", &anna), 0);
	assert_int_equal(gstage_attach("n2-1-1", &root), 0);
	assert_int_equal(gstage_attach("n2-1-1", &bert), -EACCES);
	assert_int_equal(gstage_attach("n2-1-1", &again), -ENOENT);
	/* If the job has a record, its output is sent. */
	shim_record("n2-1-1");
	shims.attach_rc = -ESRCH;
	assert_int_equal(gstage_attach("n2-1-1", &anna), 0);
	assert_int_equal(gstage_attach("n2-1-1", &again), 0);
	assert_int_equal(gstage_attach("n2-1-1", &bert), -EACCES);
	shims.replay_rc = -ENOMEM;
	assert_int_equal(gstage_attach("n2-1-1", &anna), -ENOMEM);
	trace_compare(__func__);
}

/* Its shim is gone, which this agent does not know yet: whoever resumes asks home again. */
static void test_resumes_as_its_shim_leaves(void **state)
{
	const struct gstage_reader again = {.uid = GSTAGE_UID, .resume = "00ff"};

	(void)state;
	gstage_run("n2-1-1", 10);
	shims.attach_rc = -ESRCH;
	assert_int_equal(gstage_attach("n2-1-1", &again), 0);
	assert_int_equal(gstage_attach("n2-1-1", &anna), -EAGAIN);
}

/* --- tickets --------------------------------------------------------------------------------- */

/* The key that the handshake of a client with TICKET for JOB needs. */
static int key_of(const char *job, enum stream_kind kind, const char *ticket,
		  uint8_t key[SECRET_KEY])
{
	struct stream_hello hello;

	stream_hello_fill(&hello, kind, job, "n1", ticket);
	return guest_stream_key(gstage.guest, &hello, key);
}

static struct gstage_reader holder(uid_t uid, const char *ticket)
{
	return (struct gstage_reader){.uid = uid, .ticket = ticket};
}

/* A ticket is good once, for its user and its job; its key is not that of the job's client. */
/*
 * A job that has moved has not ended.  Its client, which may be told so by a home that has just
 * begun, gets no answer and asks again; a new one hears why.
 */
static void test_a_job_that_moved(void **state)
{
	const struct gstage_reader again = {.uid = GSTAGE_UID, .resume = "00ff"};

	(void)state;
	gstage_run("n2-1-1", 10);
	shims.attach_rc = -ESRCH;
	shim_exited("n2-1-1", RECORD_MOVED, 0);
	gstage_pass(1);
	for (int i = 0; i < 2; i++) { /* before the journal has it, and then */
		assert_int_equal(gstage_attach("n2-1-1", &again), 0);
		assert_string_equal(gstage.said, "");
		assert_int_equal(gstage_attach("n2-1-1", &anna), -EAGAIN);
		assert_int_equal(gstage_attach("n2-1-1", &bert), -EACCES);
		gstage_pass(100);
	}
	assert_int_equal(shims.nreplays, 0);
}

static void test_ticket(void **state)
{
	struct job_order order = gstage_order("n2-1-1");
	uint8_t key[SECRET_KEY], wanted[SECRET_KEY];
	struct gstage_reader reader;
	char name[SECRET_TICKET_MAX];
	const struct peer_attach *t;

	(void)state;
	order.keyed = true;
	memset(order.secret, 3, sizeof(order.secret));
	gstage_run_order(&order, 10);
	gstage_run("n2-1-2", 11);
	assert_int_equal(key_of("n2-1-1", STREAM_KIND_START, "", key), 0);
	secret_derive(wanted, order.secret, SECRET_STREAM, "n2-1-1", "");
	assert_memory_equal(key, wanted, SECRET_KEY);
	t = gstage_ticket("n2-1-1", GSTAGE_UID);
	assert_non_null(t);
	assert_string_equal(t->job, "n2-1-1");
	assert_string_equal(t->node, "n1");
	assert_int_equal(t->port, gstage.set.port + 2);
	strcpy(name, t->ticket);
	secret_derive(wanted, order.secret, SECRET_ATTACH, "n2-1-1", name);
	assert_memory_equal(t->key, wanted, SECRET_KEY);
	assert_int_equal(key_of("n2-1-1", STREAM_KIND_ATTACH, name, key), 0);
	assert_memory_equal(key, wanted, SECRET_KEY);
	/* Not for another job, whose key is another, nor for another user. */
	assert_int_equal(key_of("n2-1-2", STREAM_KIND_ATTACH, name, key), 0);
	assert_memory_not_equal(key, wanted, SECRET_KEY);
	reader = holder(1001, name);
	assert_int_equal(gstage_attach("n2-1-1", &reader), -EACCES);
	reader = holder(GSTAGE_UID, name);
	assert_int_equal(gstage_attach("n2-1-2", &reader), -EACCES);
	reader.stream = "n2-1-2"; /* the stream's handshake and its message differ */
	assert_int_equal(gstage_attach("n2-1-1", &reader), -EACCES);
	reader.stream = NULL;
	assert_int_equal(gstage_attach("n2-1-1", &reader), 0);
	assert_true(shims.secure);
	assert_int_equal(gstage_attach("n2-1-1", &reader), -EACCES);
	/* Whoever resumes has no ticket any more; the shim knows whether the nonce is its own. */
	assert_int_equal(key_of("n2-1-1", STREAM_KIND_ATTACH, name, key), 0);
	assert_memory_equal(key, wanted, SECRET_KEY);
	reader.resume = "00ff";
	assert_int_equal(gstage_attach("n2-1-1", &reader), 0);
	reader = holder(GSTAGE_UID, "");
	assert_int_equal(gstage_attach("n2-1-1", &reader), -EACCES);
	reader.local = true;
	assert_int_equal(gstage_attach("n2-1-1", &reader), 0);
	assert_false(shims.secure);
	trace_compare(__func__);
}

static void test_ticket_is_old(void **state)
{
	char name[SECRET_TICKET_MAX];
	struct gstage_reader reader = holder(GSTAGE_UID, name);

	(void)state;
	gstage_run("n2-1-1", 10);
	strcpy(name, gstage_ticket("n2-1-1", GSTAGE_UID)->ticket);
	gstage_pass(TICKET_NS / CLOCK_NS_PER_MS - 1);
	assert_int_equal(gstage_attach("n2-1-1", &reader), 0);
	strcpy(name, gstage_ticket("n2-1-1", GSTAGE_UID)->ticket);
	gstage_pass(TICKET_NS / CLOCK_NS_PER_MS);
	assert_int_equal(gstage_attach("n2-1-1", &reader), -EACCES);
	/* Tickets are in memory only. */
	strcpy(name, gstage_ticket("n2-1-1", GSTAGE_UID)->ticket);
	shim_record("n2-1-1")->lives = true;
	shim_record("n2-1-1")->found.started.pid = 10;
	gstage_restart();
	assert_int_equal(gstage_attach("n2-1-1", &reader), -EACCES);
}

static void test_no_ticket(void **state)
{
	uint8_t key[SECRET_KEY];

	(void)state;
	gstage_run("n2-1-1", 10);
	/* Nobody else learns which jobs a user has; root may. */
	assert_null(gstage_ticket("n2-1-1", 1001));
	assert_null(gstage_ticket("n2-1-9", GSTAGE_UID));
	assert_non_null(gstage_ticket("n2-1-1", 0));
	assert_true(key_of("n2-1-9", STREAM_KIND_START, "", key) < 0);
	/* A job that an older version started has no secret in its record. */
	shim_record("n2-1-3")->old = true;
	assert_null(gstage_ticket("n2-1-3", GSTAGE_UID));
	assert_true(key_of("n2-1-3", STREAM_KIND_ATTACH, "", key) < 0);
	/* Of this one only the journal has the end: its key is not derived from anything. */
	shim_exited("n2-1-1", 0, 3);
	gstage_pass(100);
	assert_non_null(gstage_ticket("n2-1-1", GSTAGE_UID));
	assert_int_equal(gstage_attach("n2-1-1", &anna), 0);
	trace_compare(__func__);
}

/* After a restart of the agent the record has the secret. */
static void test_key_of_a_record(void **state)
{
	uint8_t secret[SECRET_BYTES], key[SECRET_KEY], wanted[SECRET_KEY];

	(void)state;
	gstage_run("n2-1-1", 10);
	shim_record("n2-1-1")->lives = true;
	shim_record("n2-1-1")->found.started.pid = 10;
	gstage_restart();
	memset(secret, 7, sizeof(secret)); /* guest_shims.c */
	secret_derive(wanted, secret, SECRET_STREAM, "n2-1-1", "");
	assert_int_equal(key_of("n2-1-1", STREAM_KIND_ATTACH, "", key), 0);
	assert_memory_equal(key, wanted, SECRET_KEY);
}

static size_t tickets(void)
{
	struct guest_counts counts;

	guest_count(gstage.guest, &counts);
	return counts.tickets;
}

static void test_too_many_tickets(void **state)
{
	size_t n = 0;

	(void)state;
	gstage_run("n2-1-1", 10);
	shim_record("n2-1-2")->found.uid = 1001;
	while (gstage_ticket("n2-1-1", GSTAGE_UID))
		n++;
	/* A user alone gets half of them. */
	assert_int_equal(n, (TICKETS_MAX - TICKETS_OF_ROOT) / 2);
	assert_int_equal(gstage.counters.tickets_refused, 1);
	assert_non_null(gstage_ticket("n2-1-2", 1001));
	while (gstage_ticket("n2-1-1", 0))
		n++;
	assert_int_equal(n, TICKETS_MAX - 1);
	assert_int_equal(tickets(), TICKETS_MAX);
	gstage_pass(TICKET_NS / CLOCK_NS_PER_MS);
	assert_int_equal(tickets(), 0);
	assert_non_null(gstage_ticket("n2-1-1", GSTAGE_UID));
	trace_compare(__func__);
}

/* The shim gets the attempt's secret for the record, and a key of its own for renewals. */
static void test_what_the_shim_gets(void **state)
{
	struct job_order order = gstage_order("n2-1-1");
	uint8_t wanted[SECRET_KEY];

	(void)state;
	order.keyed = order.renews = true;
	order.lease_ms = 30000;
	memset(order.secret, 3, sizeof(order.secret));
	gstage_run_order(&order, 10);
	assert_true(shims.secure);
	assert_memory_equal(shims.secret, order.secret, SECRET_BYTES);
	secret_derive(wanted, order.secret, SECRET_RENEWAL, "n2-1-1", "");
	assert_memory_equal(shims.renews_with, wanted, SECRET_KEY);
	/* A home that gives no secret: the job gets one for those who attach later. */
	memset(shims.secret, 0, sizeof(shims.secret));
	gstage_run("n2-1-2", 11);
	assert_false(sodium_is_zero(shims.secret, sizeof(shims.secret)));
}

static void test_no_attach_message(void **state)
{
	static const struct {
		const char *bytes, *why;
	} none[] = {{"x", "the attach message is not a MessagePack map"},
		    {"\x80" /* {} */, "the attach message asks for nothing"}};
	const struct ucred here = {.uid = GSTAGE_UID};
	const struct credential there = {.uid = GSTAGE_UID};
	const struct stream_secure secure = {0};
	struct iocom_err err = {0};
	char *text;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(guest_attach(gstage.guest, -1, none[i].bytes, 1, &here, &err),
				 -EBADMSG);
		assert_string_equal(err.text, none[i].why);
		assert_int_equal(guest_attach_check(gstage.guest, &secure.hello, none[i].bytes, 1,
						    &text, &err),
				 -EBADMSG);
		assert_null(text);
		assert_string_equal(err.text, none[i].why);
		assert_int_equal(
			guest_attach_of(gstage.guest, -1, &secure, none[i].bytes, 1, &there, &err),
			-EBADMSG);
	}
}

/*
 * --- those who send what is kept ---------------------------------------------------------------
 */

static size_t replays(void)
{
	struct guest_counts counts;

	guest_count(gstage.guest, &counts);
	return counts.replays;
}

static void replay_ends(size_t i)
{
	close(shims.replays[i].end);
	shims.replays[i].end = -1;
	gstage_pass(0);
}

static void test_too_many_readers(void **state)
{
	(void)state;
	shim_record("n2-1-1");
	shim_record("n2-1-2")->found.uid = 1001;
	shims.attach_rc = -ESRCH;
	trace_pause(true);
	for (size_t i = 0; i < REPLAYS_OF_ONE; i++)
		assert_int_equal(gstage_attach("n2-1-1", &anna), 0);
	trace_pause(false);
	assert_int_equal(gstage_attach("n2-1-1", &anna), -EAGAIN);
	assert_int_equal(gstage_attach("n2-1-2", &bert), 0);
	replay_ends(3);
	assert_int_equal(gstage_attach("n2-1-1", &anna), 0);
	trace_pause(true);
	while (replays() < REPLAYS_MAX)
		assert_int_equal(gstage_attach("n2-1-1", &root), 0);
	trace_pause(false);
	assert_int_equal(gstage_attach("n2-1-1", &root), -EAGAIN);
	gstage_show();
	trace_compare(__func__);
}

/* 64 readers, 4 of them root's: a user gets 16, or as many as are free then. */
static void test_few_users_leave_readers(void **state)
{
	static const size_t gets[] = {16, 16, 14, 7, 4, 2, 1};
	const size_t users = sizeof(gets) / sizeof(*gets);

	(void)state;
	shims.attach_rc = -ESRCH;
	trace_pause(true);
	for (uid_t u = 0; u < users; u++) {
		const struct gstage_reader reader = {.uid = 2000 + u};
		size_t before = replays();

		shim_record("n2-1-1")->found.uid = 2000 + u;
		while (!gstage_attach("n2-1-1", &reader))
			;
		assert_int_equal(replays() - before, gets[u]);
	}
	assert_int_equal(replays(), 60);
	while (!gstage_attach("n2-1-1", &root))
		;
	trace_pause(false);
	assert_int_equal(replays(), 64);
	assert_int_equal(gstage.counters.replays_refused, users + 1);
	assert_int_equal(gstage.counters.places_refused, users - 2);
}

/* Replays of an earlier agent still hold their places; here this process plays one of them. */
static void test_readers_outlive_the_agent(void **state)
{
	char place[128];
	int fd;

	(void)state;
	snprintf(place, sizeof(place), "%s/run/replays", gstage.dir);
	assert_int_equal(mkdir(place, 0700), 0);
	snprintf(place, sizeof(place), "%s/run/replays/2", gstage.dir);
	fd = process_slot_take(place, GSTAGE_UID);
	assert_true(fd >= 0);
	gstage_restart();
	assert_int_equal(replays(), 1);
	shim_record("n2-1-1");
	shims.attach_rc = -ESRCH;
	for (int i = 0; i < 3; i++) /* the place that this process holds is skipped */
		assert_int_equal(gstage_attach("n2-1-1", &anna), 0);
	assert_int_equal(replays(), 4);
	close(fd);
	assert_int_equal(replays(), 3);
	assert_int_equal(gstage_attach("n2-1-1", &anna), 0);
	trace_compare(__func__);
}

/* --- what may be kept ------------------------------------------------------------------------- */

static void detached(const char *job, uid_t uid, uint64_t bytes)
{
	const struct gstage_client client = {.uid = uid, .detach = true, .spool_bytes = bytes};
	struct job_order order = gstage_order(job);

	order.uid = uid;
	assert_true(gstage_admit(&order)->granted);
	assert_int_equal(gstage_come(job, gstage.answer.grant.nonce, &client), 0);
}

/* A job may keep an eighth of the free bytes, and no more than its user's half has left. */
static void test_shares(void **state)
{
	(void)state;
	gstage.set.user_jobs_max = 0;
	detached("n2-1-1", GSTAGE_UID, 0);	 /* 16 of 128 */
	detached("n2-1-2", GSTAGE_UID, 1 * MB);	 /* as it wants */
	detached("n2-1-3", GSTAGE_UID, 99 * MB); /* 111 / 8 */
	gstage.set.spool_user_mb = 32;
	detached("n2-1-4", GSTAGE_UID, 0); /* what is left of the 32 */
	detached("n2-1-5", GSTAGE_UID, 0); /* nothing */
	detached("n2-1-6", 1001, 0);	   /* another user has a share of his own */
	gstage_show();
	trace_compare(__func__);
}

/* Kept output of ended jobs counts. The guest looks at the disk when there would be too much. */
static void test_kept_counts(void **state)
{
	struct guest_counts counts;

	(void)state;
	gstage.set.spool_user_mb = 20;
	detached("n2-1-1", GSTAGE_UID, 0);
	shims.forget = 15 * MB;
	shim_started("n2-1-1", 10);
	shim_exited("n2-1-1", 0, 0);
	gstage_pass(100);
	guest_count(gstage.guest, &counts);
	assert_int_equal(counts.spool_bytes, 15 * MB);
	/*
	 * There is nothing on the disk, which the guest finds when the next job would be too much.
	 */
	detached("n2-1-2", GSTAGE_UID, 4 * MB);
	guest_count(gstage.guest, &counts);
	assert_int_equal(counts.spool_bytes, 15 * MB);
	detached("n2-1-3", GSTAGE_UID, 4 * MB);
	guest_count(gstage.guest, &counts);
	assert_int_equal(counts.spool_bytes, 0);
	trace_compare(__func__);
}

/* The guest asks each second a shim that still serves its client. */
static void test_kept_when_the_shim_has_left(void **state)
{
	struct guest_counts counts;

	(void)state;
	detached("n2-1-1", GSTAGE_UID, 0);
	shims.forget = -EBUSY;
	shim_exited("n2-1-1", 0, 0);
	gstage_chores(2);
	shims.forget = 3 * MB;
	gstage_chores(2);
	guest_count(gstage.guest, &counts);
	assert_int_equal(counts.spool_bytes, 3 * MB);
	trace_compare(__func__);
}

static uint64_t kept_bytes(void)
{
	struct guest_counts counts;

	guest_count(gstage.guest, &counts);
	return counts.spool_bytes;
}

/* A client that attached before the shim had left was sent to the record: it must find it. */
static void test_kept_while_it_is_read(void **state)
{
	(void)state;
	detached("n2-1-1", GSTAGE_UID, 0);
	shims.forget = -EBUSY;
	shim_exited("n2-1-1", 0, 0);
	gstage_chores(2);
	shim_record("n2-1-1");
	shims.attach_rc = -ESRCH;
	assert_int_equal(gstage_attach("n2-1-1", &anna), 0);
	assert_int_equal(replays(), 1);
	shims.forget = 3 * MB;
	gstage_chores(2);
	assert_int_equal(kept_bytes(), 0);
	replay_ends(0);
	gstage_chores(2);
	assert_int_equal(kept_bytes(), 3 * MB);
	trace_compare(__func__);
}

/* Makes a record on the disk of a job that ended AGO_S seconds ago, with BYTES of output. */
static void keep(const char *job, uid_t uid, uint64_t bytes, uint64_t ago_s)
{
	struct record_start start = {.uid = uid};
	const struct record_exit end = {0};
	const struct timespec when = {
		.tv_sec = (time_t)(loop_real_ns(gstage.base.loop) / CLOCK_NS_PER_S - ago_s)};
	const struct timespec times[2] = {when, when};
	char path[256];
	int dir, fd;

	snprintf(path, sizeof(path), "%s/%s", gstage.jobs_dir, job);
	assert_int_equal(mkdir(path, 0700), 0);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(start.job, sizeof(start.job), "%s", job);
	assert_int_equal(record_write_start(dir, &start, NULL), 0);
	assert_int_equal(record_write_exit(dir, &end, NULL), 0);
	fd = openat(dir, RECORD_OUT, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
	close(openat(dir, RECORD_ERR, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(utimensat(dir, "exit", times, 0), 0);
	close(dir);
}

/* Returns the bytes of output on the disk. */
static uint64_t on_disk(void)
{
	DIR *all = opendir(gstage.jobs_dir);
	const struct dirent *entry;
	uint64_t sum = 0;
	struct stat st;
	char path[600];

	assert_non_null(all);
	while ((entry = readdir(all))) {
		snprintf(path, sizeof(path), "%s/%s/out", gstage.jobs_dir, entry->d_name);
		sum += stat(path, &st) ? 0 : (uint64_t)st.st_size;
	}
	closedir(all);
	return sum;
}

static bool is_kept(const char *job)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", gstage.jobs_dir, job);
	return !access(path, F_OK);
}

static void test_oldest_make_room(void **state)
{
	struct guest_counts counts;

	(void)state;
	gstage.set.user_jobs_max = 0;
	gstage.set.spool_user_mb = 40;
	keep("n2-1-1", GSTAGE_UID, 10 * MB, 300);
	keep("n2-1-2", GSTAGE_UID, 10 * MB, 200);
	keep("n2-1-3", GSTAGE_UID, 10 * MB, 100);
	keep("n2-1-4", 1001, 10 * MB, 400);
	guest_spool_prune(gstage.guest);
	guest_count(gstage.guest, &counts);
	assert_int_equal(counts.spool_bytes, 40 * MB);
	/* with 16 more, one output of the first user is too much, and none of the second */
	detached("n2-1-5", GSTAGE_UID, 0);
	assert_false(is_kept("n2-1-1"));
	assert_true(is_kept("n2-1-2") && is_kept("n2-1-3") && is_kept("n2-1-4"));
	guest_count(gstage.guest, &counts);
	assert_int_equal(counts.spool_bytes, 30 * MB);
	assert_int_equal(gstage.counters.outputs_removed_share, 1);
	gstage_show();
	trace_compare(__func__);
}

static void test_kept_so_long(void **state)
{
	(void)state;
	gstage.set.keep_days = 7;
	gstage.set.keep_jobs = 2;
	keep("n2-1-1", GSTAGE_UID, 1, 7 * 86400 + 1);
	keep("n2-1-2", GSTAGE_UID, 1, 7 * 86400 - 1);
	guest_spool_prune(gstage.guest);
	assert_false(is_kept("n2-1-1"));
	assert_true(is_kept("n2-1-2"));
	keep("n2-1-3", GSTAGE_UID, 1, 3);
	keep("n2-1-4", GSTAGE_UID, 1, 2);
	guest_spool_prune(gstage.guest);
	assert_false(is_kept("n2-1-2"));
	assert_true(is_kept("n2-1-3") && is_kept("n2-1-4"));
	assert_int_equal(gstage.counters.outputs_removed, 2);
	assert_int_equal(gstage.counters.outputs_removed_share, 0);
}

/* The output of a running job stays, however much it has on the disk. */
static void test_running_ones_are_left(void **state)
{
	(void)state;
	gstage.set.keep_jobs = 1;
	detached("n2-1-1", GSTAGE_UID, 0);
	keep("n2-1-1", GSTAGE_UID, 100 * MB, 30 * 86400);
	guest_spool_prune(gstage.guest);
	assert_true(is_kept("n2-1-1"));
}

/* --- what the clients of attached jobs leave ---------------------------------------------------
 */

static uint64_t attached_as(const char *job, uid_t uid)
{
	const struct gstage_client client = {.uid = uid};
	struct job_order order = gstage_order(job);

	order.uid = uid;
	assert_true(gstage_admit(&order)->granted);
	assert_int_equal(gstage_come(job, gstage.answer.grant.nonce, &client), 0);
	return shims.spill_max;
}

/* JOB ends and its client was killed: its shim keeps what it may of 3 MiB. */
static void client_killed(const char *job, uid_t uid, uint64_t may, uint64_t ago_s)
{
	shims.forget = (int64_t)(may < 3 * MB ? may : 3 * MB);
	keep(job, uid, (uint64_t)shims.forget, ago_s);
	shim_exited(job, 0, 0);
	gstage_pass(200);
}

static uint64_t guest_reserved(void)
{
	struct guest_counts counts;

	guest_count(gstage.guest, &counts);
	return counts.spool_reserved;
}

#define LEFT_JOBS 100

/* The clients of 100 jobs are killed, one after the other, or all at once. */
static void leave_all(bool at_once)
{
	uint64_t may[LEFT_JOBS], most = 0;
	char job[32];

	gstage.set.user_jobs_max = 0;
	gstage.set.spool_total_mb = 1024;
	gstage.set.spool_user_mb = 16;
	trace_pause(true);
	for (unsigned i = 0; i < 2 * LEFT_JOBS; i++) {
		unsigned n = at_once ? i % LEFT_JOBS : i / 2;

		snprintf(job, sizeof(job), "n2-1-%u", n);
		if (at_once ? i < LEFT_JOBS : i % 2 == 0)
			may[n] = attached_as(job, GSTAGE_UID);
		else
			client_killed(job, GSTAGE_UID, may[n], 2 * LEFT_JOBS - i);
		if (on_disk() > most)
			most = on_disk();
		assert_true(on_disk() + guest_reserved() <= 16 * MB);
	}
	trace_pause(false);
	assert_int_equal(guest_reserved(), 0);
	assert_int_equal(most, at_once ? 8 * MB : 15 * MB);
}

/* The newest are kept: 5 of 3 MiB in a share of 16 MiB. */
static void test_killed_clients(void **state)
{
	(void)state;
	leave_all(false);
	assert_false(is_kept("n2-1-94"));
	assert_true(is_kept("n2-1-95") && is_kept("n2-1-99"));
	assert_int_equal(gstage.counters.outputs_removed_share, 95);
	assert_int_equal(gstage.counters.outputs_short, 0);
}

/* Half of the share, 8 MiB, for 100 jobs at a time: 3, 3, and 2 MiB. */
static void test_killed_clients_at_once(void **state)
{
	(void)state;
	leave_all(true);
	assert_int_equal(gstage.counters.outputs_short, 98);
}

/* No user reserves as much as is free, and detached jobs have the other half. */
static void test_attached_reserve(void **state)
{
	(void)state;
	gstage.set.user_jobs_max = 0;
	gstage.set.allow_root = true;
	gstage.set.spool_total_mb = 32;
	gstage.set.spool_user_mb = 32;
	assert_int_equal(attached_as("n2-1-1", GSTAGE_UID), 3 * MB);
	assert_int_equal(attached_as("n2-1-2", GSTAGE_UID), 3 * MB);
	assert_int_equal(attached_as("n2-1-3", GSTAGE_UID), 3 * MB); /* he has 6, 10 are free */
	assert_int_equal(attached_as("n2-1-4", GSTAGE_UID), 0);	     /* 9 and 7 */
	assert_int_equal(attached_as("n2-1-5", 1001), 3 * MB);
	assert_int_equal(attached_as("n2-1-6", 1001), 1 * MB); /* 3 and 4 */
	assert_int_equal(attached_as("n2-1-7", 0), 3 * MB);
	assert_int_equal(attached_as("n2-1-8", 0), 0);
	assert_int_equal(gstage.counters.outputs_short, 3);
	detached("n2-1-9", 1001, 0); /* an eighth of the 16 that are free */
	trace_compare(__func__);
}

/* A job that leaves nothing gives its room back, once its shim is gone. */
static void test_reserved_for(void **state)
{
	(void)state;
	attached_as("n2-1-1", GSTAGE_UID);
	assert_int_equal(guest_reserved(), 3 * MB);
	shims.forget = -EBUSY; /* its client still reads */
	shim_exited("n2-1-1", 0, 0);
	gstage_chores(2);
	assert_int_equal(guest_reserved(), 3 * MB);
	shims.forget = 0;
	gstage_chores(2);
	assert_int_equal(guest_reserved(), 0);
	/* A new agent does not know what the earlier one reserved, and takes the most there is. */
	attached_as("n2-1-2", GSTAGE_UID);
	detached("n2-1-3", GSTAGE_UID, 0);
	shim_record("n2-1-2")->lives = true;
	shim_record("n2-1-3")->lives = true;
	shim_record("n2-1-3")->found.spooled = true;
	gstage_restart();
	assert_int_equal(guest_reserved(), 3 * MB + (128 - 3) * MB / 8);
	trace_compare(__func__);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, gstage_setup, gstage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_running_job),
		TEST(test_shown_again),
		TEST(test_an_ended_job),
		TEST(test_resumes_as_its_shim_leaves),
		TEST(test_a_job_that_moved),
		TEST(test_ticket),
		TEST(test_ticket_is_old),
		TEST(test_no_ticket),
		TEST(test_key_of_a_record),
		TEST(test_too_many_tickets),
		TEST(test_what_the_shim_gets),
		TEST(test_no_attach_message),
		TEST(test_too_many_readers),
		TEST(test_few_users_leave_readers),
		TEST(test_readers_outlive_the_agent),
		TEST(test_shares),
		TEST(test_kept_counts),
		TEST(test_kept_when_the_shim_has_left),
		TEST(test_kept_while_it_is_read),
		TEST(test_oldest_make_room),
		TEST(test_kept_so_long),
		TEST(test_running_ones_are_left),
		TEST(test_killed_clients),
		TEST(test_killed_clients_at_once),
		TEST(test_attached_reserve),
		TEST(test_reserved_for),
	};

	trace_file("agent_guest_attach");
	return cmocka_run_group_tests_name("guest_attach", tests, NULL, NULL);
}
