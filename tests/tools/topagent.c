/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Plays an agent that only knows "top": topagent RUN_DIR [DOCUMENTS [TIMES]]. It sends made-up
 * tasks that change from document to document, some with names that a terminal must not get
 * unchanged. It ends after the first client went, or after DOCUMENTS (then it goes away like an
 * agent that dies); with TIMES it comes back so often for the next client. TOPAGENT_LOSSY:
 * something was lost, and a column is degraded.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "user/frame.h"
#include "user/pack.h"
#include "user/monitor/sample_json.h"

#define NTASKS 60
#define NJOBS  4
#define NDISKS 3

static const char *const comms[] = {
	"postgres", "rsync", "e\x1b[2Jvil", "bad\xff\xfe", "\xe6\x97\xa5\xe6\x9c\xac",
	"cc1",	    "nginx", "backup"};

struct world {
	struct iocom_task tasks[NTASKS];
	struct iocom_job_load jobs[NJOBS];
	struct iocom_disk disks[NDISKS], before[NDISKS];
	unsigned turn;
};

static const char *job_name(void *arg, uint64_t id)
{
	(void)arg;
	return id == 101 ? "n1-42-1" : id == 102 ? "n1-42-2" : NULL;
}

static void move_load(struct iocom_load *load, struct iocom_load *delta, unsigned i, uint64_t ms)
{
	*delta = (struct iocom_load){
		.explicit_read_bytes = i % 3 == 0 ? 40000ULL * ms / (i + 1) : 0,
		.explicit_write_bytes = i % 4 == 1 ? 90000ULL * ms / (i + 1) : 0,
		.explicit_ops = i % 3 == 0 ? ms / (i + 1) : 0,
		.implicit_bytes = i % 7 == 2 ? 4096ULL * ms / 10 : 0,
		.minor_faults = i % 5 ? 0 : ms,
		.sent_bytes = i % 6 == 4 ? 70000ULL * ms / i : 0,
		.received_bytes = i % 6 == 5 ? 50000ULL * ms / i : 0,
		.sent_messages = i % 6 == 4 ? ms / 10 : 0,
		.local_bytes = i % 11 == 3 ? 100 * ms : 0,
		.cpu_ns = i % 2 ? 0 : 1000000ULL * ms / (i + 2),
	};
	iocom_load_add(load, delta);
}

static void move_world(struct world *w, uint64_t ms)
{
	for (unsigned i = 0; i < NTASKS; i++) {
		struct iocom_task *t = &w->tasks[i];

		t->pid = (pid_t)(1000 + i * 17);
		t->uid = i % 5 == 4 ? 65534 : 0;
		t->cgroup_id = 100 + i % NJOBS;
		t->rss_bytes = 1000000ULL * (i + 1) * (i + 1);
		t->exited = i == 6 && w->turn == 1;
		memcpy(t->comm, comms[i % 8], strlen(comms[i % 8]) + 1);
		move_load(&t->load, &t->delta, i, ms);
	}
	for (unsigned i = 0; i < NJOBS; i++) {
		w->jobs[i].cgroup_id = 100 + i;
		w->jobs[i].tasks = NTASKS / NJOBS;
		w->jobs[i].rss_bytes = 12345678ULL * (i + 1);
		move_load(&w->jobs[i].load, &w->jobs[i].delta, i, ms);
	}
	memcpy(w->before, w->disks, sizeof(w->before));
	for (unsigned i = 0; i < NDISKS; i++) {
		struct iocom_disk *d = &w->disks[i];

		snprintf(d->name, sizeof(d->name), "vd%c", 'a' + i);
		d->major = 252;
		d->minor = i * 16;
		d->requests += ms / (i + 1);
		d->read_bytes += 40000 * ms / (i + 1);
		d->write_bytes += 90000 * ms / (i + 1);
		d->service_sum_ns += 800000 * ms / (i + 1);
	}
	w->turn++;
}

/*
 * Adds what no reading has: the parents of tasks (each has three children; the eighth task has no
 * parent), and what this kernel does not count.
 */
static json_t *more(json_t *doc, bool lossy)
{
	json_t *task;
	size_t i;

	json_array_foreach (json_object_get(doc, "tasks"), i, task) {
		json_int_t n = (json_integer_value(json_object_get(task, "pid")) - 1000) / 17;

		if (n && n != 7)
			json_object_set_new(task, "ppid", json_integer(1000 + (n - 1) / 3 * 17));
	}
	if (lossy)
		json_object_set_new(doc, "degraded",
				    json_pack("[{s:s,s:s}]", "column", "local_bytes", "why",
					      "no such tracepoint"));
	return doc;
}

