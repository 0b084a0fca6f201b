/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What `run` and `place` ask the agent; see placement_request.h. */
#include "balancer/placement_request.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "balancer/client.h"
#include "balancer/job_class.h"
#include "balancer/job_input.h"
#include "balancer/look_aside.h"
#include "user/shared_fs.h"
#include "user/utf8.h"

const char ask_help[] =
	"where:\n"
	"  --policy P      least-delay, iocm-re, io-re, cpu-re, nlb ...: iocom(1) lists\n"
	"                  all [the agent's]\n"
	"  --node N        this node and no other (it still has to admit the job)\n"
	"  --comment TEXT  your own words about the job, which iocom explain shows\n"
	"what the job needs (else: what earlier runs of its class measured; else a\n"
	"default):\n"
	"  --class C       name of the job's class [its program, also within sh -c,\n"
	"                  python3 ...]\n"
	"  --io SIZE       all that it reads from the disk and writes to it: 2G\n"
	"  --io-rate R     requests per wall-clock second when it runs alone, as it makes\n"
	"                  them: what EXPL/s of iocom nodes counts (the disk may cut one\n"
	"                  into several)\n"
	"  --io-size SIZE  bytes per request, for example 128K\n"
	"  --requests N    requests in all, in place of --io\n"
	"  --mem SIZE      memory, for example 500M or 2Gi\n"
	"  --cpu-time S    seconds of computation at the reference speed\n"
	"  --data PATH|SIZE  what it reads and what must be at hand: a SIZE informs the\n"
	"                  cost; a PATH (file or directory, below this one) goes along\n"
	"                  with iocom run\n"
	"  SIZE: bytes, or with K M G T (powers of 1000) or Ki Mi Gi Ti (powers of 1024)\n";

void placement_request_init(struct placement_request *r)
{
	*r = (struct placement_request){.io_bytes = -1};
	placement_ask_init(&r->ask);
}

/* Multiplier of a size suffix, or 0. */
static double suffix_factor(const char *suffix)
{
	static const char letters[] = "KMGT";
	const char *at = *suffix ? strchr(letters, toupper((unsigned char)*suffix)) : NULL;
	double base = 1000;

	if (!strcasecmp(suffix, "b"))
		return 1;
	if (!at)
		return 0;
	suffix++;
	if (tolower((unsigned char)*suffix) == 'i') {
		base = 1024;
		suffix++;
	}
	if (tolower((unsigned char)*suffix) == 'b')
		suffix++;
	return *suffix ? 0 : pow(base, (double)(at - letters + 1));
}

int placement_request_size(const char *text, double unit, double *bytes)
{
	char *end;
	double value, factor;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || errno || !isfinite(value) || value < 0)
		return -EINVAL;
	factor = *end ? suffix_factor(end) : unit;
	if (factor <= 0 || value * factor > 1e18)
		return -EINVAL;
	*bytes = value * factor;
	return 0;
}

/* --- options ----------------------------------------------------------------------- */

/* An option that takes a value. */
struct request_option {
	const char *name;
	int (*take)(struct placement_request *r, const struct request_option *o, const char *value,
		    struct iocom_err *err);
	size_t offset, bound; /* a text: its destination, and its size with the NUL */
	enum need_field need; /* a number or a size: its destination */
	double unit;	      /* a size: bytes of one unit of `need` */
};

static int request_take_text(struct placement_request *r, const struct request_option *o,
			     const char *value, struct iocom_err *err)
{
	size_t n = strlen(value);

	if (!n || n >= o->bound)
		return iocom_err_set(err, -EINVAL, "--%s takes a name of 1 to %zu characters",
				     o->name, o->bound - 1);
	memcpy((char *)&r->ask + o->offset, value, n + 1);
	return 0;
}

/* Takes one line of free text; it may be empty. */
static int request_take_line(struct placement_request *r, const struct request_option *o,
			     const char *value, struct iocom_err *err)
{
	size_t n = strlen(value);

	if (n >= o->bound || !placement_line_valid(value))
		return iocom_err_set(err, -EINVAL,
				     "--%s takes one line of at most %zu bytes, in UTF-8 and "
				     "without control characters",
				     o->name, o->bound - 1);
	memcpy((char *)&r->ask + o->offset, value, n + 1);
	return 0;
}

