/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "agent/measure/uptime_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BOOT_ID	     "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_SIZE 37 /* with the final NUL */
#define LINE_SIZE    80

static void read_boot_id(char out[BOOT_ID_SIZE])
{
	FILE *file = fopen(BOOT_ID, "re");

	if (!file || !fgets(out, BOOT_ID_SIZE, file))
		strcpy(out, "?");
	if (file)
		fclose(file);
}

int uptime_mark_open(int *fd, const char *directory, uint64_t *until_ns, struct iocom_err *err)
{
	char path[512], line[LINE_SIZE] = "", boot[BOOT_ID_SIZE], now[BOOT_ID_SIZE];
	uint64_t until;

	*until_ns = 0;
	snprintf(path, sizeof(path), "%s/counting", directory);
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*fd < 0)
		return iocom_err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	if (pread(*fd, line, sizeof(line) - 1, 0) < 0)
		return iocom_err_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	if (sscanf(line, "%36s %" SCNu64, boot, &until) != 2 || !until)
		return 0;
	read_boot_id(now);
	*until_ns = strcmp(boot, now) ? 1 : until;
	return 0;
}

void uptime_mark_note(int fd, uint64_t boot_ns)
{
	static char boot[BOOT_ID_SIZE]; /* it cannot change while this program runs */
	char line[LINE_SIZE];
	int n;

	if (!boot[0])
		read_boot_id(boot);
	/* Lines have one length, so that none keeps the end of an older one. */
	n = snprintf(line, sizeof(line), "%-36s %020" PRIu64 "\n", boot, boot_ns);
	if (pwrite(fd, line, (size_t)n, 0) != n)
		return;
}
