/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A cluster from a line of text and back:
 *
 *   cluster = "@" file | item { "+" item }
 *   item    = [ count "x" ] name [ ":" field "=" number { "," field "=" number } ]
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cluster.h"

#define NODES_MAX 1000000u
#define ROW_MAX	  65536
#define NAME_SIZE 32

/* Each field has a short name and accepts the name of its member too. */
#define FIELD(name, member)                                                                        \
	{                                                                                          \
		name, #member, offsetof(struct sim_machine, member)                                \
	}
static const struct field {
	const char *name, *member;
	size_t offset;
} fields[] = {
	FIELD("cpu", cpu_mips),	      FIELD("cores", cores),	     FIELD("ram", ram_mb),
	FIELD("buffer", buffer_mb),   FIELD("fixed", disk_fixed_ms), FIELD("disk", disk_mb_per_s),
	FIELD("request", request_kb), FIELD("sd", request_sd_kb),    FIELD("net", network_mb_per_s),
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static double *cluster_field_of(struct sim_machine *m, size_t i)
{
	return (double *)(void *)((char *)m + fields[i].offset);
}

static double field_value(const struct sim_machine *m, size_t i)
{
	return *(const double *)(const void *)((const char *)m + fields[i].offset);
}

struct parser {
	struct sim_cluster *cluster;
	const char *start,
		*at;	  /* start of the text or of the file's row, and the present position */
	const char *file; /* NULL: the text is not from a file */
	unsigned int line;
	struct iocom_err *err;
};

/* One item as read: how many of each machine that its name stands for. */
struct item {
	uint32_t count, groups;
	struct sim_machine machines[SIM_GROUPS];
};

__attribute__((format(printf, 2, 3))) static int cluster_wrong(const struct parser *p,
							       const char *fmt, ...)
{
	unsigned int place = (unsigned int)(p->at - p->start) + 1;
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (p->file)
		return iocom_err_set(p->err, -EINVAL, "cluster file %.200s, line %u, column %u: %s",
				     p->file, p->line, place, what);
	return iocom_err_set(p->err, -EINVAL, "cluster \"%.200s\", character %u: %s", p->start,
			     place, what);
}

static bool cluster_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int cluster_read_count(struct parser *p, struct item *item, bool *given)
{
	const char *at = p->at;
	uint64_t n = 0;

	*given = cluster_digit(*at);
	item->count = 1;
	if (!*given)
		return 0;
	for (; cluster_digit(*at); at++) {
		n = n * 10 + (uint64_t)(*at - '0');
		if (n > NODES_MAX)
			return cluster_wrong(p, "at most %u machines", NODES_MAX);
	}
	if (n == 0)
		return cluster_wrong(p, "a count of 1 or more expected");
	if (*at != 'x') {
		p->at = at;
		return cluster_wrong(
			p, "\"x\" and a machine's name expected after the count, as in 6xfc");
	}
	item->count = (uint32_t)n;
	p->at = at + 1;
	return 0;
}

/* Joins the names that a cluster text may use. */
static void known_names(char *text, size_t size)
{
	size_t used = 0;
	const char *name;

	text[0] = '\0';
	for (unsigned int i = 0; (name = sim_machine_name(i)) && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", name);
	for (unsigned int i = 0; (name = sim_system_name(i)) && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, ", %s", name);
}

static int read_name(struct parser *p, struct item *item, bool counted)
{
	size_t length = strcspn(p->at, ":+ \t\r\n");
	char name[NAME_SIZE], known[384];

	snprintf(name, sizeof(name), "%.*s", (int)(length < NAME_SIZE ? length : NAME_SIZE - 1),
		 p->at);
	item->groups = 1;
	if (sim_machine_by_name(name, &item->machines[0]) < 0) {
		if (sim_system_by_name(name, item->machines) < 0) {
			known_names(known, sizeof(known));
			return cluster_wrong(p, "no machine is named \"%s\"; known: %s", name,
					     known);
		}
		item->groups = SIM_GROUPS;
		if (!counted)
			item->count = SIM_SYSTEM_NODES;
		if (item->count % SIM_GROUPS != 0)
			return cluster_wrong(
				p,
				"%s has %u groups of machines: a multiple of that expected, not %u",
				name, SIM_GROUPS, item->count);
	}
	p->at += length;
	return 0;
}

static bool cluster_names(const char *text, size_t length, const char *name)
{
	return strlen(name) == length && strncmp(text, name, length) == 0;
}

static int read_change(struct parser *p, struct item *item)
{
	size_t length = strcspn(p->at, "=,+ \t\r\n"), i;
	char *end;
	double value;

	for (i = 0; i < FIELDS; i++) {
		if (cluster_names(p->at, length, fields[i].name) ||
		    cluster_names(p->at, length, fields[i].member))
			break;
	}
	if (i == FIELDS)
		return cluster_wrong(
			p, "a field expected: cpu, cores, ram, buffer, fixed, disk, request, "
			   "sd or net");
	p->at += length;
	if (*p->at != '=')
		return cluster_wrong(p, "\"=\" expected after \"%s\"", fields[i].name);
	p->at++;
	value = strtod(p->at, &end);
	if (end == p->at || strchr(" \t\r\n", *p->at))
		return cluster_wrong(p, "a number expected for %s", fields[i].name);
	for (uint32_t g = 0; g < item->groups; g++)
		*cluster_field_of(&item->machines[g], i) = value;
	p->at = end;
	return 0;
}

static int read_changes(struct parser *p, struct item *item)
{
	const char *fault = NULL, *began = p->at;
	int rc = 0;

	if (*p->at == ':') {
		do {
			p->at++;
			rc = read_change(p, item);
		} while (rc == 0 && *p->at == ',');
	}
	for (uint32_t g = 0; rc == 0 && !fault && g < item->groups; g++)
		fault = sim_machine_check(&item->machines[g]);
	if (!fault)
		return rc;
	p->at = began;
	return cluster_wrong(p, "%s", fault);
}

static int cluster_append(struct parser *p, const struct item *item)
{
	struct sim_cluster *c = p->cluster;
	uint32_t each = item->count / item->groups;
	struct sim_machine *machines;

	if (item->count > NODES_MAX - c->n)
		return cluster_wrong(p, "more than %u machines in all", NODES_MAX);
	machines = realloc(c->machines, ((size_t)c->n + item->count) * sizeof(*machines));
	if (!machines)
		return iocom_err_set(p->err, -ENOMEM, "no memory for a cluster of %u machines",
				     c->n + item->count);
	c->machines = machines;
	for (uint32_t g = 0; g < item->groups; g++) {
		for (uint32_t i = 0; i < each; i++)
			machines[c->n++] = item->machines[g];
	}
	return 0;
}

static void skip_blanks(struct parser *p)
{
	p->at += strspn(p->at, " \t\r\n");
}

static int read_items(struct parser *p)
{
	for (;;) {
		struct item item;
		bool counted;
		int rc;

		skip_blanks(p);
		rc = cluster_read_count(p, &item, &counted);
		if (rc == 0)
			rc = read_name(p, &item, counted);
		if (rc == 0)
			rc = read_changes(p, &item);
		if (rc == 0)
			rc = cluster_append(p, &item);
		if (rc < 0)
			return rc;
		skip_blanks(p);
		if (*p->at == '\0')
			return 0;
		if (*p->at != '+')
			return cluster_wrong(p, "\"+\", \":\" or the end expected");
		p->at++;
	}
}

static int cluster_read_file(struct parser *p)
{
	FILE *f = fopen(p->file, "re");
	char row[ROW_MAX];
	int rc = 0;

	if (!f) {
		rc = -errno;
		return iocom_err_set(p->err, rc, "cannot open the cluster file %.200s: %s", p->file,
				     strerror(-rc));
	}
	while (rc == 0 && fgets(row, sizeof(row), f)) {
		p->line++;
		if (!strchr(row, '\n') && !feof(f)) {
			rc = iocom_err_set(
				p->err, -EINVAL,
				"cluster file %.200s, line %u: a row has at most %d bytes "
				"of text",
				p->file, p->line, ROW_MAX - 2);
			break;
		}
		row[strcspn(row, "#\n")] = '\0';
		p->start = p->at = row;
		skip_blanks(p);
		if (*p->at)
			rc = read_items(p);
	}
	if (rc == 0 && ferror(f))
		rc = iocom_err_set(p->err, -EIO, "cannot read the cluster file %.200s: %s", p->file,
				   strerror(errno));
	fclose(f);
	return rc;
}

int sim_cluster_parse(struct sim_cluster *c, const char *text, struct iocom_err *err)
{
	struct parser p = {.cluster = c, .start = text, .at = text, .err = err};
	int rc;

	*c = (struct sim_cluster){0};
	if (text[0] == '@')
		p.file = text + 1;
	rc = p.file ? cluster_read_file(&p) : read_items(&p);
	if (rc == 0 && c->n == 0)
		rc = iocom_err_set(err, -EINVAL, "the cluster file %.200s names no machine",
				   p.file);
	if (rc < 0)
		sim_cluster_free(c);
	return rc;
}

static unsigned int differences(const struct sim_machine *a, const struct sim_machine *b)
{
	unsigned int n = 0;

	for (size_t i = 0; i < FIELDS; i++)
		n += field_value(a, i) != field_value(b, i);
	return n;
}

/* Prints VALUE with as few of 15 to 17 digits as read back exactly. */
static void print_number(FILE *f, double value)
{
	char text[32];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	fputs(text, f);
}

/* Prints COUNT machines M as changes to the known machine that needs fewest changes. */
static void print_item(FILE *f, uint32_t count, const struct sim_machine *m)
{
	const char *name, *best = sim_machine_name(0);
	struct sim_machine base, other;
	char mark = ':';

	(void)sim_machine_by_name(best, &base);
	for (unsigned int i = 1; (name = sim_machine_name(i)); i++) {
		(void)sim_machine_by_name(name, &other);
		if (differences(m, &other) >= differences(m, &base))
			continue;
		best = name;
		base = other;
	}
	fprintf(f, "%ux%s", count, best);
	for (size_t i = 0; i < FIELDS; i++) {
		if (field_value(m, i) == field_value(&base, i))
			continue;
		fprintf(f, "%c%s=", mark, fields[i].name);
		print_number(f, field_value(m, i));
		mark = ',';
	}
}

char *sim_cluster_format(const struct sim_cluster *c)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	bool failed;

	if (!f)
		return NULL;
	for (uint32_t i = 0, run; i < c->n; i += run) {
		run = 1;
		while (i + run < c->n && !differences(&c->machines[i], &c->machines[i + run]))
			run++;
		if (i > 0)
			fputc('+', f);
		print_item(f, run, &c->machines[i]);
	}
	failed = ferror(f);
	if (fclose(f) != 0 || failed) {
		free(text);
		return NULL;
	}
	return text;
}

int sim_cluster_copy(struct sim_cluster *to, const struct sim_cluster *from)
{
	size_t bytes = from->n * sizeof(*from->machines);
	struct sim_machine *machines = malloc(bytes ? bytes : 1);

	if (!machines)
		return -ENOMEM;
	if (bytes)
		memcpy(machines, from->machines, bytes);
	*to = (struct sim_cluster){.n = from->n, .machines = machines};
	return 0;
}

void sim_cluster_free(struct sim_cluster *c)
{
	if (!c)
		return;
	free(c->machines);
	*c = (struct sim_cluster){0};
}
