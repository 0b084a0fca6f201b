/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a job may have that moves: real jobs of an ordinary user, frozen, to whose files something
 * happens, as if they had come to a node where their paths lead elsewhere.  It needs no criu.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shim/move/belongings.h"
#include "tests/lib/stage.h"
#include "user/cgroup_freeze.h"
#include "user/cgroup_user.h"
#include "user/clock.h"

#define NOBODY	 65534
#define LIMIT_MS 20000
#define PYTHON	 "/usr/bin/python3"

static struct stage node;
static char files[64]; /* a directory of the user's */

struct held {
	struct want want;
	struct job job;
	pid_t init;
	struct cgroup group;
};

/* Waits until the job has said that it has all, by the file "ready". */
static void await_ready(void)
{
	uint64_t until_ms = clock_boot_ms() + LIMIT_MS;
	char path[96];

	snprintf(path, sizeof(path), "%s/ready", files);
	while (access(path, F_OK)) {
		assert_true(clock_boot_ms() < until_ms);
		usleep(2000);
	}
	unlink(path);
}

/* Starts `python3 -c SCRIPT` in the user's directory, perhaps at a terminal, and freezes it. */
static struct held hold_at(const char *script, bool tty)
{
	struct held h = {
		.want = {.migratable = true, .cwd = files, .argv = {PYTHON, "-c", script, NULL}}};
	char name[SPEC_JOB_MAX + 32];
	struct cgroup_mounts mounts;
	struct launch_event event;

	h.want.tty.wanted = tty;
	h.job = stage_start(&node, &h.want);
	assert_int_equal(h.job.rc, 0);
	assert_int_equal(stage_event(h.job.leash, &event), 0);
	assert_int_equal(event.type, LAUNCH_STARTED);
	h.init = event.pid;
	await_ready();
	assert_int_equal(cgroup_user_job(name, sizeof(name), NOBODY, h.job.name), 0);
	assert_int_equal(cgroup_mounts_read("/proc/self/mounts", &mounts, NULL), 0);
	assert_int_equal(cgroup_name(&mounts, node.scope, name, &h.group, NULL), 0);
	assert_int_equal(cgroup_freeze(&h.group, LIMIT_MS), 0);
	return h;
}

static struct held hold(const char *script)
{
	return hold_at(script, false);
}

static void let_go(struct held *h)
{
	struct launch_event event;

	assert_int_equal(cgroup_thaw(&h->group), 0);
	assert_int_equal(stage_signal(&node, h->job.name, SIGKILL), 0);
	do
		assert_int_equal(stage_event(h->job.leash, &event), 0);
	while (event.type != LAUNCH_EXITED);
	close(h->job.client);
	close(h->job.leash);
	stage_reap(&h->job);
	(void)launch_forget(node.jobs, node.run, h->job.name);
}

static int check_at(const struct held *h, struct belongings_tty *tty, struct iocom_err *err)
{
	struct belongings_owner owner;
	gid_t *groups;
	int rc;

	assert_int_equal(belongings_owner_of(&owner, &groups, h->init), 0);
	assert_int_equal(owner.uid, NOBODY);
	rc = belongings_check(&h->group, h->init, &owner, tty, err);
	free(groups);
	return rc;
}

static int check(const struct held *h, struct iocom_err *err)
{
	return check_at(h, NULL, err);
}

static void expect(const struct held *h, int wanted, const char *why)
{
	struct iocom_err err = {0};
	int rc = check(h, &err);

	if (rc != wanted || !strstr(err.text, why))
		fail_msg("%d '%s' instead of %d '%s'", rc, err.text, wanted, why);
}

#define READY "import os; open('r','w').close(); os.rename('r','ready'); time.sleep(1000)"

