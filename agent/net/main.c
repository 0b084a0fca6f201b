/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * iocom-net: the network part of the agent.  iocomd starts it as root, with the gate as descriptor
 * 3 and its log, a pipe, as 4; it becomes UID and GID, whose only directory is ROOM, and is
 * confined before it reads a byte from the network (confine.h).
 *
 * Its libraries' threads run ten levels (nice) below its loop, as iocomd's do (priority.h): they
 * are started at that level, and the limit of levels lets the loop go back to its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/priority.h"
#include "agent/base/spawn.h"
#include "agent/net/confine.h"
#include "agent/net/names.h"
#include "agent/net/net.h"

#define GATE_FD	       SPAWN_FIRST_FD
#define LOG_FD	       (SPAWN_FIRST_FD + 1)
#define LEVELS_OF_NICE 20 /* RLIMIT_NICE counts from there */
#define OOM_SCORE      (-500)
#define OOM_SCORE_TEXT "-500"

struct program {
	struct loop *loop;
	int level;	 /* the loop's, nice */
	bool comes_back; /* without CAP_SYS_RESOURCE it stays at its threads' */
	bool failed;
	bool told; /* root knows why this ends */
};

static int main_failed(const struct iocom_err *err)
{
	fprintf(stderr, "iocom-net: %s\n", err->text);
	return 1;
}

/* Reads an id: digits only.  Returns 0 or -EINVAL. */
static int main_read_id(const char *text, unsigned *out)
{
	unsigned long id;
	char *end;

	errno = 0;
	id = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || id >= 0xffffffff)
		return -EINVAL;
	*out = (unsigned)id;
	return 0;
}

static bool main_has_gate(void)
{
	struct stat st;

	return !fstat(GATE_FD, &st) && S_ISSOCK(st.st_mode);
}

/* --- priority -------------------------------------------------------------------------------- */

/* Lets the loop come back to its level after threads have started at a lower one. */
static void main_allow_levels(struct program *p)
{
	struct rlimit back;

	errno = 0;
	p->level = getpriority(PRIO_PROCESS, 0);
	if (errno)
		p->level = 0;
	back.rlim_cur = back.rlim_max = (rlim_t)(LEVELS_OF_NICE - p->level);
	p->comes_back = !setrlimit(RLIMIT_NICE, &back);
}

/* As root, before it confines itself: what it then may not. */
static void main_spare(void)
{
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = {0};

	/* Nothing is lost with it that does not come back: others are spared first. */
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && atoi(text) < OOM_SCORE)
		(void)!pwrite(fd, OOM_SCORE_TEXT, sizeof(OOM_SCORE_TEXT) - 1, 0);
	if (fd >= 0)
		close(fd);
}

/* The sockets are open, and all threads have begun. */
static int main_ready(void *arg, struct iocom_err *err)
{
	const struct program *p = arg;
	int rc;

	if (p->comes_back) /* on Linux this thread alone */
		(void)setpriority(PRIO_PROCESS, 0, p->level);
	rc = confine_late(err);
	if (rc != CONFINE_E_UNFILTERED)
		return rc;
	fprintf(stderr, "iocom-net: %s\n", err->text);
	return 0;
}

/* --- the program ----------------------------------------------------------------------------- */

static void main_over(void *arg)
{
	struct program *p = arg;

	loop_stop(p->loop);
}

static void main_names_broken(void *arg, const char *why)
{
	struct program *p = arg;

	fprintf(stderr, "iocom-net: the look-up of names has ended (%s): this part starts again\n",
		why);
	p->failed = true;
	loop_stop(p->loop);
}

static int main_serve(struct program *p, int names_fd, struct iocom_err *err)
{
	const struct names_config names_config = {
		.loop = p->loop, .fd = names_fd, .broken = main_names_broken, .arg = p};
	struct net_config config = {
		.loop = p->loop, .fd = GATE_FD, .ready = main_ready, .over = main_over, .arg = p};
	struct net *net;
	int rc = names_new(&config.names, &names_config, err);

	if (rc)
		return rc;
	(void)setpriority(PRIO_PROCESS, 0, p->level + PRIORITY_LEVELS);
	rc = net_new(&net, &config, err);
	p->told = rc != 0;
	if (!rc) {
		rc = loop_run(p->loop);
		if (rc)
			iocom_err_set(err, rc, "the event loop failed: %s", strerror(-rc));
	}
	/* The process ends with it; nng 1.5.2 may hang when it closes sockets that peers use. */
	return rc;
}

static int main_run(uid_t uid, gid_t gid, const char *room)
{
	struct program program = {0};
	struct names_helper helper;
	struct confined confined;
	struct iocom_err err = {0};
	int rc;

	main_spare();
	main_allow_levels(&program);
	rc = names_start(uid, gid, &helper, &err);
	if (!rc)
		rc = confine_early(uid, gid, room, &confined, &err);
	if (rc)
		return main_failed(&err);
	if (confined.said[0])
		fprintf(stderr, "iocom-net: %s\n", confined.said);
	rc = loop_new(&program.loop, &err);
	if (!rc)
		rc = main_serve(&program, helper.fd, &err);
	if (rc && !program.told)
		main_failed(&err);
	_exit(rc || program.failed);
}

int main(int argc, char **argv)
{
	unsigned uid, gid;

	if (argc == 2 && !strcmp(argv[1], "--version")) {
		printf("iocom-net %s\n", IOCOM_VERSION);
		return fflush(stdout) ? 1 : 0;
	}
	if (argc != 4 || main_read_id(argv[1], &uid) || main_read_id(argv[2], &gid) ||
	    !main_has_gate()) {
		fputs("iocom-net: this is the network part of the agent; iocomd starts it (see "
		      "iocomd(8))\n",
		      stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (dup2(LOG_FD, STDERR_FILENO) >= 0)
		close(LOG_FD);
	return main_run(uid, gid, argv[3]);
}
