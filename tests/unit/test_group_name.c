/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Names of control groups: real paths of each kind, look-alikes, and hostile directories.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/group_name.h"

#define ID	 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER_ID "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define POD	 "2edf54f8-6911-449f-9abe-3d468a770d6b"
#define POD_	 "2edf54f8_6911_449f_9abe_3d468a770d6b"
#define HASH	 "c704ef4c297ab11032b83ce52cbfc87b"
#define SLURM	 "/system.slice/slurmstepd.scope"
#define ANNA	 "/user.slice/user-1000.slice"
#define APPS	 ANNA "/user@1000.service/app.slice"
#define BURST	 "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"

/* GROUP is the part of the path that the name stands for. */
struct named {
	enum group_kind kind;
	const char *group, *below, *text;
};

static const struct named known[] = {
	/* Slurm: cgroup/v2, several slurmd per host, another slice, a node's own root, v1. */
	{GROUP_SLURM, SLURM "/job_123", "", "slurm:123"},
	{GROUP_SLURM, SLURM "/job_1392969", "/step_0/user/task_0", "slurm:1392969"},
	{GROUP_SLURM, SLURM "/job_123", "/step_batch/user/task_special", "slurm:123"},
	{GROUP_SLURM, SLURM "/job_123", "/step_extern/user", "slurm:123"},
	{GROUP_SLURM, SLURM "/job_123", "/step_batch/slurm", "slurm:123"},
	{GROUP_SLURM, "/system.slice/node-1_slurmstepd.scope/job_4294967295", "/step_0/user",
	 "slurm:4294967295"},
	{GROUP_SLURM, "/batch.slice/slurmstepd.scope/job_7", "/step_0", "slurm:7"},
	{GROUP_SLURM, "/testbed/n1/system.slice/slurmstepd.scope/job_7", "", "slurm:7"},
	{GROUP_SLURM, "/slurm/uid_1000/job_12", "/step_batch/task_0", "slurm:12"},
	{GROUP_SLURM, "/slurm_n1/uid_2101171/job_280678", "/step_interactive", "slurm:280678"},
	/* What runs inside a job is the job's. */
	{GROUP_SLURM, SLURM "/job_5", "/step_0/user/task_0/libpod-" ID ".scope/container",
	 "slurm:5"},
	{GROUP_SLURM, SLURM "/job_5", "/step_0/docker/" ID, "slurm:5"},
	/* HTCondor: with a libcgroup of old, beside condor.service, partitionable slots. */
	{GROUP_HTCONDOR, "/htcondor/condor_var_lib_condor_execute_slot1", "", "htcondor:slot1"},
	{GROUP_HTCONDOR, "/system.slice/htcondor/condor_var_lib_condor_execute_slot1_23@n1.b.c",
	 "/sub", "htcondor:slot1_23"},
	{GROUP_HTCONDOR, "/system.slice/htcondor/_var_lib_condor_execute_slot2_1@n1", "",
	 "htcondor:slot2_1"},
	{GROUP_HTCONDOR, "/system.slice/condor.service/htcondor/condor_scratch_slot1_1@n", "",
	 "htcondor:slot1_1"},
	/* Kubernetes: both drivers, all classes, static pods, kind, mixed drivers. */
	{GROUP_POD, "/" BURST POD_ ".slice", "/cri-containerd-" ID ".scope", "pod:" POD},
	{GROUP_POD, "/" BURST POD_ ".slice", "/crio-" ID ".scope/container", "pod:" POD},
	{GROUP_POD, "/" BURST HASH ".slice", "/cri-containerd-" ID ".scope", "pod:" HASH},
	{GROUP_POD, "/kubepods.slice/kubepods-pod" POD_ ".slice", "/docker-" ID ".scope",
	 "pod:" POD},
	{GROUP_POD,
	 "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_ ".slice", "",
	 "pod:" POD},
	{GROUP_POD,
	 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
	 "kubelet-kubepods-besteffort-pod" POD_ ".slice",
	 "/cri-containerd-" ID ".scope", "pod:" POD},
	{GROUP_POD,
	 "/system.slice/containerd.service/kubepods-burstable-pod" POD_ ".slice:cri-containerd:" ID,
	 "", "pod:" POD},
	{GROUP_POD, "/kubepods/burstable/pod" POD, "/" ID, "pod:" POD},
	{GROUP_POD, "/kubepods/besteffort/pod" POD, "/crio-" ID, "pod:" POD},
	{GROUP_POD, "/kubepods/pod" POD, "/" ID, "pod:" POD},
	/* Docker: both drivers, without root; a whole node in a container is the container. */
	{GROUP_DOCKER, "/system.slice/docker-" ID ".scope", "", "docker:0123456789ab"},
	{GROUP_DOCKER, "/docker/" ID, "/init.scope", "docker:0123456789ab"},
	{GROUP_DOCKER, ANNA "/user@1000.service/user.slice/docker-" ID ".scope", "",
	 "docker:0123456789ab"},
	{GROUP_DOCKER, "/system.slice/docker-" ID ".scope",
	 "/" BURST POD_ ".slice/cri-containerd-" OTHER_ID ".scope", "docker:0123456789ab"},
	{GROUP_DOCKER, "/docker/" ID, "/docker/" OTHER_ID, "docker:0123456789ab"},
	{GROUP_DOCKER, "/docker/" ID, SLURM "/job_3/step_0", "docker:0123456789ab"},
	/* Podman: root's, a user's, in a pod, cgroupfs, a service of Quadlet. */
	{GROUP_PODMAN, "/machine.slice/libpod-" ID ".scope", "/container", "podman:0123456789ab"},
	{GROUP_PODMAN, ANNA "/user@1000.service/user.slice/libpod-" ID ".scope", "/container",
	 "podman:0123456789ab"},
	{GROUP_PODMAN,
	 ANNA "/user@1000.service/user.slice/user-libpod_pod_" OTHER_ID ".slice/libpod-" ID
	      ".scope",
	 "/container", "podman:0123456789ab"},
	{GROUP_PODMAN, "/machine.slice/machine-libpod_pod_" OTHER_ID ".slice/libpod-" ID ".scope",
	 "", "podman:0123456789ab"},
	{GROUP_PODMAN, "/libpod_parent/libpod-" ID, "", "podman:0123456789ab"},
	{GROUP_PODMAN, "/system.slice/nginx.service/libpod-payload-" ID, "/x",
	 "podman:0123456789ab"},
	{GROUP_PODMAN, APPS "/redis.service/libpod-payload-" ID, "", "podman:0123456789ab"},
	/* containerd, nerdctl and CRI-O without a pod. */
	{GROUP_CONTAINERD, "/system.slice/cri-containerd-" ID ".scope", "",
	 "containerd:0123456789ab"},
	{GROUP_CONTAINERD, "/system.slice/nerdctl-" ID ".scope", "", "containerd:0123456789ab"},
	{GROUP_CONTAINERD, ANNA "/user@1000.service/user.slice/nerdctl-" ID ".scope", "",
	 "containerd:0123456789ab"},
	{GROUP_CONTAINERD, "/default/" ID, "/init.scope", "containerd:0123456789ab"},
	{GROUP_CRIO, "/system.slice/crio-" ID ".scope", "", "crio:0123456789ab"},
	/* LXC, LXD and Incus, Proxmox, 3.2, an ordinary user's. */
	{GROUP_LXC, "/lxc.payload.web", "/system.slice/sshd.service", "lxc:web"},
	{GROUP_LXC, "/lxc.payload.project_web-1", "", "lxc:project_web-1"},
	{GROUP_LXC, "/lxc/101", "/ns/init.scope", "lxc:101"},
	{GROUP_LXC, "/lxc.payload/web", "", "lxc:web"},
	{GROUP_LXC, ANNA "/session-3.scope/lxc.payload.mine", "/init.scope", "lxc:mine"},
	/* Users' sessions, with all their services. */
	{GROUP_SESSION, ANNA, "", "session:1000"},
	{GROUP_SESSION, ANNA, "/session-3.scope", "session:1000"},
	{GROUP_SESSION, ANNA, "/user@1000.service/app.slice/app-firefox-1.scope", "session:1000"},
	{GROUP_SESSION, ANNA, "/user@1000.service/init.scope", "session:1000"},
	{GROUP_SESSION, "/user.slice/user-0.slice", "/session-1.scope", "session:0"},
	/* Units of systemd, with the groups that they make themselves. */
	{GROUP_UNIT, "/system.slice/nginx.service", "", "nginx.service"},
	{GROUP_UNIT, "/system.slice/systemd-udevd.service", "/udev", "systemd-udevd.service"},
	{GROUP_UNIT, "/system.slice/system-getty.slice/getty@tty1.service", "",
	 "getty@tty1.service"},
	{GROUP_UNIT, "/system.slice/system-postgresql.slice/postgresql@15-main.service", "",
	 "postgresql@15-main.service"},
	{GROUP_UNIT, "/init.scope", "", "init.scope"},
	{GROUP_UNIT, "/system.slice/run-u12.scope", "", "run-u12.scope"},
	{GROUP_UNIT, "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", "/libvirt/emulator",
	 "machine-qemu\\x2d1\\x2dvm.scope"},
	{GROUP_UNIT, "/system.slice/dev-hugepages.mount", "", "dev-hugepages.mount"},
	{GROUP_UNIT, "/system.slice/docker.service", "", "docker.service"},
	/* Look-alikes: what they are instead. */
	{GROUP_UNIT, SLURM, "/system", "slurmstepd.scope"},
	{GROUP_UNIT, SLURM, "/job_12x/step_0", "slurmstepd.scope"},
	{GROUP_UNIT, SLURM, "/job_", "slurmstepd.scope"},
	{GROUP_UNIT, SLURM, "/job_12345678901", "slurmstepd.scope"},
	{GROUP_UNIT, "/system.slice/myslurmstepd.scope", "/job_1", "myslurmstepd.scope"},
	{GROUP_UNIT, "/system.slice/own.service", "/a.slice/slurmstepd.scope/job_1", "own.service"},
	{GROUP_UNIT, "/system.slice/docker-xyz.scope", "", "docker-xyz.scope"},
	{GROUP_UNIT, "/system.slice/docker-" ID "0.scope", "", "docker-" ID "0.scope"},
	{GROUP_UNIT, "/system.slice/docker-0123456789ab.scope", "", "docker-0123456789ab.scope"},
	{GROUP_UNIT, "/machine.slice/libpod-conmon-" ID ".scope", "", "libpod-conmon-" ID ".scope"},
	{GROUP_UNIT, "/system.slice/crio-conmon-" ID ".scope", "", "crio-conmon-" ID ".scope"},
	{GROUP_SESSION, ANNA, "/user@1000.service/user.slice/libpod-conmon-" ID ".scope",
	 "session:1000"},
	{GROUP_SESSION, ANNA, "/user@1000.service/system.slice/slurmstepd.scope/job_1",
	 "session:1000"},
	{GROUP_SESSION, ANNA, "/user@1000.service/slurm/uid_0/job_1", "session:1000"},
	{GROUP_SESSION, ANNA, "/user@1000.service/htcondor/condor_x_slot1", "session:1000"},
};

