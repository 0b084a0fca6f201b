/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See profile_matrix.h. */
#include "balancer/profile_matrix.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "balancer/listing.h"
#include "balancer/reach.h"
#include "balancer/view/amount.h"
#include "user/pack.h"
#include "user/utf8.h"

#define MATRIX_JOBS_MAX	  64
#define MATRIX_RANKS_SHOW 64

static int matrix_failed(const struct iocom_err *err)
{
	fprintf(stderr, "iocom profile: %s\n", err->text);
	return 1;
}

/* --- asking ------------------------------------------------------------------------------- */

static int matrix_ask_reached(struct reach *reach, int n, char **names, json_t **answer,
			      struct iocom_err *err)
{
	char jobs[MATRIX_JOBS_MAX][SPEC_JOB_MAX];
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc = 0;

	for (int i = 0; i < n && !rc; i++)
		rc = reach_job(reach, names[i], jobs[i], err);
	if (rc)
		return rc;
	pack_begin(&pk, &buffer, 3);
	pack_str(&pk, "op", "talks");
	pack_u64(&pk, "v", 1);
	pack_key(&pk, "jobs");
	msgpack_pack_array(&pk, (size_t)n);
	for (int i = 0; i < n; i++) {
		msgpack_pack_str(&pk, strlen(jobs[i]));
		msgpack_pack_str_body(&pk, jobs[i], strlen(jobs[i]));
	}
	rc = reach_home(reach, jobs[0], &buffer, answer, err);
	msgpack_sbuffer_destroy(&buffer);
	return rc;
}

static int matrix_ask(const struct profile_matrix_ask *ask, int n, char **names, json_t **answer,
		      struct iocom_err *err)
{
	struct reach reach;
	int rc = reach_open(&reach, ask->run_dir, err);

	if (!rc)
		rc = matrix_ask_reached(&reach, n, names, answer, err);
	reach_close(&reach);
	return rc;
}

/* --- in words ----------------------------------------------------------------------------- */

static void matrix_amount(struct listing *l, const json_t *object, const char *key)
{
	double bytes = listing_number(object, key);
	char text[32] = "-";

	if (bytes > 0)
		amount_of_mb(text, sizeof(text), bytes / 1e6);
	listing_cell(l, "%s", text);
}

static void matrix_ms(struct listing *l, double ms)
{
	char text[32] = "-";

	if (ms > 0)
		listing_span(text, sizeof(text), ms);
	listing_cell(l, "%s", text);
}

static void matrix_pattern(const json_t *answer)
{
	const json_t *p = json_object_get(answer, "pattern");
	const char *name = listing_string(p, "name");
	double share = 100 * listing_number(p, "share");
	double coverage = 100 * listing_number(p, "coverage");
	char text[320], which[64] = "";

	if (!strcmp(name, "none")) {
		printf("Nothing was sent between its ranks by TCP (shared memory is not seen).\n");
		return;
	}
	if (!strcmp(name, "irregular")) {
		snprintf(text, sizeof(text),
			 "Pattern: irregular: none that has a name holds 90 %% of the bytes; %.0f "
			 "%% of all pairs that could be seen talk.",
			 coverage);
		listing_wrap(stdout, text, 2);
		return;
	}
	if (json_object_get(p, "master"))
		snprintf(which, sizeof(which), ", the master is rank %.0f",
			 listing_number(p, "master"));
	if (json_object_get(p, "rows"))
		snprintf(which, sizeof(which), " of %.0f rows and %.0f columns",
			 listing_number(p, "rows"), listing_number(p, "columns"));
	snprintf(text, sizeof(text),
		 "Pattern: %s%s: %.1f %% of the bytes are between its pairs, and %.0f %% of these "
		 "pairs that could be seen talk.",
		 name, which, share, coverage);
	listing_wrap(stdout, text, 2);
}

