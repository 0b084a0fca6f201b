/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Messages between a shim and its agent; see leash.h. */
#include "agent/shim/leash.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "user/leash_wire.h"
#include "user/pack.h"

void leash_init(struct leash *leash, int fd, const char *job)
{
	*leash = (struct leash){.fd = fd, .listen = -1};
	snprintf(leash->job, sizeof(leash->job), "%s", job);
}

/* Enters RUN_DIR first because a socket's name holds only 107 bytes. */
int leash_listen(struct leash *leash, const char *run_dir, struct iocom_err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd, rc = 0;

	if (chdir(run_dir))
		return iocom_err_set(err, -errno, "cannot enter the run directory %s: %s", run_dir,
				     strerror(errno));
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s.sock", leash->job);
	unlink(sa.sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(fd, 4))
		rc = -errno;
	if (!rc && chmod(sa.sun_path, 0600))
		rc = -errno;
	if (rc) {
		if (fd >= 0)
			close(fd);
		unlink(sa.sun_path);
		return iocom_err_set(err, rc, "cannot make the control socket %s/%s: %s", run_dir,
				     sa.sun_path, strerror(-rc));
	}
	snprintf(leash->run_dir, sizeof(leash->run_dir), "%s", run_dir);
	leash->listen = fd;
	return 0;
}

static void take_name_away(const struct leash *leash)
{
	char path[sizeof(leash->run_dir) + SPEC_JOB_MAX + 8];

	snprintf(path, sizeof(path), "%s/%s.sock", leash->run_dir, leash->job);
	unlink(path);
}

bool leash_last(struct leash *leash)
{
	struct pollfd p = {.fd = leash->listen, .events = POLLIN};

	if (leash->listen < 0)
		return false;
	take_name_away(leash);
	return poll(&p, 1, 0) == 1;
}

void leash_unlisten(struct leash *leash)
{
	if (leash->listen < 0)
		return;
	take_name_away(leash);
	close(leash->listen);
	leash->listen = -1;
}

void leash_deinit(struct leash *leash)
{
	leash_unlisten(leash);
	if (leash->fd >= 0)
		close(leash->fd);
	leash->fd = -1;
}

/* A report is small: if the socket does not take it whole, the agent counts as gone. */
static bool leash_report(struct leash *leash, const msgpack_sbuffer *buffer)
{
	if (leash->fd < 0)
		return false;
	if (!leash_send(leash->fd, buffer, MSG_DONTWAIT))
		return true;
	close(leash->fd);
	leash->fd = -1;
	return false;
}

void leash_started(struct leash *leash, pid_t pid, uint64_t cgroup_id)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	leash->pid = pid;
	leash->cgroup_id = cgroup_id;
	pack_begin(&pk, &buffer, 7);
	pack_bool(&pk, "renews", leash->renews);
	pack_u64(&pk, "lease_until_ms", leash->lease ? leash->lease->until_ms : 0);
	pack_u64(&pk, "v", LEASH_VERSION);
	pack_str(&pk, "event", "started");
	pack_str(&pk, "job", leash->job);
	pack_u64(&pk, "pid", (uint64_t)pid);
	pack_u64(&pk, "cgroup_id", cgroup_id);
	(void)leash_report(leash, &buffer);
	msgpack_sbuffer_destroy(&buffer);
}

void leash_ready(struct leash *leash)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	leash->is_ready = true;
	pack_begin(&pk, &buffer, 3);
	pack_u64(&pk, "v", LEASH_VERSION);
	pack_str(&pk, "event", "ready");
	pack_str(&pk, "job", leash->job);
	(void)leash_report(leash, &buffer);
	msgpack_sbuffer_destroy(&buffer);
}

