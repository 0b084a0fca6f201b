/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See gang_options.h. */
#include "balancer/run/gang_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/run/nodelist.h"

const char gang_help[] =
	"one parallel job (iocom-run(1), PARALLEL JOBS):\n"
	"  -n, --ntasks TASKS  start COMMAND so many times, on as many nodes as is best,\n"
	"                  as one job: all of them or none\n"
	"  --mpi[=pmix|pmi1|rsh]  the tasks are ranks of one MPI program [what COMMAND\n"
	"                  was built for]: pmix for Open MPI, pmi1 for MPICH,\n"
	"                  rsh by your own mpirun\n"
	"  --per-node N, --ntasks-per-node N  at most N tasks on a node\n"
	"  --oversubscribe  more tasks on a node than it has slots\n"
	"  --on LIST       only on these nodes: n1,n[2-4] [all]\n"
	"  --keep-going    a task that fails does not end the others (not with --mpi)\n"
	"  --bind          each task has processors of its own, where there are enough\n"
	"  --label         print \"TASK: \" before each line of output [--no-label]\n";

void gang_options_init(struct gang_options *options)
{
	*options = (struct gang_options){.tasks = -1};
}

/* Reads a number of 1 to GANG_ANSWER_TASKS_MAX.  Returns 0 or -EINVAL; *NUMBER: TEXT is one. */
static int gang_options_number(const char *text, int64_t *out, bool *number)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	*number = isdigit((unsigned char)(*text == '-' ? text[1] : *text)) && !*end;
	if (!*number || *text == '-' || errno || value < 1 || value > GANG_ANSWER_TASKS_MAX)
		return -EINVAL;
	*out = (int64_t)value;
	return 0;
}

static int gang_options_tasks(struct gang_options *options, const char *text, struct iocom_err *err)
{
	bool number;

	if (!gang_options_number(text, &options->tasks, &number))
		return 0;
	if (!strcmp(text, "p"))
		return iocom_err_set(err, -EINVAL, "-np is -n here: write -n TASKS");
	if (!number)
		return iocom_err_set(err, -EINVAL,
				     "-n wants a number of tasks, not '%s'; for no input use "
				     "--stdin none",
				     text);
	return iocom_err_set(err, -EINVAL, "-n takes 1 to %d tasks, not '%s'",
			     GANG_ANSWER_TASKS_MAX, text);
}

static int gang_options_per_node(struct placement_ask *ask, const char *text, struct iocom_err *err)
{
	bool number;

	if (!gang_options_number(text, &ask->per_node, &number))
		return 0;
	return iocom_err_set(err, -EINVAL, "--per-node takes 1 to %d tasks, not '%s'",
			     GANG_ANSWER_TASKS_MAX, text);
}

static int gang_options_mpi(struct gang_options *options, const char *text, struct iocom_err *err)
{
	static const struct {
		const char *word;
		enum gang_mpi mpi;
	} known[] = {{"pmix", GANG_MPI_PMIX}, {"pmi1", GANG_MPI_PMI1}, {"rsh", GANG_MPI_RSH}};

	options->mpi = GANG_MPI_AUTO;
	if (!text)
		return 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(text, known[i].word) != 0)
			continue;
		options->mpi = known[i].mpi;
		return 0;
	}
	return iocom_err_set(err, -EINVAL, "--mpi takes pmix, pmi1 or rsh after =, not '%s'", text);
}

int gang_options_take(struct gang_options *options, struct placement_ask *ask, int option,
		      const char *value, struct iocom_err *err)
{
	switch (option) {
	case GANG_TASKS:
		return gang_options_tasks(options, value, err);
	case GANG_MPI:
		return gang_options_mpi(options, value, err);
	case GANG_PER_NODE:
		options->given = "--per-node";
		return gang_options_per_node(ask, value, err);
	case GANG_OVERSUBSCRIBE:
		options->given = "--oversubscribe";
		ask->oversubscribe = true;
		return 0;
	case GANG_ON:
		options->given = "--on";
		options->on = value;
		return 0;
	case GANG_KEEP_GOING:
		options->given = "--keep-going";
		options->keep_going = ask->keep_going = true;
		return 0;
	case GANG_BIND:
		options->given = "--bind";
		options->bind = true;
		return 0;
	default:
		return 1;
	}
}

/* Writes the names of --on, joined by commas. */
static int gang_options_only(const char *on, struct placement_ask *ask, struct iocom_err *err)
{
	struct nodelist nodes = {0};
	size_t at = 0;
	int rc = strcmp(on, "all") ? nodelist_parse(on, &nodes, err) : 0;

	if (rc) {
		iocom_err_prefix(err, "--on");
		return rc;
	}
	for (size_t i = 0; !rc && i < nodes.count; i++) {
		int n = snprintf(ask->only + at, sizeof(ask->only) - at, "%s%s", i ? "," : "",
				 nodes.names[i]);

		at += (size_t)n;
		if (at >= sizeof(ask->only))
			rc = iocom_err_set(err, -EINVAL,
					   "--on: the names of %zu nodes are longer than %zu bytes",
					   nodes.count, sizeof(ask->only) - 1);
	}
	nodelist_fini(&nodes);
	return rc;
}

/* --mpi takes its word after =, or the word is taken for the command. */
static bool gang_options_loose(char *const *command)
{
	return !strcmp(command[0], "pmix") || !strcmp(command[0], "pmi1");
}

int gang_options_check(const struct gang_options *options, struct placement_ask *ask,
		       const char *single, char *const *command, struct iocom_err *err)
{
	if (options->tasks < 0 && options->mpi != GANG_MPI_NONE)
		return iocom_err_set(err, -EINVAL,
				     "--mpi needs -n TASKS: how many ranks the job has");
	if (options->tasks < 0)
		return options->given
			       ? iocom_err_set(err, -EINVAL,
					       "%s goes with -n TASKS only: it is for a job of "
					       "several tasks",
					       options->given)
			       : 0;
	if (single && !strcmp(single, "--node"))
		return iocom_err_set(err, -EINVAL,
				     "--node and -n do not go together: --on %s takes only that "
				     "node",
				     ask->node);
	if (single)
		return iocom_err_set(err, -EINVAL, "%s and -n do not go together", single);
	if (options->keep_going && options->mpi != GANG_MPI_NONE)
		return iocom_err_set(err, -EINVAL,
				     "--keep-going and --mpi do not go together: the ranks of an "
				     "MPI program wait for one that is gone");
	if (options->mpi == GANG_MPI_AUTO && command && command[0] && gang_options_loose(command))
		return iocom_err_set(err, -EINVAL, "--mpi takes its word after =: --mpi=%s",
				     command[0]);
	ask->tasks = options->tasks;
	return options->on ? gang_options_only(options->on, ask, err) : 0;
}
