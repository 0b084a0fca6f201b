/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See base.h. */
#include "agent/base/base.h"

void base_journal_failed(const struct base *base, const struct iocom_err *err)
{
	base->counters->journal_failures++;
	log_write(base->log, LOG_L_ERROR, "%s", err->text);
}