static int matrix_ranks(const json_t *answer)
{
	static const struct listing_column columns[] = {
		{"RANK", true},	  {"NODE", false},   {"SENT", true},  {"RECEIVED", true},
		{"INSIDE", true}, {"OUTSIDE", true}, {"T_COM", true}, {"L_COM", true},
		{"CPU", true},	  {"PHASES", true},
	};
	const json_t *parts = json_object_get(answer, "parts"), *r;
	struct listing *l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t i;
	int rc;

	json_array_foreach (json_object_get(answer, "ranks"), i, r) {
		double part = listing_number(r, "part");
		double inside =
			listing_number(r, "inside_sent") + listing_number(r, "inside_received");
		double outside =
			listing_number(r, "outside_sent") + listing_number(r, "outside_received");
		char text[2][32] = {"-", "-"};

		if (i == MATRIX_RANKS_SHOW)
			break;
		if (inside > 0)
			amount_of_mb(text[0], sizeof(text[0]), inside / 1e6);
		if (outside > 0)
			amount_of_mb(text[1], sizeof(text[1]), outside / 1e6);
		listing_cell(l, "%.0f", listing_number(r, "rank"));
		listing_cell(l, "%s",
			     part >= 0 ? listing_string(json_array_get(parts, (size_t)part), "node")
				       : "?");
		matrix_amount(l, r, "link_sent");
		matrix_amount(l, r, "link_received");
		listing_cell(l, "%s", text[0]);
		listing_cell(l, "%s", text[1]);
		matrix_ms(l, listing_number(r, "com_ms"));
		matrix_ms(l, listing_number(r, "l_com_ms"));
		matrix_ms(l, listing_number(r, "cpu_ms"));
		listing_cell(l, "%.0f", listing_number(r, "bursts"));
	}
	listing_limit(l, LISTING_WIDTH);
	rc = listing_print(l, stdout);
	listing_free(l);
	if (listing_number(answer, "tasks") > MATRIX_RANKS_SHOW)
		printf("  and %.0f more (--json)\n",
		       listing_number(answer, "tasks") - MATRIX_RANKS_SHOW);
	return rc;
}

/* Sums a member over the ranks. */
static double matrix_total(const json_t *answer, const char *key)
{
	double sum = 0;
	const json_t *r;
	size_t i;

	json_array_foreach (json_object_get(answer, "ranks"), i, r)
		sum += listing_number(r, key);
	return sum;
}

static void matrix_loads(const json_t *answer)
{
	const json_t *p;
	char text[1024];
	size_t i;

	snprintf(text, sizeof(text),
		 "L_COM by node, eq. (6), at %.4g MB/s a link, master rank %.0f:",
		 listing_number(answer, "network_mb_per_s"), listing_number(answer, "master"));
	json_array_foreach (json_object_get(answer, "parts"), i, p) {
		char span[32];

		listing_span(span, sizeof(span), listing_number(p, "l_com_ms"));
		if (strlen(text) < sizeof(text) - 128)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %s %s",
				 i ? "," : "", listing_string(p, "node"), span);
	}
	utf8_plain(text);
	listing_wrap(stdout, text, 2);
}

static void matrix_shares(const json_t *answer)
{
	double link = matrix_total(answer, "link_sent");
	double inside = matrix_total(answer, "inside_sent");
	char amounts[2][32], text[256];

	amount_of_mb(amounts[0], sizeof(amounts[0]), link / 1e6);
	amount_of_mb(amounts[1], sizeof(amounts[1]), inside / 1e6);
	snprintf(
		text, sizeof(text),
		"Between ranks: %s over links (%.0f %%), %s by TCP inside nodes; what ranks of one "
		"node share in memory loads no link and is not seen.",
		amounts[0], link + inside > 0 ? 100 * link / (link + inside) : 0, amounts[1]);
	listing_wrap(stdout, text, 2);
}

/* One sentence for what is of no pair of ranks, if there is any. */
static void matrix_other(const json_t *answer, const char *key, const char *what)
{
	const json_t *sum = json_object_get(json_object_get(answer, "rest"), key);
	double sent = listing_number(sum, "sent_bytes");
	double received = listing_number(sum, "received_bytes");
	char amounts[2][32], text[256];

	if (sent + received <= 0)
		return;
	amount_of_mb(amounts[0], sizeof(amounts[0]), sent / 1e6);
	amount_of_mb(amounts[1], sizeof(amounts[1]), received / 1e6);
	snprintf(text, sizeof(text), "%s: %s sent, %s received.", what, amounts[0], amounts[1]);
	listing_wrap(stdout, text, 2);
}

/* MODEL 5.10: a rank's time over the phases that its bursts of communication end. */
static void matrix_phases(const json_t *answer)
{
	const json_t *p = json_object_get(answer, "phases");
	double number = listing_number(p, "number");
	char text[512];

	if (number <= 0)
		return;
	snprintf(text, sizeof(text),
		 "Phases: a rank communicates in %.0f bursts; in the mean a phase has T_CPU %.3g "
		 "ms, "
		 "T_COM %.3g ms and T_Disk %.3g ms (in all %.3g ms for the slowest rank), and its "
		 "burst takes %.3g ms. 2 ms of silence end a burst: shorter phases count as one.",
		 number, listing_number(p, "cpu_ms"), listing_number(p, "com_ms"),
		 listing_number(p, "disk_ms"), listing_number(p, "slowest_ms"),
		 listing_number(p, "burst_ms"));
	listing_wrap(stdout, text, 2);
}

