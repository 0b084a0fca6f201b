/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The connections of a gang compared with known truth: bytes and messages of each end, ends that
 * match, ranks by the environment, connections inside the host; nothing of cgroups of no gang.
 */
#include <arpa/inet.h>
#include <setjmp.h>
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

#define MIB (1024UL * 1024)

static uint64_t group_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void be_gang(const struct watch *watch, bool is)
{
	struct iocom_err err = {""};

	assert_int_equal(monitor_gang(watch->monitor, group_of(watch->rig.cgroup), is, &err), 0);
}

static const struct monitor_pair *pair_of(const struct watch *watch, pid_t pid)
{
	for (size_t i = 0; i < watch->sample.pairs.n; i++)
		if (watch->sample.pairs.list[i].tgid == (uint32_t)pid)
			return &watch->sample.pairs.list[i];
	return NULL;
}

static bool counted(const struct watch *watch)
{
	if (watch_known(watch, "sent_bytes") && watch_known(watch, "received_messages"))
		return true;
	watch_degraded("connections", "all", "sends are not counted here");
	return false;
}

static void run(const struct watch *watch, const char *address, size_t bytes, bool apart,
		struct talk_end ends[2])
{
	const struct talk what = {
		.netns = {watch->rig.netns[0], watch->rig.netns[apart]},
		.address = address,
		.cgroup = watch->rig.cgroup,
		.bytes = bytes,
	};

	assert_int_equal(talk_run(&what, ends), 0);
}

static void compare(const char *name, const struct watch *watch, const struct talk_end ends[2],
		    size_t bytes)
{
	const struct monitor_pair *from = pair_of(watch, ends[0].pid);
	const struct monitor_pair *to = pair_of(watch, ends[1].pid);

	assert_non_null(from);
	assert_non_null(to);
	watch_compare_within(name, "sent_bytes", (double)bytes, (double)from->counts.sent_bytes, 0);
	watch_compare_within(name, "received_bytes", (double)bytes,
			     (double)to->counts.received_bytes, 0);
	watch_compare_within(name, "sent_messages", (double)ends[0].calls,
			     (double)from->counts.sent_messages, 0);
	if (!to->inside)
		watch_compare_within(name, "received_messages", (double)ends[1].calls,
				     (double)to->counts.received_messages, 0);
	assert_int_equal(from->family, to->family);
	assert_int_equal(from->local_port, to->remote_port);
	assert_int_equal(from->remote_port, to->local_port);
	assert_memory_equal(from->local, to->remote, sizeof(from->local));
	assert_memory_equal(from->remote, to->local, sizeof(from->local));
}

static void test_both_ends_match(void **state)
{
	struct watch *watch = *state;
	const char *addresses[] = {watch->rig.address[1], "fd00:213::2", NULL};
	struct talk_end ends[2];
	char mapped[64];

	if (!counted(watch))
		return;
	be_gang(watch, true);
	snprintf(mapped, sizeof(mapped), "::ffff:%s", watch->rig.address[1]);
	addresses[2] = mapped;
	for (int i = 0; i < 3; i++) {
		run(watch, addresses[i], MIB + 3, true, ends);
		watch_sample(watch);
		compare(addresses[i], watch, ends, MIB + 3);
		assert_false(pair_of(watch, ends[0].pid)->inside);
	}
	be_gang(watch, false);
}

static void test_inside_the_host(void **state)
{
	struct watch *watch = *state;
	struct talk_end ends[2];

	if (!counted(watch))
		return;
	be_gang(watch, true);
	run(watch, watch->rig.address[0], MIB + 5, false, ends);
	watch_sample(watch);
	compare("inside the host", watch, ends, MIB + 5);
	assert_true(pair_of(watch, ends[0].pid)->inside);
	assert_true(pair_of(watch, ends[1].pid)->inside);
	be_gang(watch, false);
}

static void test_of_no_gang(void **state)
{
	struct watch *watch = *state;
	struct talk_end ends[2];

	if (!counted(watch))
		return;
	run(watch, watch->rig.address[1], MIB, true, ends);
	watch_sample(watch);
	assert_null(pair_of(watch, ends[0].pid));
	assert_null(pair_of(watch, ends[1].pid));
	assert_int_equal(watch_drop(watch, "pairs"), 0);
}

struct ranked {
	const struct watch *watch;
	char *const *environment;
	uint16_t port;
};

/* What this program is when it is run with a port and an address: it talks to itself. */
static int talk_to_itself(const char *port, const char *address)
{
	uint16_t number = (uint16_t)atoi(port);
	int listener = talk_listen(address, number, 0);
	int fd = talk_connect(address, number, NULL, 0);

	return listener < 0 || fd < 0 || accept(listener, NULL, NULL) < 0 || talk_give(fd, 7);
}

static int body_ranked(void *argument)
{
	const struct ranked *r = argument;
	char port[16];
	char *argv[] = {"ranked", port, (char *)r->watch->rig.address[0], NULL};

	snprintf(port, sizeof(port), "%u", r->port);
	if (rig_enter_cgroup(r->watch->rig.cgroup, 0) || rig_enter_netns(r->watch->rig.netns[0]))
		return 1;
	execve("/proc/self/exe", argv, r->environment);
	return 1;
}

