/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Lost events are counted as lost: the test provokes each cause in `drops`, if necessary with a
 * monitor with hardly any room.
 *
 * Two causes cannot be provoked at will. "task_storage": the kernel is out of memory for one
 * thread's counters in an atomic context. "recursion": an interrupt raises the very event whose
 * program it interrupted on that CPU. For both the test shows that they are reported and stay 0
 * under its load.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "tests/lib/bodies.h"
#include "user/monitor/monitor_internal.h"
#include "tests/lib/watch.h"

#define JOBS	      24
#define FILES	      64
#define ROOM	      8
#define EXITED	      40
#define WRITERS	      5
#define TRIES	      5
#define BUSY_UNUSED   255 /* the slot of a CPU that does not exist */
#define BLOCK	      (64 * KIB)
#define SOCKET_MEMORY "/proc/sys/net/core/optmem_max"

/* Opens another monitor on the group's rig. */
static struct watch open_limited(const struct watch *watch, const struct monitor_limits *limits)
{
	struct watch limited = {.rig = watch->rig};
	struct monitor_config config = {.limits = *limits};

	watch_open(&limited, &config);
	return limited;
}

struct reader {
	char cgroup[224];
	uint64_t id;
	struct body body;
};

static void reader_make(const struct watch *watch, struct reader *r, int i, const char *path)
{
	struct stat st;

	snprintf(r->cgroup, sizeof(r->cgroup), "%s/drop%d", watch->rig.cgroup, i);
	assert_int_equal(mkdir(r->cgroup, 0755), 0);
	assert_int_equal(stat(r->cgroup, &st), 0);
	r->id = st.st_ino;
	r->body = (struct body){.path = path, .bytes = BLOCK, .block = BLOCK, .flags = O_DIRECT};
}

static int body_reader(void *argument)
{
	struct reader *r = argument;

	return rig_enter_cgroup(r->cgroup, 0) || body_read(&r->body);
}

/*
 * More cgroups than room: counts without a job are in `lost`, and in no other place. Only the rig's
 * tasks and disk are in scope: what others of the machine read may be lost, too.
 */
static void test_jobs(void **state)
{
	struct watch *watch = *state, limited = {.rig = watch->rig};
	const char *const disks[] = {watch->rig.disk, NULL};
	const struct monitor_config config = {
		.scope_cgroup = watch->rig.cgroup, .scope_disks = disks, .limits = {.jobs = ROOM}};
	struct reader *readers = calloc(JOBS, sizeof(*readers));
	uint64_t in_jobs = 0;
	char path[160];

	assert_non_null(readers);
	snprintf(path, sizeof(path), "%s/file", watch->rig.mount);
	watch_open(&limited, &config);
	for (int i = 0; i < JOBS; i++) {
		reader_make(watch, &readers[i], i, path);
		assert_int_equal(rig_wait(rig_start(body_reader, &readers[i])), 0);
	}
	watch_sample(&limited);
	for (int i = 0; i < JOBS; i++) {
		const struct iocom_job_load *job = watch_job(&limited, readers[i].id);

		in_jobs += job ? job->load.explicit_read_bytes : 0;
		rmdir(readers[i].cgroup);
	}
	printf("# |%d cgroups, room for %d: drop jobs %lu, lost %lu bytes\n", JOBS, ROOM,
	       watch_drop(&limited, "jobs"), limited.sample.lost.explicit_read_bytes);
	assert_true(watch_drop(&limited, "jobs") >= JOBS - ROOM);
	watch_compare("more jobs than room", "read bytes, lost ones too", (double)JOBS * BLOCK,
		      (double)(in_jobs + limited.sample.lost.explicit_read_bytes), 0);
	assert_true(in_jobs > 0 && in_jobs < JOBS * BLOCK);
	monitor_free(limited.monitor);
	free(readers);
}

static int body_nothing(void *argument)
{
	(void)argument;
	return 0;
}

static void test_late_and_exited(void **state)
{
	struct watch *watch = *state, limited;

	limited = open_limited(watch, &(struct monitor_limits){.late = ROOM, .exited = ROOM});
	for (int i = 0; i < EXITED; i++)
		assert_int_equal(rig_wait(rig_start(body_nothing, NULL)), 0);
	watch_sample(&limited);
	assert_true(watch_drop(&limited, "late") >= EXITED - ROOM);
	/* Each time few enough that their ends are reported, but too many to remember. */
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < ROOM / 2; i++)
			assert_int_equal(rig_wait(rig_start(body_nothing, NULL)), 0);
		watch_sample(&limited);
	}
	watch_sample(&limited);
	printf("# |room for %d ended: drop late %lu, exited %lu\n", ROOM,
	       watch_drop(&limited, "late"), watch_drop(&limited, "exited"));
	assert_true(watch_drop(&limited, "exited") > 0);
	monitor_free(limited.monitor);
}

