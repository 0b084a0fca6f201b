/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Tokens and numbers of a line; see lines.h. */
#include "sim/workload/lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 64 /* characters */

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool tokens_digit(char c)
{
	return c >= '0' && c <= '9';
}

size_t tokens_blank(const struct lines *l, struct token *f, size_t max)
{
	const char *p = l->text, *end = l->text + l->length;
	size_t n = 0;

	for (;;) {
		const char *from;

		while (p < end && blank(*p))
			p++;
		if (p == end)
			return n;
		from = p;
		while (p < end && !blank(*p))
			p++;
		if (n < max)
			f[n] = (struct token){from, (size_t)(p - from),
					      (size_t)(from - l->text) + 1};
		n++;
	}
}

size_t tokens_separated(const struct lines *l, char separator, struct token *f, size_t max)
{
	const char *p = l->text, *end = l->text + l->length;
	size_t n = 0;

	for (;;) {
		const char *from = p, *to = memchr(p, separator, (size_t)(end - p));

		p = to ? to : end;
		to = p;
		while (from < to && blank(*from))
			from++;
		while (to > from && blank(to[-1]))
			to--;
		if (n < max)
			f[n] = (struct token){from, (size_t)(to - from),
					      (size_t)(from - l->text) + 1};
		n++;
		if (p == end)
			return n;
		p++;
	}
}

bool token_is(const struct token *f, const char *text)
{
	return strlen(text) == f->length && !memcmp(f->text, text, f->length);
}

/*
 * Parses digits, a point and an exponent.  *EXACT: the number is MANTISSA / 10^PLACES, and both
 * are exact in a double, so that one division rounds correctly.
 */
static bool tokens_scan(const char *p, const char *end, uint64_t *mantissa, unsigned int *places,
			bool *exact)
{
	bool any = false, point = false;

	*mantissa = 0;
	*places = 0;
	*exact = true;
	for (; p < end && (tokens_digit(*p) || (*p == '.' && !point)); p++) {
		if (*p == '.') {
			point = true;
			continue;
		}
		any = true;
		if (*mantissa > ((uint64_t)1 << 53) / 10 - 1)
			*exact = false;
		else
			*mantissa = *mantissa * 10 + (uint64_t)(*p - '0');
		*places += point;
	}
	if (!any)
		return false;
	if (p < end && (*p == 'e' || *p == 'E')) {
		*exact = false;
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		if (p == end)
			return false;
		while (p < end && tokens_digit(*p))
			p++;
	}
	return p == end;
}

bool token_parse(const struct token *f, double *value)
{
	static const double power[] = {1e0,  1e1,  1e2,	 1e3,  1e4,  1e5,  1e6,	 1e7,
				       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
				       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	const char *p = f->text, *end = f->text + f->length;
	bool negative = f->length && *p == '-', exact;
	char copy[NUMBER_MAX + 1], *stop;
	unsigned int places;
	uint64_t mantissa;

	if (f->length > NUMBER_MAX)
		return false;
	if (f->length && (*p == '-' || *p == '+'))
		p++;
	if (!tokens_scan(p, end, &mantissa, &places, &exact))
		return false;
	if (exact && places < sizeof(power) / sizeof(power[0])) {
		*value = (double)mantissa / power[places];
		*value = negative && mantissa ? -*value : *value;
		return true;
	}
	memcpy(copy, f->text, f->length);
	copy[f->length] = '\0';
	*value = strtod(copy, &stop);
	return !*stop && isfinite(*value);
}

int token_number(const struct lines *l, const struct token *f, const struct wanted *wanted,
		 double *value, struct iocom_err *err)
{
	if (token_parse(f, value) && *value >= wanted->low && *value <= wanted->high &&
	    (!wanted->whole || *value == floor(*value)))
		return 0;
	return token_fail(l, f, err, "%s, a %snumber from %.10g to %.10g", wanted->name,
			  wanted->whole ? "whole " : "", wanted->low, wanted->high);
}
