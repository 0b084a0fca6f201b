/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See run_data.h. */
#include "balancer/run/run_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "balancer/run/run_stream.h"

#define FRAME_BYTES FRAME_DATA_MAX

int run_data_init(struct run_data *data, struct data_set *set, struct data_memory *memory,
		  const char *node)
{
	*data = (struct run_data){.set = set, .memory = memory, .fd = -1, .to = -1, .beside = -1};
	snprintf(data->node, sizeof(data->node), "%s", node);
	data->want = calloc(set->count + 1, 1);
	data->in = malloc(FRAME_BYTES + DATA_MESSAGE);
	if (data->want && data->in)
		return 0;
	run_data_fini(data);
	return -ENOMEM;
}

static void run_data_close(struct run_data *data)
{
	uint8_t unused[DATA_HASH];

	if (data->fd >= 0)
		close(data->fd);
	data->fd = -1;
	if (data->hash)
		data_hash_end(data->hash, unused);
	data->hash = NULL;
}

void run_data_fini(struct run_data *data)
{
	run_data_close(data);
	run_fetch_drop(data);
	free(data->want);
	free(data->in);
	*data = (struct run_data){.fd = -1, .to = -1, .beside = -1};
}

static int run_data_against(struct run_data *data)
{
	return iocom_err_set(&data->err, -EPROTO,
			     "node %s does not speak this program's protocol for data that goes "
			     "along: install the same iocom version on both sides",
			     data->node);
}

/* --- what comes ----------------------------------------------------------------------- */

static int run_data_take_want(struct run_data *data, const uint8_t *payload, uint32_t length)
{
	if (data->state != RUN_DATA_LISTED || length > data->set->count - data->nwant)
		return run_data_against(data);
	for (uint32_t i = 0; i < length; i++)
		data->want[data->nwant++] = payload[i] != 0;
	if (data->nwant < data->set->count)
		return 0;
	data->state = RUN_DATA_SENDING;
	data->next = 0;
	return 0;
}

static int run_data_take_message(struct run_data *data, uint8_t type, const uint8_t *payload,
				 uint32_t length)
{
	if (data->state >= RUN_DATA_RUNS)
		return run_fetch_take(data, type, payload, length);
	if (type == DATA_WANT)
		return run_data_take_want(data, payload, length);
	if (type == DATA_FULL && data->state >= RUN_DATA_LISTED) {
		data->full = true;
		return 0;
	}
	if (type != DATA_STATS || data->state != RUN_DATA_SENT ||
	    data_stats_unpack(&data->stats, payload, length))
		return run_data_against(data);
	data->has_stats = true;
	return 0;
}

/* It is our turn: before the job, or after it. */
static int run_data_begin(struct run_data *data)
{
	if (data->state == RUN_DATA_QUIET) {
		data->begun_ms = run_now_ms();
		data->state = RUN_DATA_LISTING;
	} else if (data->state == RUN_DATA_RUNS) {
		data->state = RUN_DATA_ASKING;
	} else {
		return run_data_against(data);
	}
	data->next = 0;
	return 0;
}

int run_data_take(struct run_data *data, const uint8_t *payload, uint32_t length)
{
	const uint8_t *message;
	size_t head = 0, consumed;
	uint32_t n;
	uint8_t type;
	int rc = 0;

	if (data->state == RUN_DATA_DONE)
		return 0; /* we have given up */
	if (!length)
		return run_data_begin(data);
	if (length > FRAME_BYTES || data->nin > DATA_MESSAGE)
		return run_data_against(data);
	memcpy(data->in + data->nin, payload, length);
	data->nin += length;
	while (!rc && !(rc = data_next(data->in + head, data->nin - head, &type, &message, &n,
				       &consumed))) {
		rc = run_data_take_message(data, type, message, n);
		head += consumed;
	}
	memmove(data->in, data->in + head, data->nin - head);
	data->nin -= head;
	if (rc == -EBADMSG)
		return run_data_against(data);
	return rc < 0 ? rc : 0;
}

