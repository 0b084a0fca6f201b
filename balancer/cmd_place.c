/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom place` says where a command would run now, and why, without running it. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/placement_data.h"
#include "balancer/placement_request.h"
#include "balancer/command_look.h"
#include "balancer/commands.h"
#include "balancer/listing.h"
#include "balancer/place_view.h"
#include "balancer/run/gang_options.h"
#include "balancer/run/run.h"
#include "balancer/placement_text.h"
#include "balancer/view/replace.h"

static const char help[] =
	"usage: iocom place [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	"       iocom place --view FILE [--policy P] [--json]\n"
	"Decides where COMMAND would run now, and says why; runs nothing.  With --view it\n"
	"decides on the cluster as FILE describes it, and asks no agent.\n\n"
	"  --view FILE       cluster and job as in iocom-view(5); -: standard input\n"
	"  --save-view FILE  also write the view that the decision used, for --view\n"
	"  --force           replace the FILE of --save-view if it is there\n"
	"  -n, --ntasks TASKS  one parallel job of so many tasks, with --per-node,\n"
	"                    --oversubscribe, --on and --mpi as iocom run has them\n"
	"  --bring PATH      what it makes there comes home, as with iocom run: its\n"
	"                    way is counted\n"
	"  --json            the decision as one document\n"
	"  --run-dir DIR     the agent's directory\n";

struct place {
	struct placement_request request;
	struct gang_options gang;
	const char *view, *save;
	bool json, force;
	bool needs; /* an option was given that describes the job or the agent */
};

/* Prints the agent's answer.  Returns 0 or 1. */
static int cmd_place_show(const struct place *p, struct placement *answer, struct iocom_err *err)
{
	if (p->save && place_view_save(p->save, p->force, answer, err))
		return 1;
	if (p->json)
		return listing_print_json(answer->document);
	placement_text_print(answer, NULL, stdout);
	return listing_end();
}

static int ask_agent(const struct place *p, char **command, const char *cwd, const char *executable,
		     struct iocom_err *err)
{
	struct placement answer;
	int rc = placement_request_ask(&p->request, false, cwd, executable, command, &answer, err);

	rc = rc ? 1 : cmd_place_show(p, &answer, err);
	placement_fini(&answer);
	return rc;
}

/* Tells the request how much data goes along.  Returns 0 or 1. */
static int cmd_place_data(struct place *p, const char *cwd, const char *executable, char **command,
			  struct iocom_err *err)
{
	struct placement_data data;
	int rc;

	placement_data_init(&data);
	rc = placement_data_look(&data, &p->request, cwd, executable, command, err);
	placement_data_free(&data);
	return rc ? 1 : 0;
}

static int cmd_place_decide(struct place *p, char **command)
{
	struct iocom_err err = {0};
	char *cwd = getcwd(NULL, 0);
	char *executable = NULL;
	int rc = 1;

	if (!cwd)
		iocom_err_set(&err, 1, "cannot read the working directory: %s", strerror(errno));
	else if (!command_look(command[0], cwd, !*p->request.ask.node, &executable, &err))
		rc = cmd_place_data(p, cwd, executable, command, &err) ||
		     ask_agent(p, command, cwd, executable, &err);
	if (err.text[0])
		fprintf(stderr, "iocom place: %s\n", err.text);
	free(executable);
	free(cwd);
	return rc;
}

static int cmd_place_usage(bool asked)
{
	if (!asked)
		return listing_usage("iocom place");
	printf("%s%s\nexit status: 0; 1 failed (no agent, no such command, "
	       "unknown policy); 2 usage\n",
	       help, ask_help);
	return 0;
}

/* Takes one option.  Returns 0, else the exit code + 1. */
static int cmd_place_take(struct place *p, int c, const char *value)
{
	struct iocom_err err = {0};
	int rc = placement_request_take(&p->request, c, value, &err);

	p->needs |= rc == 0 && !placement_request_is(c, "policy");
	if (rc == 1) {
		rc = gang_options_take(&p->gang, &p->request.ask, c == 'n' ? GANG_TASKS : c, value,
				       &err);
		p->needs |= rc == 0;
	}
	if (rc < 0) {
		fprintf(stderr, "iocom place: %s\n", err.text);
		return 2 + 1;
	}
	if (rc == 0)
		return 0;
	if (c == 'b') {
		p->needs = true;
		if (!data_names_bring(&p->request.names, value, &err))
			return 0;
		fprintf(stderr, "iocom place: %s\n", err.text);
		return 2 + 1;
	}
	if (c == 'l')
		p->needs = true;
	else if (c == 'j')
		p->json = true;
	else if (c == 'v')
		p->view = value;
	else if (c == 's')
		p->save = value;
	else if (c == 'f')
		p->force = true;
	else
		return cmd_place_usage(c == 'h') + 1;
	return 0;
}

int cmd_place(int argc, char **argv)
{
	static const struct option own[] = {
		GANG_LONG_OPTIONS,
		{"label", no_argument, NULL, 'l'}, /* these change no place */
		{"no-label", no_argument, NULL, 'l'},
		{"json", no_argument, NULL, 'j'},
		{"bring", required_argument, NULL, 'b'},
		{"view", required_argument, NULL, 'v'},
		{"save-view", required_argument, NULL, 's'},
		{"force", no_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct option *options = placement_request_options(own);
	struct iocom_err err = {0};
	struct place p = {0};
	int c;

	placement_request_init(&p.request);
	gang_options_init(&p.gang);
	while ((c = getopt_long(argc, argv, "+hn:", options, NULL)) != -1) {
		int rc = cmd_place_take(&p, c, optarg);

		if (rc)
			return rc - 1;
	}
	if (p.view && (optind < argc || p.save || p.force || p.needs)) {
		fprintf(stderr, "iocom place: --view goes only with --policy and --json: FILE says "
				"all else\n");
		return 2;
	}
	if (p.view)
		return place_view(p.view, *p.request.ask.policy ? p.request.ask.policy : NULL,
				  p.json);
	if (optind >= argc) {
		fprintf(stderr, "iocom place: name a command (iocom place --help)\n");
		return 2;
	}
	if (gang_options_check(&p.gang, &p.request.ask, *p.request.ask.node ? "--node" : NULL, NULL,
			       &err)) {
		fprintf(stderr, "iocom place: %s\n", err.text);
		return 2;
	}
	if (p.force && !p.save) {
		fprintf(stderr, "iocom place: --force goes only with --save-view\n");
		return 2;
	}
	if (p.save && replace_check(p.save, p.force, &err)) {
		fprintf(stderr, "iocom place: %s\n", err.text);
		return 1;
	}
	p.request.ask.view = p.save != NULL;
	p.request.ask.brief = !p.json; /* as text the other nodes do not appear */
	return cmd_place_decide(&p, argv + optind);
}
