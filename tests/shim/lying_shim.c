/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A shim that lies about a job that comes to its node, if the file `lie` of the agent's run
 * directory says how; otherwise it is as honest as any.  It restores nothing.
 *
 *   claims  says that it holds the job, and when it is told to let it run that it does; then dies
 *   silent  says that it holds it, and then nothing more, whatever it is told
 *   early   says that it holds it before it has come, and dies when it is told to let it run
 *   mute    takes it, and never says anything
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/shim/arrive.h"
#include "agent/shim/move/images.h"
#include "agent/shim/move/transfer.h"
#include "agent/shim/shim.h"
#include "user/clock.h"

#define LIE_TAKE_MS 30000
#define LIE_LIVE_US 1000000 /* so long it pretends to run */

int __real_arrive_take(struct shim *shim, const struct identity *identity, int failed,
		       struct iocom_err *err);
int __wrap_arrive_take(struct shim *shim, const struct identity *identity, int failed,
		       struct iocom_err *err);

static void lie_read(const struct shim *shim, char *lie, size_t size)
{
	char path[sizeof(shim->order.run_dir) + 8];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/../lie", shim->order.run_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, lie, size - 1);
		close(fd);
	}
	lie[n > 0 ? n : 0] = 0;
	lie[strcspn(lie, "\n")] = 0;
}

/* Takes what comes, and throws it away. */
static void lie_receive(struct shim *shim)
{
	struct images images = {.fd = -1};
	const struct transfer_into into = {
		.images = &images,
		.most_bytes = INT64_MAX,
		.record = shim->record,
		.record_bytes = shim->order.spool_max,
	};

	(void)transfer_receive(&shim->client, &into, clock_boot_ms() + LIE_TAKE_MS,
			       &(struct iocom_err){0});
	images_free(&images);
}

static void lie_ready(struct shim *shim)
{
	leash_ready(&shim->leash);
	(void)transfer_ready(&shim->client, clock_boot_ms() + WIRE_LOOK_MS);
}

static void lie_await_word(struct shim *shim)
{
	struct leash_request request;

	while (shim->leash.word == LEASH_NO_WORD) {
		struct pollfd p[] = {{.fd = shim->leash.fd, .events = POLLIN},
				     {.fd = shim->leash.listen, .events = POLLIN}};

		if (poll(p, 2, 20) <= 0)
			continue;
		if (p[0].revents)
			leash_hear(&shim->leash, &shim->lease);
		if (p[1].revents) {
			enum leash_what what = leash_serve(&shim->leash, &request);

			leash_decline(&request, what, 1);
		}
	}
	leash_decided(&shim->leash);
}

static bool lie_is_known(const char *lie)
{
	return !strcmp(lie, "claims") || !strcmp(lie, "silent") || !strcmp(lie, "early") ||
	       !strcmp(lie, "mute");
}

int __wrap_arrive_take(struct shim *shim, const struct identity *identity, int failed,
		       struct iocom_err *err)
{
	char lie[16] = "";

	lie_read(shim, lie, sizeof(lie));
	if (failed || !lie_is_known(lie))
		return __real_arrive_take(shim, identity, failed, err);
	(void)transfer_begin(&shim->client, clock_boot_ms() + WIRE_LOOK_MS);
	if (!strcmp(lie, "early"))
		lie_ready(shim);
	lie_receive(shim);
	if (!strcmp(lie, "claims") || !strcmp(lie, "silent"))
		lie_ready(shim);
	while (!strcmp(lie, "silent") || !strcmp(lie, "mute"))
		pause();
	lie_await_word(shim);
	if (!strcmp(lie, "claims") && shim->leash.word == LEASH_GO) {
		leash_started(&shim->leash, getpid(), shim->group.id);
		usleep(LIE_LIVE_US);
	}
	_exit(1);
}
