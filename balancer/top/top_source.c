/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Documents from the agent or from our own monitor; see top_source.h. */
#include "balancer/top/top_source.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "user/clock.h"
#include "balancer/client.h"
#include "balancer/top/top_far.h"
#include "user/monitor/monitor.h"
#include "user/pack.h"
#include "user/monitor/sample_json.h"
#include "user/monitor/sample_window.h"

#define LOOKS_PER_INTERVAL 4
#define LOOK_LEAST_NS	   50000000ULL
#define RETRY_FIRST_NS	   250000000ULL
#define RETRY_MOST_NS	   8000000000ULL
#define STUCK_S		   5 /* limit for an agent that stops within a document */

struct top_source {
	int fd; /* connection to the agent; -1: direct, or the agent is gone */
	bool wait, gone;
	char *run_dir; /* NULL: the default */
	struct iocom_err why;
	uint64_t gone_ns, retry_ns, pause_ns; /* CLOCK_MONOTONIC; the pause doubles */
	struct top_far *far;		      /* another node */
	struct monitor *monitor;
	struct sample_window *window;
	struct sample_names *names;
	struct utsname uts;
	double network_mb_per_s;
	uint64_t interval_ns, look_ns;
	uint64_t next_sample_ns, next_look_ns; /* CLOCK_MONOTONIC */
};

static int subscribe(struct top_source *source, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &buffer, 3);
	pack_str(&pk, "op", "top");
	pack_u64(&pk, "v", 1);
	pack_u64(&pk, "interval_ms", source->interval_ns / 1000000);
	rc = client_send(source->fd, buffer.data, buffer.size, err);
	msgpack_sbuffer_destroy(&buffer);
	return rc;
}

