/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Class profiles in SQLite; see profile.h.  What came later has a table of its
 * own, so that a file of an older version stays readable:
 *
 *   profile    uid, class, and the numbers that placement asks for
 *   behaviour  uid, class, R_COM, R_Disk, and the last run's phases as JSON:
 *              [ disk low, disk high, fault, disk wait, run wait,
 *                [cpu, com, disk, wall, dominant]... ]
 *   error      uid, class, node ('': all nodes), how wrong predictions were; `used` orders the
 *              nodes of a class by their last job
 *   doubt      node, how little its word is believed
 *   run        uid, class, number, and what each of the last runs measured (profile_runs.c)
 *   pin        uid, class, need, and the value that the user set (profile_pins.c)
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/profile/profile_own.h"
#include "balancer/profile/profile_runs.h"

#define ALPHA	  0.5
#define WHOLE_RUN 5
/* The agent waits so long for a lock, and serves nobody meanwhile; it tries again later. */
#define BUSY_MS 100
#define NUMBERS                                                                                    \
	"cpu_ms, requests, request_mb, fault_requests, fault_mb, memory_mb, wall_ms, rest_ms"
#define COLUMNS "runs, " NUMBERS ", com_ms, disk_ms, phases"

int profile_failed(struct profile_store *s, const char *what, struct iocom_err *err)
{
	if (!s->file.db)
		return iocom_err_set(err, -EUCLEAN,
				     "cannot %s the class profiles %s: they are not open", what,
				     s->path);
	return database_failed(&s->file, what, err);
}

#define PROFILE_TABLE                                                                              \
	"CREATE TABLE profile(uid INTEGER, class TEXT, runs INTEGER, cpu_ms REAL,"                 \
	" requests REAL, request_mb REAL, fault_requests REAL, fault_mb REAL,"                     \
	" memory_mb REAL, wall_ms REAL, rest_ms REAL, PRIMARY KEY(uid, class)) WITHOUT ROWID;"
#define BEHAVIOUR_TABLE                                                                            \
	"CREATE TABLE IF NOT EXISTS behaviour(uid INTEGER, class TEXT, com_ms REAL,"               \
	" disk_ms REAL, phases TEXT, PRIMARY KEY(uid, class)) WITHOUT ROWID;"

#define ERROR_TABLE                                                                                \
	"CREATE TABLE IF NOT EXISTS error(uid INTEGER, class TEXT, node TEXT, jobs INTEGER,"       \
	" mean_log REAL, used INTEGER, PRIMARY KEY(uid, class, node)) WITHOUT ROWID;"

#define DOUBT_TABLE                                                                                \
	"CREATE TABLE IF NOT EXISTS doubt(node TEXT PRIMARY KEY, doubt REAL) WITHOUT ROWID;"

#define RUN_TABLE                                                                                  \
	"CREATE TABLE IF NOT EXISTS run(uid INTEGER, class TEXT, number INTEGER, warm INTEGER,"    \
	" input_id INTEGER, input_mb REAL, node TEXT, end_s INTEGER, cpu_ms REAL, requests REAL,"  \
	" request_mb REAL, read_mb REAL, written_mb REAL, fault_requests REAL, fault_mb REAL,"     \
	" memory_mb REAL, com_ms REAL, disk_ms REAL, wall_ms REAL, rest_ms REAL,"                  \
	" PRIMARY KEY(uid, class, number)) WITHOUT ROWID;"

/* Since version 6. */
#define RUN_SHARED                                                                                 \
	"ALTER TABLE run ADD COLUMN shared_read_mb REAL DEFAULT 0;"                                \
	"ALTER TABLE run ADD COLUMN shared_written_mb REAL DEFAULT 0;"

#define PIN_TABLE                                                                                  \
	"CREATE TABLE IF NOT EXISTS pin(uid INTEGER, class TEXT, need TEXT, value REAL,"           \
	" PRIMARY KEY(uid, class, need)) WITHOUT ROWID;"

#define TALK_TABLE                                                                                 \
	"CREATE TABLE IF NOT EXISTS talk(uid INTEGER, class TEXT, tasks INTEGER, runs INTEGER,"    \
	" pattern INTEGER, master INTEGER, pairs BLOB, PRIMARY KEY(uid, class)) WITHOUT ROWID;"

static int profile_migrate(const struct database *d, const char *sql, struct iocom_err *err)
{
	return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : database_failed(d, "migrate", err);
}

