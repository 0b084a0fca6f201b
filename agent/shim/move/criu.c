/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See criu.h. */
#include "agent/shim/move/criu.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/beside.h"
#include "agent/shim/move/breakpoint.h"
#include "user/clock.h"
#include "user/utf8.h"

#define CRIU_ASK_MS    5000
#define CRIU_LOOK_MS   5
#define CRIU_DIE_MS    5000	    /* for a killed process to end */
#define CRIU_LOG_MAX   (256u << 10) /* the end of a log, which has the reason */
#define CRIU_ARGS_MAX  48
#define CRIU_VARIABLES 3
#define DUMP_LOG       "dump.log"
#define PREDUMP_LOG    "pre-dump.log"
#define RESTORE_LOG    "restore.log"
#define CRIU_MEMORY    "memfd:CRIUMFD" /* where its code is while it saves a process */
#define STATUS_SETUP   99	       /* of our own child, before criu */
#define STATUS_KILLED  98	       /* of our own child: somebody killed criu */
/* criu looks at system calls instead, as if it could set no breakpoint. */
#define CRIU_NO_BREAKPOINTS "CRIU_FAULT=130"

/* --- processes ---------------------------------------------------------------------- */

int criu_wait(pid_t pid, uint64_t until_ms)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), status = 0;
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	uint64_t now_ms = clock_boot_ms();
	bool late = false;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		/* Who waits in the kernel for a lost file system cannot be killed. */
		if (late && now_ms >= until_ms)
			break;
		if (now_ms >= until_ms) {
			late = true;
			kill(pid, SIGKILL);
			until_ms = now_ms + CRIU_DIE_MS;
		}
		/* Without a descriptor for it we look again and again. */
		poll(&p, 1, pidfd >= 0 ? (int)(until_ms - now_ms) : CRIU_LOOK_MS);
		now_ms = clock_boot_ms();
	}
	if (pidfd >= 0)
		close(pidfd);
	return late ? -ETIMEDOUT : status;
}

/* Becomes criu with WORDS, VARIABLES (at most CRIU_VARIABLES, then NULL) in its environment, and
 * OUT
 * (-1: none) as output.
 */
static void criu_become(const struct criu *criu, const char *const *words, char *const *variables,
			int out)
{
	sigset_t none;
	char *env[4 + CRIU_VARIABLES] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
					 (char *)"LC_ALL=C"};
	size_t at = 2;
	int null = open("/dev/null", O_RDWR);

	if (!criu->breakpoints)
		env[at++] = (char *)CRIU_NO_BREAKPOINTS;
	for (size_t i = 0; i < CRIU_VARIABLES && variables[i]; i++)
		env[at++] = variables[i];
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 0; null >= 0 && i < 3; i++)
		dup2(i == STDOUT_FILENO && out >= 0 ? out : null, i);
	execve(criu->program, (char *const *)words, env);
	_exit(STATUS_SETUP);
}

/* --- finding it ------------------------------------------------------------------------ */

static int criu_read_version(struct criu *criu, char *text, size_t size)
{
	const char *const words[] = {"criu", "--version", NULL};
	uint64_t until_ms = clock_boot_ms() + CRIU_ASK_MS;
	int ends[2], status;
	ssize_t n = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid)
		criu_become(criu, words, (char *[]){NULL}, ends[1]);
	close(ends[1]);
	status = pid < 0 ? -errno : criu_wait(pid, until_ms);
	if (status == 0)
		n = read(ends[0], text, size - 1);
	text[n > 0 ? n : 0] = 0;
	close(ends[0]);
	return status < 0 ? status : status ? -EPROTO : 0;
}

