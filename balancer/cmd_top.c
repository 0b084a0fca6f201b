/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom top` shows the live load of every task, on a screen or as lines. */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <math.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/commands.h"
#include "balancer/listing.h"
#include "balancer/top/top.h"
#include "balancer/top/top_far.h"

#define INTERVAL_LEAST_S 0.1
#define INTERVAL_MOST_S	 3600.0

static const char help[] =
	"usage: iocom top [-bcjt] [-n COUNT] [-d SECONDS] [--json] [--sort KEY] [-u USER]\n"
	"                 [-H NODE] [-f TEXT] [--active] [--io] [--no-color] [--no-wait]\n"
	"                 [--direct] [--run-dir DIR]\n"
	"Shows what every task does to disks, network, CPU and memory, as the kernel\n"
	"counts it, heaviest first.  Asks the agent; as root it counts by itself where no\n"
	"agent runs.\n\n"
	"  -b, --batch          print a table per interval instead of a screen\n"
	"  -n, --count COUNT    stop after so many intervals\n"
	"  -d, --delay SECONDS  length of an interval, at least 0.1 (1)\n"
	"      --json           one JSON object a line and interval (implies -b)\n"
	"  -j, --jobs           show jobs (cgroups) instead of tasks\n"
	"  -t, --tree           list tasks below their parents, jobs below their parent\n"
	"                       cgroups\n"
	"      --sort KEY       order by KEY (share), one of:\n"
	"                       ";
static const char help_end[] =
	"  -H, --node NODE      of another node, through this one's agent: your tasks\n"
	"                       there; as root all, if it lets other nodes' root ask\n"
	"                       (allow_root)\n"
	"  -u, --uid USER       only tasks and jobs of this user (name or number)\n"
	"  -f, --filter TEXT    only rows that have all words of TEXT in name, user, job\n"
	"                       or pid\n"
	"      --active         only rows that did something\n"
	"      --io             only rows that used disk or network\n"
	"  -c, --command-lines  command lines instead of names\n"
	"      --no-color       no colour on the screen\n"
	"      --no-wait        end when the agent goes away (-b and --json always do)\n"
	"      --direct         do not ask the agent (root)\n"
	"      --run-dir DIR    the agent's directory\n"
	"  -h, --help           this text; on the screen, ? explains keys and columns\n\n"
	"exit status: 0; 1 failed (no agent, a full disk); 2 usage\n";

enum {
	OPT_JSON = 0x100,
	OPT_SORT,
	OPT_ACTIVE,
	OPT_IO,
	OPT_NO_COLOUR,
	OPT_NO_WAIT,
	OPT_DIRECT,
	OPT_RUN_DIR
};

#define TOP_E_HELP 1

static void print_help(FILE *out)
{
	fputs(help, out);
	for (unsigned i = 0; i < TOP_KEYS; i++)
		fprintf(out, "%s%s",
			i == 0	     ? ""
			: i % 7 == 0 ? ",\n                       "
				     : ", ",
			top_key_name(i));
	putc('\n', out);
	fputs(help_end, out);
}

static int cmd_top_parse_count(const char *text, unsigned long *count, struct iocom_err *err)
{
	char *end;

	errno = 0;
	*count = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || !*count)
		return iocom_err_set(err, -EINVAL, "-n takes a whole number from 1 up, not '%s'",
				     text);
	return 0;
}

static int parse_interval(const char *text, double *seconds, struct iocom_err *err)
{
	char *end;

	*seconds = strtod(text, &end);
	if (end == text || *end || !(*seconds >= INTERVAL_LEAST_S && *seconds <= INTERVAL_MOST_S))
		return iocom_err_set(err, -EINVAL, "-d takes seconds from %.1f to %.0f, not '%s'",
				     INTERVAL_LEAST_S, INTERVAL_MOST_S, text);
	return 0;
}

static int parse_user(const char *text, uid_t *uid, struct iocom_err *err)
{
	const struct passwd *pw = getpwnam(text);
	unsigned long number;
	char *end;

	if (pw) {
		*uid = pw->pw_uid;
		return 0;
	}
	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || number >= UINT32_MAX)
		return iocom_err_set(err, -EINVAL, "there is no user '%s'", text);
	*uid = (uid_t)number;
	return 0;
}

static int parse_sort(const char *text, struct top_options *o, struct iocom_err *err)
{
	o->sorted = true;
	if (!top_key_parse(text, &o->model.key))
		return 0;
	return iocom_err_set(err, -EINVAL, "there is no key '%s' to sort by; --help lists them",
			     text);
}

/* Takes options without a value; returns false if OPTION is none of them. */
static bool take_flag(int option, struct top_options *o)
{
	switch (option) {
	case 'b':
		return o->batch = true;
	case 'j':
		return o->model.jobs = true;
	case 't':
		return o->model.tree = true;
	case 'c':
		return o->model.commands = true;
	case OPT_JSON:
		return o->json = o->batch = true;
	case OPT_ACTIVE:
		return o->model.active = true;
	case OPT_IO:
		return o->model.io = true;
	case OPT_NO_COLOUR:
		return o->no_colour = true;
	case OPT_NO_WAIT:
		o->source.wait = false;
		return true;
	case OPT_DIRECT:
		return o->source.direct = true;
	default:
		return false;
	}
}

static int cmd_top_take(int option, struct top_options *o, struct iocom_err *err)
{
	if (take_flag(option, o))
		return 0;
	switch (option) {
	case 'n':
		return cmd_top_parse_count(optarg, &o->count, err);
	case 'd':
		return parse_interval(optarg, &o->source.interval_s, err);
	case 'u':
		o->model.filter_uid = true;
		return parse_user(optarg, &o->model.uid, err);
	case OPT_SORT:
		return parse_sort(optarg, o, err);
	case 'H':
		o->source.node = optarg;
		return 0;
	case 'f':
		o->model.text = optarg;
		return 0;
	case OPT_RUN_DIR:
		o->source.run_dir = optarg;
		return 0;
	case 'h':
		return TOP_E_HELP;
	default:
		return -EINVAL; /* getopt has printed the reason */
	}
}

/* Returns 0, TOP_E_HELP, or -EINVAL. */
static int cmd_top_parse(int argc, char **argv, struct top_options *o, struct iocom_err *err)
{
	static const struct option options[] = {
		{"batch", no_argument, NULL, 'b'},
		{"count", required_argument, NULL, 'n'},
		{"delay", required_argument, NULL, 'd'},
		{"node", required_argument, NULL, 'H'},
		{"uid", required_argument, NULL, 'u'},
		{"user", required_argument, NULL, 'u'},
		{"json", no_argument, NULL, OPT_JSON},
		{"jobs", no_argument, NULL, 'j'},
		{"tree", no_argument, NULL, 't'},
		{"filter", required_argument, NULL, 'f'},
		{"active", no_argument, NULL, OPT_ACTIVE},
		{"io", no_argument, NULL, OPT_IO},
		{"command-lines", no_argument, NULL, 'c'},
		{"no-color", no_argument, NULL, OPT_NO_COLOUR},
		{"no-colour", no_argument, NULL, OPT_NO_COLOUR},
		{"no-wait", no_argument, NULL, OPT_NO_WAIT},
		{"sort", required_argument, NULL, OPT_SORT},
		{"direct", no_argument, NULL, OPT_DIRECT},
		{"run-dir", required_argument, NULL, OPT_RUN_DIR},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c, rc = 0;

	while (!rc && (c = getopt_long(argc, argv, "bn:d:u:H:jtcf:h", options, NULL)) != -1)
		rc = cmd_top_take(c, o, err);
	if (!rc && optind < argc)
		return iocom_err_set(err, -EINVAL, "takes no argument '%s'", argv[optind]);
	if (!rc && o->source.node && o->source.direct)
		return iocom_err_set(err, -EINVAL,
				     "--direct counts on this machine, -H asks another node");
	if (!rc && o->source.node && o->source.interval_s * 1000 > TOP_FAR_MOST_MS)
		return iocom_err_set(err, -EINVAL, "with -H, -d takes at most %d seconds",
				     TOP_FAR_MOST_MS / 1000);
	return rc;
}

static int check_terminal(const struct top_options *o, struct iocom_err *err)
{
	const char *term = getenv("TERM");

	if (o->batch)
		return 0;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return iocom_err_set(err, -ENOTTY,
				     "the screen needs a terminal; use -b for tables or --json for "
				     "lines");
	if (!term || !*term || !strcmp(term, "dumb"))
		return iocom_err_set(
			err, -ENOTTY,
			"this terminal cannot show a screen (TERM=%s); use -b for tables "
			"or --json for lines",
			term ? term : "");
	return 0;
}

int cmd_top(int argc, char **argv)
{
	struct top_options o = {.source = {.interval_s = 1, .wait = true},
				.model = {.key = TOP_SHARE}};
	struct top_source *source = NULL;
	struct iocom_err err = {0};
	int rc = cmd_top_parse(argc, argv, &o, &err);

	if (rc == TOP_E_HELP) {
		print_help(stdout);
		return 0;
	}
	if (rc) {
		if (*err.text)
			fprintf(stderr, "iocom top: %s\n", err.text);
		else
			listing_usage("iocom top");
		return 2;
	}
	setlocale(LC_CTYPE, "");
	if (o.batch)
		o.source.wait = false;
	rc = check_terminal(&o, &err);
	if (!rc)
		rc = top_source_open(&source, &o.source, &err);
	if (!rc)
		rc = o.batch ? top_batch(&o, source, &err) : top_screen(&o, source, &err);
	top_source_free(source);
	if (rc)
		fprintf(stderr, "iocom top: %s\n", err.text);
	return rc ? 1 : 0;
}