/* The first files had no table of behaviour. */
static int profile_version_1(const struct database *d, struct iocom_err *err)
{
	return profile_migrate(d, BEHAVIOUR_TABLE, err);
}

/*
 * Version 1 had the size of a request, the rate of page faults and the highest rate of requests.
 * The bytes follow from the averages as they are.  The size of the requests of page faults was not
 * kept: it counts as that of the explicit ones, or as what the kernel reads ahead (128 KB).
 */
static int profile_version_2(const struct database *d, struct iocom_err *err)
{
	static const char sql[] =
		"ALTER TABLE profile RENAME TO profile_1;" PROFILE_TABLE
		"INSERT INTO profile SELECT uid, class, runs, p.cpu_ms, requests,"
		" requests * request_kb / 1e3, faults_per_ms * p.cpu_ms, faults_per_ms * p.cpu_ms"
		" * CASE WHEN request_kb > 0 THEN request_kb ELSE 128 END / 1e3, memory_mb,"
		" wall_ms, max(0, wall_ms - p.cpu_ms - coalesce(disk_ms, 0))"
		" FROM profile_1 AS p LEFT JOIN behaviour USING(uid, class);"
		"DROP TABLE profile_1;";

	return profile_migrate(d, sql, err);
}

/* Version 2 knew nothing of how wrong predictions were. */
static int profile_version_3(const struct database *d, struct iocom_err *err)
{
	return profile_migrate(d, ERROR_TABLE, err);
}

/* Version 3 doubted no node. */
static int profile_version_4(const struct database *d, struct iocom_err *err)
{
	return profile_migrate(d, DOUBT_TABLE, err);
}

/* Version 4 kept no single runs, and let nobody set a need. */
static int profile_version_5(const struct database *d, struct iocom_err *err)
{
	return profile_migrate(d, RUN_TABLE PIN_TABLE, err);
}

/* Version 5 did not tell I/O on shared file systems. */
static int profile_version_6(const struct database *d, struct iocom_err *err)
{
	return profile_migrate(d, RUN_SHARED, err);
}

/* Version 6 knew not who of a parallel job sends how much to whom. */
static int profile_version_7(const struct database *d, struct iocom_err *err)
{
	return profile_migrate(d, TALK_TABLE, err);
}

static int (*const profile_steps[])(const struct database *d, struct iocom_err *err) = {
	profile_version_1, profile_version_2, profile_version_3, profile_version_4,
	profile_version_5, profile_version_6, profile_version_7,
};

static const struct database_layout profile_layout = {
	.what = "the class profiles",
	.advice = "",
	.schema = PROFILE_TABLE BEHAVIOUR_TABLE ERROR_TABLE DOUBT_TABLE RUN_TABLE RUN_SHARED
		PIN_TABLE TALK_TABLE,
	.steps = profile_steps,
	.version = sizeof(profile_steps) / sizeof(*profile_steps),
	.probe = "SELECT uid, class, runs, cpu_ms, requests, request_mb, fault_requests, fault_mb,"
		 " memory_mb, wall_ms, rest_ms FROM profile LIMIT 0;"
		 "SELECT uid, class, com_ms, disk_ms, phases FROM behaviour LIMIT 0;"
		 "SELECT uid, class, node, jobs, mean_log, used FROM error LIMIT 0;"
		 "SELECT node, doubt FROM doubt LIMIT 0;"
		 "SELECT uid, class, number, warm, input_id, input_mb, node, end_s,"
		 " " PROFILE_NEED_COLUMNS
		 " FROM run LIMIT 0; SELECT uid, class, need, value FROM pin LIMIT 0",
	.busy_ms = BUSY_MS,
};

static int profile_make(struct profile_store **out, const char *path,
			int (*open)(struct database *d, const char *path,
				    const struct database_layout *layout, struct iocom_err *err),
			struct iocom_err *err)
{
	struct profile_store *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	snprintf(s->path, sizeof(s->path), "%s", path);
	rc = open(&s->file, path, &profile_layout, err);
	if (rc) {
		free(s);
		return rc;
	}
	*out = s;
	return 0;
}

int profile_open(struct profile_store **out, const char *path, struct iocom_err *err)
{
	return profile_make(out, path, database_open, err);
}

/*
 * Removes rows with numbers that no run can have, because somebody edited the file or a disk did.
 * They would count as nothing wherever they are read.
 */
