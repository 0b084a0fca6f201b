/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How the tasks of a gang find each other: what the user says, or what the program was built for.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "balancer/job_class.h"
#include "balancer/look_aside.h"
#include "balancer/run/gang.h"

/* The names of libraries stand near the beginning, whatever follows. */
#define PROGRAM_MOST (64u << 20)

struct looked {
	int error; /* errno; 0: it was read */
	enum mpi_program program;
	char library[MPI_LIBRARY_LENGTH];
};

static int gang_mpi_read(int fd, struct looked *looked)
{
	struct stat st;
	size_t n, at = 0;
	char *bytes;

	if (fstat(fd, &st))
		return errno;
	n = st.st_size > (off_t)PROGRAM_MOST ? PROGRAM_MOST : (size_t)st.st_size;
	bytes = malloc(n + 1);
	if (!bytes)
		return ENOMEM;
	while (at < n) {
		ssize_t got = read(fd, bytes + at, n - at);

		if (got <= 0)
			break;
		at += (size_t)got;
	}
	looked->program = mpi_program_of(bytes, at, looked->library);
	free(bytes);
	return 0;
}

static void gang_mpi_look(const void *arg, void *out)
{
	struct looked *looked = out;
	int fd = open(arg, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	looked->error = fd < 0 ? errno : gang_mpi_read(fd, looked);
	if (fd >= 0)
		close(fd);
}

/* The user's word stands, but not against what the program says of itself. */
static int gang_mpi_agreed(const struct run *run, const struct gang_mpi_choice *choice,
			   struct iocom_err *err)
{
	bool pmix = choice->launch == GANG_LAUNCH_PMIX;

	if (pmix && choice->program == MPI_PROGRAM_PMI1)
		return iocom_err_set(err, RUN_FAILED,
				     "%s was built for MPICH (%s), which does not speak PMIx here: "
				     "each rank would be alone; use --mpi or --mpi=pmi1",
				     run->command[0], choice->library);
	if (!pmix && choice->program == MPI_PROGRAM_PMIX)
		return iocom_err_set(err, RUN_FAILED,
				     "%s was built for Open MPI or PMIx (%s), which does not speak "
				     "PMI-1: each rank would be alone; use --mpi or --mpi=pmix",
				     run->command[0], choice->library);
	return 0;
}

/* A shell or an interpreter, whose work another program does. */
static bool gang_mpi_wraps(char *const *command)
{
	const char *base = strrchr(command[0], '/');
	char class_name[PLACEMENT_CLASS_MAX];

	job_class(command, class_name, sizeof(class_name));
	return strcmp(class_name, base ? base + 1 : command[0]) != 0;
}

/* Looks at the program that COMMAND runs, also by way of nice, env and the like. */
static void gang_mpi_find(const struct run *run, struct looked *looked)
{
	char *const *command = job_class_command(run->command);
	char *path;

	looked->program = MPI_PROGRAM_SCRIPT;
	if (!command)
		return;
	path = command == run->command
		       ? strdup(run->executable)
		       : placement_request_resolve(command[0], run->cwd, getenv("PATH"));
	if (!path || look_aside(gang_mpi_look, path, looked, sizeof(*looked)) || looked->error)
		looked->program = MPI_PROGRAM_SCRIPT; /* a file that one may run, but not read */
	if (looked->program == MPI_PROGRAM_NONE && gang_mpi_wraps(command))
		looked->program = MPI_PROGRAM_SCRIPT;
	free(path);
}

static bool gang_mpi_starter(const char *command)
{
	static const char *const starters[] = {"mpirun", "mpiexec", "orterun", "srun", "prun"};
	const char *base = strrchr(command, '/');
	size_t n = strcspn(base ? base + 1 : command, ".");

	for (size_t i = 0; i < sizeof(starters) / sizeof(starters[0]); i++)
		if (strlen(starters[i]) == n && !strncmp(base ? base + 1 : command, starters[i], n))
			return true;
	return false;
}

int gang_mpi_choose(const struct run *run, struct gang_mpi_choice *choice, struct iocom_err *err)
{
	struct looked looked = {.error = EIO};
	char *const *command = job_class_command(run->command);

	*choice =
		(struct gang_mpi_choice){.launch = GANG_LAUNCH_TASKS, .program = MPI_PROGRAM_NONE};
	choice->name = command ? command[0] : run->command[0];
	if (run->gang.mpi == GANG_MPI_NONE)
		return 0;
	if (command && gang_mpi_starter(command[0]))
		return iocom_err_set(err, RUN_FAILED,
				     "%s starts ranks itself: name the program in its place "
				     "(--mpi=rsh takes the mpirun of its MPI)",
				     command[0]);
	gang_mpi_find(run, &looked);
	choice->program = looked.program;
	memcpy(choice->library, looked.library, MPI_LIBRARY_LENGTH);
	if (choice->program == MPI_PROGRAM_NONE &&
	    (run->gang.mpi == GANG_MPI_AUTO || run->gang.mpi == GANG_MPI_RSH))
		return iocom_err_set(
			err, RUN_FAILED,
			"%s is no MPI program: it needs no library of Open MPI, PMIx or "
			"MPICH; for independent tasks leave out --mpi, for a program "
			"with such a library inside say --mpi=pmix",
			choice->name);
	choice->launch = run->gang.mpi == GANG_MPI_RSH	       ? GANG_LAUNCH_NONE
			 : run->gang.mpi == GANG_MPI_PMIX      ? GANG_LAUNCH_PMIX
			 : run->gang.mpi == GANG_MPI_PMI1      ? GANG_LAUNCH_PMI1
			 : choice->program == MPI_PROGRAM_PMI1 ? GANG_LAUNCH_PMI1
							       : GANG_LAUNCH_PMIX;
	return choice->launch == GANG_LAUNCH_NONE ? 0 : gang_mpi_agreed(run, choice, err);
}