static void test_ended_jobs(void **state)
{
	struct watch *watch = *state, limited;
	struct reader r;
	char path[160];

	snprintf(path, sizeof(path), "%s/file", watch->rig.mount);
	limited = open_limited(watch, &(struct monitor_limits){.ended_jobs = ROOM});
	for (int i = 0; i < JOBS; i++) {
		reader_make(watch, &r, i, path);
		assert_int_equal(rig_wait(rig_start(body_reader, &r)), 0);
		rmdir(r.cgroup);
		if (i % 4 == 3)
			watch_sample(&limited);
	}
	watch_sample(&limited);
	printf("# |room for %d cgroups: drop ended_jobs %lu, %zu known\n", ROOM,
	       watch_drop(&limited, "ended_jobs"), limited.sample.njobs);
	assert_true(watch_drop(&limited, "ended_jobs") > 0);
	monitor_free(limited.monitor);
}

static void test_disks(void **state)
{
	struct watch *watch = *state, limited;
	struct body w = {.bytes = BLOCK, .block = BLOCK, .flags = O_DIRECT};
	char path[160];

	snprintf(path, sizeof(path), "%s/file", watch->rig.mount);
	w.path = path;
	limited = open_limited(watch, &(struct monitor_limits){.disks = 1});
	/* The rig's disk and the disk with its image: one of them finds no room. */
	for (int i = 0; i < 4; i++) {
		rig_drop_caches(&watch->rig);
		assert_int_equal(rig_wait(rig_start(body_read, &w)), 0);
	}
	watch_sample(&limited);
	assert_int_equal(limited.sample.ndisks, 1);
	assert_true(watch_drop(&limited, "disks") > 0);
	monitor_free(limited.monitor);
}

static uint64_t disk_task_bytes(const struct watch *watch)
{
	for (size_t i = 0; i < watch->sample.ndisks; i++)
		if (!strcmp(watch->sample.disks[i].name, watch->rig.disk))
			return watch->sample.disks[i].task_bytes;
	return 0;
}

/*
 * More dirty files than room: their writeback is unattributed, and charged to no other task. Any
 * process's sync(2) in the middle makes room, so the test tries a few times.
 */
static void test_ledger(void **state)
{
	struct watch *watch = *state, limited;
	struct body w = {.bytes = BLOCK, .block = BLOCK};
	uint64_t tasks, unknown;
	char path[160];

	sync();
	limited = open_limited(watch, &(struct monitor_limits){.ledger = ROOM});
	w.path = path;
	for (int try = 0; try < TRIES && watch_drop(&limited, "ledger") < FILES - ROOM; try++) {
		watch_sample(&limited);
		unknown = limited.sample.unattributed.writeback_bytes;
		tasks = disk_task_bytes(&limited);
		for (int i = 0; i < FILES; i++) {
			snprintf(path, sizeof(path), "%s/dirty%d-%d", watch->rig.mount, try, i);
			assert_int_equal(body_write(&w), 0);
		}
		sync();
		watch_sample(&limited);
		tasks = disk_task_bytes(&limited) - tasks;
		unknown = limited.sample.unattributed.writeback_bytes - unknown;
		printf("# |%d files, room for %d: drop ledger %lu, to tasks %lu, unknown %lu\n",
		       FILES, ROOM, watch_drop(&limited, "ledger"), tasks, unknown);
		assert_true(tasks + unknown >= FILES * BLOCK);
	}
	assert_true(watch_drop(&limited, "ledger") >= FILES - ROOM);
	assert_true(limited.sample.unattributed.writeback_bytes > 0);
	monitor_free(limited.monitor);
}

/* Five processes with dirty pages in one file; see above for the tries. */
static void test_cowriters(void **state)
{
	struct watch *watch = *state;
	struct body w = {.bytes = BLOCK, .block = BLOCK};
	uint64_t before, written;
	pid_t pids[WRITERS];
	char path[160];

	w.path = path;
	sync();
	watch_sample(watch);
	before = watch_drop(watch, "cowriters");
	for (int try = 0; try < TRIES && watch_drop(watch, "cowriters") == before; try++) {
		snprintf(path, sizeof(path), "%s/shared%d", watch->rig.mount, try);
		for (int i = 0; i < WRITERS; i++) {
			w.from = i * (off_t)BLOCK;
			pids[i] = rig_start(body_write, &w);
			assert_int_equal(rig_wait(pids[i]), 0);
		}
		sync();
		watch_sample(watch);
		written = 0;
		for (int i = 0; i < WRITERS; i++) {
			const struct iocom_task *task = watch_task(watch, pids[i]);

			written += task ? task->load.explicit_write_bytes : 0;
		}
		watch_compare("five writers of one file", "write bytes of all",
			      (double)WRITERS * BLOCK, (double)written, 0);
	}
	assert_true(watch_drop(watch, "cowriters") > before);
}

