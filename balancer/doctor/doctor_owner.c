/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom doctor`: the rules of the node's owner, as the agent or their file tells them. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "balancer/doctor/doctor.h"
#include "balancer/listing.h"
#include "balancer/settings/owner/owner.h"
#include "user/pack.h"
#include "user/trust.h"

#define CHECK	"owner"
#define ADVICE	"mend the rules by iocom owner, then: iocom owner open"
#define DAMAGED "owner.rules.damaged-"

/* Finds the newest file of damaged rules that the agent has set aside. */
static void owner_damaged(const char *directory, char *name, size_t size)
{
	const struct dirent *entry;
	DIR *dir = opendir(directory);

	*name = 0;
	while (dir && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, DAMAGED, strlen(DAMAGED)) &&
		    strcmp(entry->d_name, name) > 0)
			snprintf(name, size, "%s", entry->d_name);
	if (dir)
		closedir(dir);
}

static void owner_say_since(const json_t *a, char *out, size_t size)
{
	double since_s = listing_number(a, "since_s");
	char ago[32];

	*out = 0;
	if (since_s <= 0)
		return;
	listing_span(ago, sizeof(ago), ((double)time(NULL) - since_s) * 1e3);
	snprintf(out, size, ", by %.80s %s ago", listing_string(a, "by"), ago);
}

static void owner_say_caps(const json_t *a, char *out, size_t size)
{
	json_t *caps = json_object_get(a, "caps"), *cap;
	const char *name;
	size_t at = 0;

	*out = 0;
	json_object_foreach (caps, name, cap)
		if (at < size)
			at += (size_t)snprintf(out + at, size - at, "; cap %s=%s %s", name,
					       listing_string(cap, "cap"),
					       listing_string(cap, "held"));
}

static void owner_told(struct doctor *d, json_t *a)
{
	const char *state = listing_string(a, "state"), *reason = listing_string(a, "reason");
	bool unreadable = !strcmp(reason, OWNER_UNREADABLE) && strcmp(state, "open") != 0;
	char since[128], caps[1024], aside[256], kept[300] = "";

	owner_say_since(a, since, sizeof(since));
	owner_say_caps(a, caps, sizeof(caps));
	owner_damaged(d->set.state_dir, aside, sizeof(aside));
	if (*aside)
		snprintf(kept, sizeof(kept), "; damaged rules are kept as %s", aside);
	if (!strcmp(state, "draining") && listing_number(a, "guests") <= 0)
		state = "drained";
	json_object_set(
		doctor_add(d, CHECK, unreadable ? DOCTOR_DEGRADED : DOCTOR_OK,
			   unreadable ? ADVICE : NULL,
			   "%s%s%s%s; guests %s%s%s%s; %.0f are here%s%s", state,
			   *reason ? ": " : "", reason, since,
			   json_is_true(json_object_get(a, "accepts")) ? "get in" : "do not get in",
			   *listing_string(a, "says") ? " (" : "", listing_string(a, "says"),
			   *listing_string(a, "says") ? ")" : "", listing_number(a, "guests"), caps,
			   kept),
		"rules", a);
}

/* No agent runs: what would the next one find? */
static void owner_file(struct doctor *d)
{
	char path[SETTINGS_PATH_MAX + 16];
	struct owner_rules rules;
	struct iocom_err err = {0};
	int rc;

	snprintf(path, sizeof(path), "%s/owner.rules", d->set.state_dir);
	if (access(path, R_OK)) {
		doctor_add(d, CHECK, DOCTOR_SKIPPED, NULL,
			   errno == ENOENT ? "no rules were set: guests get in"
					   : "only root may read the rules of the node's owner");
		return;
	}
	rc = trust_file(path, &err);
	if (!rc)
		rc = owner_read(path, &rules, &err);
	if (rc)
		doctor_add(d, CHECK, DOCTOR_DEGRADED, ADVICE,
			   "the agent will set the owner's rules aside, and be closed: %.500s",
			   err.text);
	else
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "when an agent starts: %s%s%s",
			   owner_state_name(rules.state), *rules.reason ? ": " : "", rules.reason);
}

void doctor_owner(struct doctor *d)
{
	static const struct owner_ask show = {.nwords = 1, .words = {"show"}};
	struct iocom_err err = {0};
	json_t *answer = NULL;
	msgpack_sbuffer request;
	int rc;

	if (!d->agent_pid) {
		owner_file(d);
		return;
	}
	owner_ask_request(&show, &request);
	rc = doctor_agent_ask(d->run_dir, &request, NULL, &answer, &err);
	msgpack_sbuffer_destroy(&request);
	if (!rc)
		owner_told(d, answer);
	else if (rc == -EIO && strstr(err.text, "does not know the request"))
		doctor_add(d, CHECK, DOCTOR_SKIPPED, NULL, "this agent knows no owner's rules");
	else
		doctor_add(d, CHECK, DOCTOR_DEGRADED, NULL, "%s", err.text);
	json_decref(answer);
}
