/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Paths of control groups, whose directories any user may name: the name is printable and bounded,
 * and the group that it stands for, which is above the path, has the same one.
 */
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "user/group_name.h"
#include "user/utf8.h"

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "2edf54f8_6911_449f_9abe_3d468a770d6b"

static const char *const samples[] = {
	"/system.slice/slurmstepd.scope/job_123/step_0/user/task_0",
	"/system.slice/n1_slurmstepd.scope/job_123/step_batch",
	"/slurm/uid_1000/job_12/step_0",
	"/system.slice/htcondor/condor_var_lib_condor_execute_slot1_23@n1",
	"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD ".slice/crio-" ID
	".scope",
	"/kubepods/besteffort/pod" POD "/" ID,
	"/system.slice/docker-" ID ".scope",
	"/docker/" ID,
	"/machine.slice/libpod-" ID ".scope/container",
	"/system.slice/a.service/libpod-payload-" ID,
	"/system.slice/cri-containerd-" ID ".scope",
	"/lxc.payload.web/init.scope",
	"/user.slice/user-1000.slice/session-3.scope",
	"/system.slice/system-getty.slice/getty@tty1.service",
};

bool sample(int n, FILE *out)
{
	if (n < 0 || (size_t)n >= sizeof(samples) / sizeof(samples[0]))
		return false;
	fputs(samples[n], out);
	return true;
}

static void named(char *path, const struct group_name *group)
{
	struct group_name above;
	char clean[GROUP_NAME_MAX];
	size_t length = strlen(path);

	must((unsigned)group->kind < GROUP_KINDS);
	must_end(group->text, sizeof(group->text));
	strcpy(clean, group->text);
	utf8_plain(clean);
	must(!strcmp(clean, group->text) && *clean);
	must(group->length > 1 && group->length <= length);
	must(!path[group->length] || path[group->length] == '/');
	path[group->length] = 0;
	must(!group_name_find(path, &above));
	must(above.kind == group->kind && above.length == group->length);
	must(above.uid == group->uid && !strcmp(above.text, group->text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *path = malloc(size + 1);
	struct group_name group;

	must(path != NULL);
	if (size)
		memcpy(path, data, size);
	path[size] = 0;
	if (!group_name_find(path, &group))
		named(path, &group);
	free(path);
	return 0;
}

FUZZ_SAMPLES
