/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A guest party alone; see guest_stage.h. */
#include "tests/lib/guest_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/jobs/journal_sql.h"
#include "tests/lib/full_disk.h"
#include "user/attach.h"
#include "user/clock.h"
#include "user/pack.h"

#define BOOT_S	 1000ull
#define REAL_S	 1700000000ull
#define SEQUENCE 41
#define TICKETS	 8192

struct gstage gstage;

static char asked[TICKETS][SPEC_JOB_MAX]; /* by ticket: the job that the question is about */
static msgpack_sbuffer bound;		  /* the binding of the last client's credential */

/* --- the ports ------------------------------------------------------------------------- */

static void port_own_vector(void *arg, struct iocom_vector *own)
{
	(void)arg;
	*own = gstage.own;
}

static uint64_t port_sequence(void *arg)
{
	(void)arg;
	return SEQUENCE;
}

static void port_sample(void *arg)
{
	(void)arg;
	gstage.samples++;
	trace_line("read the monitor");
}

static void port_changed(void *arg)
{
	(void)arg;
	gstage.changes++;
}

/* What munged does.  The text of a credential is its uid. */
static int stage_open(struct credential *credential, const char *text, struct iocom_err *err)
{
	if (gstage.munged_rc)
		return iocom_err_set(err, gstage.munged_rc, "munged says no");
	*credential =
		(struct credential){.uid = (uid_t)atoi(text), .gid = 100, .length = bound.size};
	credential->bound = malloc(bound.size);
	assert_non_null(credential->bound);
	memcpy(credential->bound, bound.data, bound.size);
	return 0;
}

static void say_done(const struct peer_request *r, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < r->done.count && n < size; i++) {
		const struct job_report *report = &r->done.reports[i];

		n += (size_t)snprintf(out + n, size - n, "%s %s %s, kind %llu, value %llu%s%s",
				      i ? ";" : "", report->job, report->state,
				      (unsigned long long)report->kind,
				      (unsigned long long)report->value,
				      report->text[0] ? ": " : "", report->text);
	}
}

static void say_question(const char *node, const char *address, uint16_t port,
			 const struct peer_request *r)
{
	char text[1200] = "";

	if (r->type == PEER_STARTED)
		snprintf(text, sizeof(text), " %s, pid %d", r->job, (int)r->started.pid);
	else if (r->type == PEER_RENEW)
		snprintf(text, sizeof(text), " %s for %u ms", r->job, r->renew.lease_ms);
	else
		say_done(r, text, sizeof(text));
	trace_line("ask %s at %s:%u: %s%s", node, address, port, peer_type_name(r->type), text);
}

static int port_ask(void *arg, const char *node, const char *address, uint16_t port,
		    const struct peer_request *request, peers_answered answered, void *answered_arg,
		    struct iocom_err *err)
{
	struct gstage_question *q = &gstage.questions[gstage.nquestions];

	(void)arg;
	say_question(node, address, port, request);
	if (gstage.ask_rc)
		return iocom_err_set(err, gstage.ask_rc, "node %s cannot be asked", node);
	assert_true(gstage.nquestions < GSTAGE_QUESTIONS);
	*q = (struct gstage_question){
		.type = request->type, .answered = answered, .arg = answered_arg};
	q->reports = request->type == PEER_DONE || request->type == PEER_PROGRESS
			     ? request->done.count
			     : 0;
	snprintf(q->node, sizeof(q->node), "%s", node);
	memcpy(q->job, request->job, sizeof(q->job));
	gstage.nquestions++;
	return 0;
}

static void say_answer(uint64_t ticket, enum peer_type type, const struct peer_answer *a)
{
	const struct peer_grant *g = &a->grant;
	const char *job = asked[ticket];

	if (type == PEER_KILL)
		trace_line("kill %s: %s%s%s", job, a->ok ? "ok" : strerror(-a->error),
			   a->text[0] ? ": " : "", a->text);
	else if (g->granted)
		trace_line("admit %s: granted, lease %u ms, vector %llu of boot %llu", job,
			   g->lease_ms, (unsigned long long)g->sequence,
			   (unsigned long long)g->boot_id);
	else
		trace_line("admit %s: refused, %s: %s", job, g->reason, g->text);
	if (ticket != gstage.ticket)
		return;
	gstage.answered = true;
	gstage.answer = *a;
}

