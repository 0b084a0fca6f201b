/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What is refused after confine_late, what still works, and that nng and libmicrohttpd run under
 * the filter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/util/platform.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/confined.h"
#include "user/log.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* --- after confine_late: what is refused ---------------------------------------------------- */

#ifdef CONFINE_SANITIZED

static void unfiltered(void *arg)
{
	(void)arg;
	confined_early();
	CHECK(confine_late(&confined->err) == CONFINE_E_UNFILTERED);
	CHECK(strstr(confined->err.text, "sanitizer"));
}

static void test_unfiltered(void **state)
{
	(void)state;
	confined_run(unfiltered, NULL);
}

#else

/* clang-format off: it takes the braces for blocks */
#define ANY(call)                                                                                  \
	{                                                                                          \
#call, SYS_##call,                                                                 \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}
#define WITH(call, ...)                                                                            \
	{                                                                                          \
#call, SYS_##call,                                                                 \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
/* clang-format on */
#define PAGE	   4096
#define ANONYMOUS  (MAP_PRIVATE | MAP_ANONYMOUS)
#define EXECUTABLE (PROT_READ | PROT_EXEC)
#define A_LISTENER 100
#define A_SOCKET   101

static const struct refused {
	const char *name;
	long call;
	long args[6];
} refused[] = {
	/* files */
	WITH(openat, AT_FDCWD, (long)"/", O_RDONLY),
	WITH(openat, AT_FDCWD, (long)"/x", O_WRONLY | O_CREAT, 0600),
	ANY(openat2),
	ANY(open_by_handle_at),
	ANY(name_to_handle_at),
	WITH(newfstatat, AT_FDCWD, (long)"/", 0, 0),
	ANY(statx),
	ANY(statfs),
	ANY(getdents64),
	ANY(chdir),
	ANY(fchdir),
	ANY(chroot),
	ANY(mkdirat),
	ANY(unlinkat),
	ANY(renameat2),
	ANY(linkat),
	ANY(symlinkat),
	ANY(readlinkat),
	ANY(mknodat),
	ANY(fchmod),
	ANY(fchmodat),
	ANY(fchown),
	ANY(fchownat),
	ANY(ftruncate),
	ANY(fallocate),
	ANY(utimensat),
	ANY(setxattr),
	ANY(inotify_init1),
	ANY(fanotify_init),
	ANY(mount),
	ANY(umount2),
	ANY(pivot_root),
	ANY(fsopen),
	ANY(move_mount),
	ANY(open_tree),
	ANY(ioctl),
	ANY(flock),
	ANY(splice),
	ANY(vmsplice),
	ANY(tee),
	ANY(memfd_create),
	ANY(memfd_secret),
	ANY(pipe2),
	ANY(dup),
	ANY(dup3),
	WITH(fcntl, A_SOCKET, F_DUPFD, 0),
	WITH(fcntl, A_SOCKET, F_SETOWN, 1),
	WITH(fcntl, A_SOCKET, F_SETLK, 0),
	WITH(fcntl, A_SOCKET, F_NOTIFY, 0),
	/* processes */
	ANY(execve),
	ANY(execveat),
	WITH(clone, SIGCHLD),
	ANY(clone3),
	ANY(unshare),
	ANY(setns),
	WITH(kill, 0, 0),
	ANY(tkill),
	WITH(tgkill, 0, 0, SIGABRT),
	ANY(rt_sigqueueinfo),
	ANY(rt_tgsigqueueinfo),
	ANY(pidfd_open),
	ANY(pidfd_getfd),
	ANY(pidfd_send_signal),
	ANY(ptrace),
	ANY(process_vm_readv),
	ANY(process_vm_writev),
	ANY(process_madvise),
	ANY(kcmp),
	ANY(wait4),
	ANY(waitid),
	/* itself */
	WITH(prctl, PR_SET_DUMPABLE, 1),
	WITH(prctl, PR_SET_PDEATHSIG, 0),
	WITH(prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0),
	WITH(prctl, PR_SET_MM, 0),
	WITH(seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, 0),
	WITH(seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, 0),
	ANY(setrlimit),
	WITH(prlimit64, 0, RLIMIT_NPROC, (long)"limit"),
	WITH(prlimit64, 1, RLIMIT_NPROC, 0),
	ANY(setuid),
	ANY(setresuid),
	ANY(setgroups),
	ANY(setsid),
	ANY(capset),
	ANY(personality),
	ANY(sched_setaffinity),
	ANY(sched_setscheduler),
	ANY(setpriority),
	ANY(sethostname),
	/* memory */
	WITH(mmap, 0, PAGE, EXECUTABLE, ANONYMOUS, -1, 0),
	WITH(mprotect, 0, PAGE, EXECUTABLE),
	ANY(pkey_mprotect),
	ANY(remap_file_pages),
	ANY(shmget),
	ANY(shmat),
	ANY(msgget),
	ANY(semget),
	ANY(mq_open),
	ANY(userfaultfd),
	ANY(mlockall),
	ANY(move_pages),
	/* sockets */
	WITH(socket, AF_UNIX, SOCK_STREAM, 0),
	WITH(socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE),
	WITH(socket, AF_INET, SOCK_DGRAM, 0),
	WITH(socket, AF_INET6, SOCK_DGRAM, 0),
	WITH(socket, AF_INET, SOCK_RAW, IPPROTO_ICMP),
	WITH(socket, AF_INET, SOCK_RAW, IPPROTO_TCP),
	WITH(socket, AF_INET, SOCK_DGRAM, IPPROTO_ICMP),
	WITH(socket, AF_INET, SOCK_STREAM, IPPROTO_SCTP),
	WITH(socket, AF_INET, SOCK_STREAM, IPPROTO_MPTCP),
	WITH(socket, AF_PACKET, SOCK_RAW, 0),
	WITH(socket, AF_VSOCK, SOCK_STREAM, 0),
	WITH(socket, AF_ALG, SOCK_SEQPACKET, 0),
	ANY(socketpair),
	ANY(bind),
	WITH(listen, A_LISTENER, 1),
	ANY(recvmmsg),
	ANY(sendmmsg),
	WITH(setsockopt, A_SOCKET, SOL_SOCKET, SO_ATTACH_FILTER),
	WITH(setsockopt, A_SOCKET, SOL_SOCKET, SO_BINDTODEVICE),
	WITH(setsockopt, A_SOCKET, SOL_SOCKET, SO_MARK),
	WITH(setsockopt, A_SOCKET, IPPROTO_TCP, TCP_ULP),
	WITH(setsockopt, A_SOCKET, IPPROTO_TCP, TCP_REPAIR),
	WITH(setsockopt, A_SOCKET, IPPROTO_IP, IP_TRANSPARENT),
	WITH(getsockopt, A_SOCKET, SOL_SOCKET, SO_PEERSEC),
	/* what has let processes into the kernel */
	ANY(bpf),
	ANY(perf_event_open),
	ANY(io_uring_setup),
	ANY(io_uring_enter),
	ANY(io_setup),
	ANY(keyctl),
	ANY(add_key),
	ANY(request_key),
	ANY(init_module),
	ANY(kexec_load),
	ANY(syslog),
	WITH(futex, 0, FUTEX_LOCK_PI),
	WITH(futex, 0, FUTEX_CMP_REQUEUE_PI | FUTEX_PRIVATE_FLAG),
	ANY(landlock_create_ruleset),
	ANY(timer_create),
	ANY(timerfd_create),
	ANY(signalfd4),
	ANY(membarrier),
	{"a call of the future", 2000, {0}},
#ifdef __x86_64__
	WITH(open, (long)"/", O_RDONLY),
	WITH(stat, (long)"/", 0),
	ANY(fork),
	ANY(vfork),
	ANY(arch_prctl),
	ANY(modify_ldt),
	ANY(iopl),
	ANY(creat),
	ANY(pipe),
	ANY(dup2),
	ANY(eventfd),
	ANY(alarm),
/* x32, if the kernel has it, is another architecture for the filter: it kills. */
#endif
};

static int listen_at(int family, int *port)
{
	struct sockaddr_in six_or_four = {.sin_family = (sa_family_t)family,
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(six_or_four);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&six_or_four, n) && !listen(fd, 8));
	CHECK(!getsockname(fd, (struct sockaddr *)&six_or_four, &n));
	*port = ntohs(six_or_four.sin_port);
	return fd;
}

static int connect_to(int port)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void check_refused(void)
{
	for (size_t i = 0; i < LENGTH(refused); i++) {
		const struct refused *r = &refused[i];
		long rc;

		errno = 0;
		rc = syscall(r->call, r->args[0], r->args[1], r->args[2], r->args[3], r->args[4],
			     r->args[5]);
		if (rc == -1 && errno == EPERM)
			continue;
		if (rc == 0 && getpid() != confined->number) /* a process that must not be */
			_exit(0);
		snprintf(confined->failed, sizeof(confined->failed),
			 "%s (number %zu) returns %ld, %s", r->name, i, rc, strerror(errno));
		_exit(1);
	}
}

static void *idle(void *arg)
{
	return arg;
}

static void is_refused(void *arg)
{
	pthread_t thread;
	int port;

	(void)arg;
	CHECK(dup2(listen_at(AF_INET, &port), A_LISTENER) == A_LISTENER);
	CHECK(dup2(connect_to(port), A_SOCKET) == A_SOCKET);
	confined_early();
	confined->number = getpid();
	confined_late();
	check_refused();
	CHECK(pthread_create(&thread, NULL, idle, NULL));
}

static void test_refused(void **state)
{
	(void)state;
	confined_run(is_refused, NULL);
}

#ifdef __x86_64__
/* getpid as x32 does it: the numbers of calls are others there. */
static void is_another_architecture(void *arg)
{
	(void)arg;
	confined_early();
	confined_late();
	syscall(0x40000000 | SYS_getpid);
}

static void test_another_architecture(void **state)
{
	pid_t pid = confined_start(is_another_architecture, NULL);
	int status;

	(void)state;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_string_equal(confined->failed, "");
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}
#endif

/* --- the filter is every thread's ------------------------------------------------------------- */

struct worker {
	pthread_t thread;
	int orders[2], answers[2];
};

static void *tries_to_open(void *arg)
{
	struct worker *w = arg;
	char c = 0;

	if (read(w->orders[0], &c, 1) != 1)
		return NULL;
	errno = 0;
	c = (char)(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY) < 0 ? errno : 0);
	(void)!write(w->answers[1], &c, 1);
	(void)!read(w->orders[0], &c, 1); /* until the process ends */
	return NULL;
}

