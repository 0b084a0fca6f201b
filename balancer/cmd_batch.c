/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom batch` runs the commands of a list, many at a time, placed by load; see batch.h. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/placement_request.h"
#include "balancer/batch/batch.h"
#include "balancer/commands.h"
#include "balancer/run/run.h"
#include "balancer/view/replace.h"

#define FAILED_MAX 101

static const char help[] =
	"usage: iocom batch [OPTION...] [FILE] [OPTION...]\n"
	"Runs the commands of FILE [standard input], one a line, many at the same time,\n"
	"each once. They run in workers: jobs that are placed as `iocom run` places one,\n"
	"and then take command after command, so that a short one costs little more than\n"
	"its process. Each command's output stays in one piece. Empty lines and lines\n"
	"with # are skipped.\n\n"
	"  -j N            workers, each running one command at a time [processors here]\n"
	"  -k, --keep-order  print outputs in the order of the list [as commands end]\n"
	"  --log FILE      write one JSON object a line for each command: status, node,\n"
	"                  time\n"
	"  --force         replace the FILE of --log if it is there\n"
	"  --resume        skip the commands that ended according to --log FILE, and\n"
	"                  append to it\n"
	"  -v, --verbose   print a summary at the end [on a terminal, and after failures]\n"
	"  -q, --quiet     print no summary and no progress\n"
	"  --here          run the workers on this machine, without asking the agent\n"
	"  --bring PATH    fetch this file or directory when a worker elsewhere ends,\n"
	"                  as in iocom run; --data PATH goes along with each worker\n"
	"  --env all|none|LIST  the environment that commands get, as in iocom run\n"
	"  --migratable    a worker may move with what it runs: iocom migrate\n"
	"  --run-dir DIR   the agent's directory [/run/iocom, or $IOCOM_RUN_DIR]\n";

static const char help_status[] =
	"Ctrl-C ends this program, its workers and what they run.\n"
	"exit status:\n"
	"  0 all ended with 0; 1 to 100: so many did not; 101: more; 125 iocom failed\n"
	"  before one began; 255 commands were lost (their outcome is unknown) or did not\n"
	"  begin.  A signal that ends this program ends it visibly; SIGPIPE does when\n"
	"  nobody reads the output\n";

/* The most options that go unchanged to the workers' `iocom run`, with its own words. */
#define WORDS_MAX 64

struct batch {
	struct placement_request request; /* we check it here and pass it on as given */
	char *words[WORDS_MAX];
	size_t nwords;
	bool here, worker, resume, force, migratable;
	const char *log; /* the log's file name */
	char self[PATH_MAX];
	char worker_of[512]; /* option for `iocom run`: the worker's name in listings */
	struct batch_options pool;
};

enum {
	OPTION_ENV = ASK_END,
	OPTION_BRING,
	OPTION_LOG,
	OPTION_RESUME,
	OPTION_FORCE,
	OPTION_HERE,
	OPTION_MIGRATABLE,
	OPTION_WORKER
};

static int add_word(struct batch *b, const char *word, struct iocom_err *err)
{
	if (b->nwords + 8 > WORDS_MAX)
		return iocom_err_set(err, -EINVAL, "too many options");
	b->words[b->nwords++] = (char *)word;
	return 0;
}

static int cmd_batch_pass_on(struct batch *b, const char *name, const char *value,
			     struct iocom_err *err)
{
	static const char prefix[] = "--";
	char *word;

	if (asprintf(&word, "%s%s=%s", prefix, name, value) < 0)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	return add_word(b, word, err);
}

static int take_workers(struct batch *b, const char *text, struct iocom_err *err)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n < 1 || n > BATCH_WORKERS_MAX)
		return iocom_err_set(err, -EINVAL, "-j takes 1 to %d, not '%s'", BATCH_WORKERS_MAX,
				     text);
	b->pool.workers = (unsigned)n;
	return 0;
}

static int open_log(struct batch *b, struct iocom_err *err)
{
	int fd;

	if (b->force && (b->resume || !b->log))
		return iocom_err_set(err, -EINVAL, "--force goes only with --log and a new list");
	if (b->log && !b->resume && replace_check(b->log, b->force, err))
		return -EEXIST;
	if (!b->log)
		return b->resume ? iocom_err_set(err, -EINVAL, "--resume needs --log FILE") : 0;
	fd = open(b->log, O_RDWR | O_CREAT | O_CLOEXEC | (b->resume ? 0 : O_TRUNC), 0666);
	b->pool.log = fd < 0 ? NULL : fdopen(fd, "r+");
	if (!b->pool.log) {
		int rc = iocom_err_set(err, -errno, "cannot write %s: %s", b->log, strerror(errno));

		if (fd >= 0)
			close(fd);
		return rc;
	}
	return b->resume ? batch_done_read(b->pool.log, b->log, &b->pool.done, err) : 0;
}

/* Listings show this text instead of this program's path and our internal option. */
static void name_workers(struct batch *b, const char *list)
{
	snprintf(b->worker_of, sizeof(b->worker_of), "--worker-of=iocom batch%s%.400s, a worker",
		 list ? " " : "", list ? list : "");
}

static int cmd_batch_take_input(struct batch *b, int argc, char **argv, struct iocom_err *err)
{
	if (optind + 1 < argc)
		return iocom_err_set(err, -EINVAL, "one file at most, not also '%s'",
				     argv[optind + 1]);
	name_workers(b, optind < argc && strcmp(argv[optind], "-") ? argv[optind] : NULL);
	if (optind == argc || !strcmp(argv[optind], "-")) {
		b->pool.in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 4);
		return b->pool.in < 0 ? iocom_err_set(err, -errno, "there is no standard input")
				      : 0;
	}
	b->pool.in = open(argv[optind], O_RDONLY | O_CLOEXEC);
	return b->pool.in < 0 ? iocom_err_set(err, -errno, "cannot read %s: %s", argv[optind],
					      strerror(errno))
			      : 0;
}

static int cmd_batch_take_option(struct batch *b, int option, const char *name, const char *value,
				 struct iocom_err *err)
{
	int rc = placement_request_take(&b->request, option, value, err);

	if (rc <= 0)
		return rc ? rc : cmd_batch_pass_on(b, name, value, err);
	switch (option) {
	case 'j':
		return take_workers(b, value, err);
	case OPTION_ENV:
		return run_env_check(value, err) ? -EINVAL : cmd_batch_pass_on(b, name, value, err);
	case OPTION_BRING:
		return data_names_bring(&b->request.names, value, err)
			       ? -EINVAL
			       : cmd_batch_pass_on(b, name, value, err);
	case OPTION_LOG:
		b->log = value;
		return 0;
	case OPTION_RESUME:
		b->resume = true;
		return 0;
	case OPTION_FORCE:
		b->force = true;
		return 0;
	case 'k':
		b->pool.keep_order = true;
		return 0;
	case 'q':
		b->pool.quiet = true;
		return 0;
	case 'v':
		b->pool.verbose = true;
		return 0;
	case OPTION_HERE:
		b->here = true;
		return 0;
	case OPTION_MIGRATABLE:
		b->migratable = true;
		return 0;
	case OPTION_WORKER:
		b->worker = true;
		return 0;
	default: /* getopt_long has printed what is wrong */
		return iocom_err_set(err, -EINVAL, "see iocom batch --help");
	}
}

/* Returns 0: go on; 1: help was printed; negative errno with the reason in ERR. */
static int cmd_batch_parse(struct batch *b, int argc, char **argv, struct iocom_err *err)
{
	static const struct option own[] = {
		{"env", required_argument, NULL, OPTION_ENV},
		{"bring", required_argument, NULL, OPTION_BRING},
		{"log", required_argument, NULL, OPTION_LOG},
		{"resume", no_argument, NULL, OPTION_RESUME},
		{"force", no_argument, NULL, OPTION_FORCE},
		{"keep-order", no_argument, NULL, 'k'},
		{"quiet", no_argument, NULL, 'q'},
		{"verbose", no_argument, NULL, 'v'},
		{"here", no_argument, NULL, OPTION_HERE},
		{"migratable", no_argument, NULL, OPTION_MIGRATABLE},
		{"worker", no_argument, NULL, OPTION_WORKER}, /* internal: act as a worker */
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct option *options = placement_request_options(own);
	int option, at = -1;

	while ((option = getopt_long(argc, argv, "hj:kqv", options, &at)) != -1) {
		int rc;

		if (option == 'h') {
			printf("%s%s%s", help, ask_help, help_status);
			return 1;
		}
		rc = cmd_batch_take_option(b, option, at >= 0 ? options[at].name : "", optarg, err);
		if (rc)
			return rc;
		at = -1;
	}
	return b->worker ? 0 : cmd_batch_take_input(b, argc, argv, err);
}

/*
 * Makes the worker's command line: `iocom run OPTIONS -- SELF batch --worker`, or with --here
 * the part from SELF on.
 */
static int make_argv(struct batch *b, struct iocom_err *err)
{
	ssize_t n = readlink("/proc/self/exe", b->self, sizeof(b->self) - 1);
	size_t first = 2;

	if (n <= 0)
		return iocom_err_set(err, -errno, "cannot find this program: %s", strerror(errno));
	b->self[n] = 0;
	b->pool.placed = !b->here;
	if (b->here && b->migratable)
		return iocom_err_set(err, -EINVAL, "--migratable does not go with --here");
	if (b->migratable && add_word(b, "--migratable", err))
		return -EINVAL;
	if (!b->here && add_word(b, b->worker_of, err))
		return iocom_err_set(err, -ENOMEM, "out of memory");
	if (!b->here && !*b->request.ask.class_name && add_word(b, "--class=batch", err))
		return -EINVAL;
	if (!b->here) {
		b->words[b->nwords++] = (char *)"--status-fd=3";
		b->words[b->nwords++] = (char *)"--";
	} else {
		b->nwords = first - 1;
	}
	b->words[b->here ? 0 : b->nwords] = b->self;
	b->nwords = b->here ? 1 : b->nwords + 1;
	b->words[b->nwords++] = (char *)"batch";
	b->words[b->nwords++] = (char *)"--worker";
	b->words[b->nwords] = NULL;
	b->pool.argv = b->words;
	return 0;
}

static int exit_code(const struct batch_result *result, int rc)
{
	if (!result->began && !result->lost && (rc || result->rest))
		return RUN_FAILED;
	if (rc || result->lost || result->stopped || result->rest)
		return RUN_UNKNOWN;
	return result->failed < FAILED_MAX ? (int)result->failed : FAILED_MAX;
}

static int cmd_batch_run(struct batch *b, struct batch_result *result, struct iocom_err *err)
{
	int rc = make_argv(b, err);

	if (!rc)
		rc = open_log(b, err);
	if (!rc)
		rc = batch_pool(&b->pool, result, err);
	if (b->pool.log && fclose(b->pool.log) && !rc)
		rc = iocom_err_set(err, -errno, "cannot write the log: %s", strerror(errno));
	batch_done_free(b->pool.done);
	if (!rc && result->rest)
		rc = iocom_err_set(err, -EIO, "no worker is left to begin the rest");
	return rc;
}

/* Dies by the signal itself, so that a shell sees Ctrl-C and `| head` ends us as usual. */
static void end_by(int number)
{
	signal(number, SIG_DFL);
	raise(number);
}

int cmd_batch(int argc, char **argv)
{
	bool piped = signal(SIGPIPE, SIG_DFL) != SIG_IGN;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct batch b = {
		.words = {(char *)"iocom", (char *)"run"},
		.nwords = 2,
		.pool = {.workers = processors > 0 ? (unsigned)processors : 1, .in = -1},
	};
	struct batch_result result = {0};
	struct iocom_err err = {0};
	int rc;

	run_closed_descriptors();
	placement_request_init(&b.request);
	rc = cmd_batch_parse(&b, argc, argv, &err);
	if (rc > 0)
		return fflush(stdout) ? RUN_FAILED : 0;
	if (!rc && b.worker)
		return batch_worker();
	if (!rc)
		rc = cmd_batch_run(&b, &result, &err);
	if (result.signal)
		end_by(result.signal);
	if (rc == -EPIPE && piped)
		end_by(SIGPIPE);
	if (*err.text)
		fprintf(stderr, "iocom batch: %s\n", err.text);
	return exit_code(&result, rc);
}