static const char *const nameless[] = {
	"/",
	"",
	"job_1",
	"system.slice/nginx.service",
	"/job_12",
	"/batch/job_12/step_0",
	"/jobs/uid_1000/job_12",
	"/slurm/job_12",
	"/slurm/uid_x/job_12",
	"/slurmx/uid_1/job_12",
	"/slurmstepd.scope2/job_12",
	"/x/slurmstepd.scope/job_12",
	"/iocom/jobs/user@7/n1-1-7",
	"/iocom/shims",
	"/system.slice",
	"/user.slice",
	"/user.slice/user-abc.slice",
	"/user.slice/user-.slice",
	"/x/user.slice/user-1000.slice",
	"/machine.slice",
	"/kubepods.slice",
	"/kubepods.slice/kubepods-burstable.slice",
	"/" BURST "1234.slice",
	"/" BURST POD_ "0.slice",
	"/" BURST POD_,
	"/xkubepods-pod" POD_ ".slice",
	"/kubepods/burstable",
	"/kubepods/burstable/pod1234/" ID,
	"/kubepods/x/pod" POD,
	"/burstable/pod" POD,
	"/docker",
	"/docker/abc123",
	"/docker/0123456789abcdef",
	"/docker/" ID "0",
	"/docker/0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF",
	"/" ID,
	"/x/" ID,
	"/machine.slice/machine-libpod_pod_" ID ".slice",
	"/libpod-conmon-" ID,
	"/crio-conmon-" ID,
	"/my-lxc.payload",
	"/my-lxc.payload.web",
	"/lxc.payload",
	"/lxc.payload.",
	"/lxc.monitor.web",
	"/lxc.monitor/101",
	"/lxc",
	"/a/lxc/101",
	"/htcondor",
	"/htcondor/slot1",
	"/htcondor/condor_var_lib_condor_execute",
	"/htcondor/condor_x_slot",
	"/htcondor/condor_x_slotA",
	"/htcondor/condor_x_slot1x",
	"/other/condor_x_slot1",
	"/x/nginx.service",
	"/system.slice/../user.slice/user-1000.slice",
	"/../system.slice/nginx.service",
	"/../docker/" ID,
	"/docker/" ID "/..",
	"/docker/" ID "/./x",
	"/./init.scope",
	"//init.scope",
	"/init.scope/",
	"/system.slice//nginx.service",
};

