/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What strangers and other launchers say to a launcher's hub.  The first byte says who speaks: a
 * stranger, who proves nothing by any bytes, to either end of a handshake; or a launcher of the
 * same gang, whose messages are sealed but may be anything, to one connection and to all of part 0.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/tasks/hub.h"
#include "agent/tasks/hub_line.h"
#include "agent/tasks/tasks_own.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"

#define PARTS	  3
#define BYTES_MAX 8192 /* which a socket takes at once */
#define HEAD	  25
#define TURNS	  64

enum who { STRANGER_TO_LISTENER, STRANGER_TO_CONNECTOR, TO_LINE, TO_HUB, WHO };

static struct gang_node nodes[PARTS] = {{.name = "n1", .first = 0, .tasks = 1},
					{.name = "n2", .first = 1, .tasks = 1},
					{.name = "n3", .first = 2, .tasks = 1}};
static uint32_t ranks[PARTS] = {0, 1, 2};

static struct gang_plan plan_of(uint32_t part)
{
	return (struct gang_plan){.gang = "n1-4f2a-57",
				  .tasks = PARTS,
				  .part = part,
				  .nnodes = PARTS,
				  .nodes = nodes,
				  .ranks = ranks,
				  .secret = {1, 2, 3}};
}

/* One piece: its length as u16, then a message's head and DATA. */
static void sample_piece(FILE *out, uint8_t op, uint8_t from, uint8_t to, uint8_t rank,
			 const char *data)
{
	uint8_t head[HEAD] = {op};
	size_t n = strlen(data);

	head[4] = from;
	head[8] = to;
	head[12] = 9;
	head[16] = rank;
	head[24] = (uint8_t)n;
	fputc(0, out);
	fputc((int)(HEAD + n), out);
	fwrite(head, 1, HEAD, out);
	fwrite(data, 1, n, out);
}

bool sample(int n, FILE *out)
{
	if (n >= WHO)
		return false;
	fputc(n, out);
	if (n < TO_LINE) {
		fwrite("\x01\0\0\0\x34", 1, 5, out); /* a frame's head and too little of it */
		return true;
	}
	sample_piece(out, HUB_HERE, 0, 0, 0, "");
	sample_piece(out, HUB_FENCE, 0, 0, 0, "keys");
	sample_piece(out, HUB_ASK, 1, 0, 0, "");
	sample_piece(out, HUB_ASK, 1, 2, 2, "");
	sample_piece(out, HUB_TELL, 1, 0, 0, "told");
	sample_piece(out, HUB_ABORT, 0, 0, 1, "rank 1 failed");
	sample_piece(out, HUB_DONE, 0, 0, 0, "");
	return true;
}

FUZZ_SAMPLES

static void make_pair(int ends[2])
{
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends));
}

static int take_any(void *arg, struct hub_line *line, const struct hub_message *m)
{
	const char *data = m->data;

	(void)arg;
	(void)line;
	must(m->op >= HUB_HERE && m->op < HUB_OPS && m->length <= HUB_MESSAGE_MAX);
	must(data && !data[m->length]);
	return 0;
}

static int take_none(void *arg, struct hub_line *line, const struct hub_message *m)
{
	(void)arg;
	(void)line;
	(void)m;
	abort();
}

static void as_stranger(bool to_connector, const uint8_t *data, size_t size)
{
	const struct gang_plan plan = plan_of(to_connector);
	struct hub_line line;
	int ends[2], rc = 0;

	make_pair(ends);
	hub_line_init(&line, ends[0], to_connector, &plan, 0);
	if (to_connector)
		must(!hub_line_serve(&line, POLLOUT, take_none, NULL));
	must(send(ends[1], data, size, MSG_NOSIGNAL) == (ssize_t)size);
	shutdown(ends[1], SHUT_WR);
	for (int i = 0; i < TURNS && !rc; i++)
		rc = hub_line_serve(&line, POLLIN, take_none, NULL);
	must(rc < 0 && !line.proven);
	hub_line_deinit(&line);
	close(ends[1]);
}