static void has_threads(void *arg)
{
	struct worker w;
	char c = 0;

	(void)arg;
	confined_early();
	CHECK(!pipe(w.orders) && !pipe(w.answers));
	CHECK(!pthread_create(&w.thread, NULL, tries_to_open, &w));
	confined_late();
	CHECK(write(w.orders[1], "x", 1) == 1);
	CHECK(read(w.answers[0], &c, 1) == 1 && c == EPERM);
	confined_waits();
}

static void test_every_thread(void **state)
{
	pid_t pid = confined_start(has_threads, NULL);
	char path[64];
	struct dirent *e;
	unsigned threads = 0;
	DIR *dir;

	(void)state;
	confined_await();
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		threads++;
		assert_string_equal(confined_status(pid, e->d_name, "Seccomp"), "2");
		assert_string_equal(confined_status(pid, e->d_name, "NoNewPrivs"), "1");
		assert_string_equal(confined_status(pid, e->d_name, "CapEff"), "0000000000000000");
	}
	closedir(dir);
	assert_int_equal(threads, 2);
	confined_let_go();
	confined_ends_well(pid);
}

/* --- what still works --------------------------------------------------------------------- */

static int receive_descriptor(int from)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char c;
	struct iovec iov = {.iov_base = &c, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int fd = -1;

	CHECK(recvmsg(from, &msg, MSG_CMSG_CLOEXEC) == 1);
	CHECK(CMSG_FIRSTHDR(&msg) && CMSG_FIRSTHDR(&msg)->cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

static void send_descriptor(int to, int fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t) "x", .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS,
			      .cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	assert_int_equal(sendmsg(to, &msg, 0), 1);
}

static const char page_text[] = "iocom_loads 1\n";

/* A page of metrics as root sends it. */
static int sealed_page(void)
{
	int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(write(fd, page_text, sizeof(page_text)), sizeof(page_text));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK), 0);
	return fd;
}

