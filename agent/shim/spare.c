/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A spare shim waits for an order; see spare.h. */
#include "agent/shim/spare.h"

#include <errno.h>
#include <sodium.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shim/order.h"
#include "user/record.h"

#define TABLE "/proc/self/mounts"

static void spare_prepare(struct spare *spare)
{
	/* Open the table before reading it: the kernel then reports every later change. */
	spare->table = open(TABLE, O_RDONLY | O_CLOEXEC);
	spare->read = spare->table >= 0 && !cgroup_mounts_read(TABLE, &spare->mounts, NULL);
}

/* Two descriptors of one directory. */
static bool spare_is_same(int one, int other)
{
	struct stat a, b;

	return one >= 0 && other >= 0 && !fstat(one, &a) && !fstat(other, &b) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Removes the record that was made in advance: no job got it. */
static void spare_drop_record(const char *jobs_dir)
{
	char name[32];

	snprintf(name, sizeof(name), RECORD_SPARE "%d", (int)getpid());
	record_remove_spare(jobs_dir, name);
}

/* Returns the number of received descriptors, or negative errno. */
static int spare_take(int fds[SPARE_FDS])
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(SPARE_FDS * sizeof(int))];
	} control;
	char byte;
	struct iovec piece = {&byte, 1};
	struct msghdr message = {.msg_iov = &piece,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	const struct cmsghdr *c;
	ssize_t n;
	int count;

	do
		n = recvmsg(SHIM_FD_LEASH, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	c = CMSG_FIRSTHDR(&message);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    (c->cmsg_len != CMSG_LEN(SPARE_FDS * sizeof(int)) &&
	     c->cmsg_len != CMSG_LEN((SPARE_FDS - 1) * sizeof(int))))
		return -EBADMSG;
	count = c->cmsg_len == CMSG_LEN(SPARE_FDS * sizeof(int)) ? SPARE_FDS : SPARE_FDS - 1;
	memcpy(fds, CMSG_DATA(c), (size_t)count * sizeof(int));
	return count;
}

int spare_wait(struct spare *spare, char *name, int *record)
{
	static const char shim[] = "iocom-shim";
	int fds[SPARE_FDS], rc, made = -1;

	prctl(PR_SET_NAME, SHIM_SPARE_NAME);
	spare_prepare(spare);
	if (sodium_init() < 0) /* now, not when the client waits; wire_init says what failed */
		return -ENOSYS;
	if (spare->jobs_dir)
		made = record_make_spare(spare->jobs_dir, getpid());
	rc = spare_take(fds);
	*record = rc == SPARE_FDS ? fds[2] : -1;
	if (made >= 0 && !spare_is_same(made, *record))
		spare_drop_record(spare->jobs_dir);
	if (made >= 0)
		close(made);
	if (rc < 0)
		return rc;
	/* The kernel gave them free numbers, so they cannot collide with these two, which are
	 * taken. */
	if (dup3(fds[0], SHIM_FD_ORDER, O_CLOEXEC) < 0 ||
	    dup3(fds[1], SHIM_FD_STREAM, O_CLOEXEC) < 0)
		return -errno;
	close(fds[0]);
	close(fds[1]);
	prctl(PR_SET_NAME, shim);
	if (strlen(name) >= sizeof(shim) - 1)
		strcpy(name, shim);
	return 0;
}

int spare_mounts(const struct spare *spare, struct cgroup_mounts *mounts, struct iocom_err *err)
{
	struct pollfd p = {.fd = spare->table, .events = POLLPRI};

	if (!spare->read || poll(&p, 1, 0) != 0)
		return cgroup_mounts_read(TABLE, mounts, err);
	*mounts = spare->mounts;
	return 0;
}
