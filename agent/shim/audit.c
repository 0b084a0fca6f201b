/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Tells the kernel's audit log of a job; see audit.h. */
#include "agent/shim/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "user/audit_state.h"
#include "user/clock.h"
#include "user/spec.h"

/* libaudit's numbers, which are part of the kernel's interface; linux/audit.h has only the range */
#define AUDIT_TYPE_START 1105
#define AUDIT_TYPE_END	 1106

void audit_address(int fd, char *out, size_t size)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);
	char host[INET6_ADDRSTRLEN + 16];

	*out = 0;
	if (getpeername(fd, (struct sockaddr *)&sa, &length) ||
	    (sa.ss_family != AF_INET && sa.ss_family != AF_INET6) ||
	    getnameinfo((struct sockaddr *)&sa, length, host, sizeof(host), NULL, 0,
			NI_NUMERICHOST))
		return;
	snprintf(out, size, "%s", host + (strncmp(host, "::ffff:", 7) ? 0 : 7));
}

/* A job's name is HOME-BOOT-SEQUENCE, and only HOME may have a '-'. */
void audit_home(const char *job, char *out, size_t size)
{
	char *cut;

	snprintf(out, size, "%s", job);
	for (int i = 0; i < 2; i++) {
		cut = strrchr(out, '-');
		if (cut && cut > out)
			*cut = 0;
	}
}

/* Adds NAME=VALUE, safely encoded. */
static int audit_add(const struct audit_library *library, const char *name, const char *value,
		     char *out, size_t size)
{
	size_t at = strlen(out);
	char *pair = library->encode(name, value, 0);
	int n;

	if (!pair)
		return -ENOMEM;
	n = snprintf(out + at, size - at, " %s", pair);
	free(pair);
	return n >= 0 && (size_t)n < size - at ? 0 : -E2BIG;
}

int audit_compose(const struct audit_event *event, const struct audit_library *library, char *out,
		  size_t size)
{
	bool start = event->what == AUDIT_JOB_STARTED || event->what == AUDIT_JOB_REFUSED;
	size_t at;
	int n = snprintf(out, size, "op=iocom:job_%s id=%u", start ? "start" : "end", event->uid);
	int rc = n >= 0 && (size_t)n < size ? 0 : -E2BIG;

	if (!rc && event->user && *event->user)
		rc = audit_add(library, "acct", event->user, out, size);
	if (rc)
		return rc;
	at = strlen(out);
	n = snprintf(out + at, size - at, " job=%s", event->job);
	if (n < 0 || (size_t)n >= size - at)
		return -E2BIG;
	at += (size_t)n;
	if (event->what == AUDIT_JOB_EXITED || event->what == AUDIT_JOB_KILLED) {
		n = snprintf(out + at, size - at, " %s=%u",
			     event->what == AUDIT_JOB_EXITED ? "exit" : "sig", event->value);
		return n >= 0 && (size_t)n < size - at ? 0 : -E2BIG;
	}
	if (event->what != AUDIT_JOB_STARTED && event->reason && *event->reason)
		return audit_add(library, "reason", event->reason, out, size);
	return 0;
}

static void audit_failed(const struct audit_event *event, const char *why)
{
	fprintf(stderr, "iocom-shim: job %s: no audit record of its %s: %s\n", event->job,
		event->what == AUDIT_JOB_STARTED || event->what == AUDIT_JOB_REFUSED ? "start"
										     : "end",
		why);
}

/* Writes the name of the file that says that audit is off. */
static void audit_off_path(const char *run_dir, char *out, size_t size)
{
	snprintf(out, size, "%s/" AUDIT_OFF_NAME, run_dir);
}

static bool audit_is_off(const char *run_dir)
{
	char path[PATH_MAX];
	struct timespec now;
	struct stat st;

	audit_off_path(run_dir, path, sizeof(path));
	clock_gettime(CLOCK_REALTIME, &now);
	return !lstat(path, &st) && st.st_mtim.tv_sec <= now.tv_sec &&
	       now.tv_sec - st.st_mtim.tv_sec < AUDIT_OFF_S;
}

static void audit_note_off(const char *run_dir)
{
	char path[PATH_MAX];
	int fd;

	audit_off_path(run_dir, path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0) {
		(void)futimens(fd, NULL);
		close(fd);
	}
}

/* Returns 0, or -EPERM if this process may not send any (a container). */
static int audit_send(const struct audit_event *event, const struct audit_library *library)
{
	bool start = event->what == AUDIT_JOB_STARTED || event->what == AUDIT_JOB_REFUSED;
	bool good = event->what != AUDIT_JOB_REFUSED && event->what != AUDIT_JOB_LOST;
	char message[AUDIT_RECORD_MAX], home[SPEC_JOB_MAX];
	int rc = audit_compose(event, library, message, sizeof(message));
	int fd;

	if (rc) {
		audit_failed(event, strerror(-rc));
		return 0;
	}
	fd = library->open();
	audit_home(event->job, home, sizeof(home));
	/* Without an address libaudit would ask the name service. */
	if (fd >= 0 && library->send(fd, start ? AUDIT_TYPE_START : AUDIT_TYPE_END, message, home,
				     *event->address ? event->address : "?", "iocom", good) >= 0)
		return 0;
	if (errno == EPERM)
		return -EPERM;
	audit_failed(event, strerror(errno));
	return 0;
}

/* Returns whether records would be lost. In a container we may not ask, but perhaps send. */
static bool audit_drops(void)
{
	struct audit_state state;
	int rc = audit_state_read(&state);

	return rc ? rc != -EPERM : !state.enabled;
}

/* Records must come in their order: waits for the process that sends the one before. */
static void audit_await(pid_t before)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, before, 0), .events = POLLIN};

	if (p.fd < 0)
		return; /* it has ended */
	poll(&p, 1, AUDIT_LIMIT_S * 1000);
	close(p.fd);
}

static void audit_child(const struct audit_event *event, pid_t before, const char *run_dir)
{
	struct audit_library library;

	/* Own session, so signals to the shim's group miss us. */
	setsid();
	prctl(PR_SET_NAME, "iocom-audit");
	/* Only the shim may hold the client's stream, the leash and the record's lock. */
	close_range(3, ~0U, 0);
	alarm(AUDIT_LIMIT_S);
	if (before > 0)
		audit_await(before);
	if (audit_drops() || audit_load(&library) || audit_send(event, &library))
		audit_note_off(run_dir);
}

pid_t audit_tell(const struct audit_event *event, pid_t before, const char *run_dir)
{
	pid_t pid;

	if (audit_is_off(run_dir) || !audit_possible())
		return 0;
	pid = fork();
	if (pid)
		return pid < 0 ? -errno : pid;
	audit_child(event, before, run_dir);
	_exit(0);
}

bool audit_told(pid_t pid, unsigned limit_ms)
{
	const struct timespec step = {.tv_nsec = 2000000};
	pid_t rc = waitpid(pid, NULL, WNOHANG);

	for (uint64_t until = clock_boot_ms() + limit_ms; rc == 0 && clock_boot_ms() < until;
	     rc = waitpid(pid, NULL, WNOHANG))
		nanosleep(&step, NULL);
	return rc != 0;
}
