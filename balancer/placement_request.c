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

#include "user/pack.h"

const char ask_help[] =
	"where:\n"
	"  --policy P      iocm-re, io-re, mem-re, cpu-re, nlb ...: iocom(1) lists all [the "
	"agent's]\n"
	"  --node N        this node and no other (it still has to admit the job)\n"
	"what the job needs (else: what earlier runs of its class measured; else a default):\n"
	"  --class C       name of the job's class [the command's file name]\n"
	"  --io-rate R     requests per wall-clock second when it runs alone, as it makes them: "
	"what\n"
	"                  EXPLICIT of iocom nodes counts (the disk may cut one into several)\n"
	"  --io-size SIZE  bytes per request, for example 128K\n"
	"  --requests N    requests in all\n"
	"  --mem SIZE      memory, for example 500M or 2Gi\n"
	"  --cpu-time S    seconds of computation at the reference speed\n"
	"  --data PATH|SIZE  data that it reads and that must be at hand; informs the cost only\n"
	"  SIZE: bytes, or with K M G T (powers of 1000) or Ki Mi Gi Ti (powers of 1024)\n";

void placement_request_init(struct placement_request *ask)
{
	*ask = (struct placement_request){
		.io_per_s = -1,
		.io_size_kb = -1,
		.requests = -1,
		.memory_mb = -1,
		.cpu_s = -1,
		.data_mb = -1,
		.restarts = -1,
	};
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

static int placement_request_take_number(const char *option, const char *text, double *out,
					 struct iocom_err *err)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !isfinite(value) || value < 0)
		return iocom_err_set(err, -EINVAL,
				     "--%s takes a number that is not negative, not '%s'", option,
				     text);
	*out = value;
	return 0;
}

static int take_size(const char *option, const char *text, double per, double *out,
		     struct iocom_err *err)
{
	double bytes;

	if (placement_request_size(text, 1, &bytes))
		return iocom_err_set(err, -EINVAL,
				     "--%s takes a size such as 500M or 2Gi, not '%s'", option,
				     text);
	*out = bytes / per;
	return 0;
}

/* --data names a file or a directory (its files count), or says a size. */
static int placement_request_take_data(const char *text, double *out, struct iocom_err *err)
{
	struct stat st;
	double bytes;

	if (!placement_request_size(text, 1, &bytes)) {
		*out = bytes / 1e6;
		return 0;
	}
	if (stat(text, &st))
		return iocom_err_set(err, -EINVAL,
				     "--data takes a size or a path that exists; '%s': %s", text,
				     strerror(errno));
	if (!S_ISREG(st.st_mode))
		return iocom_err_set(err, -EINVAL,
				     "--data '%s' is not a regular file; give its size instead",
				     text);
	*out = (double)st.st_size / 1e6;
	return 0;
}

int placement_request_take(struct placement_request *ask, int option, const char *value,
			   struct iocom_err *err)
{
	switch (option) {
	case ASK_POLICY:
		ask->policy = value;
		return 0;
	case ASK_NODE:
		ask->node = value;
		return 0;
	case ASK_CLASS:
		ask->class_name = value;
		return *value && strlen(value) < 64
			       ? 0
			       : iocom_err_set(err, -EINVAL,
					       "--class takes a name of 1 to 63 characters");
	case ASK_RUN_DIR:
		ask->run_dir = value;
		return 0;
	case ASK_IO_RATE:
		return placement_request_take_number("io-rate", value, &ask->io_per_s, err);
	case ASK_IO_SIZE:
		return take_size("io-size", value, 1e3, &ask->io_size_kb, err);
	case ASK_REQUESTS:
		return placement_request_take_number("requests", value, &ask->requests, err);
	case ASK_MEM:
		return take_size("mem", value, 1e6, &ask->memory_mb, err);
	case ASK_CPU_TIME:
		return placement_request_take_number("cpu-time", value, &ask->cpu_s, err);
	case ASK_DATA:
		return placement_request_take_data(value, &ask->data_mb, err);
	default:
		return 1;
	}
}

/* One printable line of the command, for listings; cut at 255 bytes. */
static void placement_request_command_line(char *const *command, char *out, size_t size)
{
	size_t at = 0;

	for (; *command && at + 1 < size; command++) {
		for (const char *c = *command; *c && at + 1 < size; c++)
			out[at++] = (char)(isprint((unsigned char)*c) ? *c : '?');
		if (command[1] && at + 1 < size)
			out[at++] = ' ';
	}
	out[at] = 0;
}

static void pack_need(msgpack_packer *pk, const struct placement_request *ask)
{
	const struct {
		const char *key;
		double value;
	} fields[] = {
		{"io_per_s", ask->io_per_s}, {"io_size_kb", ask->io_size_kb},
		{"requests", ask->requests}, {"memory_mb", ask->memory_mb},
		{"cpu_s", ask->cpu_s},	     {"data_mb", ask->data_mb},
	};
	size_t given = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		given += fields[i].value >= 0;
	pack_key(pk, "need");
	msgpack_pack_map(pk, given);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].value >= 0)
			pack_f64(pk, fields[i].key, fields[i].value);
}

void placement_request_pack(const struct placement_request *ask, bool run, const char *cwd,
			    const char *executable, char *const *command, msgpack_sbuffer *out)
{
	const char *base = strrchr(command[0], '/');
	char class_name[64];
	char line[256];
	msgpack_packer pk;

	snprintf(class_name, sizeof(class_name), "%s",
		 ask->class_name   ? ask->class_name
		 : base && base[1] ? base + 1
				   : command[0]);
	placement_request_command_line(ask->shown ? (char *const[]){(char *)ask->shown, NULL}
						  : command,
				       line, sizeof(line));
	pack_begin(&pk, out,
		   11u + (ask->restarts >= 0) + (ask->again != NULL) + ask->picked + ask->home_dir +
			   ask->worker);
	if (ask->picked)
		pack_bool(&pk, "picked", true);
	if (ask->home_dir)
		pack_bool(&pk, "home_dir", true);
	if (ask->worker)
		pack_bool(&pk, "worker", true);
	if (ask->restarts >= 0)
		pack_u64(&pk, "restarts", (uint64_t)ask->restarts);
	if (ask->again)
		pack_str(&pk, "again", ask->again);
	pack_str(&pk, "op", "place");
	pack_u64(&pk, "v", 1);
	pack_str(&pk, "policy", ask->policy);
	pack_str(&pk, "node", ask->node);
	pack_bin(&pk, "class", class_name, strlen(class_name));
	pack_bin(&pk, "cwd", cwd, strlen(cwd));
	pack_bin(&pk, "executable", executable, strlen(executable));
	pack_str(&pk, "command", line);
	pack_need(&pk, ask);
	pack_bool(&pk, "run", run);
	pack_bool(&pk, "view", ask->view);
}

static char *placement_request_join(const char *directory, size_t length, const char *name)
{
	char *path;

	return asprintf(&path, "%.*s/%s", (int)length, directory, name) < 0 ? NULL : path;
}

/* COMMAND in the next directory of PATH, which moves on; malloc'ed. */
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