static json_t *document(struct world *w, uint64_t ms, bool lossy)
{
	const struct monitor_drop drops[] = {
		{"task_storage", "bytes of new tasks are not counted", lossy ? 12 : 0},
		{"ledger", "writeback has no known writer", 0},
	};
	const struct monitor_program programs[] = {{"on_bio", 1000, 90000}};
	struct monitor_sample sample = {
		.elapsed_ns = ms * 1000000,
		.tasks = w->tasks,
		.ntasks = NTASKS,
		.jobs = w->jobs,
		.njobs = NJOBS,
		.disks = w->disks,
		.ndisks = NDISKS,
		.unattributed = {1234567, 0, 999},
		.drops = drops,
		.ndrops = 2,
		.programs = programs,
		.nprograms = 1,
		.sweep_ns = 2500000,
		.user_cpu_ns = 70000000,
		.run_queue = 1.25,
		.live_tasks = NTASKS,
	};
	struct sample_json_options options = {
		.node = "testnode",
		.job_name = job_name,
		.cores = 4,
		.disk_mb_per_s = 200, /* more than all tasks have together */
		.disks_before = w->before,
		.ndisks_before = NDISKS,
	};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	sample.time_ns = (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
	sample.since_ns = sample.time_ns - 3725ULL * 1000000000ULL;
	return more(sample_json(&sample, &options), lossy);
}

/* Returns the requested interval in ms; 0: the request is malformed. */
static uint64_t read_request(int fd)
{
	msgpack_unpacked unpacked;
	struct frame frame;
	uint64_t version = 0, ms = 0;
	char op[8] = "";

	if (frame_read(fd, &frame, FRAME_PAYLOAD_MAX, NULL))
		return 0;
	msgpack_unpacked_init(&unpacked);
	if (frame.type == FRAME_REQUEST && !unpack_map(&unpacked, frame.payload, frame.length)) {
		unpack_str(&unpacked.data, "op", op, sizeof(op));
		unpack_u64(&unpacked.data, "v", &version);
		unpack_u64(&unpacked.data, "interval_ms", &ms);
	}
	msgpack_unpacked_destroy(&unpacked);
	frame_free(&frame);
	return !strcmp(op, "top") && version == 1 ? ms : 0;
}

static void serve(int fd, unsigned long documents)
{
	static const char bad[] = "the request is not one for top";
	bool lossy = getenv("TOPAGENT_LOSSY") != NULL;
	uint64_t ms = read_request(fd);
	struct world world = {0};
	int rc = 0;

	if (!ms) {
		frame_write(fd, FRAME_ERROR, bad, sizeof(bad) - 1);
		return;
	}
	for (unsigned long n = 0; !rc && (!documents || n < documents); n++) {
		struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
		json_t *doc;
		char *text;

		nanosleep(&pause, NULL);
		move_world(&world, ms);
		doc = document(&world, ms, lossy);
		text = json_dumps(doc, SAMPLE_JSON_DUMP);
		rc = text ? frame_write(fd, FRAME_JSON, text, (uint32_t)strlen(text)) : -ENOMEM;
		free(text);
		json_decref(doc);
	}
}

/* Waits for one client. Returns its connection, or -1. */
static int accept_one(const char *dir)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = -1;

	if (listener < 0)
		return -1;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/iocom.sock", dir);
	unlink(sa.sun_path);
	if (!bind(listener, (struct sockaddr *)&sa, sizeof(sa)) && !listen(listener, 4)) {
		fd = accept(listener, NULL, NULL);
		unlink(sa.sun_path);
	} else {
		perror("topagent");
	}
	close(listener);
	return fd;
}

int main(int argc, char **argv)
{
	unsigned long documents = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long times = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;

	if (argc < 2)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	alarm(60); /* no test takes longer than this */
	for (unsigned long i = 0; i < times; i++) {
		int fd = accept_one(argv[1]);

		if (fd < 0)
			return 1;
		serve(fd, documents);
		close(fd);
		/* Stay away for a while, like a restarted service. */
		nanosleep(&(struct timespec){.tv_sec = i + 1 < times ? 2 : 0}, NULL);
	}
	return 0;
}
