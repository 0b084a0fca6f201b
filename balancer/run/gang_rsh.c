/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * --mpi=rsh: home says where each rank should go, and the user's own mpirun starts them there, in
 * this terminal, with `iocom rsh` as its remote shell.  Its parts are jobs of their own.
 *
 *   Open MPI   mpirun --mca plm_rsh_agent "IOCOM rsh" --mca rmaps seq --hostfile LINES
 *   Hydra      mpiexec -launcher rsh -launcher-exec SCRIPT -f LINES
 *
 * The file, with a line for each rank or for neighbours on one node, and the script that calls
 * IOCOM rsh, are memory that has only names of this process, which mpirun becomes: nothing is left
 * behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "iocom/array.h"
#include "balancer/gang_text.h"
#include "balancer/run/gang.h"
#include "balancer/run/mpi_program.h"

#define VERSION_BYTES 4096 /* of what a starter says of itself */

enum starter { STARTER_NONE, STARTER_OPENMPI, STARTER_HYDRA };

/* The words of the command; the first failure keeps all from growing. */
struct words {
	char **word;
	size_t count, room;
	bool failed;
};

static void words_take(struct words *words, char *word)
{
	/* One more for the end of the list. */
	words->failed |= array_reserve(words->word, words->room, words->count + 2, 16) != 0;
	words->failed |= !word;
	if (words->failed) {
		free(word);
		return;
	}
	words->word[words->count++] = word;
	words->word[words->count] = NULL;
}

__attribute__((format(printf, 2, 3))) static void words_add(struct words *words, const char *fmt,
							    ...)
{
	char *word = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&word, fmt, ap) < 0)
		word = NULL;
	va_end(ap);
	words_take(words, word);
}

static void words_add_list(struct words *words, char *const *list)
{
	for (; *list; list++)
		words_take(words, strdup(*list));
}

static void words_free(struct words *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->word[i]);
	free(words->word);
}

/* --- which mpirun ------------------------------------------------------------------------ */

static _Noreturn void gang_rsh_version(const char *program, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0)
		_exit(127);
	execlp(program, program, "--version", (char *)NULL);
	_exit(127);
}

/* Runs PROGRAM --version.  TEXT gets what it prints; "" if there is none. */
static void gang_rsh_read_version(const char *program, char text[VERSION_BYTES])
{
	size_t at = 0;
	ssize_t n;
	int ends[2];
	pid_t pid;

	*text = 0;
	if (pipe2(ends, O_CLOEXEC))
		return;
	pid = fork();
	if (pid == 0)
		gang_rsh_version(program, ends[1]);
	close(ends[1]);
	while (pid > 0 && at < VERSION_BYTES - 1 &&
	       (n = read(ends[0], text + at, VERSION_BYTES - 1 - at)) != 0)
		if (n > 0)
			at += (size_t)n;
		else if (errno != EINTR)
			break;
	close(ends[0]);
	text[at] = 0;
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static enum starter gang_rsh_kind(const char *program)
{
	char text[VERSION_BYTES];

	gang_rsh_read_version(program, text);
	return strstr(text, "Open MPI") ? STARTER_OPENMPI
	       : strstr(text, "HYDRA")	? STARTER_HYDRA
					: STARTER_NONE;
}

/* Finds the mpirun of the program's MPI; of a script, the one that is first in PATH. */
static enum starter gang_rsh_find(enum mpi_program program, const char **name)
{
	static const char *const names[] = {"mpirun", "mpirun.openmpi", "mpiexec.hydra",
					    "mpirun.mpich", "mpiexec"};
	enum starter wanted = program == MPI_PROGRAM_PMIX   ? STARTER_OPENMPI
			      : program == MPI_PROGRAM_PMI1 ? STARTER_HYDRA
							    : STARTER_NONE;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		enum starter kind = gang_rsh_kind(names[i]);

		*name = names[i];
		if (kind != STARTER_NONE && (wanted == STARTER_NONE || kind == wanted))
			return kind;
	}
	return STARTER_NONE;
}

/* --- its command ------------------------------------------------------------------------- */

