/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Reads the options of `iocom rsh`.  They are those of ssh, because programs that start others
 * by a remote shell pass them.  Options that make sense here work; those about ssh's own
 * connection (keys, ciphers, ports) are ignored; those that the command would miss (forwarding,
 * other routes, subsystems) are refused by name.
 */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "balancer/run/rsh.h"

#define LETTERS_TAKEN	"1246ab:c:gi:km:p:qxB:CE:F:I:KMP:S:y" /* ignored */
#define LETTERS_REFUSED "AD:J:L:NO:Q:R:sw:W:XY"

extern char **environ;

static const char help[] =
	"usage: iocom rsh [OPTION...] [USER@]NODE [OPTION...] [COMMAND [ARGUMENT...]]\n"
	"Runs COMMAND at NODE as ssh would: by your login shell, in your home directory,\n"
	"with a fresh environment; standard input, output and error travel, the exit\n"
	"status comes back. Without COMMAND it is a login, with a terminal if standard\n"
	"input is one. For rsync -e \"iocom rsh\", GNU parallel --ssh \"iocom rsh\", pdsh,\n"
	"git, mpirun.\n\n"
	"  -l USER         must be your own name: everybody stays the same user\n"
	"  -n              standard input is /dev/null\n"
	"  -f              go into the background once COMMAND runs; means -n\n"
	"  -t              give COMMAND a terminal\n"
	"  -T              give a login no terminal\n"
	"  -e CHAR         the escape key of a terminal: a character, ^X, or none [~]; ~?\n"
	"                  tells more\n"
	"  -o KEY=VALUE    as ssh's: User, RequestTTY, EscapeChar, StdinNull, SendEnv,\n"
	"                  SetEnv, ForkAfterAuthentication; others have no effect\n"
	"  -G              print user and node, and end\n"
	"  -V              print the version, and end\n"
	"  -v              say on standard error which job it is\n"
	"  --run-dir DIR   the agent's directory [/run/iocom, or $IOCOM_RUN_DIR]\n"
	"Accepted as ssh does, without effect: -1 -2 -4 -6 -a -C -g -K -k -M -q -x -y,\n"
	"and with a value -B -b -c -E -F -I -i -m -P -p -S. Refused: forwarding and other\n"
	"routes (-A -D -J -L -R -W -w -X -Y), no command (-N), subsystems (-s), -O, -Q.\n\n"
	"Ctrl-C goes to the command.  All that it started ends with it, even with nohup:\n"
	"start what must stay with iocom run --detach.\n"
	"exit status: the command's own; 128 + N when signal N ended it; 255 when iocom\n"
	"failed before the start, or contact was lost\n";

enum { OPTION_RUN_DIR = 256 };

/* A login sets these itself; -o cannot. */
static const char *const fixed[] = {"HOME", "USER", "LOGNAME", "SHELL", "PATH"};

int rsh_usage(const char *text, const char *what)
{
	fprintf(stderr, "iocom rsh: %s%s; see iocom rsh --help\n", text, what);
	return RSH_FAILED;
}

/* --- -o ----------------------------------------------------------------------------------- */

static bool may_go(const char *name)
{
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (!strcmp(fixed[i], name))
			return false;
	return *name && !strchr(name, ','); /* no shell could name it */
}

static int add_name(struct rsh *rsh, const char *name)
{
	char *more;

	if (asprintf(&more, "%s,%s", rsh->env ? rsh->env : "", name) < 0)
		return rsh_usage("out of memory", "");
	free(rsh->env);
	rsh->env = more;
	return 0;
}

/* Takes names and patterns of our own environment, separated by blanks. */
static int send_env(struct rsh *rsh, const char *value)
{
	char *words = strdup(value), *save = NULL;
	int rc = words ? 0 : rsh_usage("out of memory", "");

	for (const char *word = words ? strtok_r(words, " \t", &save) : NULL; word && !rc;
	     word = strtok_r(NULL, " \t", &save))
		for (char **at = environ; *at && !rc; at++) {
			char *name = strndup(*at, strcspn(*at, "="));

			if (name && may_go(name) && !fnmatch(word, name, 0))
				rc = add_name(rsh, name);
			free(name);
		}
	free(words);
	return rc;
}

static int set_env(struct rsh *rsh, const char *value)
{
	const char *equals = strchr(value, '=');
	char *name = equals ? strndup(value, (size_t)(equals - value)) : NULL;
	int rc = 0;

	if (!name || !may_go(name))
		rc = rsh_usage("-o SetEnv takes NAME=VALUE, and no name that a login sets, not ",
			       value);
	/* Set it in our own environment and pass the name: a value may have commas. */
	else if (setenv(name, equals + 1, 1))
		rc = rsh_usage("out of memory", "");
	else
		rc = add_name(rsh, name);
	free(name);
	return rc;
}

static int request_tty(struct rsh *rsh, const char *value)
{
	rsh->terminal = !strcasecmp(value, "yes") || !strcasecmp(value, "force");
	rsh->no_terminal = !strcasecmp(value, "no");
	return rsh->terminal || rsh->no_terminal || !strcasecmp(value, "auto")
		       ? 0
		       : rsh_usage("-o RequestTTY takes yes, no, force or auto, not ", value);
}

static int is_no(const char *value)
{
	return !strcasecmp(value, "no") || !strcasecmp(value, "none") ||
	       !strcasecmp(value, "false");
}

static int is_refused(const char *key)
{
	static const char *const keys[] = {
		"DynamicForward",     "ForwardAgent", "ForwardX11",	"LocalForward",
		"PermitLocalCommand", "ProxyCommand", "ProxyJump",	"RemoteCommand",
		"RemoteForward",      "Tunnel",	      "ProxyUseFdpass",
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcasecmp(keys[i], key))
			return 1;
	return 0;
}

