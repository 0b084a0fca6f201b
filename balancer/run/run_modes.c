/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The terminal's modes; see run_modes.h.  This reads the control functions of ECMA-48 and the
 * private modes of DEC and xterm; all that it keeps is in struct run_modes, whatever the job
 * writes.  A byte of 0x80 and more is a character (UTF-8), never a control function.
 */
#include "balancer/run/run_modes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BEL	  0x07
#define SO	  0x0e
#define SI	  0x0f
#define CAN	  0x18
#define SUB	  0x1a
#define ESC	  0x1b
#define VALUE_MAX 9999

/* The modes that programs set, and how each usually is.  Undone from the first to the last. */
static const struct {
	uint16_t number;
	bool on; /* usually */
} known[] = {
	{9, false},    /* mouse: presses */
	{1000, false}, /* mouse: presses and releases */
	{1001, false}, /* mouse: highlighting */
	{1002, false}, /* mouse: dragging */
	{1003, false}, /* mouse: every movement */
	{1005, false}, /* mouse: coordinates in UTF-8 */
	{1006, false}, /* mouse: coordinates in decimal */
	{1015, false}, /* mouse: coordinates as urxvt has them */
	{1016, false}, /* mouse: coordinates in pixels */
	{1004, false}, /* reports of focus */
	{2004, false}, /* bracketed paste */
	{2026, false}, /* synchronised drawing */
	{2031, false}, /* reports of the colour scheme */
	{2048, false}, /* reports of the size */
	{1, false},    /* cursor keys of applications */
	{66, false},   /* keypad of applications */
	{3, false},    /* 132 columns */
	{5, false},    /* reverse video */
	{6, false},    /* origin at the margins */
	{69, false},   /* left and right margins */
	{7, true},     /* lines wrap */
	{8, true},     /* keys repeat */
	{47, false},   /* alternate screen */
	{1047, false}, /* alternate screen, cleared */
	{1049, false}, /* alternate screen with the cursor kept */
	{12, false},   /* blinking cursor */
	{25, true},    /* visible cursor */
};

#define KNOWN (sizeof(known) / sizeof(known[0]))
_Static_assert(KNOWN <= 64, "one bit a mode");

static bool run_modes_is(const struct run_modes *m, uint16_t number)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (known[i].number == number)
			return m->changed >> i & 1;
	return false;
}

static void run_modes_set(struct run_modes *m, uint16_t number, bool on)
{
	for (size_t i = 0; i < KNOWN; i++) {
		uint64_t bit = UINT64_C(1) << i;

		if (known[i].number == number)
			m->changed = on != known[i].on ? m->changed | bit : m->changed & ~bit;
	}
}

/* A soft reset (CSI ! p) is one of these, a full one (ESC c) of all. */
static void run_modes_soft_reset(struct run_modes *m)
{
	static const uint16_t reset[] = {1, 6, 66, 69};

	for (size_t i = 0; i < sizeof(reset) / sizeof(reset[0]); i++)
		run_modes_set(m, reset[i], false);
	run_modes_set(m, 25, true);
	m->keypad = m->colours = m->margins = m->line_drawing = m->shifted = false;
}

static uint16_t run_modes_param(const struct run_modes *m, unsigned i)
{
	return i < m->nparams ? m->params[i] : 0;
}

/* CSI m: each 0, and none at all, is back to plain text. */
static void run_modes_take_colours(struct run_modes *m)
{
	if (!m->nparams)
		m->colours = false;
	for (unsigned i = 0; i < m->nparams && i < RUN_MODES_PARAMS; i++) {
		uint16_t value = m->params[i];

		m->colours = value != 0;
		/* 38, 48, 58: a colour follows, as 5;N or 2;R;G;B */
		if (value == 38 || value == 48 || value == 58)
			i += run_modes_param(m, i + 1) == 2 ? 4 : 2;
	}
}

static void run_modes_take_keys(struct run_modes *m, uint8_t final)
{
	uint16_t value = run_modes_param(m, 0);

	if (final == 'u' && m->prefix == '>') {
		m->key_flags += m->key_flags < VALUE_MAX;
		m->keys_value = value;
	} else if (final == 'u' && m->prefix == '<') {
		value = value ? value : 1;
		m->key_flags = (uint16_t)(m->key_flags > value ? m->key_flags - value : 0);
	} else if (final == 'm' && m->prefix == '>' && value == 4) {
		m->modified_keys = run_modes_param(m, 1) != 0;
	}
}

static void run_modes_control(struct run_modes *m, uint8_t final)
{
	if (m->prefix == '?' && !m->intermediate && (final == 'h' || final == 'l')) {
		for (unsigned i = 0; i < m->nparams && i < RUN_MODES_PARAMS; i++)
			run_modes_set(m, m->params[i], final == 'h');
	} else if (m->prefix) {
		run_modes_take_keys(m, final);
	} else if (m->intermediate) {
		if (m->intermediate == '!' && final == 'p')
			run_modes_soft_reset(m);
		if (m->intermediate == ' ' && final == 'q')
			m->cursor_shape = run_modes_param(m, 0) != 0;
	} else if (final == 'm') {
		run_modes_take_colours(m);
	} else if (final == 'r') {
		m->margins = m->nparams != 0;
	}
}

