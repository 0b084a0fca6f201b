/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What jobs of a class that was never seen may need: what others do; see profile.h. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "balancer/profile/profile_own.h"

#define MOST 1000 /* classes that are looked at */

enum { CPU_MS, REQUESTS, REQUEST_MB, WALL_MS, FIELDS };

struct typical {
	double value[FIELDS][MOST];
	size_t n;
};

static int typical_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double typical_median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), typical_order);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Reads the classes of UID; -1: of all users. */
static int typical_read(struct profile_store *s, sqlite3_int64 uid, struct typical *t,
			struct iocom_err *err)
{
	static const char sql[] =
		"SELECT cpu_ms, requests + fault_requests,"
		" request_mb + fault_mb, wall_ms FROM profile"
		" WHERE runs > 0 AND (?1 < 0 OR uid=?1) ORDER BY runs DESC LIMIT " TEXT(MOST);
	sqlite3_stmt *st = profile_statement(s, sql);
	int rc;

	t->n = 0;
	if (!st)
		return profile_failed(s, "read", err);
	sqlite3_bind_int64(st, 1, uid);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		bool sound = true;

		for (int f = 0; f < FIELDS; f++) {
			t->value[f][t->n] = sqlite3_column_double(st, f);
			sound = sound && isfinite(t->value[f][t->n]) && t->value[f][t->n] >= 0;
		}
		t->n += sound; /* a damaged file has rows that say nothing */
	}
	rc = rc == SQLITE_DONE ? 0 : profile_failed(s, "read", err);
	profile_done(st);
	return rc;
}

int profile_typical(struct profile_store *s, uid_t uid, struct profile *out, struct iocom_err *err)
{
	struct typical *t = malloc(sizeof(*t));
	int rc;

	if (!t)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	rc = typical_read(s, uid, t, err);
	if (!rc && t->n < PROFILE_TYPICAL_LEAST)
		rc = typical_read(s, -1, t, err);
	if (!rc && t->n < PROFILE_TYPICAL_LEAST)
		rc = -ENOENT;
	if (!rc)
		*out = (struct profile){
			.cpu_ms = typical_median(t->value[CPU_MS], t->n),
			.requests = typical_median(t->value[REQUESTS], t->n),
			.request_mb = typical_median(t->value[REQUEST_MB], t->n),
			.wall_ms = typical_median(t->value[WALL_MS], t->n),
		};
	free(t);
	return rc;
}
