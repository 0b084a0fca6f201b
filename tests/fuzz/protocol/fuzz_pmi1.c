/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a rank says by PMI-1, and what another launcher says that its ranks have put: each answer is
 * a whole line, and what is learned may be put again.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "agent/tasks/pmi1.h"
#include "agent/tasks/pmi1_keys.h"
#include "agent/tasks/pmi1_line.h"
#include "agent/tasks/tasks_own.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"

#define BYTES_MAX 8192 /* which a socket takes at once */

bool sample(int n, FILE *out)
{
	static const char *const said[] = {
		"cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_maxes\ncmd=get_appnum\n"
		"cmd=get_my_kvsname\ncmd=get_universe_size\ncmd=finalize\n",
		"cmd=put kvsname=gang key=P0 value=a=b\ncmd=barrier_in\ncmd=get kvsname=gang "
		"key=P0\n",
		"cmd=get kvsname=gang key=PMI_process_mapping\ncmd=abort exitcode=3\n",
		"mcmd=spawn\nnprocs=1\nexecname=a\nendcmd\ncmd=publish_name service=a port=b\n",
		"P0=a=b\nP1=c\n",
	};

	if (n >= (int)(sizeof(said) / sizeof(*said)))
		return false;
	fputs(said[n], out);
	return true;
}

FUZZ_SAMPLES

static void as_launcher(const uint8_t *data, size_t size)
{
	struct pmi1_keys keys = {0};

	(void)pmi1_keys_learn(&keys, (const char *)data, size);
	must(keys.count <= size / 3 && !keys.fresh.length);
	pmi1_keys_free(&keys);
}

static void as_rank(const uint8_t *data, size_t size)
{
	struct gang_node node = {.name = "n1", .tasks = 1};
	uint32_t rank = 0;
	/* It fails already: bad input ends no process group. */
	struct tasks tasks = {.control = -1, .count = 1, .ranks = &rank, .failing = true};
	struct task_env env = {0};
	struct iocom_err err;
	char answer[PMI1_LINE_MAX];
	uint16_t port = 0;
	ssize_t n;
	int fd = -1;
	char last = '\n';

	tasks.plan = (struct gang_plan){
		.gang = "n1-4f2a-57", .tasks = 1, .nnodes = 1, .nodes = &node, .ranks = &rank};
	must(!pmi1_kind.prepare(&tasks, &port, &err));
	must(!pmi1_kind.task(&tasks, 0, &env, &fd, &err) && fd >= 0);
	task_env_free(&env);
	must(send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size);
	for (size_t i = 0; i <= BYTES_MAX / PMI1_LINE_MAX + 2; i++) {
		tasks_turn(&tasks, 0);
		while ((n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT)) > 0)
			last = answer[n - 1];
	}
	must(last == '\n');
	pmi1_kind.ended(&tasks, 0, 0);
	pmi1_kind.stop(&tasks);
	free(tasks.watches);
	free(tasks.entries);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size || size > BYTES_MAX)
		return 0;
	as_launcher(data, size);
	as_rank(data, size);
	return 0;
}