static void port_answer(void *arg, uint64_t ticket, enum peer_type type,
			const struct peer_answer *answer)
{
	(void)arg;
	say_answer(ticket, type, answer);
}

/* --- up and down ------------------------------------------------------------------------ */

static void stage_settings(struct settings *set)
{
	*set = (struct settings){
		.accept_jobs = true,
		.min_uid = 1000,
		.user_jobs_max = 4,
		.keep_jobs = 100,
		.keep_days = 7,
		.begin_limit_s = 30,
		.spool_mb = 16,
		.spool_total_mb = 128,
		.cpu_speed = 1,
	};
	strcpy(set->name, "n1");
	strcpy(set->shim, "/iocom-shim");
	snprintf(set->run_dir, sizeof(set->run_dir), "%s/run", gstage.dir);
	snprintf(set->state_dir, sizeof(set->state_dir), "%s", gstage.dir);
	snprintf(gstage.jobs_dir, sizeof(gstage.jobs_dir), "%s/jobs", gstage.dir);
	snprintf(gstage.run_jobs_dir, sizeof(gstage.run_jobs_dir), "%s/run/jobs", gstage.dir);
	snprintf(gstage.database, sizeof(gstage.database), "%s/iocom.db", gstage.dir);
}

int gstage_start_agent(void)
{
	const struct guest_config config = {
		.base = &gstage.base,
		.jobs_dir = gstage.jobs_dir,
		.run_jobs_dir = gstage.run_jobs_dir,
		.journal = gstage.journal,
		.cpu_speed = gstage.set.cpu_speed,
		.launcher = &launcher_played,
		.ports = {.own_vector = port_own_vector,
			  .sequence = port_sequence,
			  .sample = port_sample,
			  .changed = port_changed,
			  .ask = port_ask,
			  .answer = port_answer},
	};
	struct iocom_err err = {0};
	int rc;

	assert_int_equal(guest_new(&gstage.guest, &config, NULL), 0);
	rc = guest_recover(gstage.guest, &err);
	if (rc)
		trace_line("the agent does not start: %s", err.text);
	return rc;
}

