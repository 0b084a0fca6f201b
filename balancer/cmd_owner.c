/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom owner` shows and changes what a node lets jobs of other nodes use. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "balancer/client.h"
#include "balancer/commands.h"
#include "balancer/job_command.h"
#include "balancer/listing.h"
#include "balancer/reach.h"
#include "balancer/settings/owner/owner.h"
#include "user/clock.h"

#define WAIT_NAP_NS	(CLOCK_NS_PER_S / 4) /* a drained node is noticed in so long, or ... */
#define WAIT_NAP_MAX_NS (5 * CLOCK_NS_PER_S) /* ... in this, if it takes long */
#define WAIT_GONE_NS	(60 * CLOCK_NS_PER_S)
#define WAIT_MAX_S	(30 * 86400)

static const char help[] =
	"usage: iocom owner [--node NODE] [--json]\n"
	"       iocom owner [--node NODE] [--reason TEXT] COMMAND...\n"
	"Shows or changes the rules of a node's owner: what jobs of other nodes, its\n"
	"guests, may use. They hold at once at that node, and survive a restart. Root of\n"
	"the node may change them, and users in its settings owners and administrators,\n"
	"from any node.\n\n"
	"  open, resume            guests get in\n"
	"  close                   no new guest gets in; those that run go on\n"
	"  drain                   the same, until none is left and the node is drained\n"
	"  cap RESOURCE=VALUE...   what all guests together may use: cpu=50% memory=4G\n"
	"                          (or 25%) disk=20MB/s network=10MB/s (or 25%); none: no\n"
	"                          cap of it\n"
	"  cap none                no cap at all\n"
	"  close disk|network      no guest gets in that is known to need it\n"
	"  open disk|network       ends that\n"
	"  users allow|deny LIST   names, uids, @groups; allow all, deny none: no such\n"
	"                          list\n"
	"  classes allow|deny LIST the same for classes of jobs\n"
	"  hours SPANS             guests get in only then: mon-fri 20:00-08:00, sat+sun\n"
	"                          00:00-24:00\n"
	"  hours always            ends that\n"
	"  presence on|off         no new guest while somebody works there, at terminals\n"
	"                          or in windows\n"
	"  expel [JOB...]          sends guests away: those that can move go on at other\n"
	"                          nodes; others get SIGTERM, after the grace SIGKILL;\n"
	"                          restartable jobs run again, where they get in (close\n"
	"                          first)\n\n"
	"  --node NODE      of another node [this one]\n"
	"  --reason TEXT    why; users whose jobs do not get in read it\n"
	"  --idle TIME      with presence on: nobody works there after so long without a\n"
	"                   key [10m]\n"
	"  --grace TIME     with expel: from SIGTERM to SIGKILL [30s]\n"
	"  --wait [TIME]    with drain: until no guest is left, or so long; says how many\n"
	"                   are\n"
	"  --json           the rules, one document\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"exit status: 0; 1 failed (no agent, not allowed, a contradiction); 2 usage; 3\n"
	"with --wait TIME: guests are left\n";

struct owner_command {
	struct job_command shared;
	struct owner_ask ask;
	char node[IOCOM_NAME_MAX]; /* "": this one */
	bool show;		   /* only looks */
	bool wait;		   /* until the node is drained */
	uint32_t wait_s;	   /* so long at most; 0: any time */
};

/* --- asking --------------------------------------------------------------------- */

static int owner_ask_node(const struct owner_command *o, struct reach *reach,
			  const struct owner_ask *ask, json_t **answer, struct iocom_err *err)
{
	msgpack_sbuffer request;
	int rc;

	owner_ask_request(ask, &request);
	rc = reach_ask(reach, o->node, &request, answer, err);
	msgpack_sbuffer_destroy(&request);
	if (rc == -EIO)
		iocom_err_prefix(err, "node %s refuses", o->node);
	return rc;
}

/* A change is for one start of the node's agent, which the node names first. */
static int owner_tell_there(const struct owner_command *o, struct reach *reach, json_t **answer,
			    struct iocom_err *err)
{
	static const struct owner_ask show = {.nwords = 1, .words = {"show"}};
	int rc = owner_ask_node(o, reach, &show, answer, err);

	if (rc || o->show)
		return rc;
	reach->boot_id = strtoull(listing_string(*answer, "boot_id"), NULL, 16);
	json_decref(*answer);
	*answer = NULL;
	return owner_ask_node(o, reach, &o->ask, answer, err);
}

static int owner_tell_here(const struct owner_command *o, json_t **answer, struct iocom_err *err)
{
	msgpack_sbuffer request;

	owner_ask_request(&o->ask, &request);
	return client_ask(client_run_dir(o->shared.run_dir), &request, answer, err);
}

static int owner_tell(const struct owner_command *o, json_t **answer, struct iocom_err *err)
{
	struct reach reach;
	bool alive = false;
	int rc;

	if (!*o->node)
		return owner_tell_here(o, answer, err);
	rc = reach_open(&reach, client_run_dir(o->shared.run_dir), err);
	if (!rc && !strcmp(o->node, reach.self))
		rc = owner_tell_here(o, answer, err);
	else if (!rc && !reach_knows(&reach, o->node, &alive))
		rc = iocom_err_set(err, -ENOENT, "no node %s is known; `iocom nodes` lists them",
				   o->node);
	else if (!rc && !alive)
		rc = iocom_err_set(err, -EHOSTUNREACH, "node %s is silent", o->node);
	else if (!rc)
		rc = owner_tell_there(o, &reach, answer, err);
	reach_close(&reach);
	return rc;
}

/* --- waiting --------------------------------------------------------------------- */

/* The time until the agent is asked again, AFTER_NS after the first time. */
static void owner_nap(const struct owner_command *o, uint64_t after_ns)
{
	uint64_t nap_ns = after_ns / 4 + WAIT_NAP_NS, limit_ns = o->wait_s * CLOCK_NS_PER_S;
	struct timespec nap;

	if (nap_ns > WAIT_NAP_MAX_NS)
		nap_ns = WAIT_NAP_MAX_NS;
	if (o->wait_s && after_ns + nap_ns > limit_ns)
		nap_ns = limit_ns - after_ns;
	nap = (struct timespec){.tv_sec = (time_t)(nap_ns / CLOCK_NS_PER_S),
				.tv_nsec = (long)(nap_ns % CLOCK_NS_PER_S)};
	nanosleep(&nap, NULL);
}

/* Says how many guests are left, if that is not LEFT; returns how many. */
static double owner_progress(const json_t *answer, double left)
{
	double guests = listing_number(answer, "guests");

	if (guests > 0 && guests != left)
		fprintf(stderr, "iocom owner: %.0f guest%s left at node %s\n", guests,
			guests == 1 ? " is" : "s are", listing_string(answer, "node"));
	return guests;
}

/* Asks again.  An agent that is being restarted may be gone for WAIT_GONE_NS, as *GONE_NS says. */
static int owner_look(struct owner_command *o, json_t **answer, uint64_t *gone_ns,
		      struct iocom_err *err)
{
	json_t *now = NULL;
	int rc = owner_tell(o, &now, err);

	if (!rc) {
		json_decref(*answer);
		*answer = now;
		*gone_ns = 0;
		return 0;
	}
	if (!*gone_ns)
		*gone_ns = clock_boot_ns();
	return clock_boot_ns() - *gone_ns < WAIT_GONE_NS ? 0 : rc;
}

/*
 * Waits until the node, whose rules ANSWER shows, is drained.  Returns 0; 1: not in time; negative
 * errno with the reason in ERR: somebody has ended the drain, or the agent is gone.
 */
static int owner_wait(struct owner_command *o, json_t **answer, struct iocom_err *err)
{
	uint64_t began_ns = clock_boot_ns(), gone_ns = 0, after_ns;
	double left = 0;
	int rc = 0;

	o->ask = (struct owner_ask){.nwords = 1, .words = {"show"}};
	o->show = true;
	while (!rc) {
		if (strcmp(listing_string(*answer, "state"), "draining") != 0)
			return iocom_err_set(
				err, -ECANCELED, "node %s is %s again: %s has ended the drain",
				listing_string(*answer, "node"), listing_string(*answer, "state"),
				listing_string(*answer, "by"));
		left = owner_progress(*answer, left);
		after_ns = clock_boot_ns() - began_ns;
		if (left <= 0)
			return 0;
		if (o->wait_s && after_ns >= o->wait_s * CLOCK_NS_PER_S)
			return 1;
		owner_nap(o, after_ns);
		rc = owner_look(o, answer, &gone_ns, err);
	}
	return rc;
}

/* --- printing -------------------------------------------------------------------- */

static void owner_print_state(const json_t *a)
{
	const char *state = listing_string(a, "state"), *reason = listing_string(a, "reason");
	double since_s = listing_number(a, "since_s");
	char ago[32];

	if (!strcmp(state, "draining") && listing_number(a, "guests") <= 0)
		state = "drained";
	printf("%-10s %s%s%s", "state", state, *reason ? ": " : "", reason);
	if (since_s > 0) {
		listing_span(ago, sizeof(ago), ((double)time(NULL) - since_s) * 1e3);
		printf(" (%s, %s ago)", listing_string(a, "by"), ago);
	}
	printf("\n%-10s guests %s%s%s\n", "now",
	       json_is_true(json_object_get(a, "accepts")) ? "get in" : "do not get in",
	       *listing_string(a, "says") ? ": " : "", listing_string(a, "says"));
}

static void owner_print_list(const char *name, const json_t *list)
{
	const char *allow = listing_string(list, "allow"), *deny = listing_string(list, "deny");

	printf("%-10s %s%s", name, *allow ? "allow " : "allow all", allow);
	if (*deny)
		printf("; deny %s", deny);
	putchar('\n');
}

static void owner_print_caps(const json_t *a)
{
	const json_t *caps = json_object_get(a, "caps");
	json_t *closed = json_object_get(a, "closed"), *name;
	size_t i;

	if (!json_object_size(caps))
		printf("%-10s none\n", "cap");
	for (enum owner_resource at = 0; at < OWNER_RESOURCES; at++) {
		const json_t *cap = json_object_get(caps, owner_resource_names[at]);

		if (cap)
			printf("%-10s %s=%s, %s\n", "cap", owner_resource_names[at],
			       listing_string(cap, "cap"), listing_string(cap, "held"));
	}
	json_array_foreach (closed, i, name)
		printf("%-10s %s\n", "closed", json_string_value(name));
}

static int owner_print(const json_t *a)
{
	const json_t *presence = json_object_get(a, "presence");
	json_t *warning;
	size_t i;

	printf("%-10s %s\n", "node", listing_string(a, "node"));
	owner_print_state(a);
	printf("%-10s %.0f\n", "guests", listing_number(a, "guests"));
	owner_print_caps(a);
	owner_print_list("users", json_object_get(a, "users"));
	owner_print_list("classes", json_object_get(a, "classes"));
	printf("%-10s %s\n", "hours", listing_string(a, "hours"));
	if (!json_is_true(json_object_get(presence, "on")))
		printf("%-10s off\n", "presence");
	else
		printf("%-10s on, idle %.0f s: %s\n", "presence",
		       listing_number(presence, "idle_s"),
		       json_is_true(json_object_get(presence, "somebody")) ? "somebody works there"
									   : "nobody works there");
	json_array_foreach (json_object_get(a, "warnings"), i, warning)
		printf("%-10s %s\n", "warning", json_string_value(warning));
	if (json_object_get(a, "expelled"))
		printf("%-10s %.0f\n", "expelled", listing_number(a, "expelled"));
	return listing_end();
}

/* --- the command line --------------------------------------------------------------- */

static int owner_wrong(const struct iocom_err *err)
{
	fprintf(stderr, "iocom owner: %s\n", err->text);
	return 2;
}

/* The time may be the next word. */
static int owner_option_wait(struct owner_command *o, int argc, char **argv, struct iocom_err *err)
{
	o->wait = true;
	if (!optarg && optind < argc && isdigit((unsigned char)argv[optind][0]))
		optarg = argv[optind++];
	return optarg ? owner_seconds_parse(optarg, 1, WAIT_MAX_S, &o->wait_s, err) : 0;
}

/* Returns 0 or 2. */
static int owner_option(struct owner_command *o, int c, int argc, char **argv)
{
	struct iocom_err err = {0};
	int rc = 0;

	if (c == 'n' && strlen(optarg) >= sizeof(o->node))
		rc = iocom_err_set(&err, 2, "--node: '%.80s' is no name of a node", optarg);
	else if (c == 'n')
		strcpy(o->node, optarg);
	else if (c == 'R' && strlen(optarg) >= OWNER_REASON_MAX)
		rc = iocom_err_set(&err, 2, "--reason: expected at most %d characters",
				   OWNER_REASON_MAX - 1);
	else if (c == 'R')
		owner_reason_set(o->ask.reason, optarg);
	else if (c == 'i')
		rc = owner_seconds_parse(optarg, OWNER_IDLE_MIN_S, 86400, &o->ask.idle_s, &err);
	else if (c == 'g')
		rc = owner_seconds_parse(optarg, 1, OWNER_GRACE_MAX_S, &o->ask.grace_s, &err);
	else if (c == 'w')
		rc = owner_option_wait(o, argc, argv, &err);
	if (rc && (c == 'i' || c == 'g' || c == 'w'))
		iocom_err_prefix(&err, c == 'i' ? "--idle" : c == 'g' ? "--grace" : "--wait");
	return rc ? owner_wrong(&err) : 0;
}

/* Takes the words, and checks all that needs no agent.  Returns 0 or 2. */
static int owner_take(struct owner_command *o, int argc, char **argv)
{
	struct owner_rules scratch;
	struct iocom_err err = {0};
	const char *verb;

	for (; optind < argc; optind++) {
		if (o->ask.nwords == OWNER_WORDS_MAX || strlen(argv[optind]) >= OWNER_WORD_MAX) {
			iocom_err_set(&err, 2, "there are more than %d words, or one is too long",
				      OWNER_WORDS_MAX);
			return owner_wrong(&err);
		}
		strcpy(o->ask.words[o->ask.nwords++], argv[optind]);
	}
	if (!o->ask.nwords)
		strcpy(o->ask.words[o->ask.nwords++], "show");
	o->show = owner_ask_is_show(&o->ask);
	verb = o->ask.words[0];
	if (o->ask.idle_s && strcmp(verb, "presence") != 0)
		iocom_err_set(&err, 2, "--idle goes with `presence on`");
	else if (o->ask.grace_s && strcmp(verb, "expel") != 0)
		iocom_err_set(&err, 2, "--grace goes with `expel`");
	else if (o->wait && strcmp(verb, "drain") != 0)
		iocom_err_set(&err, 2, "--wait goes with `drain`");
	else if (o->show && *o->ask.reason)
		iocom_err_set(&err, 2, "--reason goes with a command");
	owner_init(&scratch);
	if (!err.text[0] && !o->show && owner_ask_apply(&o->ask, "", 0, &scratch, &err) >= 0)
		return 0;
	return err.text[0] ? owner_wrong(&err) : 0;
}

int cmd_owner(int argc, char **argv)
{
	static const struct option options[] = {{"node", required_argument, NULL, 'n'},
						{"reason", required_argument, NULL, 'R'},
						{"idle", required_argument, NULL, 'i'},
						{"grace", required_argument, NULL, 'g'},
						{"wait", optional_argument, NULL, 'w'},
						JOB_COMMAND_OPTION_JSON,
						JOB_COMMAND_OPTIONS,
						{0}};
	struct owner_command o = {.shared = {.help = help, .usage_status = 2}};
	struct iocom_err err = {0};
	json_t *answer = NULL;
	int c, rc, late;

	while ((c = job_command_option(&o.shared, argc, argv, "h", options)) >= 0)
		if (owner_option(&o, c, argc, argv))
			return 2;
	if (c == JOB_COMMAND_LEAVE)
		return o.shared.status;
	if (owner_take(&o, argc, argv))
		return 2;
	rc = owner_tell(&o, &answer, &err);
	late = !rc && o.wait ? owner_wait(&o, &answer, &err) : 0;
	if (rc || late < 0) {
		fprintf(stderr, "iocom owner: %s\n", err.text);
		json_decref(answer);
		return 1;
	}
	rc = o.shared.json ? listing_print_json(answer) : owner_print(answer);
	json_decref(answer);
	return !rc && late ? 3 : rc;
}
