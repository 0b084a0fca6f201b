/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * An agent for targets that need one: its matrix, journal and profiles are real and in memory;
 * everything outside it (other agents, jobs, the monitor, clients) is played here.
 */
#ifndef FUZZ_FAKE_AGENT_H
#define FUZZ_FAKE_AGENT_H

#include <errno.h>

#include "agent/base/accounts.h"
#include "agent/agent.h"
#include "agent/front/limits.h"
#include "agent/front/clients.h"
#include "user/clock.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "user/pack.h"
#include "agent/front/recorders.h"
#include "user/monitor/sample_json.h"
#include "tests/fuzz/protocol/sample_vector.h"
#include "agent/guest/signals.h"

struct client {
	struct ucred who;
	unsigned answers;
	bool streams;
};

static struct agent fake;

const struct ucred *client_who(const struct client *client)
{
	return &client->who;
}
void client_json(struct client *client, json_t *document)
{
	char *text = json_dumps(document, JSON_COMPACT);

	must(document && text); /* else the user would see "out of memory" */
	free(text);
	json_decref(document);
	client->answers++;
}
void client_error(struct client *client, const char *fmt, ...)
{
	char text[1200];
	va_list ap;

	va_start(ap, fmt);
	must(vsnprintf(text, sizeof(text), fmt, ap) > 0);
	va_end(ap);
	client->answers++;
}
void client_watch(struct client *client, unsigned interval_ms)
{
	must(interval_ms >= 100);
	client->answers++;
}
void client_streams(struct client *client)
{
	client->streams = true;
	client->answers++;
}
bool client_offer(struct client *client, const char *text, size_t length, size_t backlog)
{
	(void)client;
	return text[length - 1] && length < backlog;
}

int control_ask(struct control *control, const char *node, const char *address, uint16_t port,
		const char *type, const char *job, const msgpack_sbuffer *body,
		control_answer answer, void *arg, struct iocom_err *err)
{
	(void)control;
	(void)body;
	(void)answer;
	(void)arg;
	must(*node && port && *type && job && address);
	return iocom_err_set(err, -EHOSTUNREACH, "nobody is there");
}
void control_forget(struct control *control, const void *arg)
{
	(void)control;
	(void)arg;
}
static bool deferred; /* the answer of control came later */

uint64_t control_defer(struct control *control)
{
	(void)control;
	return 1;
}
void control_undefer(struct control *control)
{
	(void)control;
}

void control_answer_later(struct control *control, uint64_t ticket, int rc,
			  const msgpack_sbuffer *body)
{
	msgpack_unpacked map;

	(void)control;
	must(ticket == 1 && (rc || !unpack_map(&map, body->data, body->size)));
	if (!rc)
		msgpack_unpacked_destroy(&map);
	deferred = true;
}
bool seal_down(const struct seal *seal)
{
	return seal != NULL;
}
void accounts_say(struct accounts *accounts, uid_t uid, char *out, size_t size)
{
	must(!accounts && size > 10);
	snprintf(out, size, "%u", (unsigned)uid);
}
void bulletin_dial(struct bulletin *b, const char *address, uint16_t port)
{
	must(!b && port && memchr(address, 0, IOCOM_ADDRESS_MAX));
}

void target_admit(struct agent *a, const struct job_order *order, struct target_grant *grant)
{
	*grant = (struct target_grant){.granted = order->uid != 3, .boot_id = a->self.boot_id};
	must(spec_job_valid(order->job));
	strcpy(grant->nonce, "00112233445566778899aabbccddeeff");
	strcpy(grant->reason, "memory");
}
void target_admit_guest(struct agent *a, const struct job_order *order, target_admitted done,
			void *arg)
{
	struct target_grant grant;

	target_admit(a, order, &grant);
	done(arg, order, &grant);
}
json_t *limits_json(struct agent *a)
{
	(void)a;
	return json_array();
}
void attach_request(struct agent *a, struct client *client, const msgpack_object *request)
{
	(void)a;
	must(request->type == MSGPACK_OBJECT_MAP);
	client_error(client, "nothing is kept here");
}
struct job *jobs_find(const struct jobs *jobs, const char *job)
{
	(void)jobs;
	must(job != NULL);
	return NULL;
}
static struct {
	signals_done done;
	void *arg;
} signal_sent;

int signals_send(struct agent *a, const char *job, uid_t uid, int signal, signals_done done,
		 void *arg, struct iocom_err *err)
{
	(void)a;
	(void)job;
	must(signal >= 1 && signal <= 64 && !signal_sent.done);
	if (uid)
		return iocom_err_set(err, -EPERM, "not yours");
	signal_sent.done = done;
	signal_sent.arg = arg;
	return 0;
}
/* The played shim answers. */
static void fake_signalled(void)
{
	if (signal_sent.done)
		signal_sent.done(signal_sent.arg, 0, "");
	signal_sent.done = NULL;
}
void signals_forget(struct agent *a, const void *arg)
{
	(void)a;
	(void)arg;
}
void target_settle(void *agent)
{
	(void)agent;
}
void tick_own_vector(struct agent *a, struct iocom_vector *v)
{
	*v = a->own;
}
int jobs_whose(const struct jobs *jobs, uint64_t cgroup_id, const char **job, uid_t *uid)
{
	(void)jobs;
	(void)cgroup_id;
	(void)job;
	(void)uid;
	return -ENOENT;
}
json_t *sample_json(const struct monitor_sample *sample, const struct sample_json_options *options)
{
	(void)sample;
	(void)options;
	return json_object();
}
void agent_journal_failed(struct agent *a, const struct iocom_err *err)
{
	(void)err;
	a->counters.journal_failures++;
}

static const struct iocom_vector here = {
	SAMPLE_VECTOR("here"), .memory_mb = 1000,	.memory_available_mb = 500, .disks = 1,
	.disk_mb_per_s = 100,  .network_mb_per_s = 100, .accepts_jobs = true,
};

/* Returns the agent, a new one now and then so that its journal stays small. */
static struct agent *fake_agent(void)
{
	static unsigned uses;
	struct iocom_vector there = here;

	if (uses++ % 512)
		return &fake;
	journal_close(fake.journal);
	profile_close(fake.profiles);
	view_charges_fini(&fake.charges);
	matrix_fini(&fake.matrix);
	fake = (struct agent){.own = here, .control = NULL};
	snprintf(fake.set.name, sizeof(fake.set.name), "here");
	snprintf(fake.set.policy, sizeof(fake.set.policy), "iocm-re");
	fake.log.level = LOG_L_ERROR - 1; /* below every level: it logs nothing */
	fake.self.boot_id = 7;
	matrix_init(&fake.matrix, "here");
	snprintf(there.name, sizeof(there.name), "there");
	must(!matrix_put(&fake.matrix, &there, 0, clock_boot_ns()));
	must(!journal_open(&fake.journal, ":memory:", NULL));
	must(!profile_open(&fake.profiles, ":memory:", NULL));
	return &fake;
}

#endif