static void uses_page(int fd, int socket)
{
	char text[64] = "";
	struct stat st;
	off_t at = 0;
	void *map;

	CHECK(!fstat(fd, &st) && st.st_size == sizeof(page_text));
	CHECK(pread(fd, text, sizeof(text), 0) == sizeof(page_text) && !strcmp(text, page_text));
	map = mmap(NULL, sizeof(page_text), PROT_READ, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED && !strcmp(map, page_text));
	CHECK(mprotect(map, sizeof(page_text), PROT_READ | PROT_EXEC) && errno == EPERM);
	CHECK(!munmap(map, sizeof(page_text)));
	CHECK(sendfile(socket, fd, &at, sizeof(page_text)) == sizeof(page_text));
	close(fd);
}

static void uses_sockets(int listener, int port, int gate)
{
	const int one = 1;
	const struct linger linger = {.l_onoff = 1};
	int here = connect_to(port), there = accept4(listener, NULL, NULL, SOCK_CLOEXEC), n, e = 1;
	socklen_t length = sizeof(e);
	char text[64] = "";

	CHECK(here >= 0 && there >= 0);
	CHECK(!setsockopt(here, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	CHECK(!setsockopt(here, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)));
	/* With it one who keeps a duplicate could make root's close wait. */
	CHECK(setsockopt(here, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) && errno == EPERM);
	CHECK(!getsockopt(here, SOL_SOCKET, SO_ERROR, &e, &length) && !e);
	CHECK(!fcntl(here, F_SETFL, O_NONBLOCK) && fcntl(here, F_GETFL) & O_NONBLOCK);
	n = fcntl(here, F_DUPFD_CLOEXEC, 0);
	CHECK(n >= 0 && !close(n));
	uses_page(receive_descriptor(gate), there);
	CHECK(recv(here, text, sizeof(text), 0) == sizeof(page_text) && !strcmp(text, page_text));
	CHECK(!shutdown(here, SHUT_RDWR) && !close(here) && !close(there));
	here = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK(here >= 0 || errno == EAFNOSUPPORT);
}

static void uses_time(void)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(EPOLL_CLOEXEC), wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct timespec until;

	CHECK(epoll >= 0 && wake >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, wake, &event));
	CHECK(epoll_wait(epoll, &event, 1, 2) == 0);
	CHECK(!eventfd_write(wake, 1) && epoll_wait(epoll, &event, 1, -1) == 1);
	CHECK(!nanosleep(&ms, NULL) && poll(NULL, 0, 1) == 0);
	CHECK(!clock_gettime(CLOCK_REALTIME, &until));
	until.tv_sec += until.tv_nsec > 900000000;
	pthread_mutex_lock(&lock);
	CHECK(pthread_cond_timedwait(&never, &lock, &until) == ETIMEDOUT);
	pthread_mutex_unlock(&lock);
}

