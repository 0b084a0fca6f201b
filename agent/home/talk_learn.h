/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A gang that ended well teaches its class who of its ranks sends how much to whom
 * (profile_talk.h): once, when its last part has ended.
 */
#ifndef IOCOM_TALK_LEARN_H
#define IOCOM_TALK_LEARN_H

#include <sys/types.h>

struct home;

/*
 * UID's gang of CLASS_NAME, of which JOB is a part, has ended, and the profiles have its class.
 * Does nothing if JOB is no part of a gang, or one has not ended well.
 */
void talk_learn(struct home *home, uid_t uid, const char *class_name, const char *job);

#endif