static void run_modes_digit(struct run_modes *m, uint8_t c)
{
	unsigned at, value;

	if (c == ';' || c == ':') {
		m->nparams = m->nparams ? m->nparams + 1 : 2;
		if (m->nparams > RUN_MODES_PARAMS)
			m->nparams = RUN_MODES_PARAMS + 1; /* no more are kept */
		return;
	}
	if (!m->nparams)
		m->nparams = 1;
	at = m->nparams - 1;
	if (at >= RUN_MODES_PARAMS)
		return;
	value = m->params[at] * 10U + (c - '0');
	m->params[at] = (uint16_t)(value < VALUE_MAX ? value : VALUE_MAX);
}

static void run_modes_take_control(struct run_modes *m, uint8_t c)
{
	if (c >= '0' && c <= ';') {
		run_modes_digit(m, c);
	} else if (c >= '<' && c <= '?') {
		m->prefix = c;
	} else if (c >= ' ' && c <= '/') {
		m->intermediate = c;
	} else if (c >= '@' && c <= '~') {
		run_modes_control(m, c);
		m->state = RUN_MODES_GROUND;
	} else if (c >= 0x80) {
		m->state = RUN_MODES_GROUND;
	}
	/* Other control characters act within a sequence and do not end it. */
}

static void run_modes_take_escape(struct run_modes *m, uint8_t c)
{
	m->state = RUN_MODES_GROUND;
	if (c == '[') {
		m->state = RUN_MODES_CONTROL;
		m->prefix = m->intermediate = 0;
		m->nparams = 0;
		memset(m->params, 0, sizeof(m->params));
	} else if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_') {
		m->state = RUN_MODES_STRING;
	} else if (c == '(') {
		m->state = RUN_MODES_CHARSET;
	} else if (c >= ' ' && c <= '/') {
		m->state = RUN_MODES_INTERMEDIATE;
	} else if (c == '=' || c == '>') {
		m->keypad = c == '=';
	} else if (c == 'c') {
		*m = (struct run_modes){0};
	}
}

static void run_modes_byte(struct run_modes *m, uint8_t c)
{
	bool in_string = m->state == RUN_MODES_STRING || m->state == RUN_MODES_STRING_END;

	if (c == CAN || c == SUB) {
		m->state = RUN_MODES_GROUND;
		return;
	}
	if (c == ESC) {
		m->state = in_string ? RUN_MODES_STRING_END : RUN_MODES_ESCAPE;
		return;
	}
	if ((c == SO || c == SI) && !in_string)
		m->shifted = c == SO;
	switch (m->state) {
	case RUN_MODES_ESCAPE:
		run_modes_take_escape(m, c);
		break;
	case RUN_MODES_CHARSET:
		m->line_drawing = c != 'B';
		m->state = RUN_MODES_GROUND;
		break;
	case RUN_MODES_INTERMEDIATE:
		if (c < ' ' || c > '/')
			m->state = RUN_MODES_GROUND;
		break;
	case RUN_MODES_CONTROL:
		run_modes_take_control(m, c);
		break;
	case RUN_MODES_STRING:
		if (c == BEL)
			m->state = RUN_MODES_GROUND;
		break;
	case RUN_MODES_STRING_END:
		/* ESC ends the string: with a backslash, or as the start of something else. */
		run_modes_take_escape(m, c);
		break;
	default:
		break;
	}
}

void run_modes_take(struct run_modes *m, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < n; i++)
		run_modes_byte(m, at[i]);
}

/* --- what undoes them ------------------------------------------------------------------ */

struct run_modes_text {
	char *out;
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void run_modes_put(struct run_modes_text *t,
								const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->out + t->length, RUN_MODES_TEXT - t->length, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < RUN_MODES_TEXT - t->length)
		t->length += (size_t)n;
	t->out[t->length] = 0;
}

size_t run_modes_undo(const struct run_modes *m, char *out)
{
	struct run_modes_text t = {.out = out};

	*out = 0;
	if (m->state != RUN_MODES_GROUND)
		run_modes_put(&t, "%c", CAN);
	if (m->colours)
		run_modes_put(&t, "\033[m");
	if (m->shifted)
		run_modes_put(&t, "%c", SI);
	if (m->line_drawing)
		run_modes_put(&t, "\033(B");
	if (m->key_flags)
		run_modes_put(&t, "\033[<%uu", m->key_flags);
	if (m->modified_keys)
		run_modes_put(&t, "\033[>4m");
	if (m->keypad)
		run_modes_put(&t, "\033>");
	/* This moves the cursor, and the margins belong to both screens. */
	if (m->margins)
		run_modes_put(&t, "\0337\033[r%s\0338", run_modes_is(m, 6) ? "\033[?6l" : "");
	for (size_t i = 0; i < KNOWN; i++)
		if (m->changed >> i & 1)
			run_modes_put(&t, "\033[?%u%c", known[i].number, known[i].on ? 'h' : 'l');
	if (m->cursor_shape)
		run_modes_put(&t, "\033[0 q");
	return t.length;
}

size_t run_modes_redo(const struct run_modes *m, char *out)
{
	struct run_modes_text t = {.out = out};

	*out = 0;
	/* The screen first: some terminals keep key protocols for each. */
	for (size_t i = KNOWN; i--;)
		if (m->changed >> i & 1)
			run_modes_put(&t, "\033[?%u%c", known[i].number, known[i].on ? 'l' : 'h');
	if (m->keypad)
		run_modes_put(&t, "\033=");
	if (m->modified_keys)
		run_modes_put(&t, "\033[>4;2m");
	for (unsigned i = 0; i < m->key_flags && i < 8; i++)
		run_modes_put(&t, "\033[>%uu", m->keys_value);
	return t.length;
}
