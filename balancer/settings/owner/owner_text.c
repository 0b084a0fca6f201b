/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* An owner's rules as text, and as the file that survives a restart; see owner.h. */
#include "balancer/settings/owner/owner.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/config.h"
#include "user/utf8.h"

#define MEMORY_LEAST (16.0 * 1024 * 1024) /* less does not even start a program */
#define MEMORY_MOST  0x1p50
#define RATE_LEAST   0.01 /* MB/s */
#define RATE_MOST    1e6
#define PART_LEAST   0.01 /* percent */
#define OWNER_FORMAT 1

const char *const owner_resource_names[OWNER_RESOURCES] = {"cpu", "memory", "disk", "network"};

static const char *const owner_state_names[] = {"open", "closed", "draining"};

const char *owner_state_name(enum owner_state state)
{
	return owner_state_names[state];
}

/* --- caps --- */

static int owner_cap_wrong(enum owner_resource at, const char *text, struct iocom_err *err)
{
	static const char *const forms[OWNER_RESOURCES] = {
		"a part from 1% to 100%",
		"a part from 0.01% on, as 50%, or a size from 16M on, as 4G",
		"a part, as 50%, or a rate, as 20MB/s, from 0.01 on,",
		"a part, as 50%, or a rate, as 20MB/s, from 0.01 on,",
	};

	return iocom_err_set(err, -EINVAL, "expected %s of %s, not '%.40s'", forms[at],
			     owner_resource_names[at], text);
}

/* Returns the factor of a size's unit, or 0. */
static double owner_unit(const char *unit)
{
	static const char letters[] = "KMGT";
	const char *at = *unit ? strchr(letters, toupper((unsigned char)*unit)) : NULL;

	return at && !unit[1] ? ldexp(1, 10 * (int)(at - letters + 1)) : 0;
}

/* 0 is a number, too, which contradicts that the resource is open (owner_check). */
static bool owner_cap_between(double value, double least, double most)
{
	return !(value > 0) || (value >= least && value <= most);
}

int owner_cap_parse(enum owner_resource at, const char *text, struct owner_cap *cap,
		    struct iocom_err *err)
{
	char *end;
	double value = strtod(text, &end), factor = 1;

	if (!strcmp(text, "none")) {
		*cap = (struct owner_cap){OWNER_NO_CAP, 0};
		return 0;
	}
	if (!isdigit((unsigned char)*text) || end == text || !isfinite(value))
		return owner_cap_wrong(at, text, err);
	if (!strcmp(end, "%") && owner_cap_between(value, at == OWNER_CPU ? 1 : PART_LEAST, 100)) {
		*cap = (struct owner_cap){OWNER_PERCENT, value};
		return 0;
	}
	if (at == OWNER_MEMORY) {
		factor = owner_unit(end);
		value *= factor;
		if (!(factor > 0) || !owner_cap_between(value, MEMORY_LEAST, MEMORY_MOST))
			return owner_cap_wrong(at, text, err);
	} else if (at == OWNER_CPU || strcmp(end, "MB/s") != 0 ||
		   !owner_cap_between(value, RATE_LEAST, RATE_MOST)) {
		return owner_cap_wrong(at, text, err);
	}
	*cap = (struct owner_cap){OWNER_AMOUNT, value};
	return 0;
}

void owner_cap_text(enum owner_resource at, const struct owner_cap *cap, char *out, size_t size)
{
	static const char letters[] = "KMGT";
	double value = cap->value;
	int unit = 0;

	if (cap->unit == OWNER_NO_CAP) {
		snprintf(out, size, "none");
	} else if (cap->unit == OWNER_PERCENT) {
		snprintf(out, size, "%g%%", value);
	} else if (at != OWNER_MEMORY) {
		snprintf(out, size, "%gMB/s", value);
	} else {
		for (value /= 1024; unit < 3 && fmod(value, 1024) == 0 && value > 0; unit++)
			value /= 1024;
		snprintf(out, size, "%.15g%c", value, letters[unit]);
	}
}

int owner_seconds_parse(const char *text, uint32_t least, uint32_t most, uint32_t *out,
			struct iocom_err *err)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10), factor = 0;

	if (!*end || !strcmp(end, "s"))
		factor = 1;
	else if (!strcmp(end, "m") || !strcmp(end, "min"))
		factor = 60;
	else if (!strcmp(end, "h"))
		factor = 3600;
	if (!isdigit((unsigned char)*text) || !factor || value > UINT32_MAX / factor ||
	    value * factor < least || value * factor > most)
		return iocom_err_set(err, -EINVAL,
				     "expected a time from %" PRIu32 "s to %" PRIu32
				     "s, as 30s or 10m, not '%.40s'",
				     least, most, text);
	*out = (uint32_t)(value * factor);
	return 0;
}

