/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Gives back what a killed agent's feedback controller changed, if no agent starts again. */
#ifndef IOCOM_FEEDBACK_RESTORE_H
#define IOCOM_FEEDBACK_RESTORE_H

#include <stddef.h>

#include "balancer/settings/settings.h"
#include "iocom/err.h"

/*
 * SAID gets a sentence for people.  Returns 0, also if there is nothing to give back; -EBUSY: an
 * agent runs there; other negative errno; with the reason in ERR.
 */
int feedback_restore(const struct settings *set, char *said, size_t size, struct iocom_err *err);

#endif