int criu_find(struct criu *criu, const char *program, struct iocom_err *err)
{
	static const char *const usual[] = {"/usr/sbin/criu", "/usr/local/sbin/criu"};
	unsigned major = 0, minor = 0, sub = 0;
	char text[256];
	int rc;

	*criu = (struct criu){.breakpoints = true};
	for (size_t i = 0; !*program && i < sizeof(usual) / sizeof(usual[0]); i++)
		if (!access(usual[i], X_OK))
			program = usual[i];
	if (!*program)
		return iocom_err_set(err, -ENOENT, "criu is not installed");
	snprintf(criu->program, sizeof(criu->program), "%s", program);
	if (access(program, X_OK))
		return iocom_err_set(err, -ENOENT, "there is no criu at %s", program);
	rc = criu_read_version(criu, text, sizeof(text));
	if (!rc && sscanf(text, "Version: %u.%u.%u", &major, &minor, &sub) < 2)
		rc = -EPROTO;
	if (rc)
		return iocom_err_set(err, rc == -ETIMEDOUT ? rc : -EPROTO,
				     "%s does not say its version as criu does", program);
	criu->version = major * 10000 + minor * 100 + sub;
	if (criu->version < CRIU_LEAST)
		return iocom_err_set(err, -EPROTONOSUPPORT,
				     "criu %u.%u is too old: 4.0 is the oldest that works", major,
				     minor);
	criu->breakpoints = breakpoint_works();
	return 0;
}

/* --- reasons -------------------------------------------------------------------------- */

/* What criu's log says, and what that means to the job's user. */
static const struct {
	const char *log, *means;
} criu_reasons[] = {
	{"Connected TCP socket", "it has an open network connection"},
	{"TCP_REPAIR", "it has an open network connection"},
	{"inet: In-flight connection", "it has a network connection that nobody has accepted"},
	{"External socket is used", "it is connected to another program of its node"},
	{"unix: Can't dump half of stream", "it is connected to another program of its node"},
	{"Can't dump unlinked", "it has a deleted file open"},
	{"Unix socket", "it is connected to another program of its node"},
	{"sockets: Can't get",
	 "it has a network socket, which this criu cannot save on this kernel"},
	{"io_uring", "it uses io_uring"},
	{"Can't lookup mount", "it has a file open that is not there any more"},
	{"Can't dump file", "it has a file open of a kind that cannot be moved"},
	{"Unsupported chr device", "it uses a device"},
	{"tty", "its terminal cannot be moved"},
	{"found while seizing", "one of its processes is traced, by a debugger perhaps"},
	{"Unseizable non-zombie", "one of its processes is traced, by a debugger perhaps"},
	{"is not a session leader", "a process of it belongs to a session outside"},
	{"does not have enough", "there is too little room"},
	{"No space left", "there is too little room for its memory"},
	{"mtime", "a file that it has open has changed"},
	{"has bad size", "a file that it has open is another one at the target"},
	{"has bad build-ID", "a program or library of it is another one at the target"},
	{"has bad checksum", "a file that it has mapped is another one at the target"},
	{"Can't open file", "the target lacks a file that it has open"},
	{"CPU capabilities do not match", "the target's processor lacks what the job's has"},
	{"Pre dump script failed", "its processes cannot be shown to criu now; try again later"},
	{"Could not initialize kernel features",
	 "the kernel here lacks what criu needs: `criu check` says what"},
	{"Operation not permitted", "the kernel does not give root the right to do it here"},
};

/* What an earlier criu said must not explain how the next one ends. */
static void criu_forget_log(const char *dir, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
}

/* Reads the end of the file NAME in DIR.  Returns a string to free(), or NULL. */
static char *criu_log(const char *dir, const char *name)
{
	char path[PATH_MAX], *text = calloc(1, CRIU_LOG_MAX + 1);
	off_t end;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = text ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (fd < 0) {
		free(text);
		return NULL;
	}
	end = lseek(fd, 0, SEEK_END);
	if (end > (off_t)CRIU_LOG_MAX)
		(void)!pread(fd, text, CRIU_LOG_MAX, end - (off_t)CRIU_LOG_MAX);
	else
		(void)!pread(fd, text, CRIU_LOG_MAX, 0);
	close(fd);
	return text;
}

/* Says what a line of criu's log means, and the line, which may name a file.  Returns -ENOTSUP. */
static int criu_means(const char *means, const char *line, struct iocom_err *err)
{
	char shown[140];

	snprintf(shown, sizeof(shown), "%s", line);
	utf8_plain(shown);
	return iocom_err_set(err, -ENOTSUP, "%s (criu: %s)", means, shown);
}