/* Runs a program with ENVIRONMENT. Returns the rank that was seen; -2: none was seen. */
static int32_t rank_with(struct watch *watch, char *const *environment)
{
	struct ranked r = {watch, environment, talk_port()};

	assert_int_equal(rig_wait(rig_start(body_ranked, &r)), 0);
	watch_sample(watch);
	for (size_t i = 0; i < watch->sample.pairs.n; i++)
		if (watch->sample.pairs.list[i].remote_port == r.port)
			return watch->sample.pairs.list[i].rank;
	return -2;
}

static void test_ranks(void **state)
{
	static const struct {
		char *const environment[5];
		int32_t rank;
	} cases[] = {
		{{"A=1", "IOCOM_TASKS=9", "IOCOM_TASK=7", "PMIX_RANK=3"}, 7},
		{{"PMIX_RANK=3", "IOCOM_TASK=4"}, 4},
		{{"OMPI_COMM_WORLD_RANK=5", "PMI_RANK=12"}, 12},
		{{"OMPI_COMM_WORLD_RANK=4095"}, 4095},
		{{"OMPI_COMM_WORLD_RANK=4096"}, -1},
		{{"IOCOM_TASK=", "PMIX_RANK=-1", "PMI_RANK=1x", "PMI_RANK"}, -1},
		{{"XIOCOM_TASK=1"}, -1},
		{{NULL}, -1},
	};
	struct watch *watch = *state;
	char many[200][16], *environment[201] = {NULL}, big[20000];

	if (!counted(watch))
		return;
	be_gang(watch, true);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(rank_with(watch, cases[i].environment), cases[i].rank);
	for (int i = 0; i < 200; i++) {
		snprintf(many[i], sizeof(many[i]), i == 199 ? "IOCOM_TASK=11" : "V%d=", i);
		environment[i] = many[i];
	}
	/* Longer than what is read at once; what looks like a variable inside is none. */
	memset(big, 'x', sizeof(big));
	for (size_t i = 4000; i < 4200; i += 13)
		memcpy(big + i, "IOCOM_TASK=5", 12);
	big[sizeof(big) - 1] = 0;
	environment[100] = big;
	assert_int_equal(rank_with(watch, environment), 11);
	be_gang(watch, false);
}

static void test_bursts(void **state)
{
	struct watch *watch = *state;
	const struct monitor_gang_task *found = NULL;
	struct talk_end ends[2];

	if (!counted(watch))
		return;
	be_gang(watch, true);
	run(watch, watch->rig.address[1], MIB, true, ends);
	watch_sample(watch);
	for (size_t i = 0; i < watch->sample.pairs.ntasks; i++)
		if (watch->sample.pairs.tasks[i].tgid == (uint32_t)ends[0].pid)
			found = &watch->sample.pairs.tasks[i];
	assert_non_null(found);
	assert_true(found->bursts >= 1 && found->bursts <= ends[0].calls);
	watch_sample(watch);
	for (size_t i = 0; i < watch->sample.pairs.ntasks; i++)
		assert_int_equal(watch->sample.pairs.tasks[i].bursts, 0);
	for (size_t i = 0; i < watch->sample.pairs.n; i++)
		assert_int_equal(watch->sample.pairs.list[i].delta.sent_bytes, 0);
	be_gang(watch, false);
}

/* Room for four ends: the others are counted as lost, and the job has all the same. */
static void test_full_table(void **state)
{
	struct watch *watch = *state;
	const struct monitor_config config = {.scope_cgroup = watch->rig.cgroup,
					      .limits = {.pairs = 4}};
	uint64_t sent = 0;
	struct talk_end ends[2];

	monitor_free(watch->monitor);
	watch->monitor = NULL;
	watch_open(watch, &config);
	if (!counted(watch))
		return;
	be_gang(watch, true);
	for (int i = 0; i < 4; i++)
		run(watch, watch->rig.address[1], MIB, true, ends);
	watch_sample(watch);
	for (size_t i = 0; i < watch->sample.pairs.n; i++)
		sent += watch->sample.pairs.list[i].counts.sent_bytes;
	assert_int_equal(watch->sample.pairs.n, 4);
	watch_compare_within("full table", "sent_bytes of those", 2 * MIB, (double)sent, 0);
	watch_compare_within("full table", "sent_bytes of the job", 4 * MIB,
			     (double)watch_job(watch, group_of(watch->rig.cgroup))->load.sent_bytes,
			     0);
	assert_true(watch_drop(watch, "pairs") >= 2 * MIB / TALK_BLOCK);
}

static int up(void **state)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	struct monitor_config config;

	*state = watch;
	watch_rig(watch, 16);
	config = (struct monitor_config){.scope_cgroup = watch->rig.cgroup};
	for (int i = 0; i < 2; i++)
		if (rig_shell("ip -n %s addr add fd00:213::%d/64 dev rig0 nodad",
			      watch->rig.netns[i], i + 1))
			return -1;
	watch_open(watch, &config);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ends_match), cmocka_unit_test(test_inside_the_host),
		cmocka_unit_test(test_of_no_gang),	cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_bursts),		cmocka_unit_test(test_full_table),
	};

	if (argc == 3)
		return talk_to_itself(argv[1], argv[2]);
	return cmocka_run_group_tests_name("accuracy_pairs", tests, up, watch_down);
}
