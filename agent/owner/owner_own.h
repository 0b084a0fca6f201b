/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the owner's part share. */
#ifndef IOCOM_OWNER_OWN_H
#define IOCOM_OWNER_OWN_H

#include "agent/owner/owner_part.h"
#include "user/cgroup_guests.h"

#define OWNER_JOB_TTYS	 256
#define OWNER_SESSIONS	 64 /* graphical sessions that are asked about */
#define OWNER_SESSION_ID 32 /* a session's name, and NUL */

/* owner_sessions.c */
struct owner_sessions {
	struct loop_fd entry; /* what loginctl says; -1: it was not asked */
	char text[8192];
	size_t length;
	uint64_t asked_ns;
	uint64_t used_s; /* when somebody used one last, as far as is known; CLOCK_REALTIME */
	bool complained;
};

struct owner_part {
	struct owner_config config;
	const struct base *base;
	struct guest *guest; /* NULL: the agent is being set up */
	struct owner_rules rules;
	char path[SETTINGS_PATH_MAX + 16];
	struct iocom_err unwritten; /* why the rules are not surely in the file; "": they are */
	uint64_t tried_ns;	    /* when they were written last, or could not be */
	bool accepts, said;	    /* what others were told last */
	char says[IOCOM_NAME_MAX];

	bool somebody; /* works here, as last seen */
	uint64_t seen_ns;
	struct owner_sessions sessions;

	struct cgroup_mounts mounts;
	bool mounted;
	struct cgroup_caps_held held;
	struct iocom_err cap_err; /* why no cap is held by a control group */
	bool capped;		  /* caps are or were set */
	uint64_t capped_ns;	  /* when they were written last */
};

/* --- owner_part.c --- */

/* Tells the other nodes, if it is something else than before. */
void owner_part_tell(struct owner_part *part);
/* Fills MOMENT: the local time, and what else the rules ask; presence as of AGE_NS ago at most. */
void owner_part_moment(struct owner_part *part, uint64_t age_ns, struct owner_moment *moment);
#define OWNER_NOW_NS  1000000000ull /* for those who ask */
#define OWNER_REST_NS 5000000000ull /* for what other nodes are told */

/* --- owner_store.c --- */

/* Loads the rules into PART. */
void owner_store_load(struct owner_part *part);
#define OWNER_STORE_UNSURE 1
/*
 * Writes RULES.  Returns 0: they survive a power cut; OWNER_STORE_UNSURE, with the reason in ERR:
 * they are written, but a power cut may bring the former ones back; negative errno with the reason
 * in ERR: the file is as before.
 */
int owner_store_write(const struct owner_part *part, const struct owner_rules *rules,
		      struct iocom_err *err);

/* --- owner_caps.c --- */

/* Sets the caps of the rules on the guests' control group; does nothing if there never were any. */
void owner_caps_apply(struct owner_part *part);
/* The agent begins: an earlier one may have left caps on the group. */
void owner_caps_begin(struct owner_part *part);
/* Returns true if there is a cap. */
bool owner_caps_any(const struct owner_rules *rules);
/* What guests may use of a resource here, in cores, bytes, MB/s; below 0: there is no cap. */
double owner_caps_amount(const struct owner_part *part, enum owner_resource at,
			 const struct iocom_vector *own);
/* Returns true, and says why in OUT, if the cap is more than there is. */
bool owner_caps_idle(const struct owner_part *part, enum owner_resource at, char *out, size_t size);
/* Writes how the cap is held: "by control group (cpu.max) and admission". */
void owner_caps_held(const struct owner_part *part, enum owner_resource at, char *out, size_t size);

/* --- owner_presence.c --- */

/*
 * Returns when somebody last used a terminal in DEVICES: tty1 to tty63, ttyS0 ..., pts/N without
 * the N numbers in SKIP; seconds, CLOCK_REALTIME; 0: never.
 */
time_t owner_presence_newest(const char *devices, const unsigned *skip, size_t nskip);
/* Returns true if somebody works here, as was seen at most AGE_NS ago. */
bool owner_presence(struct owner_part *part, uint64_t age_ns);

/* --- owner_sessions.c --- */

/*
 * Returns when somebody used a graphical session last, as far as is known: seconds,
 * CLOCK_REALTIME; 0: never.  It may begin to ask.
 */
uint64_t owner_sessions_newest(struct owner_part *part);
void owner_sessions_stop(struct owner_part *part);
/* Finds the names of the graphical sessions in front, in logind's DIRECTORY. */
size_t owner_sessions_find(const char *directory, char ids[OWNER_SESSIONS][OWNER_SESSION_ID]);
/* Reads what loginctl says, and changes TEXT.  Returns as owner_sessions_newest; NOW_S if TEXT says
 * nothing. */
uint64_t owner_sessions_read(char *text, uint64_t now_s);

/* --- owner_names.c --- */

/*
 * Calls WARN with a sentence for each name in LIST, which WHAT ("users allow") names, that this
 * node does not know.  It gives up if the name service is slow.
 */
void owner_names_unknown(const struct owner_part *part, const char *what, const char *list,
			 void (*warn)(void *arg, const char *text), void *arg);

/* --- owner_admit.c --- */

/* Returns true if UID may change the rules; otherwise WHY says why not. */
bool owner_admit_change(const struct owner_part *part, uid_t uid, const char *from, char *why,
			size_t size);

#endif
