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
	struct gate_place at;
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

/* Tells what became of it: CAUSE, but for what lies between the parts of this agent. */
static void greet_tell(const struct greet *greet, enum peer_cause cause, bool sure, int64_t ahead_s,
		       const char *why)
{
	const struct control *c = greet->control;
	struct control_greeted told = {.at = greet->at,
				       .cause = cause,
				       .boot_id = greet->greeting.boot_id,
				       .sure = sure,
				       .ahead_s = ahead_s,
				       .why = why};

	c->config.counters->clusters_refused += cause == PEER_C_CLUSTER;
	snprintf(told.node, sizeof(told.node), "%s", greet->greeting.node);
	if (c->config.greeted)
		c->config.greeted(c->config.arg, &told);
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

/* The node's answer is wrong, or says no: for CAUSE, if that is known. */
static void greet_refused(struct greet *greet, int rc, enum peer_cause cause, int64_t ahead_s,
			  struct iocom_err *err)
{
	if (cause)
		greet_tell(greet, cause, cause != PEER_C_MUTE, ahead_s, err->text);
	iocom_err_prefix(err, rc == -EPROTO ? "%s refuses" : "%s answered, but", greet->url);
	greet_over(greet, rc > 0 ? -EACCES : rc, err->text);
}

/* The kind of refusal: RC is munged's of the WELCOME. */
static enum peer_cause greet_cause(const struct greet *greet, int rc)
{
	return rc == SEAL_E_SKEW     ? PEER_C_CLOCK
	       : rc == SEAL_E_FORGED ? PEER_C_KEY
	       : rc > 0		     ? PEER_C_MUTE
	       : rc		     ? PEER_C_OWN
				     : greet->greeting.cause;
}

/* There was no answer: what that says of the node.  A node that was stopped just now cuts, too. */
static void greet_unanswered(const struct greet *greet, int rc)
{
	if (exchange_cut(greet->exchange))
		greet_tell(greet, PEER_C_KEY, true, 0,
			   "it takes the connection, but drops it when it is greeted: most likely "
			   "its MUNGE key is another one");
	else if (rc == -ETIMEDOUT && exchange_connected(greet->exchange))
		greet_tell(greet, PEER_C_MUTE, false, 0,
			   "it takes the connection, but does not answer a greeting: its munged "
			   "does not answer, or its agent is too busy; its log says more");
	else if (rc == -ETIMEDOUT)
		greet_tell(greet, PEER_C_TIMED_OUT, false, 0,
			   "its control port, the second of three, cannot be reached");
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
		greet_refused(greet, rc, greet_cause(greet, a->rc), a->ahead_s, &err);
		return;
	}
	greet_tell(greet, PEER_C_NONE, true, 0, "");
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
		greet_unanswered(greet, rc);
		greet_over(greet, rc, why);
		return;
	}
	rc = greeting_welcomed(&greet->greeting, answer, length, &credential, &err);
	if (!rc)
		rc = seal_open_message(c->config.seal, SEAL_OWN, credential, strlen(credential),
				       greet_opened, greet, &greet->seal, &err);
	if (rc)
		greet_refused(greet, rc, credential ? PEER_C_OWN : greet->greeting.cause, 0, &err);
	free(credential);
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
		greet_tell(greet, PEER_C_OWN, true, 0, a->err.text);
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
	greet->at = *at;
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
