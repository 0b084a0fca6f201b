/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What ended runs teach the class profiles.  While another program keeps these locked, runs wait
 * here, up to LEARN_LATER_MAX, and are learned later, in their order; a run that finds no room is
 * counted (runs_not_learned).  Profiles that turn out to be damaged are set aside.
 */
#ifndef IOCOM_LEARN_H
#define IOCOM_LEARN_H

#include "balancer/profile/profile_runs.h"

#define LEARN_LATER_MAX 256

struct home;

struct learned_run {
	uid_t uid;
	char class_name[PROFILE_CLASS_MAX], node[IOCOM_NAME_MAX];
	struct profile run;
	uint64_t input_id, end_s; /* profile_origin */
	double input_mb;
};

/* Learns RUN now or later. */
void learn_run(struct home *home, const struct learned_run *run);
/* Once a second: learns what waits. */
void learn_chores(struct home *home);
/* Tries once more, and frees what still waits. */
void learn_stop(struct home *home);

#endif