/* Puts into ERR what the first error of the log means.  Returns RC, or -ENOTSUP for a known one. */
static int criu_explain(const char *dir, const char *name, const char *what, int rc,
			struct iocom_err *err)
{
	char *log = criu_log(dir, name), first[160] = "", *line, *rest = log;

	while (rest && (line = strsep(&rest, "\n"))) {
		const char *error = strstr(line, "Error (");
		const char *text = error ? strstr(error, "): ") : NULL;

		/* criu tries to raise a limit, and to make a network device, and can do without. */
		if (!text || strstr(text, "RLIMIT_NOFILE") || strstr(text, "Unable to create tun"))
			continue;
		for (size_t i = 0; i < sizeof(criu_reasons) / sizeof(criu_reasons[0]); i++)
			if (strstr(text, criu_reasons[i].log)) {
				rc = criu_means(criu_reasons[i].means, text + 3, err);
				free(log);
				return rc;
			}
		if (!*first)
			snprintf(first, sizeof(first), "%s", text + 3);
	}
	free(log);
	utf8_plain(first);
	return iocom_err_set(err, rc, "criu could not %s it%s%s", what, *first ? ": " : "", first);
}

/* --- dump ------------------------------------------------------------------------------- */

int criu_pipe_name(struct criu_pipe *pipe, pid_t pid, int fd)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	n = readlink(path, pipe->name, sizeof(pipe->name) - 1);
	if (n < 0)
		return -errno;
	pipe->name[n] = 0;
	return strncmp(pipe->name, "pipe:[", 6) ? -EINVAL : 0;
}

int criu_tty_name(char name[CRIU_NAME_MAX], int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	snprintf(name, CRIU_NAME_MAX, "tty[%llx:%llx]", (unsigned long long)st.st_rdev,
		 (unsigned long long)st.st_dev);
	return 0;
}

/* Enters the mount namespace of INIT. */
static int criu_enter(pid_t init)
{
	char path[64];
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", init);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = setns(fd, CLONE_NEWNS) ? -errno : 0;
	close(fd);
	return rc;
}

/*
 * In the job's mount namespace: takes what lies over the job's /proc from it.  A process that is
 * not in the job's pid namespace does not find itself in the job's /proc.
 */
static int criu_uncover_proc(void)
{
	char self[16];

	while (readlink("/proc/self", self, sizeof(self)) > 0)
		if (umount2("/proc", MNT_DETACH))
			return -errno;
	return 0;
}

/*
 * In a process of its own: runs criu in the job's namespace, over whose /proc it lays the node's,
 * and of whose processes COVER, if any, tells iocom-hold (agent/init/hold.h).  The job is frozen
 * and sees none of it.  Neither this process nor criu ends with who began it: a criu that is killed
 * leaves its code in the job.
 */