void leash_moved(struct leash *leash, const struct leash_move *move)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	leash->is_moved = true;
	leash->move = *move;
	pack_begin(&pk, &buffer, 8);
	pack_u64(&pk, "v", LEASH_VERSION);
	pack_str(&pk, "event", "moved");
	pack_str(&pk, "job", leash->job);
	pack_bool(&pk, "failed", move->failed);
	pack_u64(&pk, "frozen_ms", move->frozen_ms);
	pack_u64(&pk, "dump_ms", move->dump_ms);
	pack_u64(&pk, "bytes", move->bytes);
	pack_str(&pk, "why", move->why);
	(void)leash_report(leash, &buffer);
	msgpack_sbuffer_destroy(&buffer);
}

void leash_decided(struct leash *leash)
{
	leash->is_ready = leash->is_moved = false;
}

void leash_exited(struct leash *leash, const struct record_exit *end)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, 3 + RECORD_EXIT_FIELDS);
	pack_u64(&pk, "v", LEASH_VERSION);
	pack_str(&pk, "event", "exited");
	pack_str(&pk, "job", leash->job);
	record_pack_exit(&pk, end);
	leash->told = leash_report(leash, &buffer);
	msgpack_sbuffer_destroy(&buffer);
}

/* The first word counts. */
static bool take_word(struct leash *leash, const char *op)
{
	enum leash_word word = !strcmp(op, "go")      ? LEASH_GO
			       : !strcmp(op, "abort") ? LEASH_ABORT
						      : LEASH_NO_WORD;

	if (word != LEASH_NO_WORD && leash->word == LEASH_NO_WORD)
		leash->word = word;
	return word != LEASH_NO_WORD && leash->word == word;
}

static void leash_take_order(struct leash *leash, const msgpack_object *message,
			     struct lease *lease)
{
	uint64_t until_ms;
	char op[16] = "";

	(void)unpack_str(message, "op", op, sizeof(op));
	if (leash_version(message) > LEASH_VERSION)
		return;
	if (strcmp(op, "lease") != 0)
		(void)take_word(leash, op);
	else if (!unpack_u64(message, "until_ms", &until_ms))
		lease_hear(lease, until_ms);
}

void leash_hear(struct leash *leash, struct lease *lease)
{
	uint8_t buffer[LEASH_MESSAGE_MAX];
	msgpack_unpacked message;
	int rc;

	while (!(rc = leash_take(leash->fd, buffer, &message))) {
		leash_take_order(leash, &message.data, lease);
		msgpack_unpacked_destroy(&message);
	}
	if (rc == -EAGAIN)
		return;
	/* Closing with unread input would reset the connection. */
	leash->taken = leash->told && rc == -EPIPE;
	close(leash->fd);
	leash->fd = -1;
}

void leash_answer(int connection, int result)
{
	leash_answer_why(connection, result, "");
}

void leash_decline(struct leash_request *request, enum leash_what what, int error)
{
	if (what == LEASH_NOTHING)
		return;
	if (what != LEASH_ATTACH)
		leash_answer(request->connection, error);
	if (request->stream >= 0)
		close(request->stream);
	records_erase(&request->records);
}

void leash_answer_why(int connection, int result, const char *why)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, *why ? 2 : 1);
	pack_u64(&pk, "result", (uint64_t)result);
	if (*why)
		pack_str(&pk, "why", why);
	(void)leash_send(connection, &buffer, 0);
	msgpack_sbuffer_destroy(&buffer);
	close(connection);
}

/* Returns a copy of the descriptor that came with the first byte, or -1. The byte stays in the
 * socket; reading it later closes the original descriptor. */
static int take_descriptor(int connection)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	const struct cmsghdr *head;
	int fd;

	if (recvmsg(connection, &msg, MSG_PEEK | MSG_CMSG_CLOEXEC) != 1)
		return -1;
	head = CMSG_FIRSTHDR(&msg);
	if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
	    head->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

/* Takes the keys of the stream that comes with a request.  Returns false: they are malformed. */
static bool leash_take_records(const msgpack_object *map, struct leash_request *request)
{
	const msgpack_object *records = unpack_get(map, "records");

	request->secure = records != NULL;
	return !records ||
	       (records->type == MSGPACK_OBJECT_BIN &&
		!records_unpack(&request->records, records->via.bin.ptr, records->via.bin.size));
}

