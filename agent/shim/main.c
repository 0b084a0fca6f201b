/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom-shim`: supervises one job.  iocomd spawns it with the leash, the order
 * and the client's stream on descriptors 3, 4 and 5 (shim/order.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shim/data_io.h"
#include "agent/shim/shim.h"

/* Fills descriptors 0, 1 and 2, so that no pipe of the job ever gets one of these numbers. */
static int fill_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 2);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static bool spawned_by_agent(void)
{
	struct stat st;

	return !fstat(SHIM_FD_LEASH, &st) && S_ISSOCK(st.st_mode);
}

static bool has_order(void)
{
	struct stat st;

	return !fstat(SHIM_FD_STREAM, &st) && S_ISSOCK(st.st_mode) && !fstat(SHIM_FD_ORDER, &st) &&
	       S_ISREG(st.st_mode);
}

/* Only checks for a directory. begin_open_record checks that it is this job's. */
static bool has_record(void)
{
	struct stat st;

	return !fstat(SHIM_FD_RECORD, &st) && S_ISDIR(st.st_mode);
}

int main(int argc, char **argv)
{
	bool moved = argc > 1 && !strcmp(argv[1], SHIM_MOVED);
	bool spare = argc > 2 && !strcmp(argv[2], SHIM_SPARE);
	struct shim *shim;
	int rc = 0, last, record;

	if (argc > 1 && !strcmp(argv[1], DATA_TAKE_WORD))
		return data_take_main(argc - 2, argv + 2);
	if (argc > 1 && !strcmp(argv[1], DATA_GIVE_WORD))
		return data_give_main();
	if (argc > 2 && !strcmp(argv[1], DATA_SWEEP_WORD)) {
		scratch_sweep(argv[2]);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "--version")) {
		printf("iocom-shim %s\n", IOCOM_VERSION);
		return 0;
	}
	if (!spawned_by_agent() || (!spare && !has_order())) {
		fprintf(stderr, "iocom-shim: supervises one job; only iocomd starts it\n");
		return 2;
	}
	record = !spare && has_record() ? SHIM_FD_RECORD : -1;
	last = record >= 0 ? SHIM_FD_RECORD : SHIM_FD_STREAM;
	close_range((unsigned)last + 1, ~0U, 0);
	for (int fd = SHIM_FD_LEASH; fd <= last; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (fill_standard())
		return 1;
	signal(SIGPIPE, SIG_IGN);
	umask(077);
	/* No core dump of this process has the stream's keys; the job's process is its own. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	shim = calloc(1, sizeof(*shim));
	if (!shim)
		return 1;
	shim->moved = moved;
	shim->spare.table = -1;
	shim->spare.jobs_dir = spare && argc > 3 ? argv[3] : NULL;
	if (spare)
		rc = spare_wait(&shim->spare, argv[0], &record) || !has_order();
	shim->record = record;
	if (!rc)
		rc = shim_run(shim, SHIM_FD_LEASH, SHIM_FD_ORDER, SHIM_FD_STREAM);
	free(shim);
	return rc;
}