static int connect_agent(struct top_source *source, struct iocom_err *err)
{
	const struct timeval patience = {.tv_sec = STUCK_S};
	int rc = client_connect(source->run_dir, &source->fd, err);

	if (rc) {
		source->fd = -1;
		return rc;
	}
	setsockopt(source->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(source->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return subscribe(source, err);
}

/* The speed of this machine's fastest link, MB/s; 0: no link tells. */
static double link_speed(void)
{
	double best = 0;
	glob_t found;

	if (glob("/sys/class/net/*/speed", 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		FILE *f = fopen(found.gl_pathv[i], "re");
		double mbit;

		if (f && fscanf(f, "%lf", &mbit) == 1 && mbit > best)
			best = mbit;
		if (f)
			fclose(f);
	}
	globfree(&found);
	return best / 8;
}

static int open_direct(struct top_source *source, struct iocom_err *err)
{
	static const struct monitor_config all;
	char root[PATH_MAX];
	int rc = monitor_open(&source->monitor, &all, err);

	if (rc)
		return rc;
	source->window = sample_window_new();
	if (!sample_names_mount("/proc/self/mounts", root, sizeof(root)))
		source->names = sample_names_new(root);
	if (!source->window)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	uname(&source->uts);
	source->network_mb_per_s = link_speed();
	source->look_ns = source->interval_ns / LOOKS_PER_INTERVAL;
	if (source->look_ns < LOOK_LEAST_NS)
		source->look_ns = LOOK_LEAST_NS;
	source->next_sample_ns = clock_read_ns(CLOCK_MONOTONIC) + source->interval_ns;
	source->next_look_ns = clock_read_ns(CLOCK_MONOTONIC) + source->look_ns;
	return 0;
}

/* Connects to the agent, or as root counts by ourselves if no agent answers. */
static int open_any(struct top_source *source, const struct top_source_options *options,
		    struct iocom_err *err)
{
	int rc = options->node ? top_far_is_other(options->run_dir, options->node, err) : 0;

	if (rc < 0)
		return rc;
	if (rc) {
		source->far =
			top_far_new(options->run_dir, options->node, source->interval_ns / 1000000);
		source->next_sample_ns = clock_read_ns(CLOCK_MONOTONIC);
		return source->far ? 0 : iocom_err_set(err, -ENOMEM, "out of memory");
	}
	if (!options->direct) {
		rc = connect_agent(source, err);
		if (!rc || source->fd >= 0)
			return rc;
		if (rc != -ENOENT && rc != -ECONNREFUSED)
			return rc;
		if (geteuid())
			return iocom_err_set(
				err, rc,
				"no agent answers at %s/iocom.sock, and counting without one "
				"needs root: start iocomd, name its directory with "
				"--run-dir, or run `sudo iocom top`",
				client_run_dir(options->run_dir));
	}
	if (geteuid())
		return iocom_err_set(
			err, -EPERM,
			"--direct loads programs into the kernel, which needs root: run "
			"`sudo iocom top --direct`, or leave it out to ask the agent");
	return open_direct(source, err);
}

int top_source_open(struct top_source **out, const struct top_source_options *options,
		    struct iocom_err *err)
{
	struct top_source *source = calloc(1, sizeof(*source));
	int rc;

	if (!source)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	source->fd = -1;
	source->interval_ns = (uint64_t)llround(options->interval_s * 1e9);
	source->wait = options->wait;
	if (options->run_dir)
		source->run_dir = strdup(options->run_dir);
	rc = options->run_dir && !source->run_dir ? iocom_err_set(err, -ENOMEM, "out of memory")
						  : open_any(source, options, err);
	if (rc) {
		top_source_free(source);
		return rc;
	}
	*out = source;
	return 0;
}

void top_source_free(struct top_source *source)
{
	if (!source)
		return;
	if (source->fd >= 0)
		close(source->fd);
	free(source->run_dir);
	top_far_free(source->far);
	sample_names_free(source->names);
	sample_window_free(source->window);
	monitor_free(source->monitor);
	free(source);
}

int top_source_fd(const struct top_source *source)
{
	return source->fd;
}

const char *top_source_kind(const struct top_source *source)
{
	return source->monitor ? "direct" : source->far ? "node" : "agent";
}

int top_source_due_ms(const struct top_source *source)
{
	uint64_t now = clock_read_ns(CLOCK_MONOTONIC), due;

	if (source->fd >= 0)
		return -1;
	if (source->gone)
		due = source->retry_ns;
	else if (source->far)
		due = source->next_sample_ns;
	else
		due = source->next_look_ns < source->next_sample_ns ? source->next_look_ns
								    : source->next_sample_ns;
	if (due <= now)
		return 0;
	due = (due - now + 999999) / 1000000;
	return due > INT_MAX ? INT_MAX : (int)due;
}

static int read_monitor(struct top_source *source, json_t **document, struct iocom_err *err)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct sample_json_options options = {
		.node = source->uts.nodename,
		.names = source->names,
		.cores = cores > 0 ? (unsigned)cores : 1,
		.network_mb_per_s = source->network_mb_per_s,
	};
	struct monitor_sample sample;
	int rc = monitor_sample(source->monitor, &sample, err);

	if (rc)
		return rc;
	if (sample_window_add(source->window, &sample) ||
	    sample_window_take(source->window, &sample, &options.disks_before,
			       &options.ndisks_before))
		return iocom_err_set(err, -ENOMEM, "out of memory for %zu tasks", sample.ntasks);
	*document = sample_json(&sample, &options);
	return *document ? 0 : iocom_err_set(err, -ENOMEM, "out of memory for the document");
}

static int next_direct(struct top_source *source, json_t **document, struct iocom_err *err)
{
	uint64_t now = clock_read_ns(CLOCK_MONOTONIC);

	if (now >= source->next_sample_ns) {
		source->next_sample_ns += source->interval_ns;
		if (source->next_sample_ns <= now) /* late: never catch up in a burst */
			source->next_sample_ns = now + source->interval_ns;
		return read_monitor(source, document, err);
	}
	if (now >= source->next_look_ns) {
		int rc = monitor_look(source->monitor, err);

		source->next_look_ns = now + source->look_ns;
		if (rc < 0)
			return rc;
	}
	return TOP_SOURCE_E_AGAIN;
}

/* From now on we try to reach the agent again, once in a while. */
static int lose_agent(struct top_source *source, const struct iocom_err *why)
{
	if (source->fd >= 0)
		close(source->fd);
	source->fd = -1;
	source->why = *why;
	if (!source->gone) {
		source->gone = true;
		source->gone_ns = clock_read_ns(CLOCK_MONOTONIC);
		source->pause_ns = RETRY_FIRST_NS;
	} else if (source->pause_ns < RETRY_MOST_NS) {
		source->pause_ns *= 2;
	}
	source->retry_ns = clock_read_ns(CLOCK_MONOTONIC) + source->pause_ns;
	return TOP_SOURCE_E_AGAIN;
}

static int top_source_ask_again(struct top_source *source, struct iocom_err *err)
{
	struct iocom_err why = {0};

	if (clock_read_ns(CLOCK_MONOTONIC) < source->retry_ns)
		return TOP_SOURCE_E_AGAIN;
	switch (connect_agent(source, &why)) {
	case 0:
		return TOP_SOURCE_E_AGAIN; /* it counts as back once it has sent something */
	case -ENOMEM:
		*err = why;
		return -ENOMEM;
	default:
		return lose_agent(source, &why);
	}
}

/* Another node is asked when it is time, and again and again where it is silent. */
static int next_far(struct top_source *source, json_t **document, struct iocom_err *err)
{
	uint64_t now = clock_read_ns(CLOCK_MONOTONIC);
	struct iocom_err why = {0};
	int rc;

	if (now < (source->gone ? source->retry_ns : source->next_sample_ns))
		return TOP_SOURCE_E_AGAIN;
	source->next_sample_ns += source->interval_ns;
	if (source->next_sample_ns <= now)
		source->next_sample_ns = now + source->interval_ns;
	rc = top_far_ask(source->far, document, &why);
	if (!rc) {
		source->gone &= !*document;
		return *document ? 0 : TOP_SOURCE_E_AGAIN;
	}
	if (source->wait && (rc == -EHOSTUNREACH || client_agent_is_away(rc)))
		return lose_agent(source, &why);
	*err = why;
	return rc;
}

int top_source_next(struct top_source *source, json_t **document, struct iocom_err *err)
{
	struct iocom_err why = {0};
	int rc;

	*document = NULL;
	if (source->monitor)
		return next_direct(source, document, err);
	if (source->far)
		return next_far(source, document, err);
	if (source->fd < 0)
		return top_source_ask_again(source, err);
	rc = client_receive(source->fd, document, &why);
	if (!rc) {
		source->gone = false;
		return 0;
	}
	if (source->wait && rc != -EPROTO && rc != -ENOMEM && (rc != -EIO || source->gone))
		return lose_agent(source, &why);
	if (rc == -EPIPE)
		return iocom_err_set(err, rc,
				     "the agent went away; start it again (systemctl start "
				     "iocomd), then `iocom top`");
	if (err)
		*err = why;
	return rc;
}

bool top_source_gone(const struct top_source *source, struct top_source_gone *gone)
{
	uint64_t now = clock_read_ns(CLOCK_MONOTONIC);

	if (!source->gone)
		return false;
	gone->why = source->why.text;
	gone->since_s = (double)(now - source->gone_ns) / 1e9;
	gone->retry_s = source->fd >= 0		 ? -1
			: source->retry_ns > now ? (double)(source->retry_ns - now) / 1e9
						 : 0;
	return true;
}
