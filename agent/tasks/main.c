/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* iocom-tasks starts the independent tasks of a gang, and the ranks of MPI programs by PMI-1. */
#include "agent/tasks/pmi1.h"
#include "agent/tasks/tasks.h"

int main(int argc, char **argv)
{
	const struct tasks_kind *const kinds[GANG_LAUNCHES] = {
		[GANG_LAUNCH_PMI1] = &pmi1_kind,
	};

	return tasks_main(argc, argv, kinds);
}
