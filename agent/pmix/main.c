/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* iocom-pmix starts the ranks of MPI programs that use PMIx, as Open MPI's do. */
#include "agent/pmix/pmix_kind.h"
#include "agent/tasks/tasks.h"

int main(int argc, char **argv)
{
	const struct tasks_kind *const kinds[GANG_LAUNCHES] = {
		[GANG_LAUNCH_PMIX] = &pmix_kind,
	};

	return tasks_main(argc, argv, kinds);
}
