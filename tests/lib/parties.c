/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A cluster in memory; see parties.h.  Its bus is in parties_bus.c, its clients are in
 * parties_client.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lib/parties_own.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/accounts.h"
#include "tests/lib/full_disk.h"
#include "tests/lib/shims.h"
#include "tests/lib/trace.h"
#include "user/clock.h"
#include "user/pack.h"

#define BEGIN_BOOT_NS (3600 * CLOCK_NS_PER_S)
#define BEGIN_REAL_NS (1700000000 * CLOCK_NS_PER_S)
#define BOOT_ID	      0x10101010u /* the boot id of n1; those of other nodes are multiples of it */
#define PORT	      7700
#define LEASE_S	      5
#define MEMORY_MB     1000

/* --- what is written down ------------------------------------------------------------ */

uint64_t parties_now_ns(const struct parties *all)
{
	return loop_boot_ns(all->loop);
}

/* Takes what was logged since the last call, each line without its date, which is the real one. */
static void take_log(struct parties *all)
{
	const char *line, *end;

	if (!all->log)
		return;
	fflush(all->log);
	for (line = all->log_text + all->log_seen; (end = strchr(line, '\n')); line = end + 1) {
		const char *text = strchr(line, ' ');

		if (!all->quiet && text && text < end)
			fprintf(all->trace, "        | %.*s\n", (int)(end - text - 1), text + 1);
	}
	all->log_seen = (size_t)(line - all->log_text);
	for (unsigned i = 0; i < all->count; i++)
		all->nodes[i].log.in_window = all->nodes[i].log.provoked = 0;
}

void parties_note(struct parties *all, const char *who, const char *fmt, ...)
{
	va_list ap;

	take_log(all);
	if (all->quiet)
		return;
	fprintf(all->trace, "%7.3f %s ",
		(double)(parties_now_ns(all) - all->begun_ns) / (double)CLOCK_NS_PER_S, who);
	va_start(ap, fmt);
	vfprintf(all->trace, fmt, ap);
	va_end(ap);
	fputc('\n', all->trace);
}

void parties_must(struct parties *all, bool cond, const char *fmt, ...)
{
	va_list ap;

	if (cond || all->broken[0])
		return;
	va_start(ap, fmt);
	vsnprintf(all->broken, sizeof(all->broken), fmt, ap);
	va_end(ap);
}

/*
 * The programs' log lines go to the trace; what the test framework prints still goes to standard
 * error.
 */
void parties_enter(struct parties *all)
{
	all->outside = stderr;
	stderr = all->log;
}

void parties_leave(struct parties *all)
{
	stderr = all->outside;
	take_log(all);
}

/* --- journals -------------------------------------------------------------------------- */

struct journal_listing {
	char lines[64][512];
	size_t count;
};