static void matrix_missing(const json_t *answer)
{
	const json_t *p, *rest = json_object_get(answer, "rest");
	char text[512];
	size_t i;

	json_array_foreach (json_object_get(answer, "parts"), i, p) {
		const char *what = !json_is_true(json_object_get(p, "reported"))
					   ? "has told nothing yet"
				   : json_is_true(json_object_get(p, "late"))
					   ? "was counted from later than its start"
					   : NULL;

		if (!what)
			continue;
		snprintf(text, sizeof(text), "Job %s at node %s %s.", listing_string(p, "job"),
			 listing_string(p, "node"), what);
		utf8_plain(text);
		listing_wrap(stdout, text, 2);
	}
	if (listing_number(rest, "refused_rows") + listing_number(rest, "unreadable") > 0) {
		snprintf(text, sizeof(text),
			 "Of what nodes reported, %.0f connections and %.0f reports were not "
			 "believed.",
			 listing_number(rest, "refused_rows"), listing_number(rest, "unreadable"));
		listing_wrap(stdout, text, 2);
	}
	p = json_object_get(answer, "more_pairs");
	if (p) {
		snprintf(text, sizeof(text), "%.0f pairs with the least bytes are not shown.",
			 listing_number(p, "pairs"));
		listing_wrap(stdout, text, 2);
	}
}

/* Whether it is known of any rank at which node it was. */
static bool matrix_has_ranks(const json_t *answer)
{
	const json_t *r;
	size_t i;

	json_array_foreach (json_object_get(answer, "ranks"), i, r)
		if (listing_number(r, "part") >= 0)
			return true;
	return false;
}

static int matrix_print(const json_t *answer, const struct matrix_picture *picture)
{
	char head[256];
	size_t parts = json_array_size(json_object_get(answer, "parts"));

	snprintf(head, sizeof(head), "Job %s: %u ranks, %zu part%s", listing_string(answer, "job"),
		 picture->tasks, parts, parts == 1 ? "" : "s");
	utf8_plain(head);
	puts(head);
	matrix_pattern(answer);
	if (picture->most > 0 && (puts("Bytes that ranks sent each other:"),
				  matrix_picture_print(picture, LISTING_WIDTH, stdout)))
		return 1;
	if (matrix_has_ranks(answer) && matrix_ranks(answer))
		return 1;
	matrix_shares(answer);
	if (matrix_has_ranks(answer))
		matrix_loads(answer);
	matrix_phases(answer);
	matrix_other(answer, "outside", "Outside the job");
	matrix_other(answer, "unranked", "With processes of the job that are no rank");
	matrix_other(answer, "rest", "Connections that found no room in a report");
	matrix_missing(answer);
	return listing_end();
}

static int matrix_csv(const json_t *answer)
{
	const json_t *pair;
	size_t i;

	puts("from,to,bytes,messages,inside");
	json_array_foreach (json_object_get(answer, "pairs"), i, pair)
		printf("%.0f,%.0f,%.0f,%.0f,%d\n", json_number_value(json_array_get(pair, 0)),
		       json_number_value(json_array_get(pair, 1)),
		       json_number_value(json_array_get(pair, 2)),
		       json_number_value(json_array_get(pair, 3)),
		       json_is_true(json_array_get(pair, 4)));
	return listing_end();
}

static int matrix_svg(const char *file, const json_t *answer, const struct matrix_picture *picture)
{
	struct iocom_err err = {0};
	char title[256];
	FILE *out = fopen(file, "we");
	bool bad;

	if (!out) {
		iocom_err_set(&err, -errno, "cannot write %s: %s", file, strerror(errno));
		return matrix_failed(&err);
	}
	snprintf(title, sizeof(title), "%s: %s", listing_string(answer, "job"),
		 listing_string(json_object_get(answer, "pattern"), "name"));
	matrix_picture_svg(picture, title, out);
	bad = ferror(out);
	if (fclose(out) || bad) {
		iocom_err_set(&err, -EIO, "cannot write all of %s: %s", file, strerror(errno));
		return matrix_failed(&err);
	}
	return 0;
}

int profile_matrix(const struct profile_matrix_ask *ask, int n, char **names)
{
	struct matrix_picture picture;
	struct iocom_err err = {0};
	json_t *answer = NULL;
	int rc;

	if (n < 1 || n > MATRIX_JOBS_MAX) {
		fprintf(stderr,
			"iocom profile: --matrix of which job? (`iocom jobs --all` lists "
			"them; %d at most)\n",
			MATRIX_JOBS_MAX);
		return 2;
	}
	if (matrix_ask(ask, n, names, &answer, &err))
		return matrix_failed(&err);
	if (matrix_picture_take(&picture, answer, &err)) {
		json_decref(answer);
		return matrix_failed(&err);
	}
	rc = ask->svg ? matrix_svg(ask->svg, answer, &picture) : 0;
	if (!rc && ask->json)
		rc = listing_print_json(answer);
	else if (!rc && ask->csv)
		rc = matrix_csv(answer);
	else if (!rc && !ask->svg)
		rc = matrix_print(answer, &picture);
	matrix_picture_fini(&picture);
	json_decref(answer);
	return rc;
}