static void criu_dump_there(const struct criu *criu, pid_t init, const char *const *words,
			    char *cover, unsigned limit_ms)
{
	int status;
	pid_t pid;

	if (criu_enter(init) ||
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		_exit(STATUS_SETUP);
	pid = fork();
	if (!pid)
		criu_become(criu, words, (char *[]){cover, NULL}, -1);
	status = pid < 0 ? -errno : criu_wait(pid, clock_boot_ms() + limit_ms);
	(void)criu_uncover_proc();
	if (status > 0 && WIFSIGNALED(status))
		_exit(STATUS_KILLED);
	_exit(status == -ETIMEDOUT ? ETIMEDOUT : status ? 1 : 0);
}

void criu_bare_proc(pid_t init)
{
	pid_t pid = fork();

	if (!pid)
		_exit(criu_enter(init) || criu_uncover_proc());
	if (pid > 0)
		criu_wait(pid, clock_boot_ms() + CRIU_ASK_MS);
}

/*
 * What criu writes over the beginning of a process's first code for as long as it makes system
 * calls there: the call, and a trap (compel, "code_syscall").
 */
#if defined(__x86_64__)
static const uint8_t criu_call[8] = {0x0f, 0x05, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};
#elif defined(__aarch64__)
static const uint8_t criu_call[8] = {0x01, 0x00, 0x00, 0xd4, 0x00, 0x00, 0x20, 0xd4};
#endif

/* Returns whether LINE of the maps is one of criu's own, or code that it has written over. */
static bool criu_is_at(const char *line, int memory)
{
	uint8_t code[sizeof(criu_call)];
	unsigned long long start;
	char may[5];

	if (strstr(line, CRIU_MEMORY))
		return true;
	return sscanf(line, "%llx-%*x %4s", &start, may) == 2 && may[2] == 'x' &&
	       start <= INT64_MAX &&
	       pread(memory, code, sizeof(code), (off_t)start) == sizeof(code) &&
	       !memcmp(code, criu_call, sizeof(code));
}

/* Returns whether criu's code is in process PID. */
static bool criu_is_mapped(int pid)
{
	char path[64], *line = NULL;
	bool found = false;
	size_t room = 0;
	FILE *maps;
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	while (maps && !found && getline(&line, &room, maps) > 0)
		found = criu_is_at(line, memory);
	free(line);
	if (maps)
		fclose(maps);
	if (memory >= 0)
		close(memory);
	return found;
}

bool criu_is_inside(const char *group)
{
	char path[CGROUP_PATH_MAX + 16];
	bool found = false;
	FILE *pids;
	int pid;

	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	pids = fopen(path, "re");
	while (pids && !found && fscanf(pids, "%d", &pid) == 1)
		found = criu_is_mapped(pid);
	if (pids)
		fclose(pids);
	return found;
}

/* Adds what says that only what has changed since the images of PREVIOUS (NULL: none) is saved. */
static void criu_after(const char **words, size_t at, const char *previous)
{
	if (!previous)
		return;
	words[at++] = "--track-mem";
	words[at++] = "--prev-images-dir";
	words[at] = previous;
}

/*
 * In the process that becomes criu: it sees the node's /proc in a copy of the job's mounts.  The
 * job runs meanwhile, and sees none of it.
 */
static int criu_predump_place(pid_t init)
{
	int rc = criu_enter(init);

	if (rc)
		return rc;
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return -errno;
	return 0;
}

int criu_predump(const struct criu *criu, const struct criu_job *job, const char *dir,
		 unsigned limit_ms, struct iocom_err *err)
{
	char number[16];
	const char *words[CRIU_ARGS_MAX] = {"criu",
					    "pre-dump",
					    "-t",
					    number,
					    "-D",
					    dir,
					    "-o",
					    PREDUMP_LOG,
					    "-v2",
					    "--freeze-cgroup",
					    job->group,
					    "--manage-cgroups=ignore",
					    job->previous ? NULL : "--track-mem"};
	int status;
	pid_t pid;

	snprintf(number, sizeof(number), "%d", job->init);
	criu_after(words, 12, job->previous);
	pid = fork();
	if (!pid) {
		if (criu_predump_place(job->init))
			_exit(STATUS_SETUP);
		criu_become(criu, words, (char *[]){NULL}, -1);
	}
	if (pid < 0)
		return iocom_err_set(err, -errno, "cannot make a process for criu: %s",
				     strerror(errno));
	status = criu_wait(pid, clock_boot_ms() + limit_ms);
	if (status == 0)
		return 0;
	if (status < 0)
		return iocom_err_set(err, -ETIMEDOUT, "criu took longer than %u ms to save it",
				     limit_ms);
	if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SETUP)
		return iocom_err_set(err, -EPERM, "cannot enter the job's namespaces");
	return criu_explain(dir, PREDUMP_LOG, "save", -EIO, err);
}