static void list_one(void *arg, const struct journal_job *job)
{
	struct journal_listing *l = arg;

	if (l->count == 64)
		return;
	snprintf(l->lines[l->count++], sizeof(l->lines[0]), "%s %s at %s: %s %d/%d%s%s", job->job,
		 job->at_home ? "from here" : "of another", job->node[0] ? job->node : "-",
		 job->state, job->exit_kind, job->exit_value, job->text && job->text[0] ? ", " : "",
		 job->text ? job->text : "");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void tell_journal(struct party *party, FILE *out)
{
	struct journal_listing l = {.count = 0};

	if (!party->journal)
		return;
	assert_int_equal(journal_list(party->journal, (uid_t)-1, true, 64, list_one, &l), 0);
	qsort(l.lines, l.count, sizeof(l.lines[0]), by_text);
	for (size_t i = 0; i < l.count; i++)
		fprintf(out, "journal of %s: %s\n", party->set.name, l.lines[i]);
}

static void tell_counters(const struct party *party, FILE *out)
{
	const struct counters *c = &party->counters;

	fprintf(out, "counters of %s:", party->set.name);
#define X(name)                                                                                    \
	if (c->name)                                                                               \
		fprintf(out, " " #name " %llu", (unsigned long long)c->name);
	COUNTERS(X)
#undef X
	fprintf(out, "\n");
}

static void find_one(void *arg, const struct journal_job *job)
{
	snprintf(arg, 600, "%s %d%s%s", job->state, job->exit_kind,
		 job->text && job->text[0] ? " " : "", job->text ? job->text : "");
}

const char *party_journal(struct party *party, const char *job)
{
	static char out[600];

	out[0] = 0;
	if (journal_find(party->journal, job, PARTIES_UID, find_one, out))
		snprintf(out, sizeof(out), "unreadable");
	return out;
}

/* --- golden traces --------------------------------------------------------------------- */

void parties_golden(struct parties *all, const char *name)
{
	char file[64], *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	for (unsigned i = 0; i < all->count; i++)
		tell_journal(&all->nodes[i], all->trace);
	for (unsigned i = 0; i < all->count; i++)
		tell_counters(&all->nodes[i], all->trace);
	fflush(all->trace);
	trace_hide(out, all->trace_text, all->dir);
	fclose(out);
	snprintf(file, sizeof(file), "agent_%s", name);
	trace_golden(file, NULL, text);
	free(text);
}

/* --- what the parties ask of the rest of their agent -------------------------------------- */

static void party_vector(void *arg, struct iocom_vector *own)
{
	struct party *party = arg;
	struct vector_job *jobs = NULL;
	size_t n = 0;

	if (party->jobs.vector)
		jobs = party->jobs.vector(party->jobs.arg, &n);
	*own = party->load;
	own->slots_free = own->slots;
	for (size_t i = 0; i < n; i++)
		own->slots_free -=
			jobs[i].gang_tasks < own->slots_free ? jobs[i].gang_tasks : own->slots_free;
	free(jobs);
	own->run_queue += (double)n;
	own->jobs = (uint32_t)n;
	own->boot_id = party->base.boot_id;
	own->sequence = party->sequence;
	own->time_ns = loop_real_ns(party->base.loop);
}

static uint64_t party_sequence(void *arg)
{
	const struct party *party = arg;

	return party->sequence;
}

static void party_nothing(void *arg)
{
	(void)arg;
}

static bool party_mute(void *arg)
{
	const struct party *party = arg;

	return party->mute;
}

void party_publish(struct party *party)
{
	struct iocom_vector own;

	party->sequence++;
	party_vector(party, &own);
	for (unsigned i = 0; i < party->all->count; i++) {
		struct party *to = &party->all->nodes[i];

		if (to != party && to->runs && !party->cut && !to->cut)
			(void)matrix_put(&to->peers.matrix, &own, 0, parties_now_ns(party->all));
	}
}

static void party_decided(void *arg, const struct home_decision *decision)
{
	struct party *party = arg;

	(void)decision;
	if (party->all->on_decided)
		party->all->on_decided(party);
}

static void party_finished(void *arg, const char *from, const struct job_report *report)
{
	struct party *party = arg;

	parties_note(party->all, party->set.name, "hears of %s: job %s is over", from, report->job);
}

/* --- nodes ------------------------------------------------------------------------------- */

/* Makes an empty journal once; each node begins with a copy. */
static void copy_journal(const struct parties *all, const char *path)
{
	static char *bytes;
	static size_t size;
	char first[128];
	struct journal *journal;
	FILE *f;

	if (!bytes) {
		snprintf(first, sizeof(first), "%s/empty.db", all->dir);
		assert_int_equal(journal_open(&journal, first, NULL), 0);
		journal_close(journal);
		f = fopen(first, "r");
		assert_non_null(f);
		bytes = calloc(1, 1u << 20);
		assert_non_null(bytes);
		size = fread(bytes, 1, 1u << 20, f);
		fclose(f);
	}
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	fclose(f);
}

static void party_settings(struct party *party, unsigned number)
{
	struct settings *set = &party->set;

	*set = (struct settings){
		.port = PORT,
		.period_s = 1,
		.sensitivity = 0.25,
		.cpu_speed = 1,
		.accept_jobs = true,
		.min_uid = 1000,
		.begin_limit_s = 10,
		.keep_jobs = 1000,
		.keep_days = 7,
		.lease_s = LEASE_S,
		.spool_mb = 1,
		.spool_total_mb = 64,
	};
	snprintf(set->name, sizeof(set->name), "n%u", number);
	snprintf(set->address, sizeof(set->address), "10.0.0.%u", number);
	snprintf(set->policy, sizeof(set->policy), "iocm-re");
	snprintf(set->run_dir, sizeof(set->run_dir), "%s/n%u", party->all->dir, number);
	snprintf(set->state_dir, sizeof(set->state_dir), "%s/n%u", party->all->dir, number);
	snprintf(set->munge_socket, sizeof(set->munge_socket), "/run/munge/in-memory");
}

static struct iocom_vector party_load(const struct party *party, unsigned number)
{
	struct iocom_vector v = {
		.port = PORT,
		.period_ms = 1000,
		.cores = 2,
		.cpu_speed = 1,
		.run_queue = number == 1 ? 9 : number * 0.1,
		.memory_mb = MEMORY_MB,
		.memory_available_mb = MEMORY_MB,
		.memory_requested_mb = 10,
		.explicit_per_ms = number == 1 ? 0.9 : number * 0.01,
		.disks = 1,
		.disk_arrivals_per_ms = number == 1 ? 0.9 : number * 0.01,
		.disk_utilisation = number == 1 ? 0.9 : number * 0.01,
		.disk_service_ms = 3,
		.disk_service_ms2 = 9,
		.disk_mb_per_s = 20,
		.disk_fixed_ms = 0.1,
		.network_mb_per_s = 125,
		.io_tasks = 1,
		.accepts_jobs = true,
	};

	memcpy(v.name, party->set.name, sizeof(v.name));
	memcpy(v.address, party->set.address, sizeof(v.address));
	return v;
}

static void party_path(char out[128], const char *dir, unsigned number, const char *name)
{
	char copy[64];

	snprintf(copy, sizeof(copy), "%s", dir);
	snprintf(out, 128, "%s/n%u/%s", copy, number, name);
}

static void party_make(struct parties *all, unsigned number)
{
	struct party *party = &all->nodes[number - 1];

	party->all = all;
	party_settings(party, number);
	party->load = party_load(party, number);
	party_path(party->jobs_dir, all->dir, number, "jobs");
	party_path(party->run_jobs_dir, all->dir, number, "run");
	party_path(party->database, all->dir, number, "iocom.db");
	assert_int_equal(mkdir(party->set.state_dir, 0700), 0);
	assert_int_equal(mkdir(party->jobs_dir, 0700), 0);
	assert_int_equal(mkdir(party->run_jobs_dir, 0700), 0);
	copy_journal(all, party->database);
	party->log = (struct logger){.program = party->set.name, .level = LOG_L_INFO};
	party->base = (struct base){.loop = all->loop,
				    .log = &party->log,
				    .counters = &party->counters,
				    .set = &party->set,
				    .boot_id = (uint64_t)BOOT_ID * number};
	party_start(party);
}

static int party_make_guest(struct party *party)
{
	const struct guest_config config = {
		.base = &party->base,
		.jobs_dir = party->jobs_dir,
		.run_jobs_dir = party->run_jobs_dir,
		.journal = party->journal,
		.accounts = party->all->accounts,
		.cpu_speed = 1,
		.launcher = &launcher_in_memory,
		.ports = {.arg = party,
			  .own_vector = party_vector,
			  .sequence = party_sequence,
			  .sample = party_nothing,
			  .changed = party_nothing,
			  .ask = bus_ask,
			  .ask_arg = party,
			  .answer = bus_answer},
	};
	int rc = guest_new(&party->guest, &config, NULL);

	if (rc)
		return rc;
	party->jobs = guest_pulse_jobs(party->guest);
	peers_serve(&party->peers, PEER_ADMIT, guest_on_admit, party->guest);
	peers_serve(&party->peers, PEER_KILL, guest_on_kill, party->guest);
	peers_serve(&party->peers, PEER_RELEASE, guest_on_release, party->guest);
	return 0;
}

static int party_make_home(struct party *party)
{
	const struct home_config config = {
		.base = &party->base,
		.journal = party->journal,
		.profiles = party->profiles,
		.matrix = &party->peers.matrix,
		.skews = &party->peers.skews,
		.ports = {.arg = party,
			  .own_vector = party_vector,
			  .mute = party_mute,
			  .ask = bus_ask,
			  .ask_arg = party},
	};
	int rc = home_new(&party->home, &config, NULL);

	if (rc)
		return rc;
	party->watch = (struct home_watch){
		.decided = party_decided, .finished = party_finished, .arg = party};
	home_watch(party->home, &party->watch);
	peers_serve(&party->peers, PEER_STARTED, home_on_started, party->home);
	peers_serve(&party->peers, PEER_DONE, home_on_done, party->home);
	peers_serve(&party->peers, PEER_PROGRESS, home_on_progress, party->home);
	peers_serve(&party->peers, PEER_RENEW, home_on_renew, party->home);
	return gangs_new(&party->gangs,
			 &(struct gangs_config){.base = &party->base, .home = party->home}, NULL);
}

void party_start(struct party *party)
{
	struct iocom_err err = {0};

	parties_enter(party->all);
	if (journal_open(&party->journal, party->database, &err) ||
	    profile_open(&party->profiles, ":memory:", &err) ||
	    peers_start(&party->peers, &party->base, party->journal, NULL, NULL, &err) ||
	    party_make_guest(party) || party_make_home(party) || home_load(party->home, &err) ||
	    guest_recover(party->guest, &err) || gangs_load(party->gangs, &err))
		abort();
	party->runs = true;
	parties_leave(party->all);
}

void party_stop(struct party *party)
{
	struct parties *all = party->all;

	if (!party->runs)
		return;
	parties_enter(all);
	parties_note(all, party->set.name, "stops");
	guest_stop(party->guest);
	bus_cancel(party);
	peers_stop(&party->peers);
	party->runs = false;
	guest_free(party->guest);
	gangs_free(party->gangs);
	home_free(party->home);
	party->gangs = NULL;
	party->guest = NULL;
	party->home = NULL;
	party->jobs = (struct pulse_jobs){0};
	shims_abandon(party->jobs_dir);
	profile_close(party->profiles);
	journal_close(party->journal);
	party->journal = NULL;
	peers_free(&party->peers);
	party->base.boot_id++;
	parties_leave(all);
}

struct party *party_of(struct parties *all, const char *name)
{
	for (unsigned i = 0; i < all->count; i++)
		if (!strcmp(all->nodes[i].set.name, name))
			return &all->nodes[i];
	return NULL;
}

size_t party_jobs(struct party *party)
{
	struct guest_counts counts = {0};

	if (party->runs)
		guest_count(party->guest, &counts);
	return counts.jobs;
}

/* --- all of them --------------------------------------------------------------------------- */

static void publish_all(struct parties *all)
{
	for (unsigned i = 0; i < all->count; i++)
		if (all->nodes[i].runs)
			party_publish(&all->nodes[i]);
}

void parties_begin(struct parties *all, unsigned count)
{
	*all = (struct parties){0};
	full_disk_use();
	full_disk_mend();
	/* In memory, where there is such a place: a busy disk is not waited for. */
	snprintf(all->dir, sizeof(all->dir), "%s/iocom-parties-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	assert_non_null(mkdtemp(all->dir));
	all->trace = open_memstream(&all->trace_text, &all->trace_size);
	all->log = open_memstream(&all->log_text, &all->log_size);
	assert_true(all->trace && all->log);
	assert_int_equal(loop_new_virtual(&all->loop, BEGIN_BOOT_NS, BEGIN_REAL_NS, NULL), 0);
	all->begun_ns = all->chores_ns = parties_now_ns(all);
	assert_int_equal(accounts_new(&all->accounts, &all->nodes[0].counters, NULL), 0);
	shims_begin(all->loop);
	all->count = count;
	for (unsigned i = 1; i <= count; i++)
		party_make(all, i);
	publish_all(all);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void parties_end(struct parties *all)
{
	char broken[sizeof(all->broken)];

	if (!all->loop)
		return;
	full_disk_mend();
	for (unsigned i = 0; i < all->count; i++)
		party_stop(&all->nodes[i]);
	parties_must(all, shims_most() <= 1, "two attempts of one job ran at the same time");
	bus_free(all);
	shims_end();
	accounts_free(all->accounts);
	loop_free(all->loop);
	fclose(all->trace);
	fclose(all->log);
	free(all->trace_text);
	free(all->log_text);
	(void)nftw(all->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	memcpy(broken, all->broken, sizeof(broken));
	*all = (struct parties){0};
	assert_string_equal(broken, "");
}

void parties_settle(struct parties *all)
{
	struct guest_counts counts;
	size_t looks;

	do {
		looks = 0;
		loop_advance(all->loop, 0);
		for (unsigned i = 0; i < all->count; i++) {
			if (!all->nodes[i].runs)
				continue;
			guest_count(all->nodes[i].guest, &counts);
			looks += counts.paths - counts.paths_late;
		}
		if (looks)
			sched_yield();
	} while (looks);
}

static void all_chores(struct parties *all)
{
	publish_all(all);
	for (unsigned i = 0; i < all->count; i++) {
		struct party *party = &all->nodes[i];

		if (!party->runs)
			continue;
		peers_period(&party->peers);
		guest_chores(party->guest);
		home_chores(party->home);
		gangs_chores(party->gangs);
	}
	all->chores_ns += CLOCK_NS_PER_S;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void parties_pass(struct parties *all, unsigned ms)
{
	uint64_t until = parties_now_ns(all) + ms * CLOCK_NS_PER_MS, next;

	parties_enter(all);
	parties_settle(all);
	do {
		next = earlier(earlier(until, bus_due_ns(all)),
			       earlier(shims_due_ns(), all->chores_ns + CLOCK_NS_PER_S));
		if (next > parties_now_ns(all))
			loop_advance(all->loop, next - parties_now_ns(all));
		shims_tick();
		bus_run(all);
		parties_settle(all);
		if (parties_now_ns(all) >= all->chores_ns + CLOCK_NS_PER_S)
			all_chores(all);
	} while (parties_now_ns(all) < until || bus_due_ns(all) <= until);
	parties_leave(all);
}

void party_prune(struct party *party)
{
	parties_enter(party->all);
	home_prune(party->home);
	parties_leave(party->all);
}

void parties_finish(struct parties *all, const char *job, uint8_t kind, uint32_t value)
{
	parties_fail(all, job, kind, value, "");
}

void parties_fail(struct parties *all, const char *job, uint8_t kind, uint32_t value,
		  const char *text)
{
	parties_enter(all);
	shims_finish(job, kind, value, text);
	parties_leave(all);
}
