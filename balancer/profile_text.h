/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Class profiles for people: the agent's answer to the request "profile". */
#ifndef IOCOM_PROFILE_TEXT_H
#define IOCOM_PROFILE_TEXT_H

#include <jansson.h>

/* Prints a row for each profile.  Returns 0 or -ENOMEM. */
int profile_text_table(const json_t *profiles);
/* Prints all that is known of one.  Returns 0 or -ENOMEM. */
int profile_text_class(const json_t *profile);

#endif
