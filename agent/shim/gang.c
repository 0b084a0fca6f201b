/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See gang.h. */
#include "agent/shim/gang.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/shim/beside.h"
#include "user/ending_signal.h"
#include "user/utf8.h"

struct gang_kept {
	uint32_t length;
	uint8_t data[GANG_MESSAGE_MAX];
};

void gang_line_init(struct gang_line *line)
{
	*line = (struct gang_line){.fd = -1};
}

static void gang_line_close(struct gang_line *line)
{
	if (line->fd >= 0)
		close(line->fd);
	line->fd = -1;
}

void gang_line_deinit(struct gang_line *line)
{
	gang_line_close(line);
	free(line->kept);
	free(line->ranks);
	line->kept = NULL;
	line->ranks = NULL;
}

void gang_launcher_close(struct gang_launcher *launcher)
{
	if (!launcher->program[0])
		return;
	close(launcher->plan);
	close(launcher->control);
	launcher->program[0] = '\0';
}

/* Puts the packed plan into a memory file that nobody can change.  Returns it or -errno. */
static int gang_file(const struct spec *spec)
{
	int fd = memfd_create("iocom-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int rc;

	if (fd < 0)
		return -errno;
	if (write(fd, spec->gang, spec->gang_length) == (ssize_t)spec->gang_length &&
	    !lseek(fd, 0, SEEK_SET) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		return fd;
	rc = errno ? -errno : -EIO;
	close(fd);
	return rc;
}

/* Notes the tasks of PLAN's part.  Returns 0 or -ENOMEM. */
static int gang_line_tasks(struct gang_line *line, const struct gang_plan *plan)
{
	const struct gang_node *node = &plan->nodes[plan->part];

	line->word = plan->launch == GANG_LAUNCH_TASKS ? "task" : "rank";
	line->ranks = calloc(node->tasks, sizeof(*line->ranks));
	if (!line->ranks)
		return -ENOMEM;
	memcpy(line->ranks, plan->ranks + node->first, node->tasks * sizeof(*line->ranks));
	line->nranks = node->tasks;
	return 0;
}

/* Finds the launcher, and notes the tasks that it will start. */
static int gang_program(struct gang_line *line, const struct spec *spec, char out[PATH_MAX],
			struct iocom_err *err)
{
	struct gang_plan plan;
	const char *name;
	bool pmix;
	int rc = gang_plan_unpack(&plan, spec->gang, spec->gang_length, err);

	if (rc)
		return rc;
	pmix = plan.launch == GANG_LAUNCH_PMIX;
	name = pmix ? "iocom-pmix" : "iocom-tasks";
	rc = plan.launch == GANG_LAUNCH_NONE
		     ? iocom_err_set(err, -EBADMSG, "the plan of gang %s has no launcher",
				     plan.gang)
		     : 0;
	if (!rc && gang_line_tasks(line, &plan))
		rc = iocom_err_set(err, -ENOMEM, "there is no memory for the gang's tasks");
	gang_plan_free(&plan);
	if (!rc && beside(out, name))
		rc = iocom_err_set(err, -ENAMETOOLONG, "the path of %s is too long", name);
	if (!rc && access(out, X_OK))
		rc = iocom_err_set(err, -ENOENT,
				   "node %s has no %s (%s), which starts %s there; install it",
				   spec->node, name, out,
				   pmix ? "MPI programs by PMIx" : "the tasks of parallel jobs");
	return rc;
}

int gang_prepare(struct gang_line *line, struct gang_launcher *launcher, const struct spec *spec,
		 struct iocom_err *err)
{
	int ends[2], rc;

	launcher->program[0] = '\0';
	if (!spec->gang)
		return 0;
	rc = gang_program(line, spec, launcher->program, err);
	if (rc) {
		launcher->program[0] = '\0';
		return rc;
	}
	launcher->plan = gang_file(spec);
	if (launcher->plan < 0) {
		launcher->program[0] = '\0';
		return iocom_err_set(err, launcher->plan, "cannot hand the gang's plan over: %s",
				     strerror(-launcher->plan));
	}
	line->kept = calloc(GANG_MESSAGES_MAX, sizeof(*line->kept));
	if (!line->kept || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		rc = -errno;
		close(launcher->plan);
		launcher->program[0] = '\0';
		return iocom_err_set(err, rc, "cannot make a line to the gang's launcher: %s",
				     strerror(-rc));
	}
	line->fd = ends[0];
	launcher->control = ends[1];
	return 0;
}

int gang_line_take(struct gang_line *line, const uint8_t *payload, uint32_t length)
{
	if (!line->kept || !length || length > GANG_MESSAGE_MAX)
		return -EPROTO;
	/* A launcher that has ended, or takes nothing, hears nothing any more. */
	if (line->fd >= 0)
		(void)!send(line->fd, payload, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	return 0;
}

int gang_line_serve(struct gang_line *line, struct wire *client)
{
	int rc = 0;

	while (line->fd >= 0 && !rc) {
		struct gang_kept *kept = &line->kept[line->nkept];
		ssize_t n;

		if (line->nkept == GANG_MESSAGES_MAX) {
			gang_line_close(line);
			break;
		}
		n = recv(line->fd, kept->data, sizeof(kept->data), MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0 || n > (ssize_t)sizeof(kept->data)) {
			gang_line_close(line);
			break;
		}
		kept->length = (uint32_t)n;
		line->nkept++;
		if (client)
			rc = wire_send(client, FRAME_GANG, NULL, 0, kept->data, kept->length);
	}
	return rc;
}

int gang_line_again(const struct gang_line *line, struct wire *client)
{
	int rc = 0;

	for (uint32_t i = 0; i < line->nkept && !rc; i++)
		rc = wire_send(client, FRAME_GANG, NULL, 0, line->kept[i].data,
			       line->kept[i].length);
	return rc;
}

/* --- why the part ended ------------------------------------------------------------------- */

/* Returns whether message I is FAILED, and puts it into OUT. */
static bool gang_kept_failed(const struct gang_line *line, uint32_t i, struct gang_message *out)
{
	return !gang_message_unpack(out, line->kept[i].data, line->kept[i].length) &&
	       out->type == GANG_FAILED;
}

int gang_line_signal(struct gang_line *line, struct wire *client, int signal)
{
	struct gang_message message;
	int rc;

	if (!line->kept || !signal_ends(signal))
		return 0;
	rc = gang_line_serve(line, client);
	for (uint32_t i = 0; i < line->nkept; i++)
		if (gang_kept_failed(line, i, &message))
			return rc;
	line->told = true;
	return rc;
}

static bool gang_has_rank(const struct gang_line *line, uint32_t rank)
{
	for (uint32_t i = 0; i < line->nranks; i++)
		if (line->ranks[i] == rank)
			return true;
	return false;
}

/*
 * Launchers also tell of failures elsewhere, and a crash counts whenever it is told of.  Returns
 * whether OUT has nothing of a failure of this part's own.
 */
static bool gang_line_why(const struct gang_line *line, const char *node, char *out, size_t size)
{
	struct gang_message m;
	char heard[sizeof(m.text)] = "";
	bool told = line->told;

	*out = 0;
	for (uint32_t i = 0; i < line->nkept; i++) {
		if (!gang_kept_failed(line, i, &m))
			continue;
		if (!gang_has_rank(line, m.rank)) {
			told = true;
			memcpy(heard, m.text, sizeof(heard));
		} else if (*m.text && !told) {
			snprintf(out, size, "%.*s", (int)size - 1, m.text);
		} else if (!told || m.crash) {
			gang_task_sentence(line->word, m.rank, node, m.signalled, m.value, out,
					   size);
		}
	}
	utf8_plain(out);
	if (*out || !told)
		return false;
	utf8_plain(heard);
	snprintf(out, size, "%s%s%.*s", line->left ? GANG_CLIENT_LOST : GANG_TOLD_TO_END,
		 *heard && !line->left ? ": " : "", line->left ? 0 : 200, heard);
	return true;
}

void gang_line_outcome(struct gang_line *line, const char *node, struct record_exit *end)
{
	char why[sizeof(end->text)];
	bool told;

	if (!line->kept || end->kind > 1 || (!end->kind && !end->value))
		return;
	(void)gang_line_serve(line, NULL);
	told = gang_line_why(line, node, why, sizeof(why));
	/* What else troubled a part that was told to end is not why it ended. */
	if (told || !*end->text)
		memcpy(end->text, why, sizeof(why));
}