static void uses_memory(void)
{
	unsigned char key[32];
	struct logger log;
	struct rlimit limit;
	char *large = calloc(64, 1 << 20), *larger;

	CHECK(large);
	larger = realloc(large, 128 << 20);
	CHECK(larger);
	free(larger);
	randombytes_buf(key, sizeof(key));
	CHECK(!sodium_mlock(key, sizeof(key)) && !sodium_munlock(key, sizeof(key)));
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	log_init(&log, "test_confine");
	log.systemd = false; /* with the time */
	log_write(&log, LOG_L_INFO, "this is a line of the log");
	CHECK(!prctl(PR_SET_NAME, "confined"));
}

static void goes_on(void *arg)
{
	int port, listener = listen_at(AF_INET, &port);

	CHECK(sodium_init() >= 0);
	confined_early();
	confined_late();
	uses_sockets(listener, port, *(int *)arg);
	uses_time();
	uses_memory();
}

static void test_goes_on(void **state)
{
	int gate[2], page = sealed_page();
	pid_t pid;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, gate), 0);
	pid = confined_start(goes_on, &gate[1]);
	send_descriptor(gate[0], page);
	confined_ends_well(pid);
	close(gate[0]);
	close(gate[1]);
	close(page);
}

static void aborts(void *arg)
{
	(void)arg;
	confined_early();
	confined_late();
	abort();
}

