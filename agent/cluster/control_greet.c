/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Greets other agents (greeting.h):
 *
 *   munged seals the hello's credential -> HELLO -> WELCOME -> munged opens its credential
 *   -> there is a session
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/tcp_url.h"
#include "agent/cluster/control_own.h"

struct greet {
	struct greet *next;
	struct control *control;
	char url[128];
	struct greeting greeting;
	struct seal_question *seal;
	struct exchange *exchange;
};

static void greet_free(struct greet *greet)
{
	struct control *c = greet->control;

	for (struct greet **p = &c->greets; *p; p = &(*p)->next) {
		if (*p != greet)
			continue;
		*p = greet->next;
		break;
	}
	seal_forget(c->config.seal, greet->seal);
	exchange_free(greet->exchange);
	greeting_end(&greet->greeting);
	free(greet);
}

void control_greet_stop(struct control *c)
{
	while (c->greets)
		greet_free(c->greets);
}

static void greet_over(struct greet *greet, int rc, const char *why)
{
	struct control *c = greet->control;
	char url[sizeof(greet->url)];
	struct iocom_err err = {0};

	if (rc) {
		c->config.counters->sessions_failed++;
		iocom_err_set(&err, rc, "%s", why);
	}
	memcpy(url, greet->url, sizeof(url));
	greet_free(greet);
	control_greeted(c, url, rc, err.text);
}

/* The node's answer is wrong, or says no. */
static void greet_refused(struct greet *greet, int rc, struct iocom_err *err)
{
	iocom_err_prefix(err, rc == -EPROTO ? "%s refuses" : "%s answered, but", greet->url);
	greet_over(greet, rc > 0 ? -EACCES : rc, err->text);
}

/* Munged has opened the credential of the WELCOME. */
static void greet_opened(void *arg, struct seal_answer *a)
{
	struct greet *greet = arg;
	struct control *c = greet->control;
	struct iocom_err err = a->err;
	int rc = a->rc;

	greet->seal = NULL;
	if (rc == SEAL_E_SKEW && a->data) {
		char node[IOCOM_NAME_MAX];

		greeting_sender(a->data, a->length, node);
		if (*node)
			c->config.skewed(c->config.arg, node, a->ahead_s);
	}
	if (!rc)
		rc = greeting_trust(&greet->greeting, sessions_self(c->sessions), a->data,
				    a->length, &err);
	if (rc) {
		greet_refused(greet, rc, &err);
		return;
	}
	log_write(c->config.log, LOG_L_DEBUG, "session with node %s, version %u",
		  greet->greeting.node, greet->greeting.version);
	if (!sessions_add(c->sessions, &greet->greeting, greet->url, loop_boot_ns(c->config.loop)))
		greet_over(greet, -ENOMEM, "out of memory");
	else
		greet_over(greet, 0, "");
}

static void greet_answered(void *arg, int rc, uint8_t *answer, size_t length, const char *why)
{
	struct greet *greet = arg;
	struct control *c = greet->control;
	struct iocom_err err = {0};
	char *credential = NULL;

	if (rc) {
		c->config.counters->controls_unanswered += rc == -ETIMEDOUT;
		greet_over(greet, rc, why);
		return;
	}
	rc = greeting_welcomed(&greet->greeting, answer, length, &credential, &err);
	if (!rc)
		rc = seal_open_message(c->config.seal, SEAL_OWN, credential, strlen(credential),
				       greet_opened, greet, &greet->seal, &err);
	free(credential);
	if (rc)
		greet_refused(greet, rc, &err);
}

/* Munged has sealed the credential of the HELLO. */
static void greet_sealed(void *arg, struct seal_answer *a)
{
	struct greet *greet = arg;
	struct iocom_err err = {0};
	msgpack_sbuffer hello;
	int rc = a->rc;

	greet->seal = NULL;
	if (rc) {
		greet_over(greet, rc, a->err.text);
		return;
	}
	msgpack_sbuffer_init(&hello);
	rc = greeting_hello(&greet->greeting, a->text, &hello);
	if (rc)
		iocom_err_set(&err, rc, "the greeting cannot be made: out of memory");
	else
		rc = exchange_send(greet->exchange, hello.data, hello.size, 0, &err);
	msgpack_sbuffer_destroy(&hello);
	if (rc)
		greet_over(greet, rc, err.text);
}

int control_greet(struct control *c, const char *node, const struct gate_place *at,
		  struct iocom_err *err)
{
	msgpack_sbuffer credential;
	struct greet *greet;
	char url[sizeof(greet->url)];
	int rc = 0;

	tcp_url(url, sizeof(url), at->address, at->port + 1u);
	for (greet = c->greets; greet; greet = greet->next)
		if (!strcmp(greet->url, url))
			return 0;
	greet = calloc(1, sizeof(*greet));
	if (!greet)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	greet->control = c;
	snprintf(greet->url, sizeof(greet->url), "%s", url);
	greet->next = c->greets;
	c->greets = greet;
	greet->exchange = exchange_new(c, at, greet_answered, greet);
	if (!greet->exchange)
		rc = iocom_err_set(err, -ENOMEM, "out of memory");
	if (!rc) {
		msgpack_sbuffer_init(&credential);
		greeting_begin(&greet->greeting, sessions_self(c->sessions), node, &credential);
		rc = seal_message(c->config.seal, credential.data, credential.size, greet_sealed,
				  greet, &greet->seal, err);
		explicit_bzero(credential.data, credential.size);
		msgpack_sbuffer_destroy(&credential);
	}
	if (rc)
		greet_free(greet);
	return rc;
}
