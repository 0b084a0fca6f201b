/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Decisions on view files, and saving views; see place_view.h. */
#include "balancer/place_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "balancer/settings/settings.h"
#include "balancer/view/json_msgpack.h"
#include "balancer/view/json_text.h"
#include "balancer/listing.h"
#include "balancer/view/plan_json.h"
#include "balancer/view/replace.h"
#include "balancer/placement_text.h"
#include "balancer/view/view_decide.h"
#include "balancer/view/view_json.h"

/* Makes the answer that an agent would give, so that the same code can explain it. */
static int place_view_placement(const struct view_file *view, json_t *plan,
				const struct rules_expectation *expectation, struct placement *p)
{
	int rc = plan_record_take(&p->plan, json_incref(plan));

	if (rc)
		return rc;
	p->policy = p->plan.policy;
	p->home = p->plan.home;
	p->node = p->plan.node;
	p->known = view->nnodes;
	p->expectation = *expectation;
	return 0;
}

static int place_view_explain(const struct view_file *view, json_t *plan,
			      const struct rules_expectation *expectation)
{
	struct placement p;
	int rc;

	placement_init(&p);
	rc = place_view_placement(view, plan, expectation, &p);
	if (!rc)
		placement_text_print(&p, NULL, stdout);
	placement_fini(&p);
	return rc ? 1 : listing_end();
}

/* Returns the plan with what it expects; NULL: there is no memory. */
static json_t *place_view_answer(const struct view_decision *decision)
{
	json_t *plan = plan_json(decision, true);

	if (plan && decision->expectation.known &&
	    json_object_set_new(plan, "expected", expectation_json(&decision->expectation))) {
		json_decref(plan);
		return NULL;
	}
	return plan;
}

static int place_view_decide(const struct view_file *view, const struct view_policy *policy,
			     bool json, struct iocom_err *err)
{
	struct rules_expectation expectation;
	struct view_decision decision;
	json_t *plan;
	int rc = view_decide(view, policy, &decision, err);

	if (rc)
		return 1;
	plan = place_view_answer(&decision);
	expectation = decision.expectation;
	view_decision_fini(&decision);
	if (!plan) {
		iocom_err_set(err, -ENOMEM, "out of memory");
		return 1;
	}
	rc = json ? listing_print_json(plan) : place_view_explain(view, plan, &expectation);
	json_decref(plan);
	if (rc)
		iocom_err_set(err, -EIO, "cannot write the answer: %s", strerror(errno));
	return rc;
}

int place_view(const char *path, const char *policy, bool json)
{
	struct iocom_err err = {0};
	struct view_policy chosen;
	struct view_file view;
	int rc = 1;

	if (view_policy_parse(policy ? policy : SETTINGS_POLICY, &chosen, &err)) {
		fprintf(stderr, "iocom place: %s\n", err.text);
		return 2;
	}
	if (!view_file_read(path, &view, &err)) {
		rc = place_view_decide(&view, &chosen, json, &err);
		if (rc)
			iocom_err_prefix(&err, "%s", strcmp(path, "-") ? path : "standard input");
		view_file_fini(&view);
	}
	if (rc)
		fprintf(stderr, "iocom place: %s\n", err.text);
	return rc;
}

/* --- saving ------------------------------------------------------------------------ */

static int place_view_write_text(const char *path, const char *text, size_t length)
{
	FILE *f = fopen(path, "we");
	int rc = 0;

	if (!f)
		return -errno;
	if (fwrite(text, 1, length, f) != length || fflush(f))
		rc = -errno;
	if (fclose(f) && !rc)
		rc = -errno;
	return rc;
}

/*
 * Writes a temporary file and renames it, so that PATH is never incomplete; devices and pipes
 * are written directly.
 */
static int place_view_write_whole(const char *path, bool force, const char *text, size_t length,
				  struct iocom_err *err)
{
	struct stat st;
	char *part;
	int rc;

	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return place_view_write_text(path, text, length);
	if (asprintf(&part, "%s.part", path) < 0)
		return -ENOMEM;
	rc = place_view_write_text(part, text, length);
	if (!rc)
		rc = replace_rename(part, path, force, err);
	if (rc)
		unlink(part);
	free(part);
	return rc;
}

static char *text_line(const json_t *view, size_t *length)
{
	char *text = json_text_dump(view, length);

	if (text)
		text[(*length)++] = '\n'; /* replaces the NUL */
	return text;
}

int place_view_save(const char *path, bool force, struct placement *answer, struct iocom_err *err)
{
	json_t *view = placement_take_view(answer);
	size_t length = 0;
	char *text;
	int rc;

	if (!view)
		return iocom_err_set(err, -ENODATA, "the agent is too old to tell its view");
	text = json_msgpack_named(path) ? json_msgpack_dump(view, &length)
					: text_line(view, &length);
	json_decref(view);
	rc = text ? place_view_write_whole(path, force, text, length, err) : -ENOMEM;
	free(text);
	return rc && !*err->text
		       ? iocom_err_set(err, rc, "cannot write %s: %s", path, strerror(-rc))
		       : rc;
}
