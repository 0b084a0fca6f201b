/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * An owner's rules (MODEL 4.7): what a node lets jobs of other nodes, its guests, use.  Pure: no
 * clock, no accounts; files only where said.
 *
 *   state      open; closed, draining: no new guest gets in, and why
 *   caps       the part of a resource that all guests together may use
 *   closed     a resource that no guest may need ("close the faucet"): disk, network
 *   users      names, uids, @groups; classes: of jobs.  Never those denied; if some are allowed,
 *   classes    only these
 *   hours      when guests get in; none: always
 *   presence   no new guest gets in while somebody works at the node, until idle_s later
 *
 * Rules that contradict each other are refused with a sentence that names both (owner_check).
 */
#ifndef IOCOM_OWNER_H
#define IOCOM_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <msgpack.h>

#include "iocom/err.h"
#include "iocom/vector.h"
#include "user/spec.h"

/* A line of the rules' file holds a list (libinih reads 198 characters). */
#define OWNER_LIST_MAX	  160
#define OWNER_HOURS_MAX	  190 /* characters of all spans, as they are written */
#define OWNER_REASON_MAX  48
#define OWNER_BY_MAX	  80
#define OWNER_SPANS_MAX	  6
#define OWNER_IDLE_S	  600 /* without --idle */
#define OWNER_IDLE_MIN_S  10  /* the kernel notes a terminal's use every 8 s */
#define OWNER_GRACE_S	  30
#define OWNER_GRACE_MAX_S 86400
/* The reason why a node whose file of rules is damaged is closed. */
#define OWNER_UNREADABLE "owner's rules unreadable"

enum owner_state { OWNER_OPEN, OWNER_CLOSED, OWNER_DRAINING };

enum owner_resource { OWNER_CPU, OWNER_MEMORY, OWNER_DISK, OWNER_NETWORK, OWNER_RESOURCES };
extern const char *const owner_resource_names[OWNER_RESOURCES];

/* OWNER_AMOUNT: bytes of memory; MB/s (10^6 bytes) of disk and network. */
enum owner_unit { OWNER_NO_CAP, OWNER_PERCENT, OWNER_AMOUNT };

struct owner_cap {
	enum owner_unit unit;
	double value;
};

/* "mon-fri 20:00-08:00": from FROM of each of these days to UNTIL, on the next day if not later. */
struct owner_span {
	uint8_t days;	      /* bit 0: Monday */
	uint16_t from, until; /* minutes since midnight, 0 to 1440 */
};

struct owner_rules {
	enum owner_state state;
	char reason[OWNER_REASON_MAX];
	char by[OWNER_BY_MAX]; /* who set the state */
	uint64_t since_s;      /* and when, CLOCK_REALTIME; 0: never */
	struct owner_cap caps[OWNER_RESOURCES];
	bool shut[OWNER_RESOURCES];
	char users_allow[OWNER_LIST_MAX], users_deny[OWNER_LIST_MAX];
	char classes_allow[OWNER_LIST_MAX], classes_deny[OWNER_LIST_MAX];
	struct owner_span hours[OWNER_SPANS_MAX];
	size_t nhours;
	bool presence;
	uint32_t idle_s;
};

/* Rules that limit nothing. */
void owner_init(struct owner_rules *rules);

/* --- owner_check.c --- */

/* Returns 0, or -EINVAL: ERR names two rules that contradict each other. */
int owner_check(const struct owner_rules *rules, struct iocom_err *err);
/*
 * Returns true if TO lets in no guest that FROM keeps out, at no time, and gives guests no more: it
 * closes, or denies, or caps.  Caps in different units are not compared: false.
 */
bool owner_narrows(const struct owner_rules *from, const struct owner_rules *to);
/* Copies the next name of LIST, commas or blanks between them.  Returns what follows; NULL: none.
 */
const char *owner_next(const char *list, char name[OWNER_LIST_MAX]);
/* Returns true if NAME is in LIST. */
bool owner_listed(const char *list, const char *name);

/* --- owner_hours.c --- */

