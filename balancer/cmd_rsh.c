/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom rsh`: a command on a node that is named, in the shape of ssh, for programs that
 * start others by a remote shell (rsync, pdsh, GNU parallel, Open MPI).  The words are
 * joined by blanks and given to the user's login shell, in the home directory, with a
 * fresh environment: as sshd does.  Without words it is a login, at a terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "run.h"

#define RSH_FAILED 255 /* as ssh */

static const char help[] =
	"usage: iocom rsh [OPTION...] [USER@]NODE [COMMAND [ARGUMENT...]]\n"
	"Runs COMMAND at NODE as ssh would: by your login shell, in your home directory, with a\n"
	"fresh environment; standard input, output and error travel, the exit status comes back.\n"
	"Without COMMAND it is a login, at a terminal where standard input is one.\n"
	"For rsync -e \"iocom rsh\", GNU parallel --ssh \"iocom rsh\", pdsh, mpirun.\n\n"
	"  -l USER         must be you: identities do not change on the way\n"
	"  -n              standard input is /dev/null\n"
	"  -t              give COMMAND a terminal\n"
	"  -T              give a login none\n"
	"  -e CHAR         the escape of a terminal: a character, ^X, or none [~]; ~? tells more\n"
	"  -v              say on standard error which job it is\n"
	"  --run-dir DIR   the agent's directory [/run/iocom, or $IOCOM_RUN_DIR]\n"
	"Taken for ssh's sake, without effect: -4 -6 -a -C -k -q -x -y, -o OPTION, -p PORT,\n"
	"-i FILE, -F FILE.  Forwarding (-A -L -R -D -W -J -X -Y) is refused.\n\n"
	"exit status: the command's own; 128 + N when signal N ended it; 255 when iocom failed\n"
	"before it started, or contact was lost\n";

struct rsh {
	const char *user, *run_dir;
	char *node;
	const char *escape;
	bool null, verbose;
	bool terminal, no_terminal;
	char **words;
};

enum { OPTION_RUN_DIR = 256 };

static int usage(const char *text, const char *what)
{
	fprintf(stderr, "iocom rsh: %s%s; see iocom rsh --help\n", text, what);
	return RSH_FAILED;
}

static int take_option(struct rsh *rsh, int option)
{
	char letter[] = {'-', (char)option, 0};

	switch (option) {
	case 'l':
		rsh->user = optarg;
		return 0;
	case 'n':
		rsh->null = true;
		return 0;
	case 't':
	case 'T': /* the last one counts */
		rsh->terminal = option == 't';
		rsh->no_terminal = option == 'T';
		return 0;
	case 'e':
		rsh->escape = optarg;
		return 0;
	case 'v':
		rsh->verbose = true;
		return 0;
	case OPTION_RUN_DIR:
		rsh->run_dir = optarg;
		return 0;
	case '?':
		return usage("bad option", "");
	case 'A':
	case 'D':
	case 'J':
	case 'L':
	case 'R':
	case 'W':
	case 'X':
	case 'Y':
		return usage("it forwards nothing: ", letter);
	default:
		return 0;
	}
}

/* 0 go on; 1 help was printed; RSH_FAILED. */
static int parse(struct rsh *rsh, int argc, char **argv)
{
	static const struct option options[] = {
		{"run-dir", required_argument, NULL, OPTION_RUN_DIR},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	char *at;
	int option;

	while ((option = getopt_long(argc, argv, "+hl:nv46aCkqTxyo:p:i:F:e:AD:J:L:R:W:XYt", options,
				     NULL)) != -1) {
		int rc;

		if (option == 'h') {
			fputs(help, stdout);
			return 1;
		}
		rc = take_option(rsh, option);
		if (rc)
			return rc;
	}
	if (optind >= argc)
		return usage("which node?", "");
	rsh->node = argv[optind++];
	at = strrchr(rsh->node, '@');
	if (at) {
		*at = 0;
		rsh->user = rsh->node;
		rsh->node = at + 1;
	}
	/* rsync and others give options behind the node, too. */
	while (optind < argc && (!strcmp(argv[optind], "-n") || !strcmp(argv[optind], "-l"))) {
		if (argv[optind][1] == 'l' && optind + 1 < argc)
			rsh->user = argv[++optind];
		else
			rsh->null = true;
		optind++;
	}
	if (optind < argc && !strcmp(argv[optind], "--"))
		optind++;
	rsh->words = argv + optind;
	return 0;
}

static char *join(char *const *words)
{
	size_t room = 1;
	char *out, *at;

	for (size_t i = 0; words[i]; i++)
		room += strlen(words[i]) + 1;
	out = at = malloc(room);
	for (size_t i = 0; out && words[i]; i++) {
		if (i)
			*at++ = ' ';
		at = stpcpy(at, words[i]);
	}
	if (out)
		*at = 0;
	return out;
}

/* The class of such jobs is named after their program: "/usr/bin/rsync --server" is rsync. */
static void find_class(const char *command, char out[64])
{
	size_t n = strcspn(command, " \t\n;|&<>()"), base = n;

	while (base && command[base - 1] != '/')
		base--;
	snprintf(out, 64, "%.*s", n - base < 63 ? (int)(n - base) : 63, command + base);
	if (!*out)
		strcpy(out, "rsh");
}

/* What sshd would set; language and terminal's kind go along. */
static char *make_env(const struct passwd *me, const char *shell)
{
	char *out = NULL;

	if (asprintf(&out,
		     "HOME=%s,USER=%s,LOGNAME=%s,SHELL=%s,"
		     "PATH=/usr/local/bin:/usr/bin:/bin%s,LANG,LC_ALL,LC_CTYPE,TERM,TZ",
		     me->pw_dir, me->pw_name, me->pw_name, shell,
		     me->pw_uid ? "" : ":/usr/local/sbin:/usr/sbin:/sbin") < 0)
		return NULL;
	return out;
}

/* As ssh: a login has a terminal where we have one, a command where one is asked for. */
static bool wants_terminal(const struct rsh *rsh)
{
	if (rsh->no_terminal)
		return false;
	return rsh->terminal || (!*rsh->words && isatty(STDIN_FILENO));
}

static int run(const struct rsh *rsh, const struct passwd *me)
{
	const char *shell = *me->pw_shell ? me->pw_shell : "/bin/sh";
	char *command = join(rsh->words), *env = make_env(me, shell);
	char *argv[20], class_name[64] = "";
	bool failed = true;
	int argc = 0, rc = RSH_FAILED;

	argv[argc++] = (char *)"iocom rsh";
	argv[argc++] = (char *)"--node";
	argv[argc++] = rsh->node;
	argv[argc++] = (char *)"--class";
	argv[argc++] = class_name;
	argv[argc++] = (char *)"--env";
	argv[argc++] = env;
	if (wants_terminal(rsh))
		argv[argc++] = (char *)"--pty";
	if (rsh->escape) {
		argv[argc++] = (char *)"--escape";
		argv[argc++] = (char *)rsh->escape;
	}
	if (rsh->verbose)
		argv[argc++] = (char *)"-v";
	if (rsh->run_dir) {
		argv[argc++] = (char *)"--run-dir";
		argv[argc++] = (char *)rsh->run_dir;
	}
	argv[argc++] = (char *)"--";
	argv[argc++] = (char *)shell;
	argv[argc++] = (char *)(*rsh->words ? "-c" : "-l");
	argv[argc++] = *rsh->words ? command : NULL;
	argv[argc] = NULL;
	if (!*rsh->words)
		argc--;
	optind = 0; /* getopt begins anew */
	if (command)
		find_class(*rsh->words ? command : shell, class_name);
	if (command && env)
		rc = run_main(argc, argv, &failed);
	free(command);
	free(env);
	return failed ? RSH_FAILED : rc;
}

int cmd_rsh(int argc, char **argv)
{
	struct rsh rsh = {0};
	const struct passwd *me = getpwuid(geteuid());
	int rc = parse(&rsh, argc, argv), null;

	if (rc)
		return rc == 1 ? 0 : rc;
	if (!me)
		return usage("you have no entry among this machine's users", "");
	if (rsh.user && strcmp(rsh.user, me->pw_name) != 0)
		return usage("identities do not change on the way: you are not ", rsh.user);
	if (chdir(me->pw_dir)) {
		fprintf(stderr, "iocom rsh: cannot enter your home directory %s: %s\n", me->pw_dir,
			strerror(errno));
		return RSH_FAILED;
	}
	null = rsh.null ? open("/dev/null", O_RDONLY) : -1;
	if (null >= 0 && null != STDIN_FILENO) {
		dup2(null, STDIN_FILENO);
		close(null);
	}
	return run(&rsh, me);
}
