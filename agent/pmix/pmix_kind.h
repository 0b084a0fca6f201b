/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Ranks that find each other by PMIx: those of Open MPI.  Each launcher is their PMIx server; what
 * a fence collects, and what one rank wants to know of another, goes through the hub.
 */
#ifndef IOCOM_PMIX_KIND_H
#define IOCOM_PMIX_KIND_H

#include "agent/tasks/tasks.h"

extern const struct tasks_kind pmix_kind;

#endif