static void test_aborts(void **state)
{
	pid_t pid = confined_start(aborts, NULL);
	int status;

	(void)state;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_string_equal(confined->failed, "");
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_false(WCOREDUMP(status));
}

/* --- nng ------------------------------------------------------------------------------------ */

#define NNG_CHECK(call)                                                                            \
	do {                                                                                       \
		int nng_rc = (call);                                                               \
		if (nng_rc)                                                                        \
			confined_fails(__FILE__, __LINE__, nng_strerror(nng_rc));                  \
	} while (0)

static void nng_asks(nng_socket rep, int port, const char *host)
{
	char url[64], text[16];
	nng_socket req;
	size_t n;

	snprintf(url, sizeof(url), "tcp://%s:%d", host, port);
	NNG_CHECK(nng_req0_open(&req));
	NNG_CHECK(nng_socket_set_ms(req, NNG_OPT_RECVTIMEO, CONFINED_WAIT_MS));
	NNG_CHECK(nng_dial(req, url, NULL, NNG_FLAG_NONBLOCK));
	NNG_CHECK(nng_send(req, (void *)(uintptr_t) "ask", 4, 0));
	n = sizeof(text);
	NNG_CHECK(nng_recv(rep, text, &n, 0));
	CHECK(n == 4 && !strcmp(text, "ask"));
	NNG_CHECK(nng_send(rep, (void *)(uintptr_t) "answer", 7, 0));
	n = sizeof(text);
	NNG_CHECK(nng_recv(req, text, &n, 0));
	CHECK(n == 7 && !strcmp(text, "answer"));
	nng_close(req);
}

/* The listener was opened before, those who dial come afterwards; at last it is closed. */
static void runs_nng(void *arg)
{
	nng_listener listener;
	nng_socket rep;
	int port;

	(void)arg;
	confined_early();
	NNG_CHECK(nng_rep0_open(&rep));
	NNG_CHECK(nng_socket_set_ms(rep, NNG_OPT_RECVTIMEO, CONFINED_WAIT_MS));
	NNG_CHECK(nng_listen(rep, "tcp://127.0.0.1:0", &listener, 0));
	NNG_CHECK(nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port));
	confined_late();
	for (int i = 0; i < 3; i++)
		nng_asks(rep, port, "127.0.0.1");
	nng_close(rep);
}

static void test_nng(void **state)
{
	(void)state;
	confined_run(runs_nng, NULL);
}

/* Nobody listens: it dials again and again, and a wrong name is an error, not a hang. */
static void nng_dials_in_vain(void *arg)
{
	nng_socket req;
	int port, fd = listen_at(AF_INET, &port);
	char url[64];

	(void)arg;
	close(fd);
	confined_early();
	NNG_CHECK(nng_req0_open(&req));
	NNG_CHECK(nng_socket_set_ms(req, NNG_OPT_RECONNMINT, 1));
	confined_late();
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", port);
	CHECK(nng_dial(req, url, NULL, 0) == NNG_ECONNREFUSED);
	CHECK(nng_dial(req, "tcp://localhost:1", NULL, 0) != 0);
	CHECK(nng_listen(req, "tcp://127.0.0.1:0", NULL, 0) != 0);
	NNG_CHECK(nng_dial(req, url, NULL, NNG_FLAG_NONBLOCK));
	nng_msleep(50);
	nng_close(req);
}

