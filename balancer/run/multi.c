/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The options of `iocom run -N`; see multi.h. */
#include "balancer/run/multi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char multi_help[] =
	"many nodes at once:\n"
	"  -N, --nodes LIST  run a job on each: n1,n2 or n[1-4,7]; all; or a number: the\n"
	"                  best so many\n"
	"  --label, --no-label  print \"NODE: \" before each line of output, or not\n"
	"                  [--label]\n"
	"  --gather        print standard output at the end, each node's in one piece,\n"
	"                  equal ones folded\n"
	"  --stdin none|all  copy standard input to no node or to all [none]; none also\n"
	"                  for one job\n"
	"  --fanout N      run on at most N nodes at a time [32]\n"
	"  --kill-on-fail  when a job fails, send TERM to the others and return its\n"
	"                  status\n";

void multi_init(struct multi_options *options)
{
	*options = (struct multi_options){.label = true, .fanout = MULTI_FANOUT_DEFAULT};
}

static int take_stdin(struct multi_options *options, const char *value, struct iocom_err *err)
{
	options->stdin_all = !strcmp(value, "all");
	options->stdin_none = !strcmp(value, "none");
	if (options->stdin_all)
		options->given = "--stdin all";
	return options->stdin_all || options->stdin_none
		       ? 0
		       : iocom_err_set(err, -EINVAL, "--stdin takes none or all, not '%s'", value);
}

static int take_fanout(struct multi_options *options, const char *value, struct iocom_err *err)
{
	char *end;
	long n = strtol(value, &end, 10);

	if (end == value || *end || n < 1 || n > MULTI_FANOUT_MAX)
		return iocom_err_set(err, -EINVAL, "--fanout takes 1 to %d nodes, not '%s'",
				     MULTI_FANOUT_MAX, value);
	options->fanout = (unsigned)n;
	options->given = "--fanout";
	return 0;
}

int multi_take(struct multi_options *options, int option, const char *value, struct iocom_err *err)
{
	switch (option) {
	case MULTI_NODES:
		options->nodes = value;
		return 0;
	case MULTI_LABEL:
	case MULTI_NO_LABEL:
		options->label = option == MULTI_LABEL;
		options->labels = options->label ? "--label" : "--no-label";
		return 0;
	case MULTI_GATHER:
		options->gather = true;
		options->given = "--gather";
		return 0;
	case MULTI_STDIN:
		return take_stdin(options, value, err);
	case MULTI_FANOUT:
		return take_fanout(options, value, err);
	case MULTI_KILL_ON_FAIL:
		options->kill_on_fail = true;
		options->given = "--kill-on-fail";
		return 0;
	default:
		return 1;
	}
}

int multi_check(const struct multi_options *options, const char *single, bool tasks,
		struct iocom_err *err)
{
	if (!options->nodes && options->given)
		return iocom_err_set(err, -EINVAL, "%s goes with -N only: it is for many nodes",
				     options->given);
	if (!options->nodes)
		return options->labels && !tasks
			       ? iocom_err_set(err, -EINVAL,
					       "%s goes with -N or -n only: it is for many nodes "
					       "or tasks",
					       options->labels)
			       : 0;
	if (tasks)
		return iocom_err_set(err, -EINVAL,
				     "-n and -N do not go together (--on and --per-node say where "
				     "tasks go): -n starts one job of many "
				     "tasks, -N a job on each node");
	return single ? iocom_err_set(err, -EINVAL, "%s and -N do not go together", single) : 0;
}
