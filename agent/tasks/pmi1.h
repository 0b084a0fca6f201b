/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Ranks that find each other by PMI-1: those of MPICH and of MPIs that descend from it.  Each rank
 * has a socket to its launcher (PMI_FD) on which it puts and gets keys; at a barrier the launchers
 * exchange what was put since the last one.  A rank cannot start others (MPI_Comm_spawn).
 */
#ifndef IOCOM_PMI1_H
#define IOCOM_PMI1_H

#include "agent/tasks/tasks.h"

extern const struct tasks_kind pmi1_kind;

/*
 * Writes where ranks are as MPICH's key PMI_process_mapping has it:
 * "(vector,(NODE,NODES,RANKS),...)". Returns 0, or -E2BIG: it is too long to be a value.
 */
int pmi1_mapping(const struct gang_plan *plan, char *out, size_t size);

#endif
