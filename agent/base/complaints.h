/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Complaints that come again and again: a peer with another key is refused every second, for days.
 * Each complaint about each sender is logged at once, and then with growing intervals:
 *
 *   new --> logged, next after 1 min --> "(59 more since)", next after 2 min --> ... --> each hour
 *   settled (the sender has done it right), or none for an hour --> new
 *
 * Two are the same if their sentences differ in numbers only.
 * One that finds no place takes that of the one that was quiet for longest.  No clock of its own.
 */
#ifndef IOCOM_COMPLAINTS_H
#define IOCOM_COMPLAINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/base.h"

#define COMPLAINTS_MAX	      128
#define COMPLAINTS_FIRST_NS   (60ull * 1000000000ull)
#define COMPLAINTS_LONGEST_NS (3600ull * 1000000000ull)

struct complaint {
	bool used;
	char sender[IOCOM_NAME_MAX + 8];
	uint64_t shape;		  /* of its sentence, a hash */
	uint64_t last_ns;	  /* when it came last (CLOCK_BOOTTIME) */
	uint64_t due_ns, wait_ns; /* when it is logged again; the interval */
	uint64_t more;		  /* not logged since */
};

struct complaints {
	struct complaint all[COMPLAINTS_MAX];
	size_t count;
	uint64_t replaced; /* that made room for others */
};

/*
 * The complaint SENTENCE about SENDER has come.  Returns true if it is to be logged; MORE is then
 * how many were not since the last line.
 */
bool complaints_take(struct complaints *complaints, const char *sender, const char *sentence,
		     uint64_t now_ns, uint64_t *more);
/* SENDER has done it right: its next complaints are new. */
void complaints_settle(struct complaints *complaints, const char *sender);

/*
 * Logs a warning about SENDER ("": not known) as above, with a bound for what others provoke; all
 * of them if BASE has no complaints.
 */
__attribute__((format(printf, 3, 4))) void base_complain(const struct base *base,
							 const char *sender, const char *fmt, ...);
void base_settle(const struct base *base, const char *sender);

#endif