/* What ordinary programs have may go. */
static void test_ordinary(void **state)
{
	static const char script[] =
		"import mmap,os,time,socket,subprocess,threading\n"
		"f=open('data','w+'); f.write('x'*8192); f.flush()\n"
		"r=open('data'); a=open('data','ab'); d=os.open('.',os.O_RDONLY)\n"
		"p=os.pipe(); n=open('/dev/null','w'); u=open('/dev/urandom','rb')\n"
		"m=mmap.mmap(f.fileno(),8192); m[0]=65\n"
		"e=open('/etc/passwd','rb'); q=mmap.mmap(e.fileno(),0,access=mmap.ACCESS_READ)\n"
		"s=mmap.mmap(-1,4096); k=socket.socketpair()\n"
		"t=threading.Thread(target=time.sleep,args=(1000,),daemon=True); t.start()\n"
		"c=subprocess.Popen(['sleep','1000'])\n" READY;
	struct held h = hold(script);

	(void)state;
	expect(&h, 0, "");
	let_go(&h);
}

/* A path of the job's, and what becomes of it. */
static void change(const char *command)
{
	char line[256];

	snprintf(line, sizeof(line), "cd %s && %s", files, command);
	assert_int_equal(system(line), 0);
}

static void expect_after(const char *script, const char *command, int wanted, const char *why)
{
	struct held h = hold(script);

	expect(&h, 0, "");
	change(command);
	expect(&h, wanted, why);
	let_go(&h);
	change("chmod -R u+rwX . && rm -rf ./*");
}

static void test_elsewhere(void **state)
{
	static const char reads[] = "import time,os; os.mkdir('d'); f=open('d/f','w+'); "
				    "f.write('x'*10); f.flush(); " READY;
	static const char maps[] = "import time,mmap; f=open('f','w+'); f.write('x'*4096); "
				   "f.flush(); m=mmap.mmap(f.fileno(),4096); f.close(); " READY;
	static const char inside[] =
		"import time,os; os.mkdir('d'); open('r','w').close(); os.rename('r','ready'); "
		"os.chdir('d'); time.sleep(1000)";

	(void)state;
	/* What criu would open through a link: the kernel tells where it led. */
	expect_after(reads, "chown 0 d/f && chmod 600 d/f", -EACCES, "may not open");
	expect_after(reads, "chmod 700 d && chown 0 d", -EACCES, "cannot reach");
	expect_after(reads, "rm d/f", -ENOTSUP, "deleted file");
	expect_after(reads, "chown 0 d/f && chmod 644 d/f", -EACCES, "may not open");
	expect_after(maps, "chown 0 f && chmod 644 f", -EACCES, "may not open");
	expect_after(inside, "chmod 700 d && chown 0 d", -EACCES, "may not open");
}

/* What it may read stays shared when its user may not write it. */
static void test_read_only(void **state)
{
	static const char script[] = "import time,mmap; f=open('/etc/passwd','rb'); "
				     "m=mmap.mmap(f.fileno(),0,mmap.MAP_SHARED,mmap.PROT_READ); "
				     "f.close(); " READY;
	struct held h = hold(script);

	(void)state;
	expect(&h, 0, "");
	let_go(&h);
}

static void expect_kind(const char *script, int wanted, const char *why)
{
	struct held h = hold(script);

	expect(&h, wanted, why);
	let_go(&h);
	change("rm -rf ./*");
}

static void test_kinds(void **state)
{
	(void)state;
	expect_kind("import time,os; os.mkfifo('p'); f=os.open('p',os.O_RDWR); " READY, -ENOTSUP,
		    "a named pipe open");
	expect_kind("import time,os; f=open('f','w'); os.unlink('f'); " READY, -ENOTSUP,
		    "a deleted file open");
	expect_kind("import time,os; m=os.open('/dev/ptmx',os.O_RDWR); " READY, -ENOTSUP,
		    "a device open");
	expect_kind("import time,ctypes; f=ctypes.CDLL(None).syscall(425,4,"
		    "ctypes.create_string_buffer(120)); assert f >= 0; " READY,
		    -ENOTSUP, "it uses io_uring");
	expect_kind("import time,socket; s=socket.socket(socket.AF_UNIX); s.bind('s'); " READY,
		    -ENOTSUP, "a socket with a name");
}