static int profile_sweep(struct profile_store *s, struct iocom_err *err)
{
	/* A NULL is less than nothing, and text is more than any number. */
	static const char *const sweeps[] = {
		"DELETE FROM profile WHERE coalesce(min(runs, " NUMBERS ") < 0"
		" OR max(runs, " NUMBERS ") > 1e12, 1)",
		"DELETE FROM run WHERE coalesce(min(" PROFILE_NEED_COLUMNS ") < 0"
		" OR max(" PROFILE_NEED_COLUMNS ") > 1e12, 1)",
		"DELETE FROM pin WHERE coalesce(value < 0 OR value > 1e12, 1)",
	};
	int rc = profile_run(s, "BEGIN IMMEDIATE", err);

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(sweeps) / sizeof(*sweeps) && !rc; i++) {
		rc = profile_run(s, sweeps[i], err);
		s->swept += rc ? 0 : (unsigned)sqlite3_changes(s->file.db);
	}
	return profile_end_transaction(s, rc, err);
}

int profile_renew(struct profile_store **out, const char *path, struct iocom_err *err)
{
	int rc = profile_make(out, path, database_renew, err);

	if (rc)
		return rc;
	rc = profile_sweep(*out, err);
	if (rc) {
		profile_close(*out);
		*out = NULL;
	}
	return rc;
}

unsigned profile_swept(const struct profile_store *s)
{
	return s->swept;
}

static void profile_finalize(struct profile_store *s)
{
	for (size_t i = 0; i < STATEMENTS; i++) {
		sqlite3_finalize(s->cache[i].st);
		s->cache[i].st = NULL;
		s->cache[i].sql = NULL;
	}
}

int profile_renew_open(struct profile_store *s, struct iocom_err *err)
{
	profile_finalize(s);
	database_close(&s->file);
	return database_renew(&s->file, s->path, &profile_layout, err);
}

const char *profile_aside(const struct profile_store *s, const char **why)
{
	*why = s->file.why.text;
	return s->file.aside;
}

const char *profile_backup(const struct profile_store *store)
{
	return store->file.backup;
}

void profile_close(struct profile_store *store)
{
	if (!store)
		return;
	profile_finalize(store);
	database_close(&store->file);
	free(store);
}

sqlite3_stmt *profile_statement(struct profile_store *s, const char *sql)
{
	size_t i = 0;

	if (!s->file.db)
		return NULL;
	while (i < STATEMENTS - 1 && s->cache[i].sql && s->cache[i].sql != sql)
		i++;
	if (s->cache[i].sql != sql) {
		sqlite3_finalize(s->cache[i].st);
		s->cache[i].st = NULL;
		s->cache[i].sql = NULL;
		if (sqlite3_prepare_v2(s->file.db, sql, -1, &s->cache[i].st, NULL) != SQLITE_OK)
			return NULL;
		s->cache[i].sql = sql;
	}
	return s->cache[i].st;
}

void profile_done(sqlite3_stmt *st)
{
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
}

/* --- phases as text ------------------------------------------------------------- */

/* malloc'ed, NULL: no memory. */
static char *phases_text(const struct behaviour *b)
{
	json_t *list = json_pack("[f,f,f,f,f]", b->disk_low_ms, b->disk_high_ms, b->fault_ms,
				 b->disk_wait_ms, b->run_wait_ms);
	char *text;

	for (size_t i = 0; list && i < b->n; i++) {
		const struct behaviour_phase *p = &b->phases[i];

		if (json_array_append_new(list,
					  json_pack("[f,f,f,f,i]", p->ms[BEHAVIOUR_CPU],
						    p->ms[BEHAVIOUR_COM], p->ms[BEHAVIOUR_DISK],
						    p->wall_ms, p->dominant))) {
			json_decref(list);
			return NULL;
		}
	}
	text = list ? json_dumps(list, JSON_COMPACT) : NULL;
	json_decref(list);
	return text;
}

/* A text that is not ours teaches nothing. */
static void phases_parse(const char *text, struct behaviour *out)
{
	json_t *list = text ? json_loads(text, 0, NULL) : NULL;
	struct behaviour b = {0};
	bool good = !json_unpack(list, "[F,F,F,F,F]", &b.disk_low_ms, &b.disk_high_ms, &b.fault_ms,
				 &b.disk_wait_ms, &b.run_wait_ms) &&
		    json_array_size(list) <= WHOLE_RUN + BEHAVIOUR_PHASES;

	for (size_t i = WHOLE_RUN; good && i < json_array_size(list); i++) {
		struct behaviour_phase *p = &b.phases[b.n++];

		good = !json_unpack(json_array_get(list, i), "[F,F,F,F,i]", &p->ms[BEHAVIOUR_CPU],
				    &p->ms[BEHAVIOUR_COM], &p->ms[BEHAVIOUR_DISK], &p->wall_ms,
				    &p->dominant);
	}
	if (good && behaviour_valid(&b))
		*out = b;
	json_decref(list);
}