static int request_take_run_dir(struct placement_request *r, const struct request_option *o,
				const char *value, struct iocom_err *err)
{
	(void)o;
	(void)err;
	r->run_dir = value;
	return 0;
}

static int request_take_number(struct placement_request *r, const struct request_option *o,
			       const char *text, struct iocom_err *err)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !isfinite(value) || value < 0)
		return iocom_err_set(err, -EINVAL,
				     "--%s takes a number that is not negative, not '%s'", o->name,
				     text);
	r->ask.need.value[o->need] = value;
	return 0;
}

static int request_take_size(struct placement_request *r, const struct request_option *o,
			     const char *text, struct iocom_err *err)
{
	double bytes;

	if (placement_request_size(text, 1, &bytes))
		return iocom_err_set(err, -EINVAL,
				     "--%s takes a size such as 500M or 2Gi, not '%s'", o->name,
				     text);
	if (o->need == NEED_IO_SIZE_KB && bytes <= 0)
		return iocom_err_set(err, -EINVAL, "--%s: a request has more than 0 bytes",
				     o->name);
	r->ask.need.value[o->need] = bytes / o->unit;
	return 0;
}

static int request_take_io(struct placement_request *r, const struct request_option *o,
			   const char *text, struct iocom_err *err)
{
	if (placement_request_size(text, 1, &r->io_bytes))
		return iocom_err_set(err, -EINVAL,
				     "--%s takes a size such as 500M or 2Gi, not '%s'", o->name,
				     text);
	return 0;
}

struct seen_path {
	int error; /* errno of stat; 0: it is there */
};

static void request_see_path(const void *arg, void *out)
{
	struct stat st;

	((struct seen_path *)out)->error = stat(arg, &st) ? errno : 0;
}

/* --data takes a file or directory, or a size. */
static int request_take_data(struct placement_request *r, const struct request_option *o,
			     const char *text, struct iocom_err *err)
{
	struct seen_path seen = {EIO};
	double bytes;

	if (!placement_request_size(text, 1, &bytes)) {
		r->ask.need.value[o->need] = bytes / o->unit;
		return 0;
	}
	if (look_aside(request_see_path, text, &seen, sizeof(seen)) == -ETIMEDOUT)
		return iocom_err_set(err, -EINVAL,
				     "--data '%s': its file system did not answer within %d s",
				     text, LOOK_ASIDE_S);
	if (seen.error)
		return iocom_err_set(err, -EINVAL,
				     "--data takes a size or a path that exists; '%s': %s", text,
				     strerror(seen.error));
	if (r->names.ndata == DATA_PATHS)
		return iocom_err_set(err, -EINVAL, "--data can name at most %d paths", DATA_PATHS);
	r->names.data[r->names.ndata++] = text;
	return 0;
}

#define ASK(member)                                                                                \
	.offset = offsetof(struct placement_ask, member),                                          \
	.bound = sizeof(((struct placement_ask *)0)->member)

static const struct request_option request_options[] = {
	{"policy", request_take_text, ASK(policy)},
	{"node", request_take_text, ASK(node)},
	{"class", request_take_text, ASK(class_name)},
	{"comment", request_take_line, ASK(comment)},
	{.name = "run-dir", .take = request_take_run_dir},
	{.name = "io", .take = request_take_io},
	{"io-rate", request_take_number, .need = NEED_IO_PER_S},
	{"io-size", request_take_size, .need = NEED_IO_SIZE_KB, .unit = 1e3},
	{"requests", request_take_number, .need = NEED_REQUESTS},
	{"mem", request_take_size, .need = NEED_MEMORY_MB, .unit = 1e6},
	{"cpu-time", request_take_number, .need = NEED_CPU_S},
	{"data", request_take_data, .need = NEED_DATA_MB, .unit = 1e6},
};

#define OPTIONS	    (int)(sizeof(request_options) / sizeof(*request_options))
#define OPTIONS_MAX 64 /* the request, together with the options of one command */

