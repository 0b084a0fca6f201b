/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom profile`: what classes of jobs need, learned from their runs or set by their user. */
#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/client.h"
#include "balancer/commands.h"
#include "balancer/listing.h"
#include "balancer/profile_file.h"
#include "balancer/profile_matrix.h"
#include "balancer/profile_text.h"

static const char help[] =
	"usage: iocom profile [list] [--json] [--user NAME] [--run-dir DIR]\n"
	"       iocom profile [show] CLASS [--input SIZE] [--json] [--user NAME]\n"
	"       iocom profile set CLASS NEED... | --reset [--user NAME]\n"
	"       iocom profile forget CLASS [--user NAME]\n"
	"       iocom profile export [FILE] [--class CLASS] [--force] [--user NAME]\n"
	"       iocom profile import FILE [--dry-run] [--force] [--user NAME]\n"
	"       iocom profile --matrix JOB... [--json | --csv] [--svg FILE]\n"
	"What your classes of jobs need (everybody's for root), learned from their runs:\n"
	"the time that one computes (CPU), communicates (COM) and is at the disk (DISK);\n"
	"INTENSIVE is what the last one did most.\n\n"
	"  show CLASS       each need: its value, spread and confidence, and where it is\n"
	"                   from; the phases of the last run; how far off predictions\n"
	"                   were\n"
	"  --input SIZE     what a run on so many bytes of files would need: 340M\n"
	"  set CLASS NEED   your own values, which runs do not change; each NEED is an\n"
	"                   option of iocom run, with the same meaning:\n"
	"    --cpu-time S  --mem SIZE  --io SIZE  --requests N  --io-size SIZE\n"
	"    --io-rate R  --data PATH|SIZE\n"
	"  --reset          set: nothing any more, what was learned counts again\n"
	"  forget CLASS     all that is known of CLASS; --forget CLASS is the same\n"
	"  export FILE      writes your profiles to FILE as JSON, or to standard output\n"
	"  --class CLASS    export: only this class\n"
	"  import FILE      takes the classes of such a file (-: standard input), or none\n"
	"  --dry-run        import: only check FILE\n"
	"  --force          export: replace FILE; import: replace classes that are known\n"
	"  --matrix JOB     who of a parallel job sent how much to whom, by rank; several\n"
	"                   jobs are shown as one (the parts of mpirun over iocom rsh)\n"
	"  --csv            matrix: a line for each pair; --svg FILE: a picture\n"
	"  --user NAME      the profiles of this user (root)\n"
	"  --json           one document\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"exit status: 0; 1 failed (no agent, no such class, a wrong file); 2 usage\n";

enum {
	OPT_FORGET = 1,
	OPT_JSON,
	OPT_USER,
	OPT_INPUT,
	OPT_RESET,
	OPT_DRY_RUN,
	OPT_FORCE,
	OPT_MATRIX,
	OPT_CSV,
	OPT_SVG
};

static const struct option own_options[] = {
	{"forget", no_argument, NULL, OPT_FORGET},
	{"json", no_argument, NULL, OPT_JSON},
	{"user", required_argument, NULL, OPT_USER},
	{"input", required_argument, NULL, OPT_INPUT},
	{"reset", no_argument, NULL, OPT_RESET},
	{"dry-run", no_argument, NULL, OPT_DRY_RUN},
	{"force", no_argument, NULL, OPT_FORCE},
	{"matrix", no_argument, NULL, OPT_MATRIX},
	{"csv", no_argument, NULL, OPT_CSV},
	{"svg", required_argument, NULL, OPT_SVG},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct profile_word {
	const char *name;
	int (*run)(struct profile_ask *ask);
	unsigned allowed; /* bits by option number */
	bool needs;	  /* options that say what a job needs */
	bool of_class;	  /* it takes a class */
};

#define BIT(option) (1u << (option))

/* --- asking ------------------------------------------------------------------------------- */

/* Answers are printed as one document, or by PRINT.  Returns the exit status. */
static int cmd_profile_answer(const struct profile_ask *ask, json_t *answer,
			      int (*print)(const struct profile_ask *ask, const json_t *answer))
{
	int rc = ask->json ? listing_print_json(answer) : print(ask, answer);

	json_decref(answer);
	return rc;
}

static int profile_failed_to(const struct iocom_err *err)
{
	fprintf(stderr, "iocom profile: %s\n", err->text);
	return 1;
}

static int print_list(const struct profile_ask *ask, const json_t *answer)
{
	const json_t *profiles = json_object_get(answer, "profiles");

	(void)ask;
	if (!json_array_size(profiles))
		printf("Nothing is known yet: iocom learns a class from jobs that end with status "
		       "0.\n");
	else if (profile_text_table(profiles))
		return 1;
	return listing_end();
}

static int profile_list_classes(struct profile_ask *ask)
{
	struct iocom_err err = {0};
	json_t *answer = NULL;

	if (profile_ask_list(ask, NULL, &answer, &err))
		return profile_failed_to(&err);
	return cmd_profile_answer(ask, answer, print_list);
}

static int print_class(const struct profile_ask *ask, const json_t *answer)
{
	const json_t *profiles = json_object_get(answer, "profiles");
	int rc = profile_text_table(profiles);
	json_t *p;
	size_t i;

	(void)ask;
	json_array_foreach (profiles, i, p)
		if (!rc)
			rc = profile_text_class(p);
	return rc ? 1 : listing_end();
}

static int profile_show(struct profile_ask *ask)
{
	struct iocom_err err = {0};
	json_t *answer = NULL;

	if (profile_ask_list(ask, ask->class_name, &answer, &err))
		return profile_failed_to(&err);
	if (!ask->json && !json_array_size(json_object_get(answer, "profiles"))) {
		json_decref(answer);
		iocom_err_set(&err, 1,
			      "nothing is known about a class '%s'; `iocom profile` lists those of "
			      "which something is (a parallel job's ends with its tasks: NAME@16)",
			      ask->class_name);
		return profile_failed_to(&err);
	}
	return cmd_profile_answer(ask, answer, print_class);
}

static int print_nothing(const struct profile_ask *ask, const json_t *answer)
{
	(void)ask;
	(void)answer;
	return 0;
}

/* Sends WHAT about the class. */
static int profile_of_class(struct profile_ask *ask, const char *what,
			    const struct need_options *needs)
{
	struct iocom_err err = {0};
	json_t *answer = NULL;

	profile_ask_begin(ask, what, 1 + (needs != NULL));
	pack_bin(&ask->pk, "class", ask->class_name, strlen(ask->class_name));
	if (needs) {
		pack_key(&ask->pk, "need");
		need_options_pack(needs, &ask->pk);
	}
	if (profile_ask_send(ask, &answer, &err))
		return profile_failed_to(&err);
	return cmd_profile_answer(ask, answer, print_nothing);
}

static int profile_set_needs(struct profile_ask *ask)
{
	struct need_options needs;
	struct iocom_err err = {0};
	bool any = false;

	if (placement_request_needs(&ask->request, &needs, &err))
		return profile_failed_to(&err), 2;
	for (enum need_field f = 0; f < NEED_FIELDS; f++)
		any = any || needs.value[f] >= 0;
	if (any == ask->reset) {
		fprintf(stderr, "iocom profile: set takes %s\n",
			any ? "needs or --reset, not both"
			    : "what the class needs, for example --mem 500M, or --reset");
		return 2;
	}
	return profile_of_class(ask, ask->reset ? "unset" : "set", ask->reset ? NULL : &needs);
}

static int profile_forget_class(struct profile_ask *ask)
{
	return profile_of_class(ask, "forget", NULL);
}

/* --- the command line ---------------------------------------------------------------------- */

static const struct profile_word words[] = {
	{"list", profile_list_classes, BIT(OPT_JSON) | BIT(OPT_USER), false, false},
	{"show", profile_show, BIT(OPT_JSON) | BIT(OPT_USER) | BIT(OPT_INPUT), false, true},
	{"set", profile_set_needs, BIT(OPT_JSON) | BIT(OPT_USER) | BIT(OPT_RESET), true, true},
	{"forget", profile_forget_class, BIT(OPT_JSON) | BIT(OPT_USER) | BIT(OPT_FORGET), false,
	 true},
	{"export", profile_file_export, BIT(OPT_USER) | BIT(OPT_FORCE), false, false},
	{"import", profile_file_import,
	 BIT(OPT_JSON) | BIT(OPT_USER) | BIT(OPT_FORCE) | BIT(OPT_DRY_RUN), false, false},
};

static const struct profile_word *profile_word(const char *name)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(words[i].name, name))
			return &words[i];
	return NULL;
}

static int profile_take_user(struct profile_ask *ask, const char *name)
{
	const struct passwd *pw = getpwnam(name);
	unsigned long uid;
	char *end;

	errno = 0;
	uid = pw ? pw->pw_uid : strtoul(name, &end, 10);
	if (!pw && (end == name || *end || errno || *name == '-' || uid >= UINT32_MAX)) {
		fprintf(stderr, "iocom profile: there is no user '%s' on this machine\n", name);
		return 2;
	}
	ask->of_user = true;
	ask->uid = (uid_t)uid;
	return 0;
}

static int profile_take_input(struct profile_ask *ask, const char *text)
{
	double bytes;

	if (placement_request_size(text, 1, &bytes)) {
		fprintf(stderr,
			"iocom profile: --input takes a size such as 340M or 2Gi, not '%s'\n",
			text);
		return 2;
	}
	ask->input_mb = bytes / 1e6;
	return 0;
}

/* Takes one option of ours.  Returns 0 or the exit status. */
static int profile_take(struct profile_ask *ask, int option)
{
	ask->given |= BIT(option);
	switch (option) {
	case OPT_JSON:
		ask->json = true;
		return 0;
	case OPT_USER:
		return profile_take_user(ask, optarg);
	case OPT_INPUT:
		return profile_take_input(ask, optarg);
	case OPT_RESET:
		ask->reset = true;
		return 0;
	case OPT_DRY_RUN:
		ask->dry_run = true;
		return 0;
	case OPT_FORCE:
		ask->force = true;
		return 0;
	case OPT_SVG:
		ask->file = optarg;
		return 0;
	default:
		return 0;
	}
}

/* Returns 0; -1: go on with nothing, help was asked for; or the exit status. */
static int profile_options(struct profile_ask *ask, int argc, char **argv)
{
	const struct option *all = placement_request_options(own_options);
	struct iocom_err err = {0};
	int c, rc = 0;

	while (!rc && (c = getopt_long(argc, argv, "h", all, NULL)) != -1) {
		if (c == 'h')
			return fputs(help, stdout), -1;
		if (c == '?')
			return listing_usage("iocom profile");
		if (c < ASK_FIRST) {
			rc = profile_take(ask, c);
		} else if (placement_request_take(&ask->request, c, optarg, &err)) {
			profile_failed_to(&err);
			rc = 2;
		}
	}
	return rc;
}

/* Returns what is wrong with the options for WORD; NULL: nothing. */
static const char *profile_wrong(const struct profile_ask *ask, const struct profile_word *word)
{
	const struct placement_ask *asked = &ask->request.ask;
	bool needs = ask->request.io_bytes >= 0;

	for (enum need_field f = 0; f < NEED_FIELDS; f++)
		needs = needs || asked->need.value[f] >= 0;
	if (needs && !word->needs)
		return "needs are told to `iocom profile set CLASS` only";
	if (*asked->policy || *asked->node || *asked->comment)
		return "--policy, --node and --comment are options of iocom run";
	if (*asked->class_name && strcmp(word->name, "export") != 0)
		return "--class is an option of export; elsewhere the class is named without it";
	return NULL;
}

/* Returns the exit status. */
static int profile_go(struct profile_ask *ask, const struct profile_word *word, int n, char **rest)
{
	const char *wrong = profile_wrong(ask, word);
	int most = strcmp(word->name, "list") != 0;

	for (const struct option *o = own_options; o->name && !wrong; o++) {
		if (o->val == 'h' || !(ask->given & ~word->allowed & BIT(o->val)))
			continue;
		fprintf(stderr, "iocom profile: --%s is no option of %s\n", o->name, word->name);
		return 2;
	}
	if (!wrong && n > most)
		wrong = word->of_class ? "takes one class"
			: most	       ? "takes one file"
				       : "list takes no name";
	if (!wrong && n < 1 && word->of_class)
		wrong = "which class? (`iocom profile` lists them)";
	if (!wrong && n < 1 && !strcmp(word->name, "import"))
		wrong = "which file? (- is standard input)";
	if (!wrong && word->of_class && (!*rest[0] || strlen(rest[0]) >= PLACEMENT_CLASS_MAX))
		wrong = "a class has a name of 1 to 63 bytes";
	if (wrong) {
		fprintf(stderr, "iocom profile: %s\n", wrong);
		return 2;
	}
	if (word->of_class)
		ask->class_name = rest[0];
	else
		ask->file = n ? rest[0] : NULL;
	return word->run(ask);
}

/* Returns the exit status. */
static int profile_show_matrix(const struct profile_ask *ask, int n, char **jobs)
{
	const struct profile_matrix_ask matrix = {
		.run_dir = ask->request.run_dir,
		.json = ask->json,
		.csv = ask->given & BIT(OPT_CSV),
		.svg = ask->file,
	};
	unsigned allowed = BIT(OPT_MATRIX) | BIT(OPT_JSON) | BIT(OPT_CSV) | BIT(OPT_SVG);

	if (ask->given & ~allowed) {
		fprintf(stderr, "iocom profile: --matrix takes --json, --csv and --svg only\n");
		return 2;
	}
	if (matrix.json && matrix.csv) {
		fprintf(stderr, "iocom profile: --json or --csv, not both\n");
		return 2;
	}
	return profile_matrix(&matrix, n, jobs);
}

int cmd_profile(int argc, char **argv)
{
	struct profile_ask ask = {.input_mb = -1};
	const struct profile_word *word;
	int rc, n;

	placement_request_init(&ask.request);
	rc = profile_options(&ask, argc, argv);
	if (rc)
		return rc < 0 ? 0 : rc;
	n = argc - optind;
	if (ask.given & BIT(OPT_MATRIX))
		return profile_show_matrix(&ask, n, argv + optind);
	word = n ? profile_word(argv[optind]) : profile_word("list");
	if (word && n)
		return profile_go(&ask, word, n - 1, argv + optind + 1);
	if (!word)
		word = profile_word("show");
	/* As before there were words: a class alone, or --forget with it. */
	if (ask.given & BIT(OPT_FORGET))
		word = profile_word("forget");
	return profile_go(&ask, word, n, argv + optind);
}