/* --- reading -------------------------------------------------------------------- */

/* A number of a file that somebody edited; what can be no need counts as nothing. */
static double profile_column(sqlite3_stmt *st, int column)
{
	double value = sqlite3_column_double(st, column);

	return value >= 0 && value <= PROFILE_NEED_MAX ? value : 0;
}

static void take_row(sqlite3_stmt *st, struct profile *out)
{
	int64_t runs = sqlite3_column_int64(st, 0);

	*out = (struct profile){
		.runs = runs > 0 && runs <= UINT32_MAX ? (uint32_t)runs : 0,
		.cpu_ms = profile_column(st, 1),
		.requests = profile_column(st, 2),
		.request_mb = profile_column(st, 3),
		.fault_requests = profile_column(st, 4),
		.fault_mb = profile_column(st, 5),
		.memory_mb = profile_column(st, 6),
		.wall_ms = profile_column(st, 7),
		.rest_ms = profile_column(st, 8),
		.com_ms = profile_column(st, 9), /* NULL of an old file: 0 */
		.disk_ms = profile_column(st, 10),
	};
	phases_parse((const char *)sqlite3_column_text(st, 11), &out->behaviour);
}

void profile_bind(sqlite3_stmt *st, uid_t uid, const char *class_name)
{
	sqlite3_bind_int64(st, 1, uid);
	sqlite3_bind_text(st, 2, class_name, -1, SQLITE_STATIC);
}

int profile_get(struct profile_store *s, uid_t uid, const char *class_name, struct profile *out,
		struct iocom_err *err)
{
	static const char sql[] = "SELECT " COLUMNS " FROM profile LEFT JOIN behaviour"
				  " USING(uid, class) WHERE uid=?1 AND class=?2";
	sqlite3_stmt *st = profile_statement(s, sql);
	int rc;

	if (!st)
		return profile_failed(s, "read", err);
	profile_bind(st, uid, class_name);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		take_row(st, out);
	rc = rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? -ENOENT : profile_failed(s, "read", err);
	profile_done(st);
	return rc;
}

int profile_list(struct profile_store *s, uid_t uid, profile_each *each, void *arg,
		 struct iocom_err *err)
{
	return profile_list_part(s, &(struct profile_part){.uid = uid, .class_name = ""}, each, arg,
				 err);
}

int profile_list_part(struct profile_store *s, const struct profile_part *part, profile_each *each,
		      void *arg, struct iocom_err *err)
{
	static const char sql[] = "SELECT " COLUMNS ", uid, class FROM (SELECT * FROM profile WHERE"
				  " (?1 < 0 OR uid=?1) AND (?2='' OR class=?2) ORDER BY uid, class"
				  " LIMIT ?3 OFFSET ?4) LEFT JOIN behaviour USING(uid, class)"
				  " ORDER BY uid, class";
	sqlite3_stmt *st = profile_statement(s, sql);
	int rc;

	if (!st)
		return profile_failed(s, "read", err);
	sqlite3_bind_int64(st, 1, part->uid == (uid_t)-1 ? -1 : (sqlite3_int64)part->uid);
	sqlite3_bind_text(st, 2, part->class_name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 3, part->most ? (sqlite3_int64)part->most : -1);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)part->skip);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 13);
		struct profile p;

		take_row(st, &p);
		each(arg, (uid_t)sqlite3_column_int64(st, 12), name ? name : "", &p);
	}
	rc = rc == SQLITE_DONE ? 0 : profile_failed(s, "read", err);
	profile_done(st);
	return rc;
}

/* --- learning ------------------------------------------------------------------- */

static void toward(double *old, double measured)
{
	*old = ALPHA * measured + (1 - ALPHA) * *old;
}

