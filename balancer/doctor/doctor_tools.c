/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Checks what iocom needs besides the kernel: MUNGE, the clock, criu. */
#include "balancer/doctor/doctor.h"

#include <errno.h>
#include <limits.h>
#include <munge.h>
#include <signal.h>
#include <spawn.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fcntl.h>

#include "user/trust.h"

#define TOOL_LIMIT_MS 10000
#define CLOCK_GOOD_MS 100.0

/* --- MUNGE ------------------------------------------------------------------------ */

/* Makes and opens a credential as this user.  Returns 0 or -EIO with the reason in ERR. */
static int round_trip(const char *socket, struct iocom_err *err)
{
	static const char text[] = "iocom doctor";
	munge_ctx_t ctx = munge_ctx_create();
	char *credential = NULL;
	void *payload = NULL;
	munge_err_t rc = ctx ? EMUNGE_SUCCESS : EMUNGE_NO_MEMORY;
	bool same = false;
	uid_t uid = 0;
	gid_t gid;
	int length = 0;

	if (rc == EMUNGE_SUCCESS && *socket)
		rc = munge_ctx_set(ctx, MUNGE_OPT_SOCKET, socket);
	if (rc == EMUNGE_SUCCESS)
		rc = munge_encode(&credential, ctx, text, sizeof(text));
	if (rc == EMUNGE_SUCCESS)
		rc = munge_decode(credential, ctx, &payload, &length, &uid, &gid);
	if (rc != EMUNGE_SUCCESS)
		iocom_err_set(err, -EIO, "%s",
			      ctx && munge_ctx_strerror(ctx) ? munge_ctx_strerror(ctx)
							     : munge_strerror(rc));
	else
		same = length == sizeof(text) && !memcmp(payload, text, sizeof(text)) &&
		       uid == geteuid();
	if (rc == EMUNGE_SUCCESS && !same)
		iocom_err_set(err, -EIO, "munged gave back another credential than it was given");
	free(credential);
	free(payload);
	munge_ctx_destroy(ctx);
	return same ? 0 : -EIO;
}

static void check_munge(struct doctor *d, const char *check, const char *socket, bool needed)
{
	struct iocom_err err = {0};
	double began = doctor_now_ms(), ms;
	const char *where = *socket ? socket : "MUNGE's own socket";

	if (!round_trip(socket, &err)) {
		ms = doctor_now_ms() - began;
		json_object_set_new(doctor_add(d, check, DOCTOR_OK, NULL,
					       "munged at %s makes and opens credentials (%.1f ms)",
					       where, ms),
				    "round_trip_ms", json_real(ms));
	} else if (needed || *socket) {
		doctor_add(d, check, DOCTOR_BROKEN,
			   "install it, give all nodes the same key, systemctl start munge",
			   "%s: %s", where, err.text);
	} else {
		doctor_add(d, check, DOCTOR_SKIPPED, NULL,
			   "munged does not answer; a node alone does not need it");
	}
}

/* Checks the agent's munged and, if the environment names another, that of commands here. */
void doctor_munge(struct doctor *d)
{
	const char *own = getenv("IOCOM_MUNGE_SOCKET");
	bool needed = d->configured && settings_networked(&d->set);

	check_munge(d, "munge", d->set.munge_socket, needed);
	if (own && *own && strcmp(own, d->set.munge_socket) != 0)
		check_munge(d, "munge-client", own, needed);
}

/* --- clock ------------------------------------------------------------------------ */

void doctor_clock(struct doctor *d)
{
	struct timex t = {0};
	int state = adjtimex(&t);
	bool cluster = d->configured && settings_networked(&d->set);
	double offset = (double)t.offset / (t.status & STA_NANO ? 1e6 : 1e3);
	json_t *check;

	if (state < 0) {
		doctor_add(d, "clock", DOCTOR_SKIPPED, NULL, "the kernel does not tell: %s",
			   strerror(errno));
		return;
	}
	if (t.status & STA_UNSYNC || state == TIME_ERROR)
		check = doctor_add(d, "clock", cluster ? DOCTOR_DEGRADED : DOCTOR_OK,
				   cluster ? "run chrony or ntpd on all nodes" : NULL,
				   "not synchronised%s",
				   cluster ? ": credentials are refused when clocks differ"
					   : "; a node alone does not need it");
	else
		check = doctor_add(d, "clock",
				   cluster && (offset > CLOCK_GOOD_MS || offset < -CLOCK_GOOD_MS)
					   ? DOCTOR_DEGRADED
					   : DOCTOR_OK,
				   NULL, "synchronised: %.3f ms off, error at most %.1f ms", offset,
				   (double)t.maxerror / 1e3);
	json_object_set_new(check, "synchronised", json_boolean(!(t.status & STA_UNSYNC)));
	json_object_set_new(check, "offset_ms", json_real(offset));
}

/* --- criu ------------------------------------------------------------------------- */

