/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `hang DIR`: mounts a file system at DIR that never answers, until SIGTERM; prints "ready" when
 * it is there. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char options[128];
	sigset_t set;
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC), signal;

	if (argc != 2 || fd < 0) {
		perror("hang: DIR, and /dev/fuse");
		return 2;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 fd);
	if (mount("iocom-hang", argv[1], "fuse.iocom-hang", MS_NOSUID | MS_NODEV, options)) {
		perror("hang: mount");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	sigwait(&set, &signal);
	/* Unmount and close: closing the descriptor ends the wait of all processes that use it. */
	umount2(argv[1], MNT_DETACH);
	close(fd);
	return 0;
}