static void test_known(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct group_name group = {0};
		char path[2048];

		snprintf(path, sizeof(path), "%s%s", known[i].group, known[i].below);
		if (group_name_find(path, &group))
			fail_msg("%s has no name", path);
		if (strcmp(group.text, known[i].text) != 0)
			fail_msg("%s is %s", path, group.text);
		assert_int_equal(group.kind, known[i].kind);
		assert_int_equal(group.length, strlen(known[i].group));
		/* The group that the name stands for has the same name. */
		assert_int_equal(group_name_find(known[i].group, &group), 0);
		assert_string_equal(group.text, known[i].text);
	}
}

static void test_nameless(void **state)
{
	struct group_name group;

	(void)state;
	for (size_t i = 0; i < sizeof(nameless) / sizeof(nameless[0]); i++)
		if (group_name_find(nameless[i], &group) != -ENOENT)
			fail_msg("%s is %s", nameless[i], group.text);
}

static void test_users(void **state)
{
	struct group_name group;

	(void)state;
	assert_int_equal(group_name_find(ANNA "/session-1.scope", &group), 0);
	assert_int_equal(group.uid, 1000);
	assert_int_equal(group_name_find("/user.slice/user-4294967294.slice", &group), 0);
	assert_int_equal(group.uid, 4294967294u);
	assert_int_equal(group_name_find("/user.slice/user-9999999999.slice", &group), 0);
	assert_int_equal(group.uid, UINT32_MAX);
	assert_string_equal(group.text, "session:9999999999");
}