int criu_dump(const struct criu *criu, const struct criu_job *job, const char *dir,
	      unsigned limit_ms, struct iocom_err *err)
{
	char number[16], script[PATH_MAX], cover[32];
	const char *words[CRIU_ARGS_MAX] = {"criu",
					    "dump",
					    "-t",
					    number,
					    "-D",
					    dir,
					    "-o",
					    DUMP_LOG,
					    "-v2",
					    "--freeze-cgroup",
					    job->group,
					    "--leave-running",
					    "--manage-cgroups=ignore"};
	pid_t init = job->init, pid;
	size_t at = 13;
	int status;

	if (beside(script, "iocom-hold"))
		return iocom_err_set(err, -ENAMETOOLONG, "its script has too long a path");
	if (job->tty && *job->tty) {
		words[at++] = "--external";
		words[at++] = job->tty;
	}
	if (job->uid) { /* each call of it costs time: root needs none */
		words[at++] = "--action-script";
		words[at++] = script;
	}
	criu_after(words, at, job->previous);
	snprintf(number, sizeof(number), "%d", init);
	snprintf(cover, sizeof(cover), "IOCOM_COVER=%d", init);
	criu_forget_log(dir, DUMP_LOG);
	pid = fork();
	if (!pid)
		criu_dump_there(criu, init, words, job->uid ? cover : NULL, limit_ms);
	if (pid < 0)
		return iocom_err_set(err, -errno, "cannot make a process for criu: %s",
				     strerror(errno));
	status = criu_wait(pid, clock_boot_ms() + limit_ms + CRIU_ASK_MS);
	if (status == 0)
		return 0;
	if (status < 0 || WIFSIGNALED(status))
		criu_bare_proc(init);
	if (status > 0 && (WIFSIGNALED(status) || WEXITSTATUS(status) == STATUS_KILLED))
		return -EIO;
	if (status < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == ETIMEDOUT))
		return iocom_err_set(err, -ETIMEDOUT, "criu took longer than %u ms to save it",
				     limit_ms);
	if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SETUP)
		return iocom_err_set(err, -EPERM, "cannot enter the job's namespaces");
	return criu_explain(dir, DUMP_LOG, "save", -EIO, err);
}

/* --- restore ------------------------------------------------------------------------------ */

/* In the process that becomes criu: the job's mount namespace is made here. */
static int criu_restore_place(const struct cgroup *group)
{
	int rc = cgroup_enter(group, true);

	if (rc)
		return rc;
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL))
		return -errno;
	return 0;
}

pid_t criu_restore(const struct criu *criu, const char *dir, const struct cgroup *group,
		   const struct criu_pipe *pipes, size_t npipes, const char *tty, const char *hold,
		   struct iocom_err *err)
{
	char inherit[8][CRIU_NAME_MAX + 16], script[PATH_MAX], library[PATH_MAX];
	char hold_env[PATH_MAX + 16], tty_env[PATH_MAX + 16], load_env[PATH_MAX + 16];
	char *const variables[] = {hold_env, *tty ? tty_env : NULL, load_env, NULL};
	const char *words[CRIU_ARGS_MAX] = {"criu",
					    "restore",
					    "-D",
					    dir,
					    "-o",
					    RESTORE_LOG,
					    "-v2",
					    "--restore-detached",
					    "--restore-sibling",
					    "--manage-cgroups=ignore",
					    "--action-script",
					    script};
	size_t at = 12;
	pid_t pid;

	if (npipes > sizeof(inherit) / sizeof(inherit[0]) || beside(script, "iocom-hold") ||
	    beside(library, "iocom-tty.so"))
		return iocom_err_set(err, -EINVAL, "too many pipes, or too long a path");
	for (size_t i = 0; i < npipes; i++) {
		snprintf(inherit[i], sizeof(inherit[i]), "fd[%d]:%s", pipes[i].fd, pipes[i].name);
		words[at++] = "--inherit-fd";
		words[at++] = inherit[i];
	}
	snprintf(hold_env, sizeof(hold_env), "IOCOM_HOLD=%s", hold);
	snprintf(tty_env, sizeof(tty_env), "IOCOM_TTY=%s", tty);
	snprintf(load_env, sizeof(load_env), "LD_PRELOAD=%s", library);
	criu_forget_log(dir, RESTORE_LOG);
	pid = fork();
	if (pid < 0)
		return iocom_err_set(err, -errno, "cannot make a process for criu: %s",
				     strerror(errno));
	if (!pid) {
		if (criu_restore_place(group))
			_exit(STATUS_SETUP);
		for (size_t i = 0; i < npipes; i++)
			fcntl(pipes[i].fd, F_SETFD, 0);
		criu_become(criu, words, variables, -1);
	}
	return pid;
}

void criu_restore_explain(const char *dir, struct iocom_err *err)
{
	criu_explain(dir, RESTORE_LOG, "restore", -EIO, err);
}
