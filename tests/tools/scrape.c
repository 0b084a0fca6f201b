/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * scrape PORT [SERIES...]: gets /metrics at 127.0.0.1, checks it strictly, and prints it or the
 * value of each SERIES. Exits with 1 and the reason if the reader refuses it.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/exposition.h"

#define ROOM_MAX (64u << 20)

/* Returns the whole answer, malloc'ed, or NULL without a connection. */
static char *get(unsigned short port)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char *text = malloc(ROOM_MAX);
	size_t used = 0;
	ssize_t n;

	if (fd < 0 || !text || connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
	    write(fd, request, sizeof(request) - 1) != sizeof(request) - 1) {
		free(text);
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	while (used < ROOM_MAX - 1 && (n = read(fd, text + used, ROOM_MAX - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = 0;
	close(fd);
	return text;
}

int main(int argc, char **argv)
{
	char *text = argc > 1 ? get((unsigned short)atoi(argv[1])) : NULL;
	char *body = text ? strstr(text, "\r\n\r\n") : NULL, why[EXPOSITION_WHY];
	int rc = 1;

	if (!text)
		perror("scrape");
	else if (strncmp(text, "HTTP/1.1 200 ", 13) || !body)
		fprintf(stderr, "scrape: %.60s\n", text);
	else if (exposition_check(body + 4, why) < 0)
		fprintf(stderr, "scrape: %s\n", why);
	else
		rc = 0;
	for (int i = 2; !rc && i < argc; i++)
		printf("%.15g\n", exposition_value(body + 4, argv[i]));
	if (!rc && argc == 2)
		fputs(body + 4, stdout);
	free(text);
	return rc;
}