/* A user may call a directory what he likes: control characters, long names, deep trees. */
static void test_hostile(void **state)
{
	struct group_name group;
	char path[8192] = "/lxc.payload.";
	size_t n = strlen(path);

	(void)state;
	assert_int_equal(group_name_find("/lxc.payload.a\x1b[2J\nb\xff", &group), 0);
	assert_string_equal(group.text, "lxc:a?[2J?b?");
	assert_int_equal(group_name_find("/system.slice/\t.service/x", &group), 0);
	assert_string_equal(group.text, "?.service");
	memset(path + n, 'x', 255 - n);
	assert_int_equal(group_name_find(path, &group), 0);
	assert_int_equal(strlen(group.text), strlen("lxc:") + 255 - n);
	memset(path + n, 'x', 3000); /* longer than any directory's name: cut */
	assert_int_equal(group_name_find(path, &group), 0);
	assert_int_equal(strlen(group.text), GROUP_NAME_MAX - 1);
	memset(path + n, 'x', 5000); /* longer than any path */
	assert_int_equal(group_name_find(path, &group), -ENOENT);
	memset(path, 0, sizeof(path));
	for (size_t i = 0; i < 1000; i++)
		strcat(path, "/a");
	assert_int_equal(group_name_find(path, &group), -ENOENT);
	memcpy(path, SLURM "/job_1", strlen(SLURM "/job_1"));
	assert_int_equal(group_name_find(path, &group), 0);
	assert_string_equal(group.text, "slurm:1");
	/* Nearly every pattern of the pods, over and over: this takes no time. */
	memset(path, 0, sizeof(path));
	for (size_t i = 0; i < 15; i++) {
		strcat(path, "/");
		for (size_t j = 0; j < 13; j++)
			strcat(path, "-kubepods-pod" + (i & 1));
	}
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(group_name_find(path, &group), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_nameless),
		cmocka_unit_test(test_users),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