void profile_merge(struct profile *into, const struct profile *run)
{
	if (!into->runs) {
		*into = *run;
		into->runs = 1;
		return;
	}
	toward(&into->cpu_ms, run->cpu_ms);
	toward(&into->requests, run->requests);
	toward(&into->request_mb, run->request_mb);
	toward(&into->fault_requests, run->fault_requests);
	toward(&into->fault_mb, run->fault_mb);
	toward(&into->memory_mb, run->memory_mb);
	toward(&into->wall_ms, run->wall_ms);
	toward(&into->rest_ms, run->rest_ms);
	toward(&into->com_ms, run->com_ms);
	toward(&into->disk_ms, run->disk_ms);
	into->behaviour = run->behaviour;
	into->runs++;
}

/* --- what follows ------------------------------------------------------------------ */

double profile_requests(const struct profile *p)
{
	return p->requests + p->fault_requests;
}

double profile_request_kb(const struct profile *p)
{
	double requests = profile_requests(p);

	return requests > 0 ? (p->request_mb + p->fault_mb) * 1e3 / requests : 0;
}

double profile_faults_per_ms(const struct profile *p)
{
	return p->cpu_ms > 0 ? p->fault_requests / p->cpu_ms : 0;
}

double profile_rate_per_ms(const struct profile *p, const struct profile_machine *m)
{
	double requests = profile_requests(p), busy = p->cpu_ms + p->disk_ms;
	double overlap = busy > p->wall_ms ? p->wall_ms / busy : 1;
	double cpu_ms = m->cpu_speed > 0 ? p->cpu_ms / m->cpu_speed : p->cpu_ms;
	double disk_ms =
		m->disk_mb_per_s > 0
			? requests * (m->disk_fixed_ms + profile_request_kb(p) / m->disk_mb_per_s)
			: p->disk_ms;
	double wall_ms = fmax(disk_ms, overlap * (cpu_ms + disk_ms) + p->rest_ms);

	return requests / fmax(wall_ms, PROFILE_RATE_MS);
}

/* --- writing ------------------------------------------------------------------------ */

int profile_finish(struct profile_store *s, sqlite3_stmt *st, uid_t uid, const char *class_name,
		   struct iocom_err *err)
{
	int rc;

	profile_bind(st, uid, class_name);
	rc = sqlite3_step(st) == SQLITE_DONE ? 0 : profile_failed(s, "write", err);
	profile_done(st);
	return rc;
}

static int write_numbers(struct profile_store *s, uid_t uid, const char *class_name,
			 const struct profile *p, struct iocom_err *err)
{
	static const char sql[] =
		"INSERT OR REPLACE INTO profile VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)";
	sqlite3_stmt *st = profile_statement(s, sql);

	if (!st)
		return profile_failed(s, "write", err);
	sqlite3_bind_int64(st, 3, p->runs);
	sqlite3_bind_double(st, 4, p->cpu_ms);
	sqlite3_bind_double(st, 5, p->requests);
	sqlite3_bind_double(st, 6, p->request_mb);
	sqlite3_bind_double(st, 7, p->fault_requests);
	sqlite3_bind_double(st, 8, p->fault_mb);
	sqlite3_bind_double(st, 9, p->memory_mb);
	sqlite3_bind_double(st, 10, p->wall_ms);
	sqlite3_bind_double(st, 11, p->rest_ms);
	return profile_finish(s, st, uid, class_name, err);
}

static int write_behaviour(struct profile_store *s, uid_t uid, const char *class_name,
			   const struct profile *p, struct iocom_err *err)
{
	static const char sql[] = "INSERT OR REPLACE INTO behaviour VALUES(?1,?2,?3,?4,?5)";
	char *text = phases_text(&p->behaviour);
	sqlite3_stmt *st;

	if (!text)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	st = profile_statement(s, sql);
	if (!st) {
		free(text);
		return profile_failed(s, "write", err);
	}
	sqlite3_bind_double(st, 3, p->com_ms);
	sqlite3_bind_double(st, 4, p->disk_ms);
	sqlite3_bind_text(st, 5, text, -1, free);
	return profile_finish(s, st, uid, class_name, err);
}

int profile_run(struct profile_store *s, const char *sql, struct iocom_err *err)
{
	sqlite3_stmt *st = profile_statement(s, sql);
	int rc = st && sqlite3_step(st) == SQLITE_DONE ? 0 : profile_failed(s, "write", err);

	if (st)
		profile_done(st);
	return rc;
}

int profile_end_transaction(struct profile_store *s, int rc, struct iocom_err *err)
{
	struct iocom_err ignored;

	if (!rc)
		rc = profile_run(s, "COMMIT", err);
	if (rc)
		profile_run(s, "ROLLBACK", &ignored);
	return rc;
}

