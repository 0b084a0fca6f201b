/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The modes that a job's output has set in our terminal: alternate screen, hidden cursor, mouse,
 * keys, colours.  Whoever leaves the job while its program is at work gets them undone: exactly
 * those, and nothing that the program did not touch.
 */
#ifndef IOCOM_RUN_MODES_H
#define IOCOM_RUN_MODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUN_MODES_PARAMS 16  /* parameters of one sequence that we read; we ignore the others */
#define RUN_MODES_TEXT	 512 /* longest text of run_modes_undo and run_modes_redo */

enum run_modes_state {
	RUN_MODES_GROUND,
	RUN_MODES_ESCAPE,	/* after ESC */
	RUN_MODES_CHARSET,	/* after ESC ( */
	RUN_MODES_INTERMEDIATE, /* after ESC and another intermediate byte: one more ends it */
	RUN_MODES_CONTROL,	/* in a control sequence, after CSI */
	RUN_MODES_STRING,	/* in a title or another string, up to BEL or ST */
	RUN_MODES_STRING_END,	/* after an ESC in it */
};

struct run_modes {
	enum run_modes_state state;
	uint8_t prefix, intermediate; /* of the control sequence; 0: none */
	unsigned nparams;
	uint16_t params[RUN_MODES_PARAMS];

	uint64_t changed;    /* DEC private modes that differ from the usual, by row of the table */
	uint16_t key_flags;  /* key protocols pushed (CSI > u) and not popped */
	uint16_t keys_value; /* the flags of the last of them */
	bool modified_keys;  /* CSI > 4 ; N m */
	bool keypad;	     /* ESC = */
	bool colours;	     /* CSI m with anything but 0 */
	bool margins;	     /* CSI r with margins */
	bool cursor_shape;   /* CSI SP q */
	bool line_drawing;   /* ESC ( 0 */
	bool shifted;	     /* SO */
};

/* Follows the N bytes that were written to the terminal. */
void run_modes_take(struct run_modes *modes, const void *bytes, size_t n);
/*
 * Writes the sequences that undo what is set into OUT (at least RUN_MODES_TEXT bytes), also of a
 * sequence that was written in part.  Returns their length; 0: nothing is set.
 */
size_t run_modes_undo(const struct run_modes *modes, char *out);
/* The same for what sets them again, for who comes back: all but what a program draws anew. */
size_t run_modes_redo(const struct run_modes *modes, char *out);

#endif
