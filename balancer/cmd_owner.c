/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom owner` shows and changes what a node lets jobs of other nodes use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "balancer/client.h"
#include "balancer/commands.h"
#include "balancer/job_command.h"
#include "balancer/listing.h"
#include "balancer/settings/owner/owner.h"
#include "user/attach.h"
#include "user/pack.h"

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
	"  presence on|off         no new guest while somebody types at a terminal of the\n"
	"                          node\n"
	"  expel [JOB...]          ends guests: SIGTERM, after the grace SIGKILL;\n"
	"                          restartable jobs run again elsewhere\n\n"
	"  --node NODE      of another node [this one]\n"
	"  --reason TEXT    why; users whose jobs do not get in read it\n"
	"  --idle TIME      with presence on: nobody works there after so long without a\n"
	"                   key [10m]\n"
	"  --grace TIME     with expel: from SIGTERM to SIGKILL [30s]\n"
	"  --json           the rules, one document\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"exit status: 0; 1 failed (no agent, not allowed, a contradiction); 2 usage\n";

struct owner_command {
	struct job_command shared;
	struct owner_ask ask;
	bool show; /* no words were given */
};

/* --- asking --------------------------------------------------------------------- */

static int owner_send(const struct owner_command *o, const msgpack_sbuffer *packed,
		      const char *credential, json_t **answer, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, 4);
	pack_str(&pk, "op", "owner");
	pack_u64(&pk, "v", 1);
	pack_bin(&pk, "packed", packed->data, packed->size);
	pack_str(&pk, "cred", credential);
	return client_ask(client_run_dir(o->shared.run_dir), &buffer, answer, err);
}

static int owner_show(const struct owner_command *o, json_t **answer, struct iocom_err *err)
{
	struct owner_ask ask = {.nwords = 1, .words = {"show"}};
	msgpack_sbuffer packed;
	int rc;

	memcpy(ask.node, o->ask.node, sizeof(ask.node));
	owner_ask_pack(&ask, &packed);
	rc = owner_send(o, &packed, "", answer, err);
	msgpack_sbuffer_destroy(&packed);
	return rc;
}

/* Another node gets a credential for this very request, its agent's start, and now. */
static int owner_prove(const struct owner_command *o, struct owner_ask *ask,
		       msgpack_sbuffer *packed, char **credential, struct iocom_err *err)
{
	struct credential_purpose purpose = {"owner", ask->node, ask->nonce, NULL, 0};
	json_t *shown = NULL;
	const char *socket;
	int rc = owner_show(o, &shown, err);

	if (rc)
		return rc;
	socket = listing_string(shown, "munge_socket");
	ask->boot_id = strtoull(listing_string(shown, "boot_id"), NULL, 16);
	ask->at_s = (uint64_t)time(NULL);
	attach_nonce(ask->nonce);
	owner_ask_pack(ask, packed);
	purpose.packed = packed->data;
	purpose.length = packed->size;
	rc = credential_make(&purpose, *socket ? socket : NULL, credential, err);
	if (rc)
		msgpack_sbuffer_destroy(packed);
	json_decref(shown);
	return rc;
}

static int owner_tell(const struct owner_command *o, json_t **answer, struct iocom_err *err)
{
	struct owner_ask ask = o->ask;
	msgpack_sbuffer packed;
	char *credential = NULL;
	int rc = 0;

	if (o->show)
		return owner_show(o, answer, err);
	if (*ask.node)
		rc = owner_prove(o, &ask, &packed, &credential, err);
	else
		owner_ask_pack(&ask, &packed);
	if (rc)
		return rc;
	rc = owner_send(o, &packed, credential ? credential : "", answer, err);
	msgpack_sbuffer_destroy(&packed);
	free(credential);
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

/* Returns 0 or 2. */
static int owner_option(struct owner_command *o, int c)
{
	struct iocom_err err = {0};
	int rc = 0;

	if (c == 'n' && strlen(optarg) >= sizeof(o->ask.node))
		rc = iocom_err_set(&err, 2, "--node: '%.80s' is no name of a node", optarg);
	else if (c == 'n')
		strcpy(o->ask.node, optarg);
	else if (c == 'R' && strlen(optarg) >= OWNER_REASON_MAX)
		rc = iocom_err_set(&err, 2, "--reason: expected at most %d characters",
				   OWNER_REASON_MAX - 1);
	else if (c == 'R')
		owner_reason_set(o->ask.reason, optarg);
	else if (c == 'i')
		rc = owner_seconds_parse(optarg, OWNER_IDLE_MIN_S, 86400, &o->ask.idle_s, &err);
	else if (c == 'g')
		rc = owner_seconds_parse(optarg, 1, OWNER_GRACE_MAX_S, &o->ask.grace_s, &err);
	if (rc && (c == 'i' || c == 'g'))
		iocom_err_prefix(&err, c == 'i' ? "--idle" : "--grace");
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
	o->show = !o->ask.nwords || (o->ask.nwords == 1 && !strcmp(o->ask.words[0], "show"));
	verb = o->ask.nwords ? o->ask.words[0] : "show";
	if (o->ask.idle_s && strcmp(verb, "presence") != 0)
		iocom_err_set(&err, 2, "--idle goes with `presence on`");
	else if (o->ask.grace_s && strcmp(verb, "expel") != 0)
		iocom_err_set(&err, 2, "--grace goes with `expel`");
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
						JOB_COMMAND_OPTION_JSON,
						JOB_COMMAND_OPTIONS,
						{0}};
	struct owner_command o = {.shared = {.help = help, .usage_status = 2}};
	struct iocom_err err = {0};
	json_t *answer = NULL;
	int c, rc;

	while ((c = job_command_option(&o.shared, argc, argv, "h", options)) >= 0)
		if (owner_option(&o, c))
			return 2;
	if (c == JOB_COMMAND_LEAVE)
		return o.shared.status;
	if (owner_take(&o, argc, argv))
		return 2;
	if (owner_tell(&o, &answer, &err)) {
		fprintf(stderr, "iocom owner: %s\n", err.text);
		return 1;
	}
	if (json_is_object(answer))
		json_object_del(answer, "munge_socket");
	rc = o.shared.json ? listing_print_json(answer) : owner_print(answer);
	json_decref(answer);
	return rc;
}
