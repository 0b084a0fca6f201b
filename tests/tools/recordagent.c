/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Plays an agent that only knows "record": recordagent RUN_DIR MODE [FILE].
 *
 *   serve   sends the lines of FILE but the last; sends the last when the client sends no
 *           more, as an agent does
 *   cut     sends the lines of FILE but the last, and goes away like an agent that dies
 *   silent  never sends the last line
 *   refuse  says that only root may record
 *
 * It ends when its client is gone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "user/frame.h"
#include "user/pack.h"

static int asked_to_record(int fd)
{
	msgpack_unpacked unpacked;
	struct frame frame;
	char op[16] = "";

	if (frame_read(fd, &frame, FRAME_PAYLOAD_MAX, NULL))
		return 0;
	if (frame.type == FRAME_REQUEST && !unpack_map(&unpacked, frame.payload, frame.length)) {
		unpack_str(&unpacked.data, "op", op, sizeof(op));
		msgpack_unpacked_destroy(&unpacked);
	}
	frame_free(&frame);
	return !strcmp(op, "record");
}

/* Waits until the client sends no more. */
static void wait_for_end(int fd)
{
	char byte;

	while (read(fd, &byte, 1) > 0)
		;
}

static void serve(int fd, const char *mode, const char *file)
{
	char *line = NULL, *last = NULL;
	FILE *f = fopen(file, "re");
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		if (last)
			frame_write(fd, FRAME_JSON, last, (uint32_t)strlen(last));
		free(last);
		last = strdup(line);
	}
	if (!strcmp(mode, "serve") || !strcmp(mode, "silent"))
		wait_for_end(fd);
	if (!strcmp(mode, "serve") && last)
		frame_write(fd, FRAME_JSON, last, (uint32_t)strlen(last));
	if (!strcmp(mode, "silent"))
		sleep(20);
	free(last);
	free(line);
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	static const char refusal[] = "only root may record node t: says the agent";
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	if (argc < 3 || listener < 0)
		return 2;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/iocom.sock", argv[1]);
	unlink(sa.sun_path);
	if (bind(listener, (struct sockaddr *)&sa, sizeof(sa)) || listen(listener, 4)) {
		perror("recordagent");
		return 1;
	}
	alarm(60); /* no test takes longer than this */
	fd = accept(listener, NULL, NULL);
	unlink(sa.sun_path);
	if (fd < 0 || !asked_to_record(fd))
		return 1;
	if (!strcmp(argv[2], "refuse"))
		frame_write(fd, FRAME_ERROR, refusal, sizeof(refusal) - 1);
	else
		serve(fd, argv[2], argc > 3 ? argv[3] : "");
	close(fd);
	close(listener);
	return 0;
}