/* --- the file --- */

/* What is read, with what only the file has. */
struct owner_file {
	struct owner_rules rules;
	uint32_t format;
};

static int read_state(void *target, const char *value, struct iocom_err *err)
{
	struct owner_rules *r = target;

	for (int i = 0; i < 3; i++)
		if (!strcmp(value, owner_state_names[i])) {
			r->state = (enum owner_state)i;
			return 0;
		}
	return iocom_err_set(err, -EINVAL, "expected open, closed or draining, not '%.40s'", value);
}

static int read_since(void *target, const char *value, struct iocom_err *err)
{
	struct owner_rules *r = target;
	char *end;

	r->since_s = strtoull(value, &end, 10);
	return isdigit((unsigned char)*value) && !*end
		       ? 0
		       : iocom_err_set(err, -EINVAL, "expected seconds, not '%.40s'", value);
}

#define READ_CAP(name, at)                                                                         \
	static int read_cap_##name(void *target, const char *value, struct iocom_err *err)         \
	{                                                                                          \
		return owner_cap_parse(at, value, &((struct owner_rules *)target)->caps[at], err); \
	}
READ_CAP(cpu, OWNER_CPU)
READ_CAP(memory, OWNER_MEMORY)
READ_CAP(disk, OWNER_DISK)
READ_CAP(network, OWNER_NETWORK)

static int read_hours(void *target, const char *value, struct iocom_err *err)
{
	return owner_hours_parse(value, target, err);
}

#define OF(member)                                                                                 \
	offsetof(struct owner_file, rules.member), sizeof(((struct owner_rules *)0)->member)
#define NONE 0, 0

static const struct config_key owner_keys[] = {
	{"format", "N", "", NULL, CONFIG_COUNT, offsetof(struct owner_file, format),
	 sizeof(uint32_t), OWNER_FORMAT, OWNER_FORMAT, NULL},
	{"state", "STATE", "", NULL, CONFIG_CUSTOM, NONE, 0, 0, read_state},
	{"reason", "TEXT", "", NULL, CONFIG_STRING, OF(reason), 0, 0, NULL},
	{"by", "TEXT", "", NULL, CONFIG_STRING, OF(by), 0, 0, NULL},
	{"since", "SECONDS", "", NULL, CONFIG_CUSTOM, NONE, 0, 0, read_since},
	{"cap-cpu", "CAP", "", NULL, CONFIG_CUSTOM, NONE, 0, 0, read_cap_cpu},
	{"cap-memory", "CAP", "", NULL, CONFIG_CUSTOM, NONE, 0, 0, read_cap_memory},
	{"cap-disk", "CAP", "", NULL, CONFIG_CUSTOM, NONE, 0, 0, read_cap_disk},
	{"cap-network", "CAP", "", NULL, CONFIG_CUSTOM, NONE, 0, 0, read_cap_network},
	{"close-disk", "BOOL", "", NULL, CONFIG_BOOL, OF(shut[OWNER_DISK]), 0, 0, NULL},
	{"close-network", "BOOL", "", NULL, CONFIG_BOOL, OF(shut[OWNER_NETWORK]), 0, 0, NULL},
	{"users-allow", "LIST", "", NULL, CONFIG_STRING, OF(users_allow), 0, 0, NULL},
	{"users-deny", "LIST", "", NULL, CONFIG_STRING, OF(users_deny), 0, 0, NULL},
	{"classes-allow", "LIST", "", NULL, CONFIG_STRING, OF(classes_allow), 0, 0, NULL},
	{"classes-deny", "LIST", "", NULL, CONFIG_STRING, OF(classes_deny), 0, 0, NULL},
	{"hours", "HOURS", "", NULL, CONFIG_CUSTOM, NONE, 0, 0, read_hours},
	{"presence", "BOOL", "", NULL, CONFIG_BOOL, OF(presence), 0, 0, NULL},
	{"idle-s", "N", "", NULL, CONFIG_COUNT, OF(idle_s), OWNER_IDLE_MIN_S, 86400, NULL},
};

static const struct config_program owner_program = {
	.name = "iocom owner",
	.section = "owner",
	.keys = owner_keys,
	.nkeys = sizeof(owner_keys) / sizeof(*owner_keys),
};