int gstage_setup(void **state)
{
	(void)state;
	memset(&gstage, 0, sizeof(gstage));
	shims_up();
	full_disk_use();
	strcpy(gstage.dir, "/tmp/iocom-guest-XXXXXX");
	if (!mkdtemp(gstage.dir))
		return -1;
	stage_settings(&gstage.set);
	if (mkdir(gstage.set.run_dir, 0700) || mkdir(gstage.jobs_dir, 0700) ||
	    mkdir(gstage.run_jobs_dir, 0700))
		return -1;
	gstage.log = (struct logger){.program = "guest", .level = LOG_L_INFO, .systemd = true};
	gstage.base = (struct base){
		.log = &gstage.log, .counters = &gstage.counters, .set = &gstage.set, .boot_id = 7};
	gstage.own = (struct iocom_vector){.memory_mb = 1000, .memory_available_mb = 1000};
	if (loop_new_virtual(&gstage.base.loop, BOOT_S * CLOCK_NS_PER_S, REAL_S * CLOCK_NS_PER_S,
			     NULL) ||
	    journal_open(&gstage.journal, gstage.database, NULL))
		return -1;
	trace_begin(gstage.base.loop, gstage.dir);
	return gstage_start_agent();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* Ends open questions as peers_stop does. */
static void end_questions(void)
{
	for (size_t i = 0; i < gstage.nquestions; i++) {
		struct gstage_question *q = &gstage.questions[i];
		peers_answered answered = q->answered;

		q->answered = NULL;
		if (answered)
			answered(q->arg, -ECANCELED, NULL, "this agent is stopping");
	}
}

void gstage_stop_agent(void)
{
	guest_stop(gstage.guest);
	end_questions();
	guest_free(gstage.guest);
	gstage.guest = NULL;
}

void gstage_kill_agent(void)
{
	enum log_level level = gstage.log.level;

	full_disk_mend();
	gstage.log.level = 0; /* it says nothing any more */
	gstage_stop_agent();
	gstage.log.level = level;
	journal_close(gstage.journal);
	trace_line("the agent is killed");
	assert_int_equal(journal_open(&gstage.journal, gstage.database, NULL), 0);
}

void gstage_restart(void)
{
	gstage_kill_agent();
	assert_int_equal(gstage_start_agent(), 0);
}

int gstage_teardown(void **state)
{
	(void)state;
	full_disk_mend();
	full_disk_lock(false);
	if (gstage.guest)
		gstage_stop_agent();
	trace_end();
	journal_close(gstage.journal);
	loop_free(gstage.base.loop);
	shims_down();
	msgpack_sbuffer_destroy(&bound);
	msgpack_sbuffer_init(&bound);
	return nftw(gstage.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* --- time ------------------------------------------------------------------------------- */

void gstage_pass(uint64_t ms)
{
	gstage.log.in_window = gstage.log.provoked = 0;
	loop_advance(gstage.base.loop, ms * CLOCK_NS_PER_MS);
}

void gstage_chores(unsigned seconds)
{
	for (; seconds > 0; seconds--) {
		gstage_pass(1000);
		guest_chores(gstage.guest);
		gstage_pass(0);
	}
}

/* --- homes that ask ----------------------------------------------------------------------- */

struct job_order gstage_order(const char *job)
{
	struct job_order order = {
		.home_port = 7700, .uid = GSTAGE_UID, .hops = 1, .submit_ns = 5, .cwd = "/"};

	snprintf(order.job, sizeof(order.job), "%s", job);
	snprintf(order.home, sizeof(order.home), "%.*s", (int)strcspn(job, "-"), job);
	snprintf(order.home_address, sizeof(order.home_address), "10.0.0.%.*s",
		 (int)strcspn(job + 1, "-"), job + 1);
	strcpy(order.command, "true");
	return order;
}

static uint64_t next_ticket(const char *job)
{
	assert_true(++gstage.ticket < TICKETS);
	snprintf(asked[gstage.ticket], SPEC_JOB_MAX, "%s", job);
	gstage.answered = false;
	return gstage.ticket;
}

/* Waits for the thread that looks at directories, while no virtual time passes. */
const struct peer_grant *gstage_admit(const struct job_order *order)
{
	struct peer_request request = {.type = PEER_ADMIT, .order = order};
	struct peer_answer answer = {0};
	uint64_t ticket = next_ticket(order->job);
	int rc;

	memcpy(request.job, order->job, sizeof(request.job));
	memcpy(request.from, order->home, sizeof(request.from));
	rc = guest_on_admit(gstage.guest, &request, ticket, &answer);
	if (!rc)
		say_answer(ticket, PEER_ADMIT, &answer);
	else
		assert_int_equal(rc, PEERS_LATER);
	while (!gstage.answered) {
		loop_advance(gstage.base.loop, 0);
		sched_yield();
	}
	return &gstage.answer.grant;
}

void gstage_kill(const char *job, uid_t uid, int signal)
{
	struct peer_request request = {.type = PEER_KILL, .kill = {.uid = uid, .signal = signal}};
	struct peer_answer answer = {0};
	uint64_t ticket = next_ticket(job);
	int rc;

	snprintf(request.job, sizeof(request.job), "%s", job);
	rc = guest_on_kill(gstage.guest, &request, ticket, &answer);
	if (!rc)
		say_answer(ticket, PEER_KILL, &answer);
	else
		assert_int_equal(rc, PEERS_LATER);
}

/* --- homes that are asked ------------------------------------------------------------------ */

static struct gstage_question *open_question(enum peer_type type, const char *job)
{
	for (size_t i = 0; i < gstage.nquestions; i++) {
		struct gstage_question *q = &gstage.questions[i];

		if (q->answered && q->type == type && !strcmp(q->job, job))
			return q;
	}
	return NULL;
}

void gstage_home(enum peer_type type, const char *job, const struct peer_answer *answer)
{
	struct gstage_question *q = open_question(type, job);
	peers_answered answered;

	if (!q)
		fail_msg("%s of job %s was not asked", peer_type_name(type), job);
	answered = q->answered;
	q->answered = NULL;
	trace_line("home answers %s %s: %s", peer_type_name(type), job,
		   !answer	? "nothing"
		   : answer->ok ? "ok"
				: answer->text);
	answered(q->arg, answer ? 0 : -ETIMEDOUT, answer, answer ? "" : "no answer in time");
}

void gstage_home_ok(enum peer_type type, const char *job)
{
	const struct gstage_question *q = open_question(type, job);
	const struct peer_answer answer = {.ok = true, .taken = q ? q->reports : 0};

	gstage_home(type, job, &answer);
}

size_t gstage_asked(enum peer_type type, const char *job)
{
	size_t n = 0;

	for (size_t i = 0; i < gstage.nquestions; i++) {
		const struct gstage_question *q = &gstage.questions[i];

		n += q->answered && q->type == type && !strcmp(q->job, job);
	}
	return n;
}

/* --- clients --------------------------------------------------------------------------------- */

static void make_spec(struct spec *spec, const char *job, const char *nonce,
		      const struct gstage_client *client)
{
	static char program[] = "/bin/true", cwd[] = "/";
	static char *argv[] = {program, NULL}, *env[] = {NULL};

	*spec = (struct spec){.executable = program,
			      .cwd = cwd,
			      .argv = argv,
			      .env = env,
			      .detach = client->detach,
			      .spool_bytes = client->spool_bytes};
	snprintf(spec->job, sizeof(spec->job), "%s", job);
	snprintf(spec->node, sizeof(spec->node), "%s", client->node ? client->node : "n1");
	snprintf(spec->nonce, sizeof(spec->nonce), "%s", nonce);
}

/* Sets what the client's credential binds, in the form that munged returns. */
static void bind_credential(const char *type, const char *job, const char *node, const char *nonce,
			    const void *packed, size_t length)
{
	uint8_t hash[SPEC_HASH_BYTES];
	msgpack_packer pk;

	spec_hash(packed, length, hash);
	msgpack_sbuffer_destroy(&bound);
	pack_begin(&pk, &bound, 5);
	pack_str(&pk, "type", type);
	pack_str(&pk, "job", gstage.forged ? "n9-9-9" : job);
	pack_str(&pk, "node", node);
	pack_str(&pk, "nonce", nonce);
	pack_bin(&pk, "hash", hash, sizeof(hash));
}

/* The keys of every stream here: the guest seals with zeroes. */
static const struct records stage_keys;

/* Reads what the guest sent before it handed the stream on or closed it. */
static void hear(int fd)
{
	struct records client = stage_keys;
	char bytes[sizeof(gstage.said)], *data = bytes;
	ssize_t n = recv(fd, data, sizeof(bytes) - 1, MSG_DONTWAIT);
	size_t used = 0;

	if (n > RECORD_LEAST && gstage.sealed) {
		data += RECORD_HEAD;
		n -= RECORD_HEAD;
		assert_int_equal(records_open(&client, (uint8_t *)data, (size_t)n), 0);
		n -= NOISE_TAG;
	}
	for (ssize_t i = FRAME_HEADER; i < n; i++)
		if (data[i] >= ' ' && data[i] <= '~')
			gstage.said[used++] = data[i];
	gstage.said[used] = 0;
	close(fd);
}

/* How a guest takes a stream, and under which key the message has what it binds. */
struct stage_way {
	const char *what;
	int (*local)(void *guest, int fd, const void *payload, uint32_t length,
		     const struct ucred *local, struct iocom_err *err);
	int (*check)(void *guest, const struct stream_hello *hello, const void *payload,
		     uint32_t length, char **credential, struct iocom_err *err);
	int (*take)(void *guest, int fd, const struct stream_secure *secure, const void *payload,
		    uint32_t length, const struct credential *who, struct iocom_err *err);
};

static const struct stage_way way_start = {"spec", guest_start, guest_start_check, guest_start_of};
static const struct stage_way way_attach = {"ask", guest_attach, guest_attach_check,
					    guest_attach_of};

/* Does what stream_answer.c does with a message of another machine. */
static int take_remote(const struct stage_way *way, int fd, const struct stream_secure *secure,
		       const msgpack_sbuffer *message, struct iocom_err *err)
{
	uint32_t length = (uint32_t)message->size;
	struct credential who;
	char *text = NULL;
	int rc = way->check(gstage.guest, &secure->hello, message->data, length, &text, err);

	if (!rc)
		rc = stage_open(&who, text, err);
	free(text);
	if (rc)
		return rc;
	rc = way->take(gstage.guest, fd, secure, message->data, length, &who, err);
	credential_free(&who);
	return rc;
}

static int send_stream(const struct stage_way *way, const void *packed, size_t length, uid_t uid,
		       const struct stream_secure *secure, struct iocom_err *err)
{
	bool local = !secure;
	const struct ucred who = {.pid = 1, .uid = uid, .gid = 100};
	msgpack_sbuffer message;
	msgpack_packer pk;
	char text[16];
	int fds[2], rc;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	snprintf(text, sizeof(text), "%u", (unsigned)uid);
	pack_begin(&pk, &message, 2);
	pack_str(&pk, "cred", local ? NULL : text);
	pack_bin(&pk, way->what, packed, length);
	if (local)
		rc = way->local(gstage.guest, fds[0], message.data, (uint32_t)message.size, &who,
				err);
	else
		rc = take_remote(way, fds[0], secure, &message, err);
	msgpack_sbuffer_destroy(&message);
	if (rc)
		close(fds[0]);
	gstage.sealed = !local;
	if (gstage.client_stays)
		gstage.client = fds[1];
	else
		hear(fds[1]);
	return rc;
}

const char *gstage_hear(void)
{
	hear(gstage.client);
	return gstage.said;
}

int gstage_come(const char *job, const char *nonce, const struct gstage_client *client)
{
	struct stream_secure secure = {.records = stage_keys};
	struct iocom_err err = {0};
	struct spec spec;
	void *packed;
	size_t length;
	int rc;

	make_spec(&spec, job, nonce, client);
	assert_int_equal(spec_pack(&spec, &packed, &length, NULL), 0);
	bind_credential("start", job, spec.node, nonce, packed, length);
	stream_hello_fill(&secure.hello, STREAM_KIND_START, job, spec.node, "");
	rc = send_stream(&way_start, packed, length, client->uid, client->local ? NULL : &secure,
			 &err);
	free(packed);
	trace_line("client of %s: %s%s%s", job, rc ? strerror(-rc) : "taken", rc ? ": " : "",
		   err.text);
	return rc;
}

static void ask_ticket(const char *job, uid_t uid, struct peer_answer *answer)
{
	struct peer_request request = {.type = PEER_ATTACH, .attach = {.uid = uid, .hops = 1}};

	*answer = (struct peer_answer){0};
	snprintf(request.job, sizeof(request.job), "%s", job);
	assert_int_equal(guest_on_attach(gstage.guest, &request, 0, answer), 0);
}

const struct peer_attach *gstage_ticket(const char *job, uid_t uid)
{
	static struct peer_answer answer;

	ask_ticket(job, uid, &answer);
	if (!answer.ok)
		trace_line("no ticket of %s for uid %u: %s", job, (unsigned)uid, answer.text);
	return answer.ok ? &answer.attach : NULL;
}

/* A ticket of JOB for UID, or, if it gets none, a name that is none. */
static const char *stage_some_ticket(const char *job, uid_t uid)
{
	static struct peer_answer answer;

	ask_ticket(job, uid, &answer);
	return answer.ok ? answer.attach.ticket : "00000000000000000000000000000000";
}

int gstage_attach(const char *job, const struct gstage_reader *reader)
{
	static unsigned nonces;
	struct attach_ask ask = {.from = {0, ATTACH_FIRST, ATTACH_FIRST}};
	struct stream_secure secure = {.records = stage_keys};
	struct iocom_err err = {0};
	const char *ticket = reader->ticket;
	void *packed;
	size_t length;
	int rc;

	if (!ticket && !reader->local && !reader->resume)
		ticket = stage_some_ticket(job, reader->uid);
	snprintf(ask.job, sizeof(ask.job), "%s", job);
	snprintf(ask.node, sizeof(ask.node), "%s", reader->node ? reader->node : "n1");
	snprintf(ask.nonce, sizeof(ask.nonce), "%032x", ++nonces);
	if (reader->nonce)
		snprintf(ask.nonce, sizeof(ask.nonce), "%s", reader->nonce);
	snprintf(ask.resume, sizeof(ask.resume), "%s", reader->resume ? reader->resume : "");
	assert_int_equal(attach_pack(&ask, &packed, &length), 0);
	bind_credential("attach", job, ask.node, ask.nonce, packed, length);
	stream_hello_fill(&secure.hello, STREAM_KIND_ATTACH, reader->stream ? reader->stream : job,
			  ask.node, ticket ? ticket : "");
	rc = send_stream(&way_attach, packed, length, reader->uid, reader->local ? NULL : &secure,
			 &err);
	free(packed);
	trace_line("reader of %s: %s%s%s%s%s", job, rc ? strerror(-rc) : "taken", rc ? ": " : "",
		   err.text, gstage.said[0] ? ", hears: " : "", gstage.said);
	return rc;
}

void gstage_launch(const struct job_order *order)
{
	const struct gstage_client client = {.uid = order->uid};
	const struct peer_grant *grant = gstage_admit(order);

	assert_true(grant->granted);
	assert_int_equal(gstage_come(order->job, grant->nonce, &client), 0);
}

void gstage_run_order(const struct job_order *order, pid_t pid)
{
	trace_pause(true);
	gstage_launch(order);
	shim_started(order->job, pid);
	gstage_pass(20);
	gstage_home_ok(PEER_STARTED, order->job);
	trace_pause(false);
	trace_line("%s runs, pid %d", order->job, (int)pid);
}

void gstage_run(const char *job, pid_t pid)
{
	const struct job_order order = gstage_order(job);

	gstage_run_order(&order, pid);
}

/* --- what is left ----------------------------------------------------------------------------- */

void gstage_show(void)
{
	static const char sql[] = "SELECT job, state, kind, value, pid, report_due, "
				  "ifnull(text,'') FROM target ORDER BY job";
	sqlite3_stmt *st = NULL;

	assert_int_equal(sqlite3_prepare_v2(gstage.journal->file.db, sql, -1, &st, NULL),
			 SQLITE_OK);
	while (sqlite3_step(st) == SQLITE_ROW)
		trace_line("journal %s: %s, kind %d, value %d, pid %d%s %s",
			   sqlite3_column_text(st, 0), sqlite3_column_text(st, 1),
			   sqlite3_column_int(st, 2), sqlite3_column_int(st, 3),
			   sqlite3_column_int(st, 4), sqlite3_column_int(st, 5) ? ", due" : "",
			   sqlite3_column_text(st, 6));
	sqlite3_finalize(st);
#define X(name)                                                                                    \
	if (gstage.counters.name)                                                                  \
		trace_line("counter " #name " %llu", (unsigned long long)gstage.counters.name);
	COUNTERS(X)
#undef X
}
