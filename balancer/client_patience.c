/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Repeats a question while the agent is being restarted; see client.h. */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "user/clock.h"
#include "balancer/client.h"

#define AGAIN_MS 30000
#define EACH_MS	 100
#define TELL_MS	 1000

bool client_agent_is_away(int rc)
{
	return rc == -EPIPE || rc == -ECONNRESET || rc == -ECONNREFUSED || rc == -ENOENT;
}

/* Makes one attempt; MET: an agent accepted the connection. */
static int ask_once(const char *run_dir, const msgpack_sbuffer *request, json_t **answer, bool *met,
		    struct iocom_err *err)
{
	int fd, rc = client_connect(run_dir, &fd, err);

	*met = rc == 0;
	if (rc)
		return rc;
	rc = client_request(fd, request->data, request->size, answer, err);
	close(fd);
	return rc;
}

int client_ask_patiently(struct client_patience *patience, const char *run_dir,
			 msgpack_sbuffer *request, json_t **answer, struct iocom_err *err)
{
	uint64_t asked_ms = clock_boot_ms(), since_ms = 0, now;
	bool met, told = false;
	int rc;

	for (;;) {
		rc = ask_once(run_dir, request, answer, &met, err);
		patience->heard |= met;
		now = clock_boot_ms();
		if (!client_agent_is_away(rc) || !patience->heard)
			break;
		/*
		 * An agent that lived for a while after we asked had come back: wait the full
		 * time again.
		 */
		if (!since_ms || (met && now - asked_ms > TELL_MS)) {
			since_ms = now;
			told = false;
		}
		if (now - since_ms >= AGAIN_MS)
			break;
		if (!told && now - since_ms >= TELL_MS) {
			fprintf(stderr, "%s: the agent is away; asking again for %d s\n",
				patience->name, AGAIN_MS / 1000);
			told = true;
		}
		usleep(EACH_MS * 1000);
		asked_ms = clock_boot_ms();
	}
	if (!rc)
		err->text[0] = 0;
	msgpack_sbuffer_destroy(request);
	return rc;
}