static enum leash_what take_move(const msgpack_object *map, struct leash_request *request)
{
	if (request->stream < 0 || !leash_take_records(map, request) ||
	    unpack_str(map, "criu", request->criu, sizeof(request->criu)))
		return LEASH_NOTHING;
	/* An older agent does not say. */
	if (unpack_bool(map, "precopy", &request->precopy))
		request->precopy = false;
	return LEASH_MOVE;
}

static enum leash_what take_ask(const msgpack_object *map, struct leash_request *request)
{
	const msgpack_object *ask = unpack_get(map, "ask");

	if (!leash_take_records(map, request))
		return LEASH_NOTHING;
	if (request->stream < 0 || !ask || ask->type != MSGPACK_OBJECT_BIN ||
	    attach_unpack(&request->ask, ask->via.bin.ptr, ask->via.bin.size, NULL))
		return LEASH_NOTHING;
	return LEASH_ATTACH;
}

/* Tells an agent that starts again how it is. */
static void leash_again(struct leash *leash)
{
	const struct leash_move move = leash->move;

	if (leash->is_ready)
		leash_ready(leash);
	else
		leash_started(leash, leash->pid, leash->cgroup_id);
	if (leash->is_moved)
		leash_moved(leash, &move);
}

/* Obeys one request, or returns what the caller must do. TAKEN: the connection stays open. */
static enum leash_what leash_obey(struct leash *leash, const msgpack_object *message,
				  struct leash_request *request, bool *taken)
{
	uint64_t signal = 0;
	char op[16] = "";

	if (leash_version(message) > LEASH_VERSION)
		return LEASH_NOTHING;
	(void)unpack_str(message, "op", op, sizeof(op));
	if (!strcmp(op, "leash")) {
		if (leash->fd >= 0)
			close(leash->fd);
		leash->fd = request->connection;
		leash->told = leash->taken = false;
		leash_again(leash);
		*taken = true;
		return LEASH_NOTHING;
	}
	if (!strcmp(op, "signal") && !unpack_u64(message, "signal", &signal) && signal > 0 &&
	    signal < _NSIG) {
		request->signal = (int)signal;
		if (unpack_str(message, "why", request->why, sizeof(request->why)))
			request->why[0] = 0;
		*taken = true;
		return LEASH_SIGNAL;
	}
	if (!strcmp(op, "attach"))
		return take_ask(message, request);
	if (!strcmp(op, "move")) {
		enum leash_what what = take_move(message, request);

		*taken = what == LEASH_MOVE;
		return what;
	}
	if (!strcmp(op, "go") || !strcmp(op, "abort")) {
		leash_answer(request->connection, take_word(leash, op) ? 0 : EALREADY);
		*taken = true;
		return LEASH_NOTHING;
	}
	*taken = !strcmp(op, "stay") || !strcmp(op, "leave");
	return !*taken ? LEASH_NOTHING : !strcmp(op, "stay") ? LEASH_STAY : LEASH_LEAVE;
}

enum leash_what leash_serve(struct leash *leash, struct leash_request *request)
{
	int fd = accept4(leash->listen, NULL, NULL, SOCK_CLOEXEC);
	enum leash_what what = LEASH_NOTHING;
	struct timeval limit = {.tv_sec = 1};
	uint8_t buffer[LEASH_MESSAGE_MAX];
	msgpack_unpacked message;
	bool taken = false;

	*request = (struct leash_request){.connection = fd, .stream = -1};
	if (fd < 0)
		return LEASH_NOTHING;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	request->stream = take_descriptor(fd);
	if (!leash_await(fd, buffer, &message)) {
		what = leash_obey(leash, &message.data, request, &taken);
		msgpack_unpacked_destroy(&message);
		explicit_bzero(buffer, sizeof(buffer)); /* it may have had keys */
	}
	if (!taken)
		close(fd);
	if (what != LEASH_ATTACH && what != LEASH_MOVE && request->stream >= 0) {
		close(request->stream);
		request->stream = -1;
	}
	return what;
}