const struct option *placement_request_options(const struct option *own)
{
	static struct option all[OPTIONS_MAX];
	int n = 0;

	for (; n < OPTIONS; n++)
		all[n] = (struct option){request_options[n].name, required_argument, NULL,
					 ASK_FIRST + n};
	for (; own->name && n < OPTIONS_MAX - 1; own++)
		all[n++] = *own;
	all[n] = (struct option){0};
	return all;
}

bool placement_request_is(int option, const char *name)
{
	return option >= ASK_FIRST && option < ASK_FIRST + OPTIONS &&
	       !strcmp(request_options[option - ASK_FIRST].name, name);
}

int placement_request_take(struct placement_request *r, int option, const char *value,
			   struct iocom_err *err)
{
	const struct request_option *o;

	if (option < ASK_FIRST || option >= ASK_FIRST + OPTIONS)
		return 1;
	o = &request_options[option - ASK_FIRST];
	return o->take(r, o, value, err);
}

int placement_request_node(struct placement_request *r, const char *node, struct iocom_err *err)
{
	static const struct request_option option = {"node", request_take_text, ASK(node)};

	return request_take_text(r, &option, node, err);
}

/* --- packing ----------------------------------------------------------------------- */

void placement_request_class(const struct placement_request *r, char *const *command,
			     char out[PLACEMENT_CLASS_MAX])
{
	if (*r->ask.class_name)
		snprintf(out, PLACEMENT_CLASS_MAX, "%s", r->ask.class_name);
	else
		job_class(command, out, PLACEMENT_CLASS_MAX);
}

/* How many requests --io means; the size of one is --io-size, or the default. */
static int requests_of_bytes(const struct placement_request *r, struct need_options *need,
			     struct iocom_err *err)
{
	struct need usual;

	if (r->io_bytes < 0)
		return 0;
	if (need->value[NEED_REQUESTS] >= 0)
		return iocom_err_set(err, -EINVAL,
				     "--io and --requests both say how much I/O the job does: "
				     "give one of them");
	need_init(&usual);
	if (need->value[NEED_IO_SIZE_KB] <= 0)
		need->value[NEED_IO_SIZE_KB] = usual.value[NEED_IO_SIZE_KB];
	need->value[NEED_REQUESTS] = r->io_bytes / 1e3 / need->value[NEED_IO_SIZE_KB];
	return 0;
}

/* How much --data names, where nobody has looked at all of it: for these only files count. */
static int data_of_names(const struct placement_request *r, struct need_options *need,
			 struct iocom_err *err)
{
	double bytes = 0;

	if (!r->names.ndata || need->value[NEED_DATA_MB] >= 0 || *r->ask.shared)
		return 0;
	for (size_t i = 0; i < r->names.ndata; i++) {
		struct stat st;

		if (stat(r->names.data[i], &st) || !S_ISREG(st.st_mode))
			return iocom_err_set(err, -EINVAL,
					     "--data '%s' is not a regular file; give its size "
					     "instead",
					     r->names.data[i]);
		bytes += (double)st.st_size;
	}
	need->value[NEED_DATA_MB] = bytes / 1e6;
	return 0;
}

int placement_request_needs(const struct placement_request *r, struct need_options *out,
			    struct iocom_err *err)
{
	*out = r->ask.need;
	return data_of_names(r, out, err) ? -EINVAL : requests_of_bytes(r, out, err);
}

/* Names who serves the shared file system of CWD; "": it is on none, or nobody says. */
static void request_server(const char *cwd, char out[IOCOM_NAME_MAX])
{
	int rc = shared_fs_server(SHARED_FS_TABLE, cwd, out, IOCOM_NAME_MAX);

	if (!rc)
		return;
	*out = 0;
	if (rc == -ENOENT && shared_fs_exported(SHARED_FS_EXPORTS, cwd))
		strcpy(out, SHARED_FS_HERE);
}

static void request_see_input(const void *arg, void *out)
{
	*(struct job_input *)out = job_input(*(char *const *const *)arg);
}

/* The command's input is no more than a hint: a file system that hangs is no reason to refuse. */
static struct job_input request_input(char *const *command)
{
	struct job_input input = {.bytes = -1};

	if (!command[1])
		return job_input(command);
	if (!look_aside(request_see_input, &command, &input, sizeof(input)))
		return input;
	fprintf(stderr,
		"iocom: the file system of a file that the command names did not answer within "
		"%d s; how much the job reads is not known\n",
		LOOK_ASIDE_S);
	return job_input_words(command);
}

