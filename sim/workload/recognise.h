/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Recognises a trace's format from its content. */
#ifndef SIM_WORKLOAD_OPEN_H
#define SIM_WORKLOAD_OPEN_H

#include "sim/workload/reader.h"

/*
 * Reads up to the first line that is no comment.  NULL with ERR set: the format is unknown; the
 * message lists the known ones.
 *
 *   {...                            JSON Lines: an iocom recording
 *   hour,min,unk,sec,prog          CSD process trace
 *   version,time,op,size,lbn       block trace
 *   ...,darshan_start_time,...     Darshan summaries
 *   13 or more columns             SWF; after ';' lines any number except 7 to 9
 *   2 to 12 columns, the first a number, or a header "arrival..."   the eight columns
 */
const struct format *format_recognise(struct lines *lines, struct quoted *quoted,
				      struct iocom_err *err);
/* Recognises a recording in MessagePack, which is no text; NULL: something else.  SOURCE
 * stays at its start. */
const struct format *format_packed(struct source *source);

#endif