/* Reads "mon-fri 20:00-08:00, sat+sun 00:00-24:00" or "always".  Returns 0 or -EINVAL. */
int owner_hours_parse(const char *text, struct owner_rules *rules, struct iocom_err *err);
/* Writes what owner_hours_parse reads. */
void owner_hours_text(const struct owner_rules *rules, char *out, size_t size);
/* Returns true if guests get in at this local time. */
bool owner_hours_open(const struct owner_rules *rules, const struct tm *local);

/* --- owner_text.c --- */

/* Reads "50%", "4G" (memory, 1024), "20MB/s" (disk, network).  Returns 0 or -EINVAL. */
int owner_cap_parse(enum owner_resource resource, const char *text, struct owner_cap *cap,
		    struct iocom_err *err);
/* Writes what owner_cap_parse reads; "none": no cap. */
void owner_cap_text(enum owner_resource resource, const struct owner_cap *cap, char *out,
		    size_t size);
/* Reads a time: "90", "30s", "10m", "2h".  Returns 0 or -EINVAL. */
int owner_seconds_parse(const char *text, uint32_t least, uint32_t most, uint32_t *out,
			struct iocom_err *err);
const char *owner_state_name(enum owner_state state);
/*
 * The rules as a file's text; the caller frees it, NULL: no memory.  owner_read reads such a file:
 * 0, or negative errno with "FILE:LINE: sentence"; -EINVAL also if they contradict each other.
 */
char *owner_text(const struct owner_rules *rules);
int owner_read(const char *path, struct owner_rules *rules, struct iocom_err *err);

/* What of the moment the rules depend on. */
struct owner_moment {
	struct tm local;
	bool present;  /* somebody works here */
	size_t guests; /* jobs of other nodes that are here; counts while the state is draining */
};
/*
 * Writes for other nodes what the rules mean now: "" (open), "limited: cpu 50%, no disk",
 * "closed: REASON", "draining: REASON", and when no guest is left "drained: REASON".  Returns false
 * if no guest gets in.
 */
bool owner_says(const struct owner_rules *rules, const struct owner_moment *moment, char *out,
		size_t size);

/* --- owner_ask.c --- */

/*
 * What somebody asks of an owner's node: words as `iocom owner` takes them, such as
 * { "cap", "cpu=50%" }.
 */
#define OWNER_WORDS_MAX	 16
#define OWNER_WORD_MAX	 OWNER_LIST_MAX
#define OWNER_PACKED_MAX 3000 /* with its request, what a user may ask another node */

struct owner_ask {
	char words[OWNER_WORDS_MAX][OWNER_WORD_MAX];
	size_t nwords;
	char reason[OWNER_REASON_MAX];
	uint32_t idle_s, grace_s; /* 0: not given */
};

/* Packs ASK; OUT is initialised here, and the caller destroys it. */
void owner_ask_pack(const struct owner_ask *ask, msgpack_sbuffer *out);
/* Packs the request of it that an agent takes, of this node or another; OUT as above. */
void owner_ask_request(const struct owner_ask *ask, msgpack_sbuffer *out);
/* Returns 0 or -EBADMSG. */
int owner_ask_unpack(struct owner_ask *ask, const void *data, size_t length);
/* Returns true if ASK only wants to see the rules. */
bool owner_ask_is_show(const struct owner_ask *ask);
/* Makes REASON one line of plain text that the rules' file can hold. */
void owner_reason_set(char out[OWNER_REASON_MAX], const char *reason);

enum owner_verb { OWNER_SHOW, OWNER_CHANGE, OWNER_EXPEL };
/*
 * Understands ASK: returns enum owner_verb, with OWNER_CHANGE the new RULES as BY wants them at
 * NOW_S; or -EINVAL with the reason in ERR (unknown words, a contradiction), and RULES unchanged.
 */
int owner_ask_apply(const struct owner_ask *ask, const char *by, uint64_t now_s,
		    struct owner_rules *rules, struct iocom_err *err);
/* Writes the words and the reason for a log or a person. */
void owner_ask_text(const struct owner_ask *ask, char *out, size_t size);

#endif