static void test_nng_in_vain(void **state)
{
	(void)state;
	confined_run(nng_dials_in_vain, NULL);
}

/* --- libmicrohttpd ------------------------------------------------------------------------- */

struct http {
	struct MHD_Daemon *daemon;
	int listener, gate;
	volatile bool end;
};

static enum MHD_Result http_answers(void *arg, struct MHD_Connection *c, const char *url,
				    const char *method, const char *version, const char *upload,
				    size_t *upload_size, void **request)
{
	struct http *h = arg;
	struct MHD_Response *r;
	enum MHD_Result rc;

	(void)method, (void)version, (void)upload, (void)upload_size, (void)request;
	r = strcmp(url, "/file")
		    ? MHD_create_response_from_buffer(sizeof(page_text),
						      (void *)(uintptr_t)page_text,
						      MHD_RESPMEM_PERSISTENT)
		    : MHD_create_response_from_fd(sizeof(page_text), receive_descriptor(h->gate));
	CHECK(r);
	rc = MHD_queue_response(c, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return rc;
}

/* As agent/net/net_http.c does. */
static void *http_serves(void *arg)
{
	struct http *h = arg;
	struct pollfd p[2] = {{.events = POLLIN}, {.fd = h->listener, .events = POLLIN}};

	p[0].fd = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	while (!h->end) {
		struct sockaddr_storage from;
		socklen_t n = sizeof(from);
		int fd;

		poll(p, 2, 10);
		fd = p[1].revents ? accept4(h->listener, (struct sockaddr *)&from, &n,
					    SOCK_CLOEXEC | SOCK_NONBLOCK)
				  : -1;
		if (fd >= 0)
			CHECK(MHD_add_connection(h->daemon, fd, (struct sockaddr *)&from, n));
		CHECK(MHD_run(h->daemon));
	}
	return NULL;
}

static void runs_http(void *arg)
{
	struct http h = {.gate = *(int *)arg};
	pthread_t thread;

	confined_early();
	h.listener = listen_at(AF_INET, &confined->number);
	h.daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET |
					    MHD_ALLOW_SUSPEND_RESUME,
				    0, NULL, NULL, http_answers, &h, MHD_OPTION_END);
	CHECK(h.daemon);
	CHECK(!pthread_create(&thread, NULL, http_serves, &h));
	confined_late();
	confined_waits();
	confined_waits();
	h.end = true;
	CHECK(!pthread_join(thread, NULL));
	MHD_stop_daemon(h.daemon);
}

static void gets(int port, const char *path)
{
	char text[1024] = "";
	size_t n = 0;
	ssize_t more;
	int fd = connect_to(port);

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path) >
		    0);
	while ((more = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)more;
	close(fd);
	assert_non_null(strstr(text, "200 OK"));
	assert_non_null(strstr(text, page_text));
}

static void test_http(void **state)
{
	int gate[2], page = sealed_page();
	pid_t pid;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, gate), 0);
	pid = confined_start(runs_http, &gate[1]);
	confined_await();
	gets(confined->number, "/buffer");
	confined_let_go();
	confined_await();
	send_descriptor(gate[0], page);
	gets(confined->number, "/file");
	confined_let_go();
	confined_ends_well(pid);
	close(gate[0]);
	close(gate[1]);
	close(page);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef CONFINE_SANITIZED
		cmocka_unit_test(test_unfiltered),
#else
		cmocka_unit_test(test_refused),
#ifdef __x86_64__
		cmocka_unit_test(test_another_architecture),
#endif
		cmocka_unit_test(test_every_thread),
		cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_aborts),
		cmocka_unit_test(test_nng),
		cmocka_unit_test(test_nng_in_vain),
		cmocka_unit_test(test_http),
#endif
	};

	if (geteuid() != 0) {
		puts("1..0 # SKIP needs root");
		return 0;
	}
	return cmocka_run_group_tests(tests, confined_set_up, confined_tear_down);
}