/* Who they are: a program with its owner's rights, another user, other groups. */
static void test_who(void **state)
{
	static const gid_t more[] = {NOBODY, 1};
	struct belongings_owner owner = {.uid = NOBODY, .gid = NOBODY};
	struct iocom_err err = {0};
	struct held h;

	(void)state;
	change("cp /bin/sleep lasts && chown 0:0 lasts && chmod 4755 lasts");
	expect_kind("import time,subprocess; c=subprocess.Popen(['./lasts','1000'])\n"
		    "while int(open(f'/proc/{c.pid}/status').read().split('Uid:')[1].split()[1]): "
		    "time.sleep(0.001)\n" READY,
		    -EPERM, "other rights than its user (Uid)");
	h = hold("import time; " READY);
	assert_int_equal(belongings_check(&h.group, h.init, &owner, NULL, &err), 0);
	owner.groups = more;
	owner.ngroups = 2;
	assert_int_equal(belongings_check(&h.group, h.init, &owner, NULL, &err), 0);
	owner.uid = 1;
	assert_int_equal(belongings_check(&h.group, h.init, &owner, NULL, &err), -EPERM);
	owner = (struct belongings_owner){.uid = NOBODY, .gid = 1};
	assert_int_equal(belongings_check(&h.group, h.init, &owner, NULL, &err), -EPERM);
	assert_non_null(strstr(err.text, "(Gid)"));
	/* A process that is not there. */
	owner = (struct belongings_owner){.uid = NOBODY, .gid = NOBODY};
	assert_int_equal(belongings_check(&h.group, getpid(), &owner, NULL, &err), -ENOTSUP);
	let_go(&h);
}

static int up(void **state)
{
	(void)state;
	snprintf(files, sizeof(files), "/tmp/iocom-belongings-XXXXXX");
	if (stage_up(&node) || !mkdtemp(files))
		return -1;
	return chown(files, NOBODY, NOBODY);
}

static int down(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", files);
	(void)!system(command);
	stage_down(&node);
	return 0;
}

/* What the command's standard input is. */
static struct belongings_tty tty_of(const struct held *h)
{
	struct belongings_tty tty;
	char path[64];
	int fd, pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", h->init, h->init);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &pid), 1);
	fclose(file);
	snprintf(path, sizeof(path), "/proc/%d/fd/0", pid);
	fd = open(path, O_PATH | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(belongings_tty_of(&tty, fd), 0);
	close(fd);
	return tty;
}

/* The job's own terminal, and what else there may be of terminals. */
static void test_terminal(void **state)
{
	static const struct {
		const char *script, *why;
	} cases[] = {
		{"", ""},
		{"f = open('/dev/tty', 'rb+', buffering=0)", ""},
		{"import os; f = os.dup(0)", ""},
		{"import os; f = os.open(os.ttyname(0), os.O_RDWR)",
		 "it has opened its terminal by"},
		{"import pty; p = pty.openpty()", "it has a device open"},
		{"import os, fcntl, termios\n"
		 "fcntl.fcntl(0, fcntl.F_SETFL, os.O_RDWR | os.O_ASYNC)",
		 "it has its terminal open in a way"},
		{"import fcntl, os, termios, time\nif not os.fork():\n fcntl.ioctl(0, "
		 "termios.TIOCNOTTY)\n"
		 " time.sleep(1000)\ntime.sleep(0.5)",
		 "lost the terminal of its session"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct belongings_tty tty;
		struct iocom_err err = {0};
		struct held h;
		char script[512];
		int rc;

		snprintf(script, sizeof(script),
			 "%s\nimport time\nopen('ready', 'w').close()\ntime.sleep(1000)",
			 cases[i].script);
		h = hold_at(script, true);
		tty = tty_of(&h);
		rc = check_at(&h, &tty, &err);
		if (rc != (*cases[i].why ? -ENOTSUP : 0) || !strstr(err.text, cases[i].why))
			fail_msg("%zu: %d '%s'", i, rc, err.text);
		if (!rc)
			assert_int_equal(tty.flags & O_ACCMODE, O_RDWR);
		/* For who knows nothing of its terminal that is a device as any other. */
		expect(&h, -ENOTSUP, "it has a device open");
		let_go(&h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ordinary),  cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_read_only), cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_who),	  cmocka_unit_test(test_terminal),
	};

	if (geteuid() || access(PYTHON, X_OK)) {
		puts("1..0 # SKIP it needs root and python3");
		return 0;
	}
	return cmocka_run_group_tests_name("belongings", tests, up, down);
}
