/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Which format a trace has, told from its content. */
#ifndef SIM_WORKLOAD_OPEN_H
#define SIM_WORKLOAD_OPEN_H

#include "sim/workload/reader.h"

/*
 * Reads as far as the first line that is no comment.  NULL with ERR set: none of
 * the formats; the message lists them.
 *
 *   {...          JSON Lines: an iocom recording
 *   hour,min,unk,sec,prog          CSD process trace
 *   version,time,op,size,lbn       block trace
 *   ...,darshan_start_time,...     Darshan summaries
 *   13 and more columns            SWF; fewer but for 7 to 9, when ';' lines came before
 *   2 to 12 columns, the first a number, or a header "arrival..."   the eight columns
 */
const struct format *format_recognise(struct lines *lines, struct quoted *quoted,
				      struct iocom_err *err);
/* What is no text: a recording in MessagePack; NULL: something else.  SOURCE stays at its start. */
const struct format *format_packed(struct source *source);

#endif
