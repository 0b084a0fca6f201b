/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The hours of an owner's rules: spans with commas between them, each of days and a time:
 *
 *   span   DAYS HH:MM-HH:MM           until the next day if the second is not later
 *   DAYS   daily, or days and ranges of days with '+' between them: mon-wed+sat
 */
#include "balancer/settings/owner/owner.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DAY_MINUTES 1440
#define EVERY_DAY   0x7f

static const char *const owner_days[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

/* Reads a day's name and advances TEXT.  Returns 0 to 6, or -1. */
static int owner_day(const char **text)
{
	for (int i = 0; i < 7; i++)
		if (!strncasecmp(*text, owner_days[i], 3)) {
			*text += 3;
			return i;
		}
	return -1;
}

/* Reads "mon-wed+sat".  Returns the days, or 0: bad text. */
static uint8_t owner_days_parse(const char **text)
{
	uint8_t days = 0;

	if (!strncasecmp(*text, "daily", 5)) {
		*text += 5;
		return EVERY_DAY;
	}
	for (;;) {
		int first = owner_day(text), last = first;

		if (first >= 0 && **text == '-') {
			(*text)++;
			last = owner_day(text);
		}
		if (first < 0 || last < 0)
			return 0;
		for (int day = first;; day = (day + 1) % 7) {
			days |= (uint8_t)(1u << day);
			if (day == last)
				break;
		}
		if (**text != '+')
			return days;
		(*text)++;
	}
}

/* Reads "HH:MM", up to 24:00.  Returns minutes, or -1. */
static int owner_minutes(const char **text)
{
	const char *t = *text;
	int minutes;

	if (!isdigit((unsigned char)t[0]) || !isdigit((unsigned char)t[1]) || t[2] != ':' ||
	    !isdigit((unsigned char)t[3]) || !isdigit((unsigned char)t[4]) || t[3] > '5')
		return -1;
	minutes = ((t[0] - '0') * 10 + t[1] - '0') * 60 + (t[3] - '0') * 10 + t[4] - '0';
	*text += 5;
	return minutes <= DAY_MINUTES ? minutes : -1;
}

static int owner_span_parse(const char **text, struct owner_span *span)
{
	int from, until;

	span->days = owner_days_parse(text);
	if (!span->days || (**text != ' ' && **text != '\t'))
		return -EINVAL;
	*text += strspn(*text, " \t");
	from = owner_minutes(text);
	if (from < 0 || from == DAY_MINUTES || **text != '-')
		return -EINVAL;
	(*text)++;
	until = owner_minutes(text);
	if (until < 0)
		return -EINVAL;
	span->from = (uint16_t)from;
	span->until = (uint16_t)until;
	*text += strspn(*text, " \t");
	return 0;
}

int owner_hours_parse(const char *text, struct owner_rules *rules, struct iocom_err *err)
{
	struct owner_span spans[OWNER_SPANS_MAX];
	const char *at = text + strspn(text, " \t");
	size_t n = 0;

	if (!strcmp(at, "always") || !*at) {
		rules->nhours = 0;
		return 0;
	}
	for (;;) {
		if (n == OWNER_SPANS_MAX)
			return iocom_err_set(err, -EINVAL, "expected at most %d spans of hours",
					     OWNER_SPANS_MAX);
		if (owner_span_parse(&at, &spans[n++]) || (*at && *at != ','))
			return iocom_err_set(err, -EINVAL,
					     "expected hours as 'mon-fri 20:00-08:00, sat+sun "
					     "00:00-24:00', or 'always', not '%.80s'",
					     text);
		if (!*at)
			break;
		at += 1 + strspn(at + 1, " \t");
	}
	memcpy(rules->hours, spans, n * sizeof(*spans));
	rules->nhours = n;
	return 0;
}

/* Writes "mon-wed+sat". */
static int owner_days_text(uint8_t days, char *out, size_t size)
{
	int n = 0;

	if (days == EVERY_DAY)
		return snprintf(out, size, "daily");
	for (int day = 0, last; day < 7; day = last + 1) {
		last = day;
		if (!(days & 1u << day))
			continue;
		while (last < 6 && days & 1u << (last + 1))
			last++;
		n += snprintf(out + n, size - (size_t)n, "%s%s", n ? "+" : "", owner_days[day]);
		if (last > day)
			n += snprintf(out + n, size - (size_t)n, "-%s", owner_days[last]);
	}
	return n;
}

void owner_hours_text(const struct owner_rules *rules, char *out, size_t size)
{
	size_t at = 0;

	snprintf(out, size, "always");
	for (size_t i = 0; i < rules->nhours && at < size; i++) {
		const struct owner_span *s = &rules->hours[i];
		char days[40];

		owner_days_text(s->days, days, sizeof(days));
		at += (size_t)snprintf(out + at, size - at, "%s%s %02u:%02u-%02u:%02u",
				       i ? ", " : "", days, s->from / 60, s->from % 60,
				       s->until / 60, s->until % 60);
	}
}

bool owner_hours_open(const struct owner_rules *rules, const struct tm *local)
{
	unsigned today = ((unsigned)local->tm_wday + 6) % 7, yesterday = (today + 6) % 7;
	int minute = local->tm_hour * 60 + local->tm_min;

	for (size_t i = 0; i < rules->nhours; i++) {
		const struct owner_span *s = &rules->hours[i];
		bool over = s->until <= s->from; /* midnight */

		if (s->days & 1u << today && minute >= s->from && (over || minute < s->until))
			return true;
		if (over && s->days & 1u << yesterday && minute < s->until)
			return true;
	}
	return !rules->nhours;
}
