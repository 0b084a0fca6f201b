/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The first part of confine.h: root, namespaces, user.  The order is forced: mounts need
 * capabilities, the bounding set and the securebits need CAP_SETPCAP, and a change of the user
 * clears the signal at the parent's death and sets dumpable.
 */
#include "agent/net/confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "user/keyring.h"
#include "user/privilege.h"

#define DESCRIPTORS_LOOKED_AT 1024
#define CAPABILITIES_MAX      64 /* a set is 64 bits */
#define ARENAS_MAX	      8

#define SECUREBITS                                                                                 \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                           \
	 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |   \
	 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

#ifdef CONFINE_SANITIZED
static bool dumpable_lost;

/* The leak check at the end traces the process, which then cannot be traced: it is left out. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return dumpable_lost;
}
#endif

static int confine_failed(struct iocom_err *err, int rc, const char *what)
{
	return iocom_err_set(err, rc, "the network part cannot confine itself: cannot %s: %s", what,
			     strerror(-rc));
}

/* --- what must be true before ------------------------------------------------------- */

/* Capabilities are a thread's own: others would keep theirs. */
static int confine_one_thread(struct iocom_err *err)
{
#ifdef CONFINE_SANITIZED
	(void)err; /* a sanitizer may have a thread of its own */
	return 0;
#else
	if (!unshare(CLONE_THREAD)) /* this changes nothing, and is refused if there are more */
		return 0;
	return iocom_err_set(err, -EBUSY,
			     "the network part cannot confine itself: it has more threads than "
			     "one already");
#endif
}

static int confine_count_entries(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *e;
	int n = 0;

	if (!dir)
		return -errno;
	while ((e = readdir(dir)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(dir);
	return n;
}

static int confine_check_directory(const char *path, struct iocom_err *err)
{
	const char *why = NULL;
	struct stat st;

	if (lstat(path, &st))
		return iocom_err_set(err, -errno, "the network part cannot take %s as its root: %s",
				     path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		why = "is no directory";
	else if (st.st_uid != 0 || st.st_mode & (S_IWGRP | S_IWOTH))
		why = "can be changed by others than root";
	else if (confine_count_entries(path) != 0)
		why = "is not empty";
	if (why)
		return iocom_err_set(err, -EINVAL,
				     "the network part cannot take %s as its root: it %s", path,
				     why);
	return 0;
}

/*
 * With a descriptor of a directory outside, openat and fchdir lead out of the empty root.  The
 * process has few descriptors with low numbers: what else there may be is closed.
 */
static int confine_check_descriptors(struct iocom_err *err)
{
	struct stat st;

	if (close_range(DESCRIPTORS_LOOKED_AT, UINT_MAX, 0))
		return confine_failed(err, -errno, "close descriptors");
	for (int fd = 0; fd < DESCRIPTORS_LOOKED_AT; fd++)
		if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
			return iocom_err_set(err, -EBUSY,
					     "the network part cannot confine itself: its "
					     "descriptor %d is a directory",
					     fd);
	return 0;
}

/* --- root and namespaces --------------------------------------------------------------- */

/*
 * Makes a file system of its own the root, on top of EMPTY_DIR.  Returns 0; a positive errno: this
 * is not permitted here, and the machine's mounts are as they were; negative errno: it went wrong
 * half way.
 */
static int confine_mount_root(const char *empty_dir)
{
	if (unshare(CLONE_NEWNS))
		return errno;
	/* Without this, the mount would show up in the machine's namespace. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return errno;
	if (mount("none", empty_dir, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "mode=0555,size=4096,nr_inodes=1"))
		return errno;
	if (chdir(empty_dir))
		return -errno;
	if (syscall(SYS_pivot_root, ".", "."))
		return errno; /* the root is an initramfs */
	/* The old root lies on the new one: now it goes, with all mounts in it. */
	if (umount2(".", MNT_DETACH))
		return -errno;
	return 0;
}

static int confine_root(const char *empty_dir, struct confined *confined, struct iocom_err *err)
{
	int rc = confine_mount_root(empty_dir);

	if (rc < 0)
		return confine_failed(err, rc, "make an empty root");
	confined->own_root = rc == 0;
	if (!confined->own_root) {
		snprintf(confined->said, sizeof(confined->said),
			 "the network part cannot have mounts of its own (%s); an empty directory "
			 "is its root instead, by chroot",
			 strerror(rc));
		if (chdir(empty_dir) || chroot("."))
			return confine_failed(err, -errno, "change the root to an empty directory");
	}
	if (chdir("/"))
		return confine_failed(err, -errno, "enter the empty root");
	/* A root that lies on this one would be seen through "/..". */
	if (confine_count_entries("/") != 0 || confine_count_entries("/..") != 0)
		return iocom_err_set(err, -EPERM,
				     "the network part cannot confine itself: its root is not "
				     "empty");
	return 0;
}

static void confine_namespaces(struct confined *confined)
{
	size_t n = strlen(confined->said);

	confined->own_ipc = unshare(CLONE_NEWIPC) == 0;
	confined->own_uts = unshare(CLONE_NEWUTS) == 0;
	confined->own_cgroup = unshare(CLONE_NEWCGROUP) == 0;
	if (confined->own_ipc && confined->own_uts && confined->own_cgroup)
		return;
	snprintf(confined->said + n, sizeof(confined->said) - n,
		 "%sit shares with the machine:%s%s%s", n ? "; " : "the network part is confined; ",
		 confined->own_ipc ? "" : " IPC", confined->own_uts ? "" : " UTS",
		 confined->own_cgroup ? "" : " cgroups");
}

/*
 * What glibc would look for in files later: with TZ unset, /etc/localtime at each strftime (of a
 * log line, whose time is UTC); and how many processors there are, to bound malloc's arenas.
 */
static int confine_c_library(struct iocom_err *err)
{
	if (setenv("TZ", "UTC0", 1))
		return confine_failed(err, -errno, "set the time zone");
	tzset();
	(void)mallopt(M_ARENA_MAX, ARENAS_MAX);
	return 0;
}

/* --- limits, user ------------------------------------------------------------------------ */

static int confine_limit(__rlimit_resource_t which)
{
	const struct rlimit none = {0, 0};

	return setrlimit(which, &none) ? -errno : 0;
}

int confine_limits(struct iocom_err *err)
{
	struct stat st;
	int rc = confine_limit(RLIMIT_CORE);

	if (!rc && !(fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode)))
		rc = confine_limit(RLIMIT_FSIZE);
	return rc ? confine_failed(err, rc, "set its limits") : 0;
}

int confine_alone(struct iocom_err *err)
{
	int rc = confine_limit(RLIMIT_NPROC);

	return rc ? confine_failed(err, rc, "set the limit of processes") : 0;
}

static bool confine_knows(int cap)
{
	return prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0;
}

static int confine_empty_bounding_set(void)
{
	for (int cap = 0; cap < CAPABILITIES_MAX && confine_knows(cap); cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0))
			return -errno;
	return 0;
}

/* The keyring is made by root: it costs nothing of the user's quota, and nothing is in it. */
static int confine_leave_keyring(void)
{
	int rc = keyring_check(NULL), ring;

	if (rc)
		return 0; /* no process can use keys here, or none can leave its keyring */
	ring = keyring_join_new();
	return ring < 0 ? ring : 0;
}

static int confine_drop(uid_t uid, gid_t gid)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[2] = {{0}};
	int rc = confine_empty_bounding_set();

	if (rc)
		return rc;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) ||
	    prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0))
		return -errno;
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return -errno;
	/* With these securebits the kernel left all capabilities as they were. */
	if (syscall(SYS_capset, &header, none))
		return -errno;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return -errno;
