/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * sealed ADDRESS PORT NODE JOB start|attach KEY TICKET: a job stream for programs that make their
 * frames by hand.  It does the handshake with KEY, then seals the frames of the standard input, and
 * prints what comes as it was before it was sealed.  A refusal of the handshake is printed as
 * FRAME_ERROR.  0; 1 when it was refused, 3 when what came does not open.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/sealed.h"
#include "user/frame.h"

int main(int argc, char **argv)
{
	struct run_target target;
	struct iocom_err err = {0};
	struct stream_hello hello;
	struct records records;
	int fd;

	if (argc != 8) {
		fprintf(stderr, "usage: sealed ADDRESS PORT NODE JOB start|attach KEY TICKET\n");
		return 2;
	}
	target = (struct run_target){.address = argv[1], .port = (unsigned)atoi(argv[2])};
	if (run_target_key(&target, argv[6], &err)) {
		fprintf(stderr, "sealed: %s\n", err.text);
		return 2;
	}
	stream_hello_fill(&hello, strcmp(argv[5], "start") ? STREAM_KIND_ATTACH : STREAM_KIND_START,
			  argv[4], argv[3], argv[7]);
	fd = sealed_connect(&target, &hello, &records, &err);
	if (fd < 0) {
		(void)frame_write(STDOUT_FILENO, FRAME_ERROR, err.text, (uint32_t)strlen(err.text));
		return 1;
	}
	return sealed_move(fd, &records, STDIN_FILENO, STDOUT_FILENO) ? 3 : 0;
}