/*
 * Reads the output of PID until it ends or time is up, and kills it then.  Returns its wait
 * status.
 */
static int doctor_tools_collect(pid_t pid, int fd, char *out, size_t size)
{
	double until = doctor_now_ms() + TOOL_LIMIT_MS;
	size_t at = 0;
	int status = -1;

	for (;;) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		double left = until - doctor_now_ms();
		char drain[512];
		ssize_t n;

		if (left <= 0 || (poll(&ready, 1, (int)left) < 0 && errno != EINTR))
			break;
		if (!ready.revents)
			continue;
		n = read(fd, drain, sizeof(drain));
		if (n <= 0)
			break;
		for (ssize_t i = 0; i < n && at + 1 < size; i++)
			out[at++] = drain[i];
	}
	out[at] = 0;
	while (doctor_now_ms() < until && !waitpid(pid, &status, WNOHANG))
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	if (doctor_now_ms() < until)
		return status;
	/* Kill its whole group: descendants may hold the pipe or hang. */
	kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	snprintf(out, size, "no end within %d s", TOOL_LIMIT_MS / 1000);
	return -1;
}

int doctor_run(const char *program, const char *const *words, char *out, size_t size)
{
	char *argv[8] = {(char *)program};
	char *environment[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *)"LC_ALL=C",
			       NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int pipes[2], rc, status = -1;
	pid_t pid;

	for (size_t i = 0; words[i] && i + 2 < sizeof(argv) / sizeof(argv[0]); i++)
		argv[i + 1] = (char *)words[i];
	out[0] = 0;
	if (pipe2(pipes, O_CLOEXEC))
		return -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], 2);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	rc = posix_spawn(&pid, program, &actions, &attributes, argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[1]);
	if (!rc)
		status = doctor_tools_collect(pid, pipes[0], out, size);
	close(pipes[0]);
	return status;
}

static int run_tool(const char *program, const char *word, char *out, size_t size)
{
	return doctor_run(program, (const char *const[]){word, NULL}, out, size);
}

static void first_line(char *text)
{
	text[strcspn(text, "\n")] = 0;
}

/* Looks for a program DIRECTORY/criu.  Returns whether there is one. */
static bool criu_in(const char *directory, size_t length, char out[PATH_MAX])
{
	struct stat st;
	int n = snprintf(out, PATH_MAX, "%.*s/criu", length ? (int)length : 1,
			 length ? directory : ".");

	return n > 0 && n < PATH_MAX && !stat(out, &st) && S_ISREG(st.st_mode) &&
	       (st.st_mode & 0111);
}

/* Looks along PATH as the shell does, then in places that an ordinary PATH leaves out. */
static bool find_criu(const struct doctor *d, char out[PATH_MAX])
{
	static const char *const places[] = {"/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/bin"};

	for (const char *at = d->path; at && *at;) {
		size_t n = strcspn(at, ":");

		if (criu_in(at, n, out))
			return true;
		at += n + (at[n] == ':');
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (criu_in(places[i], strlen(places[i]), out))
			return true;
	return false;
}

static void try_criu(struct doctor *d, const char *program)
{
	char version[512], said[2048];
	int status = run_tool(program, "--version", version, sizeof(version));

	first_line(version);
	if (status) {
		doctor_add(d, "criu", DOCTOR_DEGRADED, "reinstall it",
			   "%s --version failed: %.200s", program, version);
		return;
	}
	if (!d->root) {
		doctor_add(d, "criu", DOCTOR_OK, "root can ask `criu check`", "%s: %.100s", program,
			   version);
		return;
	}
	status = run_tool(program, "check", said, sizeof(said));
	first_line(said);
	if (status)
		doctor_add(d, "criu", DOCTOR_DEGRADED, "running jobs cannot be moved",
			   "%s (%.100s) says that this kernel lacks something: %.300s", program,
			   version, said);
	else
		doctor_add(d, "criu", DOCTOR_OK, NULL, "%s: %.100s; its check passes", program,
			   version);
}

void doctor_criu(struct doctor *d)
{
	struct iocom_err err = {0};
	char program[PATH_MAX];
	int rc;

	if (!find_criu(d, program)) {
		doctor_add(d, "criu", DOCTOR_SKIPPED, NULL,
			   "not installed; placing jobs does not need it");
		return;
	}
	/* Never run a program that others, or another working directory, could replace. */
	if (program[0] != '/') {
		rc = iocom_err_set(&err, -EPERM, "%.200s is found by a relative entry of PATH",
				   program);
	} else {
		rc = trust_path(program, 0, &err);
	}
	if (rc == -EPERM)
		doctor_add(d, "criu", d->root ? DOCTOR_BROKEN : DOCTOR_DEGRADED,
			   "not run; install the distribution's, correct PATH", "not trusted: %s",
			   err.text);
	else if (rc)
		doctor_add(d, "criu", DOCTOR_DEGRADED, NULL, "%s: %s", program, strerror(-rc));
	else
		try_criu(d, program);
}
