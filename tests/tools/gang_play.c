// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
// Plays the client of a gang whose parts are all on this machine: `gang_play LAUNCHER KIND PARTS
// TASKS COMMAND [ARGUMENT...]`, with KIND tasks, pmi1 or pmix; task I is in part I mod PARTS.
// Prints "failed: rank R ..." for the first failure.  Exits with the first failing part's status.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/gang_plan.h"

#define PATIENCE_MS 120000

struct part {
	pid_t pid;
	int control;
	bool ready, ended;
	int status;
};

static void die(const char *what)
{
	fprintf(stderr, "gang_play: %s: %s\n", what, strerror(errno));
	exit(99);
}

static void start(struct part *part, struct gang_plan *plan, const char *launcher, char **command)
{
	char a[12], b[12], *words[64] = {(char *)launcher, a, b, command[0], (char *)"--"};
	struct iocom_err err;
	size_t length;
	void *data;
	int line[2], fd = memfd_create("plan", 0);

	if (gang_plan_pack(plan, &data, &length, &err) || write(fd, data, length) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, line))
		die("a part");
	free(data);
	part->control = line[0];
	part->pid = fork();
	if (part->pid == 0) {
		for (int i = 3; i < line[1]; i++)
			if (i != fd)
				close(i);
		snprintf(a, sizeof(a), "%d", fd);
		snprintf(b, sizeof(b), "%d", line[1]);
		for (int i = 0; command[i] && i < 58; i++)
			words[5 + i] = command[i];
		setsid();
		execv(launcher, words);
		_exit(98);
	}
	close(line[1]);
	close(fd);
}

static void take(struct part *parts, uint32_t nparts, uint32_t k, bool *failed)
{
	static uint16_t port;
	uint8_t data[GANG_MESSAGE_MAX];
	struct gang_message m = {0};
	ssize_t n = recv(parts[k].control, data, sizeof(data), 0);
	bool all = true;

	if (n <= 0) {
		close(parts[k].control);
		parts[k].control = -1;
		return;
	}
	if (gang_message_unpack(&m, data, (size_t)n))
		die("a message");
	if (m.type == GANG_FAILED && !*failed) {
		*failed = true;
		printf("failed: rank %u %s %u%s%s\n", m.rank, m.signalled ? "signal" : "status",
		       m.value, *m.text ? ": " : "", m.text);
		fflush(stdout);
		for (uint32_t i = 0; i < nparts; i++)
			kill(-parts[i].pid, SIGTERM);
	}
	if (m.type != GANG_READY)
		return;
	parts[k].ready = true;
	port = k == 0 ? m.port : port;
	for (uint32_t i = 0; i < nparts; i++)
		all &= parts[i].ready;
	m = (struct gang_message){.type = GANG_GO, .port = port};
	strcpy(m.address, "127.0.0.1");
	n = (ssize_t)gang_message_pack(&m, data);
	for (uint32_t i = 0; all && i < nparts; i++)
		send(parts[i].control, data, (size_t)n, MSG_NOSIGNAL);
}

int main(int argc, char **argv)
{
	struct gang_plan plan = {.gang = "test-1", .secret = {1, 2, 3}};
	struct pollfd entries[64];
	struct part parts[64] = {0};
	bool failed = false;
	uint32_t open;
	int status = 0;

	if (argc < 6)
		return 99;
	plan.launch = !strcmp(argv[2], "pmi1")	 ? GANG_LAUNCH_PMI1
		      : !strcmp(argv[2], "pmix") ? GANG_LAUNCH_PMIX
						 : GANG_LAUNCH_TASKS;
	plan.nnodes = (uint32_t)atoi(argv[3]);
	plan.tasks = (uint32_t)atoi(argv[4]);
	if (plan.nnodes < 1 || plan.nnodes > 64 || plan.tasks < plan.nnodes)
		return 99;
	plan.nodes = calloc(plan.nnodes, sizeof(*plan.nodes));
	plan.ranks = calloc(plan.tasks, sizeof(*plan.ranks));
	for (uint32_t k = 0, at = 0; k < plan.nnodes; k++) {
		snprintf(plan.nodes[k].name, sizeof(plan.nodes[k].name), "n%u", k + 1);
		plan.nodes[k].first = at;
		for (uint32_t i = k; i < plan.tasks; i += plan.nnodes)
			plan.ranks[at++] = i;
		plan.nodes[k].tasks = at - plan.nodes[k].first;
	}
	for (plan.part = 0; plan.part < plan.nnodes; plan.part++)
		start(&parts[plan.part], &plan, argv[1], argv + 5);
	do {
		open = 0;
		for (uint32_t k = 0; k < plan.nnodes; k++) {
			entries[k] = (struct pollfd){.fd = parts[k].control, .events = POLLIN};
			open += parts[k].control >= 0;
		}
		if (open && poll(entries, plan.nnodes, PATIENCE_MS) <= 0)
			die("the parts say nothing");
		for (uint32_t k = 0; k < plan.nnodes && open; k++)
			if (entries[k].revents && parts[k].control >= 0)
				take(parts, plan.nnodes, k, &failed);
	} while (open);
	for (uint32_t k = 0; k < plan.nnodes; k++) {
		waitpid(parts[k].pid, &parts[k].status, 0);
		kill(-parts[k].pid, SIGKILL); // what is left, as the shim does
		if (!status && parts[k].status)
			status = WIFSIGNALED(parts[k].status) ? 128 + WTERMSIG(parts[k].status)
							      : WEXITSTATUS(parts[k].status);
	}
	return status;
}