int placement_request_pack(const struct placement_request *r, bool run, const char *cwd,
			   const char *executable, char *const *command, msgpack_sbuffer *out,
			   struct iocom_err *err)
{
	char *const shown[] = {(char *)r->shown, NULL};
	struct placement_ask ask = r->ask;
	struct job_input input;

	if (strlen(cwd) >= sizeof(ask.cwd) || strlen(executable) >= sizeof(ask.executable))
		return iocom_err_set(err, -ENAMETOOLONG,
				     "the name of the directory or of the command is longer than "
				     "%zu bytes",
				     sizeof(ask.cwd) - 1);
	if (data_of_names(r, &ask.need, err) || requests_of_bytes(r, &ask.need, err))
		return -EINVAL;
	strcpy(ask.cwd, cwd);
	request_server(cwd, ask.shared_server);
	strcpy(ask.executable, executable);
	placement_request_class(r, command, ask.class_name);
	utf8_line(r->shown ? shown : command, ask.command, sizeof(ask.command));
	ask.run = run;
	input = request_input(command);
	ask.input_bytes = input.bytes;
	ask.input_id = input.id;
	placement_ask_pack(&ask, out);
	return 0;
}

int placement_request_ask(const struct placement_request *r, bool run, const char *cwd,
			  const char *executable, char *const *command, struct placement *answer,
			  struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	json_t *document = NULL;
	int rc = placement_request_pack(r, run, cwd, executable, command, &buffer, err);

	placement_init(answer);
	if (!rc)
		rc = client_ask(r->run_dir, &buffer, &document, err);
	if (!rc)
		rc = placement_read(answer, document, "the agent's answer", err);
	json_decref(document);
	return rc;
}

int placement_request_begin(const struct placement_request *r, void (*meanwhile)(void *arg),
			    void *arg, const char *cwd, const char *executable,
			    char *const *command, struct placement *answer, int *stream,
			    struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	json_t *document = NULL;
	int rc = placement_request_pack(r, true, cwd, executable, command, &buffer, err);

	*stream = -1;
	placement_init(answer);
	if (rc)
		return rc;
	rc = client_connect(r->run_dir, stream, err);
	if (!rc)
		rc = client_send(*stream, buffer.data, buffer.size, err);
	if (!rc) {
		meanwhile(arg);
		rc = client_receive(*stream, &document, err);
	}
	msgpack_sbuffer_destroy(&buffer);
	if (!rc)
		rc = placement_read(answer, document, "the agent's answer", err);
	json_decref(document);
	if ((rc || !answer->begun) && *stream >= 0) {
		close(*stream);
		*stream = -1;
	}
	return rc;
}

/* --- the command's file -------------------------------------------------------------- */

static char *placement_request_join(const char *directory, size_t length, const char *name)
{
	char *path;

	return asprintf(&path, "%.*s/%s", (int)length, directory, name) < 0 ? NULL : path;
}

/*
 * Makes the path of COMMAND in the next directory of PATH, and moves PATH on.  The result is
 * malloc'ed.
 */
static char *next_candidate(const char **path, const char *command)
{
	size_t n = strcspn(*path, ":");
	char *candidate = n ? placement_request_join(*path, n, command)
			    : placement_request_join(".", 1, command);

	*path += n + ((*path)[n] == ':');
	return candidate;
}

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

char *placement_request_resolve(const char *command, const char *cwd, const char *path)
{
	if (*command == '/')
		return strdup(command);
	if (strchr(command, '/'))
		return placement_request_join(cwd, strlen(cwd), command);
	while (path && *path) {
		char *candidate = next_candidate(&path, command);

		if (!candidate)
			return NULL;
		if (!access(candidate, X_OK) && is_file(candidate))
			return candidate;
		free(candidate);
	}
	return strdup(command);
}

bool placement_request_denied(const char *command, const char *path)
{
	bool found = false;

	while (path && *path && !found) {
		char *candidate = next_candidate(&path, command);

		found = candidate && is_file(candidate);
		free(candidate);
	}
	return found;
}
