/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What agents tell each other about a job: the order and the report. */
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "agent/jobs/job_order.h"
#include "agent/jobs/job_report.h"
#include "user/pack.h"

static void pack_order(const void *what, msgpack_sbuffer *out)
{
	job_order_pack(what, out);
}

static void pack_report(const void *what, msgpack_sbuffer *out)
{
	job_report_pack(what, out);
}

static int unpack_order(void *what, const msgpack_object *map)
{
	return job_order_unpack(what, map);
}

static int unpack_report(void *what, const msgpack_object *map)
{
	return job_report_unpack(what, map);
}

static void again(const void *what, void *other, size_t size,
		  void (*pack)(const void *, msgpack_sbuffer *),
		  int (*unpack)(void *, const msgpack_object *))
{
	msgpack_sbuffer first, second;
	msgpack_unpacked message;

	msgpack_sbuffer_init(&first);
	msgpack_sbuffer_init(&second);
	pack(what, &first);
	must(unpack_map(&message, first.data, first.size) == 0);
	memset(other, 0, size);
	must(unpack(other, &message.data) == 0);
	msgpack_unpacked_destroy(&message);
	pack(other, &second);
	must(first.size == second.size && !memcmp(first.data, second.data, first.size));
	msgpack_sbuffer_destroy(&first);
	msgpack_sbuffer_destroy(&second);
}

bool sample(int n, FILE *out)
{
	static const struct job_order order = {
		.job = "a-0f-7",
		.home = "a",
		.home_address = "10.0.0.1",
		.home_port = 7700,
		.uid = 1000,
		.class_name = "sh",
		.command = "sh -c true",
		.policy = "iocm-re",
		.cwd = "/tmp",
		.executable = "/bin/sh",
		.submit_ns = 1,
		.lease_ms = 30000,
		.renews = true,
		.secret = "of this attempt",
	};
	static const struct job_report report = {
		.job = "a-0f-7",
		.state = "exited",
		.wall_ms = 12,
		.cpu_ms = 3,
		.behaviour = {.n = 1, .phases = {{.ms = {1, 0, 2}, .wall_ms = 12, .dominant = 2}}},
	};
	msgpack_sbuffer buffer;

	msgpack_sbuffer_init(&buffer);
	if (n)
		job_report_pack(&report, &buffer);
	else
		job_order_pack(&order, &buffer);
	fwrite(buffer.data, 1, buffer.size, out);
	msgpack_sbuffer_destroy(&buffer);
	return n < 2;
}

FUZZ_SAMPLES

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct job_order order, other_order;
	static struct job_report report, other_report;
	msgpack_unpacked message;

	if (unpack_map(&message, data, size))
		return 0;
	if (!job_order_unpack(&order, &message.data)) {
		must(spec_job_valid(order.job));
		must_end(order.home, sizeof(order.home));
		must_end(order.command, sizeof(order.command));
		must_end(order.cwd, sizeof(order.cwd));
		again(&order, &other_order, sizeof(order), pack_order, unpack_order);
	}
	if (!job_report_unpack(&report, &message.data)) {
		must_end(report.job, sizeof(report.job));
		must_end(report.text, sizeof(report.text));
		again(&report, &other_report, sizeof(report), pack_report, unpack_report);
	}
	msgpack_unpacked_destroy(&message);
	return 0;
}
