/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP by remote address and job compared with known truth, also with more addresses than there
 * is room for; a job's rows always add up to what it sent and received.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/talk.h"
#include "tests/lib/watch.h"

#define KIB	  1024UL
#define MIB	  (1024 * KIB)
#define ADDRESSES 6 /* addresses of the receiver: the rig's, and those of `address_of` */

static const char *address_of(const struct watch *watch, int i)
{
	static const char *const more[ADDRESSES] = {NULL,	   "10.213.7.22", "10.213.7.23",
						    "10.213.7.24", "fd00:213::2", "fd00:213::22"};

	return i ? more[i] : watch->rig.address[1];
}

static uint64_t cgroup_id(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

/* ADDRESS NULL means the row of other remotes. */
static struct monitor_remote_counts remote(const struct watch *watch, uint64_t cgroup,
					   const char *address)
{
	int family = !address ? AF_UNSPEC : strchr(address, ':') ? AF_INET6 : AF_INET;
	uint8_t bytes[16] = {0};

	if (address)
		assert_int_equal(inet_pton(family, address, bytes), 1);
	for (size_t i = 0; i < watch->sample.nremotes; i++) {
		const struct monitor_remote *r = &watch->sample.remotes[i];

		if (r->cgroup_id == cgroup && r->family == family &&
		    !memcmp(r->address, bytes, sizeof(bytes)))
			return r->counts;
	}
	return (struct monitor_remote_counts){0};
}

static size_t rows_of(const struct watch *watch, uint64_t cgroup)
{
	size_t n = 0;

	for (size_t i = 0; i < watch->sample.nremotes; i++)
		n += watch->sample.remotes[i].cgroup_id == cgroup;
	return n;
}

static uint64_t drops(const struct watch *watch, const char *name)
{
	for (size_t i = 0; i < watch->sample.ndrops; i++)
		if (!strcmp(watch->sample.drops[i].name, name))
			return watch->sample.drops[i].count;
	fail_msg("no drop is called %s", name);
	return 0;
}

/* Compares the job with the sum of its rows, in all four numbers. */
static void compare_sum(const struct watch *watch, const char *name, uint64_t cgroup)
{
	const struct iocom_job_load *job = watch_job(watch, cgroup);
	struct monitor_remote_counts sum = {0};

	assert_non_null(job);
	for (size_t i = 0; i < watch->sample.nremotes; i++) {
		const struct monitor_remote *r = &watch->sample.remotes[i];

		if (r->cgroup_id != cgroup)
			continue;
		sum.sent_bytes += r->counts.sent_bytes;
		sum.received_bytes += r->counts.received_bytes;
		sum.sent_messages += r->counts.sent_messages;
		sum.received_messages += r->counts.received_messages;
	}
	watch_compare_within(name, "sum of sent_bytes", job->load.sent_bytes, sum.sent_bytes, 0);
	watch_compare_within(name, "sum of received_bytes", job->load.received_bytes,
			     sum.received_bytes, 0);
	watch_compare_within(name, "sum of sent_messages", job->load.sent_messages,
			     sum.sent_messages, 0);
	watch_compare_within(name, "sum of received_mess.", job->load.received_messages,
			     sum.received_messages, 0);
}

/* Makes all calls of both ends in CGROUP. */
static void talk_to(const struct watch *watch, const char *address, const char *from,
		    const char *cgroup, size_t bytes, struct talk_end ends[2])
{
	const struct talk what = {
		.netns = {watch->rig.netns[0], watch->rig.netns[1]},
		.address = address,
		.from = from,
		.cgroup = cgroup,
		.bytes = bytes,
	};

	assert_int_equal(talk_run(&what, ends), 0);
}

static void test_each_address(void **state)
{
	struct watch *watch = *state;
	uint64_t job = cgroup_id(watch->rig.cgroup), received = 0;
	struct talk_end ends[2];
	char mapped[64];

	if (!watch_known(watch, "sent_bytes") || !watch_known(watch, "received_messages")) {
		watch_degraded("by remote address", "all", "sends are not counted here");
		return;
	}
	for (int i = 0; i < ADDRESSES; i++) {
		talk_to(watch, address_of(watch, i), NULL, watch->rig.cgroup, MIB + (size_t)i,
			ends);
		received += strchr(address_of(watch, i), ':') ? 0 : MIB + (size_t)i;
	}
	/* Another kind of socket to the same host is not another host. */
	snprintf(mapped, sizeof(mapped), "::ffff:%s", address_of(watch, 0));
	talk_to(watch, mapped, NULL, watch->rig.cgroup, 7, ends);
	watch_sample(watch);
	for (int i = 0; i < ADDRESSES; i++) {
		char name[64];

		snprintf(name, sizeof(name), "remote %s", address_of(watch, i));
		watch_compare_within(name, "sent_bytes", MIB + (size_t)i + (i ? 0 : 7),
				     remote(watch, job, address_of(watch, i)).sent_bytes, 0);
	}
	watch_compare_within("remote 10.213.7.1", "received_bytes", received + 7,
			     remote(watch, job, watch->rig.address[0]).received_bytes, 0);
	/* the two addresses of the sender are remote addresses, too */
	assert_int_equal(rows_of(watch, job), ADDRESSES + 2);
	compare_sum(watch, "all remotes", job);
	for (size_t i = 0; i < watch->sample.ndrops; i++)
		assert_int_equal(watch->sample.drops[i].count, 0);
}

/* One socket, whose process moves to another job half way. */
struct mover {
	const struct watch *watch;
	const char *cgroups[2];
	uint16_t port;
	int ready[2];
};

static int body_sink(void *argument)
{
	struct mover *mover = argument;
	int listener, fd;

	close(mover->watch->rig.guard_fd);
	if (rig_enter_netns(mover->watch->rig.netns[1]))
		return 1;
	listener = talk_listen(mover->watch->rig.address[1], mover->port, 0);
	if (listener < 0 || write(mover->ready[1], "", 1) != 1)
		return 1;
	fd = accept(listener, NULL, NULL);
	return talk_take(fd, 3 * MIB + 7);
}

static void *moving_thread(void *argument)
{
	struct mover *mover = argument;
	int fd = talk_connect(mover->watch->rig.address[1], mover->port, NULL, 0);

	if (fd < 0 || talk_give(fd, MIB + 3) || rig_enter_cgroup(mover->cgroups[1], 0) ||
	    talk_give(fd, MIB + 2) || rig_enter_cgroup(mover->cgroups[0], 0) ||
	    talk_give(fd, MIB + 2))
		return argument;
	return NULL;
}

/* The kernel reports the move of a process, but not of each thread. */
static int body_mover(void *argument)
{
	struct mover *mover = argument;
	pthread_t thread;
	void *failed;

	close(mover->watch->rig.guard_fd);
	return rig_enter_cgroup(mover->cgroups[0], 0) ||
	       rig_enter_netns(mover->watch->rig.netns[0]) ||
	       pthread_create(&thread, NULL, moving_thread, mover) ||
	       pthread_join(thread, &failed) || failed;
}

static void test_socket_of_two_jobs(void **state)
{
	struct watch *watch = *state;
	struct mover mover = {.watch = watch, .port = talk_port()};
	char one[160], two[160], byte;
	pid_t pids[2];

	if (!watch_known(watch, "sent_bytes")) {
		watch_degraded("one socket, two jobs", "all", "sends are not counted here");
		return;
	}
	snprintf(one, sizeof(one), "%s/one", watch->rig.cgroup);
	snprintf(two, sizeof(two), "%s/two", watch->rig.cgroup);
	assert_int_equal(mkdir(one, 0755), 0);
	assert_int_equal(mkdir(two, 0755), 0);
	mover.cgroups[0] = one;
	mover.cgroups[1] = two;
	assert_int_equal(pipe(mover.ready), 0);
	pids[0] = rig_start(body_sink, &mover);
	assert_int_equal(read(mover.ready[0], &byte, 1), 1);
	pids[1] = rig_start(body_mover, &mover);
	assert_int_equal(rig_wait(pids[1]), 0);
	assert_int_equal(rig_wait(pids[0]), 0);
	close(mover.ready[0]);
	close(mover.ready[1]);
	watch_sample(watch);
	watch_compare_within("one socket, first job", "sent_bytes", 2 * MIB + 5,
			     remote(watch, cgroup_id(one), watch->rig.address[1]).sent_bytes, 0);
	watch_compare_within("one socket, second job", "sent_bytes", MIB + 2,
			     remote(watch, cgroup_id(two), watch->rig.address[1]).sent_bytes, 0);
	compare_sum(watch, "one socket, first job", cgroup_id(one));
	compare_sum(watch, "one socket, second job", cgroup_id(two));
}

/*
 * There is room for two addresses, then for none: the other traffic counts in the job's row of
 * other remotes.
 */
static void test_overflow(void **state)
{
	struct watch *watch = *state;
	const struct monitor_config config = {.scope_cgroup = watch->rig.cgroup, .remotes_max = 2};
	uint64_t job = cgroup_id(watch->rig.cgroup);
	struct talk_end ends[2];

	monitor_free(watch->monitor);
	watch->monitor = NULL;
	watch_open(watch, &config);
	if (!watch_known(watch, "sent_bytes") || !watch_known(watch, "received_messages")) {
		watch_degraded("too many remotes", "all", "sends are not counted here");
		return;
	}
	for (int i = 0; i < 4; i++)
		talk_to(watch, address_of(watch, i), NULL, watch->rig.cgroup, MIB, ends);
	watch_sample(watch);
	/* The first talk took both rows: one of the sender, one of the receiver. */
	watch_compare_within("too many remotes", "sent_bytes, first", MIB,
			     remote(watch, job, address_of(watch, 0)).sent_bytes, 0);
	watch_compare_within("too many remotes", "received_bytes, first", 4 * MIB,
			     remote(watch, job, watch->rig.address[0]).received_bytes, 0);
	watch_compare_within("too many remotes", "sent_bytes, others", 3 * MIB,
			     remote(watch, job, NULL).sent_bytes, 0);
	watch_compare_within("too many remotes", "drops (sockets)", 3, drops(watch, "remotes"), 0);
	assert_int_equal(drops(watch, "other_remotes"), 0);
	assert_int_equal(rows_of(watch, job), 3);
	compare_sum(watch, "too many remotes", job);
}

/* Four connections that stay open, and whose turn it is. */
#define STAYING 4
struct stayers {
	const struct watch *watch;
	uint16_t port;
	int ready[2], turn[2], done[2];
};

static int body_sinks(void *argument)
{
	struct stayers *s = argument;
	int listeners[STAYING];

	close(s->watch->rig.guard_fd);
	if (rig_enter_netns(s->watch->rig.netns[1]))
		return 1;
	for (int i = 0; i < STAYING; i++)
		listeners[i] = talk_listen(address_of(s->watch, i), (uint16_t)(s->port + i), 0);
	if (write(s->ready[1], "", 1) != 1)
		return 1;
	for (int i = 0; i < STAYING; i++)
		if (accept(listeners[i], NULL, NULL) < 0)
			return 1;
	pause(); /* the sockets' buffers hold all that is sent */
	return 0;
}

static int body_sources(void *argument)
{
	struct stayers *s = argument;
	int fds[STAYING];
	char which;

	close(s->watch->rig.guard_fd); /* lets the rig go down while this process lives */
	if (rig_enter_cgroup(s->watch->rig.cgroup, 0) || rig_enter_netns(s->watch->rig.netns[0]))
		return 1;
	for (int i = 0; i < STAYING; i++) {
		fds[i] = talk_connect(address_of(s->watch, i), (uint16_t)(s->port + i), NULL, 0);
		if (fds[i] < 0)
			return 1;
	}
	while (read(s->turn[0], &which, 1) == 1)
		if (talk_give(fds[(int)which], 100) || write(s->done[1], "", 1) != 1)
			return 1;
	return 0;
}

static void give_turns(const struct stayers *s, int from, int to)
{
	char byte;

	for (char i = (char)from; i < to; i++) {
		assert_int_equal(write(s->turn[1], &i, 1), 1);
		assert_int_equal(read(s->done[0], &byte, 1), 1);
	}
}

/* Idle addresses lose their slots; their open sockets then find new ones. */
static void test_places_change_hands(void **state)
{
	struct watch *watch = *state;
	const struct monitor_config config = {
		.scope_cgroup = watch->rig.cgroup, .remotes_max = STAYING, .remotes_idle_ms = 1};
	uint64_t job = cgroup_id(watch->rig.cgroup);
	struct stayers s = {.watch = watch, .port = talk_port()};
	pid_t sinks, sources;
	char byte;

	for (int i = 1; i < STAYING; i++)
		talk_port();
	monitor_free(watch->monitor);
	watch->monitor = NULL;
	watch_open(watch, &config);
	if (!watch_known(watch, "sent_bytes")) {
		watch_degraded("places change hands", "all", "sends are not counted here");
		return;
	}
	assert_int_equal(pipe(s.ready) || pipe(s.turn) || pipe(s.done), 0);
	sinks = rig_start(body_sinks, &s);
	assert_int_equal(read(s.ready[0], &byte, 1), 1);
	sources = rig_start(body_sources, &s);
	give_turns(&s, 0, STAYING);
	watch_sample(watch);
	assert_int_equal(rows_of(watch, job), STAYING);
	/* All slots are taken and idle: two are removed, and are free two readings later. */
	for (int i = 0; i < 3; i++) {
		watch_sample(watch);
		usleep(2 * WATCH_SETTLE_US);
	}
	watch_compare_within("places change hands", "sent_bytes, others", 200,
			     remote(watch, job, NULL).sent_bytes, 0);
	/*
	 * Each socket sends again: two with the slot they remember, two through the index. The
	 * last goes first, so that slots change hands.
	 */
	for (int i = STAYING - 1; i >= 0; i--)
		give_turns(&s, i, i + 1);
	watch_sample(watch);
	assert_int_equal(rows_of(watch, job), STAYING + 1);
	compare_sum(watch, "places change hands", job);
	assert_int_equal(drops(watch, "remotes"), 0);
	/* A byte is sent every few milliseconds while readings remove and free slots. */
	for (int i = 0; i < 60; i++) {
		struct iocom_err err = {""};

		give_turns(&s, i % STAYING, i % STAYING + 1);
		assert_int_equal(monitor_sample(watch->monitor, &watch->sample, &err), 0);
		usleep(10000);
	}
	watch_sample(watch);
	watch_compare_within("places change hands", "sent_bytes, job", 68 * 100,
			     watch_job(watch, job)->load.sent_bytes, 0);
	compare_sum(watch, "places change hands", job);
	kill(sources, SIGKILL);
	kill(sinks, SIGKILL);
	rig_wait(sources);
	rig_wait(sinks);
	for (int i = 0; i < 2; i++) {
		close(s.ready[i]);
		close(s.turn[i]);
		close(s.done[i]);
	}
}

static int watch_up(void **state)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	struct monitor_config config = {0};

	*state = watch;
	watch_rig(watch, 16);
	/* Other programs on this machine must take no slots. */
	config.scope_cgroup = watch->rig.cgroup;
	for (int i = 1; i < ADDRESSES; i++)
		if (rig_shell("ip -n %s addr add %s/%d dev rig0 %s", watch->rig.netns[1],
			      address_of(watch, i), strchr(address_of(watch, i), ':') ? 64 : 24,
			      strchr(address_of(watch, i), ':') ? "nodad" : ""))
			return -1;
	if (rig_shell("ip -n %s addr add fd00:213::1/64 dev rig0 nodad", watch->rig.netns[0]))
		return -1;
	watch_open(watch, &config);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_address),
		cmocka_unit_test(test_socket_of_two_jobs),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_places_change_hands),
	};

	return cmocka_run_group_tests_name("accuracy_remotes", tests, watch_up, watch_down);
}