/* What is no text cannot be shown, and nobody meant it. */
static int owner_check_text(const struct owner_rules *r, struct iocom_err *err)
{
	const char *const texts[] = {
		r->reason, r->by, r->users_allow, r->users_deny, r->classes_allow, r->classes_deny};
	uint32_t c;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		for (const char *at = texts[i]; *at; at += utf8_next(at, &c)) {
			utf8_next(at, &c);
			if (c == UTF8_INVALID || !utf8_printable(c))
				return iocom_err_set(err, -EINVAL, "it has bytes that are no text");
		}
	return 0;
}

int owner_read(const char *path, struct owner_rules *rules, struct iocom_err *err)
{
	struct owner_file file = {0};
	int rc;

	owner_init(&file.rules);
	rc = config_read(&owner_program, path, &file, err);
	/* `format` is the last line: a file that was cut has none. */
	if (!rc && file.format != OWNER_FORMAT)
		rc = iocom_err_set(err, -EINVAL,
				   "%s: no line 'format = %d': the file is cut, or of another "
				   "version of iocom",
				   path, OWNER_FORMAT);
	if (!rc) {
		rc = owner_check_text(&file.rules, err);
		if (!rc)
			rc = owner_check(&file.rules, err);
		if (rc)
			iocom_err_prefix(err, "%s", path);
	}
	if (!rc)
		*rules = file.rules;
	return rc;
}

char *owner_text(const struct owner_rules *r)
{
	char *text = NULL, part[OWNER_LIST_MAX * 2];
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "# The owner's rules; `iocom owner` changes them.\n[owner]\nstate = %s\n",
		owner_state_name(r->state));
	fprintf(out, "reason = %s\nby = %s\nsince = %" PRIu64 "\n", r->reason, r->by, r->since_s);
	for (enum owner_resource at = 0; at < OWNER_RESOURCES; at++) {
		owner_cap_text(at, &r->caps[at], part, sizeof(part));
		fprintf(out, "cap_%s = %s\n", owner_resource_names[at], part);
		if (at >= OWNER_DISK)
			fprintf(out, "close_%s = %s\n", owner_resource_names[at],
				r->shut[at] ? "yes" : "no");
	}
	fprintf(out, "users_allow = %s\nusers_deny = %s\n", r->users_allow, r->users_deny);
	fprintf(out, "classes_allow = %s\nclasses_deny = %s\n", r->classes_allow, r->classes_deny);
	owner_hours_text(r, part, sizeof(part));
	fprintf(out, "hours = %s\npresence = %s\nidle_s = %" PRIu32 "\n", part,
		r->presence ? "on" : "off", r->idle_s);
	fprintf(out, "format = %d\n", OWNER_FORMAT);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* --- what others are told --- */

static void owner_add(char *out, size_t size, const char *fmt, const char *what)
{
	size_t n = strlen(out);

	if (n)
		n += (size_t)snprintf(out + n, size - n, ", ");
	if (n < size)
		snprintf(out + n, size - n, fmt, what);
}

/* Writes "cpu 50%, no disk, some users", or "". */
static void owner_limits(const struct owner_rules *r, char *out, size_t size)
{
	char cap[32], both[48];

	*out = 0;
	for (enum owner_resource at = 0; at < OWNER_RESOURCES; at++) {
		owner_cap_text(at, &r->caps[at], cap, sizeof(cap));
		snprintf(both, sizeof(both), "%s %s", owner_resource_names[at], cap);
		if (r->caps[at].unit != OWNER_NO_CAP)
			owner_add(out, size, "%s", both);
		if (r->shut[at])
			owner_add(out, size, "no %s", owner_resource_names[at]);
	}
	if (r->users_allow[0] || r->users_deny[0])
		owner_add(out, size, "some %s", "users");
	if (r->classes_allow[0] || r->classes_deny[0])
		owner_add(out, size, "some %s", "classes");
}

bool owner_says(const struct owner_rules *r, const struct owner_moment *moment, char *out,
		size_t size)
{
	char part[OWNER_LIST_MAX * 2];
	bool in = false;

	if (r->state != OWNER_OPEN) {
		bool drained = r->state == OWNER_DRAINING && !moment->guests;

		snprintf(out, size, "%s%s%s", drained ? "drained" : owner_state_name(r->state),
			 *r->reason ? ": " : "", r->reason);
	} else if (!owner_hours_open(r, &moment->local)) {
		owner_hours_text(r, part, sizeof(part));
		snprintf(out, size, "closed: open %s", part);
	} else if (r->presence && moment->present) {
		snprintf(out, size, "closed: somebody works there");
	} else {
		owner_limits(r, part, sizeof(part));
		snprintf(out, size, "%s%s", *part ? "limited: " : "", part);
		in = true;
	}
	return in;
}