#ifdef CONFINE_SANITIZED
	dumpable_lost = true;
#endif
	return 0;
}

static int confine_prove(uid_t uid, gid_t gid)
{
	if (privilege_prove_dropped(uid, gid, NULL, 0))
		return -EPERM;
	for (int cap = 0; cap < CAPABILITIES_MAX && confine_knows(cap); cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) != 0 ||
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) > 0)
			return -EPERM;
	if (prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != SECUREBITS ||
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		return -EPERM;
	return 0;
}

int confine_become(uid_t uid, gid_t gid, struct iocom_err *err)
{
	int rc;

	if (uid == 0 || gid == 0 || uid == (uid_t)-1 || gid == (gid_t)-1)
		return iocom_err_set(err, -EINVAL,
				     "the network part does not run as uid %u, gid %u: it needs a "
				     "user and a group of its own",
				     uid, gid);
	rc = confine_leave_keyring();
	if (rc)
		return confine_failed(err, rc, "leave the session keyring");
	rc = confine_drop(uid, gid);
	if (rc)
		return confine_failed(err, rc, "give up root's privilege");
	rc = confine_prove(uid, gid);
	if (rc)
		return iocom_err_set(
			err, rc, "the network part could not give up root's privilege for good");
	return 0;
}

int confine_to_parent(pid_t parent, struct iocom_err *err)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return confine_failed(err, -errno, "bind its life to the agent's");
	if (getppid() != parent)
		return iocom_err_set(err, -ESRCH,
				     "the network part ends: the agent that started "
				     "it is gone");
	return 0;
}

int confine_early(uid_t uid, gid_t gid, const char *empty_dir, struct confined *confined,
		  struct iocom_err *err)
{
	pid_t parent = getppid();
	int rc = confine_one_thread(err);

	*confined = (struct confined){0};
	if (!rc)
		rc = confine_check_directory(empty_dir, err);
	if (!rc)
		rc = confine_check_descriptors(err);
	if (!rc)
		rc = confine_c_library(err);
	if (!rc)
		rc = confine_root(empty_dir, confined, err);
	if (rc)
		return rc;
	confine_namespaces(confined);
	rc = confine_limits(err);
	if (!rc)
		rc = confine_become(uid, gid, err);
	if (!rc)
		rc = confine_to_parent(parent, err);
	umask(077);
	return rc;
}