/* Sends what the fuzzer says, piece by piece, as one that has the keys. */
static void say_pieces(struct hub_line *from, const uint8_t *data, size_t size)
{
	while (size > 2) {
		size_t n = (size_t)(data[0] << 8 | data[1]);

		data += 2;
		size -= 2;
		n = n > size ? size : n;
		if (wire_send(&from->wire, FRAME_GANG, NULL, 0, data, (uint32_t)n))
			return;
		data += n;
		size -= n;
	}
}

static void as_launcher_to_line(const uint8_t *data, size_t size)
{
	const struct gang_plan mine = plan_of(0), theirs = plan_of(1);
	struct hub_line listener, connector;
	int ends[2];

	make_pair(ends);
	hub_line_init(&listener, ends[0], false, &mine, 0);
	hub_line_init(&connector, ends[1], true, &theirs, 0);
	must(!hub_line_serve(&connector, POLLOUT, take_none, NULL));
	must(!hub_line_serve(&listener, POLLIN, take_none, NULL));
	must(!hub_line_serve(&connector, POLLIN, take_none, NULL) && connector.proven);
	say_pieces(&connector, data, size);
	for (int i = 0; i < TURNS && !hub_line_serve(&listener, POLLIN, take_any, NULL); i++)
		;
	hub_line_deinit(&connector);
	hub_line_deinit(&listener);
}

static void hub_all(void *arg, const void *data, size_t length)
{
	(void)arg;
	must(data && length <= HUB_MESSAGE_MAX);
}

static void hub_asked(void *arg, uint32_t from, uint32_t id, uint32_t rank)
{
	must(from < PARTS && rank == 0);
	must(!hub_tell(*(struct hub **)arg, from, id, 0, "known", 5));
}

static void hub_told(void *arg, uint32_t id, int32_t status, const void *data, size_t length)
{
	(void)arg;
	(void)id;
	(void)status;
	must(data && length <= HUB_MESSAGE_MAX);
}

static const struct hub_calls calls = {.all = hub_all, .asked = hub_asked, .told = hub_told};

static int connect_to(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && !connect(fd, (struct sockaddr *)&at, sizeof(at)));
	must(!fcntl(fd, F_SETFL, O_NONBLOCK));
	return fd;
}

static void as_launcher_to_hub(const uint8_t *data, size_t size)
{
	const struct gang_plan theirs = plan_of(1);
	/* It fails already: bad input ends no process group. */
	struct tasks tasks = {.control = -1, .count = 1, .ranks = ranks, .failing = true};
	struct hub_line connector;
	struct iocom_err err;
	uint16_t port = 0;
	struct hub *hub;

	tasks.plan = plan_of(0);
	hub = hub_new(&tasks, &calls, &hub);
	must(hub && !hub_listen(hub, &port, &err) && port);
	hub_line_init(&connector, connect_to(port), true, &theirs, 0);
	must(!hub_line_serve(&connector, POLLOUT, take_none, NULL));
	for (int i = 0; i < TURNS && connector.state != HUB_OPEN; i++) {
		tasks_turn(&tasks, 0);
		must(!hub_line_serve(&connector, POLLIN, take_none, NULL));
	}
	must(connector.state == HUB_OPEN);
	must(!hub_fence(hub, "mine", 4));
	say_pieces(&connector, data, size);
	for (int i = 0; i < TURNS / 8; i++)
		tasks_turn(&tasks, 0);
	hub_free(hub);
	hub_line_deinit(&connector);
	free(tasks.watches);
	free(tasks.entries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > BYTES_MAX)
		return 0;
	switch (data[0] % WHO) {
	case TO_LINE:
		as_launcher_to_line(data + 1, size - 1);
		break;
	case TO_HUB:
		as_launcher_to_hub(data + 1, size - 1);
		break;
	default:
		as_stranger(data[0] % WHO == STRANGER_TO_CONNECTOR, data + 1, size - 1);
	}
	return 0;
}
