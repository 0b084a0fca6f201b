/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * forge_renew HOW PORT JOURNAL JOB [NUMBER [OTHER]]: asks the agent whose job port is
 * 127.0.0.1:PORT for the lease of JOB, with the secret that its JOURNAL has, but with
 * something forged.  HOW:
 *
 *   none               nothing
 *   mac secret other   one byte of the signature changed; a secret of our own; that of the
 *                      attempt OTHER
 *   job number         changed after it was signed: to OTHER, to NUMBER + 1
 *   answer             home's own answer, sent as a question
 *   short long huge    no room for a name; longer than any; 4 GB, as it says
 *   dots line          a job ../../x; one with a line end
 *   slow               a byte a second, for 6 s
 *
 * Prints "renewed", "given up" (both signed), "refused: SENTENCE", "closed" or "silent";
 * 0 when it was renewed, 1 when not, 2 when this program could not do it.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "user/frame.h"
#include "agent/jobs/journal.h"
#include "user/renewal.h"

__attribute__((noreturn)) static void cannot(const char *what)
{
	fprintf(stderr, "forge_renew: %s\n", what);
	exit(2);
}

static void find_secret(const char *path, const char *job, uint8_t secret[RENEWAL_SECRET])
{
	struct iocom_err err = {0};
	struct journal *j;

	if (journal_open(&j, path, &err) || journal_lease_secret(j, job, secret, &err))
		cannot(err.text[0] ? err.text : "no such lease");
	journal_close(j);
}

static int connect_to(unsigned port)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct timeval limit = {.tv_sec = 10};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&in, sizeof(in)))
		cannot("no connection");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

struct question {
	uint8_t secret[RENEWAL_SECRET];
	uint64_t number;
	uint8_t payload[512];
	size_t length;	 /* length of what is sent */
	uint32_t stated; /* length that the header states */
};

static void make(struct question *q, const char *how, char **argv, int argc)
{
	const char *other = argc > 6 ? argv[6] : "", *job = argv[4];
	uint8_t with[RENEWAL_SECRET];

	memcpy(with, q->secret, sizeof(with));
	if (!strcmp(how, "secret") && getrandom(with, sizeof(with), 0) != sizeof(with))
		cannot("getrandom");
	if (!strcmp(how, "other"))
		find_secret(argv[3], other, with);
	if (!strcmp(how, "dots"))
		job = "../../x";
	if (!strcmp(how, "line"))
		job = "x\n2038-01-19T03:14:07.000Z iocomd: all is well";
	q->length = renewal_ask_pack(q->payload, with, job, q->number);
	if (!strcmp(how, "mac"))
		q->payload[20] ^= 1;
	if (!strcmp(how, "job")) {
		memcpy(q->payload + 8 + RENEWAL_MAC, other, strlen(other));
		q->length = 8 + RENEWAL_MAC + strlen(other);
	}
	if (!strcmp(how, "number"))
		q->payload[7]++;
	if (!strcmp(how, "answer")) {
		renewal_answer_pack(q->payload, q->secret, job, q->number, true);
		q->length = RENEWAL_ANSWER;
	}
	if (!strcmp(how, "short"))
		q->length = 8 + RENEWAL_MAC;
	if (!strcmp(how, "long")) {
		memset(q->payload + q->length, 'a', sizeof(q->payload) - q->length);
		q->length = RENEWAL_ASK_MAX + 1;
	}
	q->stated = strcmp(how, "huge") ? (uint32_t)q->length : UINT32_MAX;
}

static void send_all(int fd, const uint8_t *bytes, size_t n, bool slowly)
{
	for (size_t i = 0; slowly && i < 6 && i < n; i++) {
		if (send(fd, bytes + i, 1, MSG_NOSIGNAL) != 1)
			return;
		sleep(1);
	}
	if (!slowly && send(fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
		cannot("send");
}

static int tell_answer(int fd, const struct question *q, const char *job)
{
	struct iocom_err err = {0};
	struct frame frame;
	bool renewed = false;
	int rc = frame_read(fd, &frame, 4096, &err);

	if (rc) {
		puts(rc == FRAME_E_EOF ? "closed" : "silent");
		return 1;
	}
	if (frame.type == FRAME_ERROR)
		printf("refused: %s\n", (const char *)frame.payload);
	else if (frame.type != FRAME_RENEWED ||
		 renewal_answer_open(q->secret, job, q->number, frame.payload, frame.length,
				     &renewed))
		cannot("the answer is not home's");
	else
		puts(renewed ? "renewed" : "given up");
	frame_free(&frame);
	return !renewed;
}

int main(int argc, char **argv)
{
	uint8_t frame[FRAME_HEADER + 512];
	struct question q = {0};
	int fd, status;

	if (argc < 5)
		cannot("usage: forge_renew HOW PORT JOURNAL JOB [NUMBER [OTHER]]");
	find_secret(argv[3], argv[4], q.secret);
	q.number = argc > 5 ? strtoull(argv[5], NULL, 10) : 1;
	make(&q, argv[1], argv, argc);
	frame_header(frame, FRAME_RENEW, q.stated);
	memcpy(frame + FRAME_HEADER, q.payload, q.length);
	fd = connect_to((unsigned)atoi(argv[2]));
	send_all(fd, frame, FRAME_HEADER + q.length, !strcmp(argv[1], "slow"));
	status = tell_answer(fd, &q, argv[4]);
	close(fd);
	return status;
}