/* --- what goes ------------------------------------------------------------------------ */

bool run_data_sends(const struct run_data *data)
{
	return data->state == RUN_DATA_LISTING || data->state == RUN_DATA_SENDING ||
	       data->state == RUN_DATA_ASKING;
}

/* Appends a message to the frame OUT, which has room.  Returns its new length. */
static size_t run_data_message(uint8_t *out, size_t at, enum data_type type, const void *payload,
			       uint32_t length)
{
	data_head(out + at, type, length);
	if (length)
		memcpy(out + at + DATA_HEAD, payload, length);
	return at + DATA_HEAD + length;
}

static int run_data_frame(struct wire *wire, const uint8_t *out, size_t length)
{
	return wire_send(wire, FRAME_STAGE, NULL, 0, out, length);
}

static int run_data_send_list(struct run_data *data, struct wire *wire, uint8_t *out)
{
	uint8_t packed[PATH_MAX + 256];
	size_t at = 0;

	while (data->next < data->set->count && at + sizeof(packed) + 2 * DATA_HEAD < FRAME_BYTES) {
		int n = data_entry_pack(&data->set->at[data->next++].entry, packed, sizeof(packed));

		if (n < 0)
			return iocom_err_set(&data->err, n, "out of memory for the job's data");
		at = run_data_message(out, at, DATA_ENTRY, packed, (uint32_t)n);
	}
	if (data->next == data->set->count) {
		at = run_data_message(out, at, DATA_LIST, NULL, 0);
		data->state = RUN_DATA_LISTED;
	}
	return run_data_frame(wire, out, at);
}

/* Goes to the next file that the node lacks.  Returns 0; 1: there is none; negative errno. */
static int run_data_next(struct run_data *data)
{
	while (data->next < data->set->count && !data->want[data->next])
		data->next++;
	if (data->next == data->set->count)
		return 1;
	if (data->set->at[data->next].entry.kind != DATA_KIND_FILE)
		return run_data_against(data);
	clock_gettime(CLOCK_REALTIME, &data->since);
	data->fd = data_set_open(data->set, data->next, &data->err);
	if (data->fd < 0)
		return data->fd;
	data->left = data->set->at[data->next].entry.size;
	data->hash = data_hash_new();
	return data->hash ? 0 : iocom_err_set(&data->err, -ENOMEM, "out of memory");
}

/* All of the file was read. */
static int run_data_end_file(struct run_data *data, uint8_t hash[DATA_HASH])
{
	struct data_item *item = &data->set->at[data->next];
	int rc = data_set_same(data->set, data->next, data->fd, &data->err);

	data_hash_end(data->hash, hash);
	data->hash = NULL;
	run_data_close(data);
	if (rc)
		return rc;
	memcpy(item->entry.hash, hash, DATA_HASH);
	item->entry.hashed = true;
	data_memory_note_hash(data->memory, item, &data->since);
	data->next++;
	return 0;
}