/* Makes a file in memory that programs we become can open.  Returns its descriptor, or -1. */
static int gang_rsh_file(const char *name, const char *text, size_t length)
{
	int fd = memfd_create(name, 0);

	if (fd >= 0 && (write(fd, text, length) != (ssize_t)length || fchmod(fd, 0500))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* The node of each rank. */
static const char **gang_rsh_nodes(const struct gang_answer *gang)
{
	const char **nodes = calloc(gang->tasks, sizeof(*nodes));

	for (uint32_t k = 0; nodes && k < gang->nparts; k++)
		for (uint32_t i = 0; i < gang->parts[k].tasks; i++)
			nodes[gang->ranks[gang->parts[k].first + i]] = gang->parts[k].node;
	return nodes;
}

/* One line for each rank or, COUNTED, for the ranks after each other that are on one node. */
static int gang_rsh_hosts(const char *const *nodes, uint32_t tasks, bool counted)
{
	uint32_t next;

	char *text = NULL;
	size_t length;
	FILE *memory = open_memstream(&text, &length);
	int fd = -1;

	for (uint32_t i = 0; memory && i < tasks; i = next) {
		next = i + 1;
		while (counted && next < tasks && !strcmp(nodes[i], nodes[next]))
			next++;
		if (counted)
			fprintf(memory, "%s:%u\n", nodes[i], next - i);
		else
			fprintf(memory, "%s\n", nodes[i]);
	}
	if (memory && !fclose(memory))
		fd = gang_rsh_file("hosts", text, length);
	free(text);
	return fd;
}

/* PROGRAM is this program's path. */
static int gang_rsh_openmpi(const struct run *run, const char *const *nodes, const char *program,
			    struct words *words)
{
	int hosts = gang_rsh_hosts(nodes, (uint32_t)run->gang.tasks, false);

	if (hosts < 0)
		return -errno;
	words_add(words, "-np");
	words_add(words, "%lld", (long long)run->gang.tasks);
	words_add(words, "--mca");
	words_add(words, "plm_rsh_agent");
	words_add(words, "%s rsh", program);
	words_add(words, "--mca");
	words_add(words, "rmaps");
	words_add(words, "seq");
	words_add(words, "--oversubscribe"); /* home has counted the slots */
	words_add(words, "--hostfile");
	words_add(words, "/proc/%d/fd/%d", (int)getpid(), hosts);
	words_add(words, "--bind-to");
	words_add(words, "%s", run->gang.bind ? "core" : "none");
	if (run->gang.label)
		words_add(words, "--tag-output");
	words_add_list(words, run->command);
	return 0;
}

/* The script quotes PROGRAM for the shell. */
static int gang_rsh_script(const char *program)
{
	char *text = NULL;
	size_t length;
	FILE *memory = open_memstream(&text, &length);
	int fd = -1;

	if (memory) {
		fprintf(memory, "#!/bin/sh\nexec '");
		for (const char *at = program; *at; at++)
			fprintf(memory, *at == '\'' ? "'\\''" : "%c", *at);
		fprintf(memory, "' rsh \"$@\"\n");
		if (!fclose(memory))
			fd = gang_rsh_file("rsh", text, length);
	}
	free(text);
	return fd;
}

static int gang_rsh_hydra(const struct run *run, const char *const *nodes, const char *program,
			  struct words *words)
{
	int hosts = gang_rsh_hosts(nodes, (uint32_t)run->gang.tasks, true);
	int script = hosts < 0 ? -1 : gang_rsh_script(program);

	if (script < 0)
		return -errno;
	words_add(words, "-launcher");
	words_add(words, "rsh");
	words_add(words, "-launcher-exec");
	words_add(words, "/proc/%d/fd/%d", (int)getpid(), script);
	words_add(words, "-f");
	words_add(words, "/proc/%d/fd/%d", (int)getpid(), hosts);
	words_add(words, "-n");
	words_add(words, "%lld", (long long)run->gang.tasks);
	if (run->gang.label)
		words_add(words, "-prepend-rank");
	if (run->gang.bind) {
		words_add(words, "-bind-to");
		words_add(words, "core");
	}
	words_add_list(words, run->command);
	return 0;
}

static int gang_rsh_become(const struct run *run, const struct gang_answer *gang,
			   const char *starter, enum starter kind, struct iocom_err *err)
{
	const char **nodes = gang_rsh_nodes(gang);
	struct words words = {0};
	char program[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	int rc = nodes && n > 0 ? 0 : -ENOMEM;

	program[n > 0 ? n : 0] = 0;
	words_add(&words, "%s", starter);
	if (!rc)
		rc = (kind == STARTER_OPENMPI ? gang_rsh_openmpi : gang_rsh_hydra)(run, nodes,
										   program, &words);
	if (!rc && !words.failed) {
		fflush(NULL);
		execvp(starter, words.word);
		rc = -errno;
	}
	words_free(&words);
	free(nodes);
	return iocom_err_set(err, RUN_FAILED, "cannot start %s: %s", starter,
			     strerror(rc ? -rc : ENOMEM));
}

int gang_rsh(const struct run *run, const struct placement *answer, enum mpi_program program,
	     struct iocom_err *err)
{
	const char *starter;
	enum starter kind = gang_rsh_find(program, &starter);

	if (kind == STARTER_NONE)
		return iocom_err_set(
			err, RUN_FAILED,
			program == MPI_PROGRAM_SCRIPT
				? "--mpi=rsh needs an mpirun (Open MPI) or "
				  "mpiexec.hydra (MPICH) in PATH; there is none"
			: program == MPI_PROGRAM_PMI1
				? "%s is a program of MPICH, and there is no mpiexec "
				  "of Hydra in PATH"
				: "%s is a program of Open MPI, and there is no mpirun "
				  "of Open MPI in PATH",
			run->command[0]);
	if (run->verbose) {
		fprintf(stderr, "%s: %s starts %u ranks by iocom rsh: ", run->name, starter,
			answer->gang->tasks);
		gang_text_where(answer->gang, stderr);
		fprintf(stderr, "\n");
	}
	return gang_rsh_become(run, answer->gang, starter, kind, err);
}
