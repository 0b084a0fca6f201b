/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the parts of request "profile" share. */
#ifndef IOCOM_PROFILES_H
#define IOCOM_PROFILES_H

#include <jansson.h>

#include "agent/front/front.h"

/*
 * Does WHAT with the profiles of UID, and answers C: "set" (with "need"), "unset", "forget" with
 * the class CLASS_NAME; "export" of it or of all; "import" of "document".
 */
void profiles_change(struct front *front, struct client *c, const msgpack_object *request,
		     const char *what, uid_t uid, const char *class_name);
/* CLASS_NAME as JSON holds it. */
json_t *profiles_class_json(const char *class_name);

#endif
