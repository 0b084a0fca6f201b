/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See audit_line.h. The shims send the records (shim/audit.h). */
#include "agent/base/audit_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/deadline_thread.h"
#include "user/audit_state.h"

#define AUDIT_LINE_MS 2000 /* a daemon that lags behind can keep the kernel from answering */

struct audit_ask {
	struct deadline_task task;
	struct audit_state state;
	int rc;
};

static void audit_ask_run(struct deadline_task *task)
{
	struct audit_ask *ask = (struct audit_ask *)task;

	ask->rc = audit_state_read(&ask->state);
}

static void audit_ask_free(struct deadline_task *task)
{
	free(task);
}

static void audit_line_say(struct logger *log, const struct audit_ask *ask)
{
	if (ask->rc && ask->rc != -EPERM)
		log_write(log, LOG_L_INFO, "jobs leave no audit records: this kernel says: %s",
			  strerror(-ask->rc));
	else if (!ask->rc && !ask->state.enabled)
		log_write(log, LOG_L_INFO,
			  "jobs leave no audit records: audit is disabled (no auditd has enabled "
			  "it)");
}

void audit_line_write(struct logger *log)
{
	struct audit_ask *ask = calloc(1, sizeof(*ask));
	struct deadline_thread *worker;

	if (!ask)
		return;
	ask->task = (struct deadline_task){.run = audit_ask_run, .free = audit_ask_free};
	if (deadline_new(&worker, NULL)) {
		free(ask);
		return;
	}
	if (!deadline_run(worker, &ask->task, AUDIT_LINE_MS)) {
		audit_line_say(log, ask);
		free(ask);
	}
	deadline_free(worker); /* an answer that is late means that audit is on */
}