/* Opens a socket to port PORT of 127.0.0.1, or listens there. */
static int tcp(bool listening, uint16_t *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(*port)};
	socklen_t length = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0)
		return -1;
	if (listening ? bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 4)
		      : connect(fd, (struct sockaddr *)&at, sizeof(at))) {
		close(fd);
		return -1;
	}
	if (listening && !getsockname(fd, (struct sockaddr *)&at, &length))
		*port = ntohs(at.sin_port);
	return fd;
}

/* Runs in a network namespace of its own whose sockets may have no extra memory. */
static int body_sockets(void *argument)
{
	const struct rig *rig = argument;
	uint16_t port = 0;
	int listener, out, in;
	char byte = 1;
	FILE *file;

	if (rig_enter_netns(rig->netns[0]))
		return 1;
	file = fopen(SOCKET_MEMORY, "we");
	if (!file)
		_exit(77); /* one value for all networks: we must not change it */
	if (fprintf(file, "1") < 0 || fclose(file))
		return 1;
	listener = tcp(true, &port);
	out = tcp(false, &port);
	in = accept(listener, NULL, NULL);
	if (listener < 0 || out < 0 || in < 0)
		return 1;
	return write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1;
}

static void test_sockets(void **state)
{
	struct watch *watch = *state;
	uint64_t before;
	int rc;

	watch_sample(watch);
	before = watch_drop(watch, "sockets");
	rc = rig_wait(rig_start(body_sockets, &watch->rig));
	if (rc == 77)
		skip();
	assert_int_equal(rc, 0);
	watch_sample(watch);
	assert_true(watch_drop(watch, "sockets") > before);
}

/*
 * A program does not leave the old epoch: that reading lacks the ended threads, the next has
 * them.
 */
static void test_epochs(void **state)
{
	struct watch *watch = *state;
	struct iocom_bpf__bss *bss = watch->monitor->skel->bss;
	struct body w = {.bytes = BLOCK, .block = BLOCK, .flags = O_DIRECT};
	uint64_t before;
	char path[160];
	pid_t pid;

	snprintf(path, sizeof(path), "%s/file", watch->rig.mount);
	w.path = path;
	watch_sample(watch);
	before = watch_drop(watch, "epochs");
	pid = rig_start(body_read, &w);
	assert_int_equal(rig_wait(pid), 0);
	__atomic_add_fetch(&bss->busy[BUSY_UNUSED].count, 1, __ATOMIC_SEQ_CST);
	usleep(WATCH_SETTLE_US); /* read only once, because watch_sample would try again */
	assert_int_equal(monitor_sample(watch->monitor, &watch->sample, NULL), 0);
	__atomic_sub_fetch(&bss->busy[BUSY_UNUSED].count, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(watch_drop(watch, "epochs"), before + 1);
	assert_null(watch_task(watch, pid));
	watch_sample(watch);
	assert_non_null(watch_task(watch, pid));
	watch_compare("after a stalled reading", "explicit_read_bytes", BLOCK,
		      (double)watch_task(watch, pid)->load.explicit_read_bytes, 0);
}

static void test_unprovoked(void **state)
{
	struct watch *watch = *state;

	watch_sample(watch);
	assert_int_equal(watch_drop(watch, "task_storage"), 0);
	if (!watch_emulated())
		assert_int_equal(watch_drop(watch, "recursion"), 0);
	for (size_t i = 0; i < watch->sample.ndrops; i++)
		assert_true(strlen(watch->sample.drops[i].help) > 10);
}

static int world_down(void **state)
{
	watch_close(*state);
	free(*state);
	return 0;
}

static int world_up(void **state)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	struct body w = {.bytes = MIB, .block = MIB, .flags = O_SYNC};
	char path[160];

	*state = watch;
	watch_rig(watch, 128);
	snprintf(path, sizeof(path), "%s/file", watch->rig.mount);
	w.path = path;
	if (rig_wait(rig_start(body_write, &w)) != 0)
		return -1;
	watch_open(watch, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jobs),	   cmocka_unit_test(test_late_and_exited),
		cmocka_unit_test(test_ended_jobs), cmocka_unit_test(test_disks),
		cmocka_unit_test(test_ledger),	   cmocka_unit_test(test_cowriters),
		cmocka_unit_test(test_sockets),	   cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_unprovoked),
	};

	return cmocka_run_group_tests_name("monitor: drops", tests, world_up, world_down);
}