static int run_data_read(struct run_data *data, uint8_t *out, size_t *length)
{
	size_t want = data->left < DATA_PIECE ? (size_t)data->left : DATA_PIECE, have = 0;

	while (have < want) {
		ssize_t n = read(data->fd, out + DATA_HEAD + have, want - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	if (have < want) /* it has shrunk, or cannot be read */
		return iocom_err_set(&data->err, -ESTALE,
				     "%s could not be read to its end while the job's data was "
				     "copied: nothing of the job has run",
				     data->set->at[data->next].entry.path);
	data_hash_add(data->hash, out + DATA_HEAD, have);
	data_head(out, DATA_DATA, (uint32_t)have);
	data->left -= have;
	*length = DATA_HEAD + have;
	return 0;
}

static int run_data_send_file(struct run_data *data, struct wire *wire, uint8_t *out)
{
	uint8_t hash[DATA_HASH];
	size_t length = 0;
	int rc = data->fd < 0 ? run_data_next(data) : 0;

	if (rc == 1) {
		data->state = RUN_DATA_SENT;
		return run_data_frame(wire, out, run_data_message(out, 0, DATA_DONE, NULL, 0));
	}
	if (!rc && data->left)
		rc = run_data_read(data, out, &length);
	if (!rc && !data->left) {
		rc = run_data_end_file(data, hash);
		if (!rc)
			length = run_data_message(out, length, DATA_FILE, hash, DATA_HASH);
	}
	return rc ? rc : run_data_frame(wire, out, length);
}

static int run_data_send_paths(struct run_data *data, struct wire *wire, uint8_t *out)
{
	const struct data_set *set = data->set;
	size_t at = 0;

	while (data->next < set->nbrings && at + PATH_MAX + 2 * DATA_HEAD < FRAME_BYTES) {
		const char *path = set->brings[data->next++];

		at = run_data_message(out, at, DATA_PATH, path, (uint32_t)strlen(path));
	}
	if (data->next == set->nbrings) {
		at = run_data_message(out, at, DATA_DONE, NULL, 0);
		data->state = RUN_DATA_FETCHING;
	}
	return run_data_frame(wire, out, at);
}

int run_data_send(struct run_data *data, struct wire *wire)
{
	static uint8_t out[FRAME_BYTES];

	if (data->state == RUN_DATA_LISTING)
		return run_data_send_list(data, wire, out);
	if (data->state == RUN_DATA_ASKING)
		return run_data_send_paths(data, wire, out);
	return run_data_send_file(data, wire, out);
}

void run_data_started(struct run_data *data)
{
	if (data->state >= RUN_DATA_RUNS)
		return;
	data->state = RUN_DATA_RUNS;
	data->ended_ms = run_now_ms();
	data_memory_note_node(data->memory, data->node, data->set);
}

void run_data_tell(const struct run_data *data, const char *name)
{
	const struct data_stats *s = &data->stats;

	if (data->has_stats)
		fprintf(stderr,
			"%s: data at node %s: %.1f MB copied in %.1f s, %.1f MB found in your "
			"cache "
			"there (%.1f of %.1f MB)\n",
			name, data->node, (double)s->copied_bytes / 1e6,
			(double)(data->ended_ms - data->begun_ms) / 1e3,
			(double)s->found_bytes / 1e6, (double)s->cache_bytes / 1e6,
			(double)s->quota_bytes / 1e6);
}

bool run_data_give_up(struct run_data *data)
{
	if (data->state < RUN_DATA_RUNS)
		return false;
	if (!*data->gone)
		snprintf(data->gone, sizeof(data->gone), "%.500s", data->err.text);
	run_fetch_drop(data);
	data->state = RUN_DATA_DONE;
	return true;
}

bool run_data_unfetched(struct run_data *data)
{
	if (!data->set->nbrings || data->state < RUN_DATA_RUNS)
		return false;
	if (data->state != RUN_DATA_DONE && !*data->gone)
		snprintf(data->gone, sizeof(data->gone),
			 "node %s did not send what --bring names: contact was lost, or another "
			 "client took the job over",
			 data->node);
	return *data->gone;
}

int run_data_end(struct run_data *data, const char *name, int status)
{
	if (run_data_unfetched(data)) {
		fprintf(stderr, "%s: %s\n", name, data->gone);
		status = status ? status : RUN_UNKNOWN;
	}
	run_data_fini(data);
	return status;
}

/*
 * The job begins in a directory of its own, which the node names.  A node that knows nothing of
 * this finds no such directory, and does not begin the job.
 */
int run_data_describe(const struct data_set *set, struct spec *spec, struct iocom_err *err)
{
	spec->data = DATA_FLAG_TAKE | (set->nbrings ? DATA_FLAG_BRING : 0);
	free(spec->cwd);
	spec->cwd = strdup(SPEC_CWD_DATA);
	if (set->program) {
		free(spec->executable);
		if (asprintf(&spec->executable, "./%s", set->program) < 0)
			spec->executable = NULL;
	}
	return spec->cwd && spec->executable ? 0 : iocom_err_set(err, -ENOMEM, "out of memory");
}