/* KEY and VALUE live as long as argv. */
static int take_pair(struct rsh *rsh, const char *key, const char *value)
{
	if (!strcasecmp(key, "User"))
		rsh->user = value;
	else if (!strcasecmp(key, "EscapeChar"))
		rsh->escape = value;
	else if (!strcasecmp(key, "StdinNull"))
		rsh->null = !is_no(value);
	else if (!strcasecmp(key, "ForkAfterAuthentication"))
		rsh->background = !is_no(value);
	else if (!strcasecmp(key, "RequestTTY"))
		return request_tty(rsh, value);
	else if (!strcasecmp(key, "SendEnv"))
		return send_env(rsh, value);
	else if (!strcasecmp(key, "SetEnv"))
		return set_env(rsh, value);
	else if (!strcasecmp(key, "SessionType") && strcasecmp(value, "default") != 0)
		return rsh_usage("a session is a command or a login, not -o SessionType=", value);
	else if (!strcasecmp(key, "HostName") && strcmp(value, rsh->node ? rsh->node : "") != 0)
		return rsh_usage("the argument names the node, so it does not take -o HostName=",
				 value);
	else if (is_refused(key) && !is_no(value))
		return rsh_usage("it forwards no ports, agents or displays and has one way to a "
				 "node; it does not take -o ",
				 key);
	return 0;
}

/* Takes "KEY=VALUE" or "KEY VALUE"; splits OPTION in place. */
static int take_o(struct rsh *rsh, char *option)
{
	char *key = option + strspn(option, " \t"), *value = key + strcspn(key, "= \t");

	if (value == key || !*value)
		return rsh_usage("-o takes KEY=VALUE, not ", option);
	*value++ = 0;
	value += strspn(value, "= \t");
	return *value ? take_pair(rsh, key, value) : rsh_usage("-o needs a value for ", key);
}

/* --- letters ------------------------------------------------------------------------------ */

static int rsh_options_refuse(char option)
{
	const char letter[] = {'-', option, 0};

	switch (option) {
	case 'N':
		return rsh_usage("it always runs a command, so it does not take ", letter);
	case 's':
		return rsh_usage(
			"it has no subsystems (use rsync, or scp -O), so it does not take ",
			letter);
	case 'O':
	case 'Q':
		return rsh_usage("it does not support ", letter);
	default:
		return rsh_usage("it forwards no ports, agents or displays and has one way to a "
				 "node; it does not take ",
				 letter);
	}
}

static int rsh_options_take_option(struct rsh *rsh, int option)
{
	switch (option) {
	case 'l':
		rsh->user = optarg;
		return 0;
	case 'n':
		rsh->null = true;
		return 0;
	case 'f':
		rsh->background = true;
		return 0;
	case 't':
	case 'T': /* the last one counts */
		rsh->terminal = option == 't';
		rsh->no_terminal = option == 'T';
		return 0;
	case 'e':
		rsh->escape = optarg;
		return 0;
	case 'G':
		rsh->tell = true;
		return 0;
	case 'v':
		rsh->verbose = true;
		return 0;
	case 'o':
		return take_o(rsh, optarg);
	case OPTION_RUN_DIR:
		rsh->run_dir = optarg;
		return 0;
	case '?':
		return rsh_usage("bad option", "");
	case 'h':
		fputs(help, stdout);
		return RSH_DONE;
	case 'V':
		fprintf(stderr, "iocom rsh, iocom %s\n", IOCOM_VERSION);
		return RSH_DONE;
	default:
		return strchr(LETTERS_REFUSED, option) ? rsh_options_refuse((char)option) : 0;
	}
}

/* Takes options up to the first word that is none. */
static int take_options(struct rsh *rsh, int argc, char **argv)
{
	static const struct option options[] = {
		{"run-dir", required_argument, NULL, OPTION_RUN_DIR},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option, rc = 0;

	while (!rc &&
	       (option = getopt_long(argc, argv, "+hl:nftTe:o:GvV" LETTERS_TAKEN LETTERS_REFUSED,
				     options, NULL)) != -1)
		rc = rsh_options_take_option(rsh, option);
	return rc;
}

static int rsh_options_take_node(struct rsh *rsh, const char *text)
{
	char *at;

	rsh->host = strdup(text);
	if (!rsh->host)
		return rsh_usage("out of memory", "");
	at = strrchr(rsh->host, '@');
	rsh->node = at ? at + 1 : rsh->host;
	if (at) {
		*at = 0;
		rsh->user = rsh->host;
	}
	return *rsh->node ? 0 : rsh_usage("name a node", "");
}

int rsh_parse(struct rsh *rsh, int argc, char **argv)
{
	bool closed;
	int rc = take_options(rsh, argc, argv);

	if (rc)
		return rc;
	if (optind >= argc)
		return rsh_usage("name a node", "");
	closed = !strcmp(argv[optind - 1], "--");
	rc = rsh_options_take_node(rsh, argv[optind++]);
	/* As in ssh, options may also follow the node, before the command. */
	if (!rc && !closed)
		rc = take_options(rsh, argc, argv);
	if (rc)
		return rc;
	rsh->words = argv + optind;
	rsh->null |= rsh->background;
	if (rsh->background && (!*rsh->words || rsh->terminal))
		return rsh_usage(
			*rsh->words ? "-f and -t do not go together" : "-f needs a command", "");
	return 0;
}

void rsh_fini(struct rsh *rsh)
{
	free(rsh->host);
	free(rsh->env);
}