int profile_delete(struct profile_store *s, const char *sql, uid_t uid, const char *class_name,
		   struct iocom_err *err)
{
	sqlite3_stmt *st = profile_statement(s, sql);

	if (!st)
		return profile_failed(s, "write", err);
	return profile_finish(s, st, uid, class_name, err);
}

/*
 * Finds the class that makes room for a new one of UID: one with the fewest runs, and one with
 * needs that its user set only if all have such.  Returns 0; -ENOENT: there is room; -EIO.
 */
static int profile_least(struct profile_store *s, uid_t uid, char class_name[PROFILE_CLASS_MAX],
			 struct iocom_err *err)
{
	static const char sql[] =
		"SELECT class FROM profile WHERE uid=?1"
		" AND (SELECT count(*) FROM profile WHERE uid=?1) >= " TEXT(
			PROFILE_CLASSES_MAX) " ORDER BY class IN (SELECT class FROM pin WHERE "
					     "uid=?1), runs, class LIMIT 1";
	sqlite3_stmt *st = profile_statement(s, sql);
	const char *name;
	int rc;

	if (!st)
		return profile_failed(s, "read", err);
	sqlite3_bind_int64(st, 1, uid);
	rc = sqlite3_step(st);
	name = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
	snprintf(class_name, PROFILE_CLASS_MAX, "%s", name ? name : "");
	rc = rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? -ENOENT : profile_failed(s, "read", err);
	profile_done(st);
	return rc;
}

int profile_make_room(struct profile_store *s, uid_t uid, struct iocom_err *err)
{
	char class_name[PROFILE_CLASS_MAX];
	int rc;

	while (!(rc = profile_least(s, uid, class_name, err))) {
		rc = profile_erase(s, uid, class_name, err);
		if (rc) /* -ENOENT: a name that is cut or no text, in a file that somebody edited */
			break;
	}
	return rc == -ENOENT ? 0 : rc;
}

int profile_write(struct profile_store *s, uid_t uid, const char *class_name,
		  const struct profile *p, struct iocom_err *err)
{
	int rc = write_numbers(s, uid, class_name, p, err);

	return rc ? rc : write_behaviour(s, uid, class_name, p, err);
}

int profile_learn_run(struct profile_store *s, uid_t uid, const char *class_name,
		      const struct profile *run, const struct profile_origin *origin,
		      struct iocom_err *err)
{
	struct profile p = {0};
	int rc = profile_get(s, uid, class_name, &p, err);
	bool new = rc == -ENOENT;

	if (rc && !new)
		return rc;
	profile_merge(&p, run);
	rc = profile_run(s, "BEGIN IMMEDIATE", err);
	if (rc)
		return rc;
	if (new)
		rc = profile_make_room(s, uid, err);
	if (!rc)
		rc = profile_write(s, uid, class_name, &p, err);
	if (!rc)
		rc = profile_runs_learn(s, uid, class_name, run, origin, err);
	return profile_end_transaction(s, rc, err);
}

int profile_learn(struct profile_store *s, uid_t uid, const char *class_name,
		  const struct profile *run, struct iocom_err *err)
{
	static const struct profile_origin unknown = {.input_mb = -1, .node = ""};

	return profile_learn_run(s, uid, class_name, run, &unknown, err);
}

int profile_erase(struct profile_store *s, uid_t uid, const char *class_name, struct iocom_err *err)
{
	static const char *const tables[] = {
		"DELETE FROM behaviour WHERE uid=?1 AND class=?2",
		"DELETE FROM error WHERE uid=?1 AND class=?2",
		"DELETE FROM run WHERE uid=?1 AND class=?2",
		"DELETE FROM pin WHERE uid=?1 AND class=?2",
		"DELETE FROM talk WHERE uid=?1 AND class=?2",
		"DELETE FROM profile WHERE uid=?1 AND class=?2",
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables) && !rc; i++)
		rc = profile_delete(s, tables[i], uid, class_name, err);
	return rc || sqlite3_changes(s->file.db) ? rc : -ENOENT;
}

int profile_forget(struct profile_store *s, uid_t uid, const char *class_name,
		   struct iocom_err *err)
{
	int rc = profile_run(s, "BEGIN IMMEDIATE", err);

	if (rc)
		return rc;
	rc = profile_erase(s, uid, class_name, err);
	return profile_end_transaction(s, rc, err);
}
