/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The second part of confine.h: the filter of system calls.  The list is what strace shows of nng
 * 1.5.2 (its poller, task, expiry, reaper and resolver threads), of libmicrohttpd, of the loop and
 * of glibc 2.36 after the start, and what these call where nothing goes well (abort, a heap that
 * grows, a thread that ends).
 *
 * Two filters are set, because the kernel logs either all that a filter refuses or nothing.  Of two
 * that refuse with the same action the newer one counts: it refuses without a word what is refused
 * in good order, and lets everything else pass on to the first.  The first still lets it be set.
 */
#include "agent/net/confine.h"

#include <errno.h>
#include <string.h>

#ifdef CONFINE_SANITIZED

int confine_late(struct iocom_err *err)
{
	return iocom_err_set(err, CONFINE_E_UNFILTERED,
			     "the network part runs without a filter of system calls, because it "
			     "is built with a sanitizer");
}

#else

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LENGTH(array)  (sizeof(array) / sizeof((array)[0]))
#define REFUSE	       SCMP_ACT_ERRNO(EPERM)
#define INT_MASK       0xffffffffu /* the kernel reads an int only, and the rest may be anything */
#define TYPE_FLAGS     ((unsigned)(SOCK_CLOEXEC | SOCK_NONBLOCK))

/* Argument ARG, an int, is VALUE. */
#define IS(arg, value) SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, INT_MASK, (uint32_t)(value))
/* Argument ARG, an int, is VALUE when FLAGS are left aside. */
#define IS_BUT(arg, flags, value)                                                                  \
	SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, INT_MASK & ~(flags), (uint32_t)(value))

/* With any arguments. */
static const int confine_free_calls[] = {
	/* descriptors */
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(pread64),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(lseek),
	SCMP_SYS(fstat),
	SCMP_SYS(close),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(eventfd2),
	SCMP_SYS(sendfile), /* libmicrohttpd, of the page of metrics */
	/* sockets */
	SCMP_SYS(accept),
	SCMP_SYS(accept4),
	SCMP_SYS(connect),
	SCMP_SYS(shutdown),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),
	SCMP_SYS(getsockname),
	SCMP_SYS(getpeername),
	/* memory */
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(mlock), /* libsodium, of keys */
	SCMP_SYS(munlock),
	/* time, and facts about itself */
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(nanosleep),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(getrandom),
	SCMP_SYS(getrusage),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(getppid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(sysinfo), /* qsort of large arrays */
	/* threads, signals, the end */
	SCMP_SYS(set_robust_list), /* of a thread that is just starting */
	SCMP_SYS(rseq),
	SCMP_SYS(sched_yield),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

/* Only if argument ARG, an int, is VALUE. */
static const struct {
	int call;
	unsigned arg;
	int value;
} confine_bound_calls[] = {
	{SCMP_SYS(fcntl), 1, F_GETFD},
	{SCMP_SYS(fcntl), 1, F_SETFD},
	{SCMP_SYS(fcntl), 1, F_GETFL},
	{SCMP_SYS(fcntl), 1, F_SETFL},
	{SCMP_SYS(fcntl), 1, F_DUPFD_CLOEXEC},
	{SCMP_SYS(newfstatat), 3, AT_EMPTY_PATH}, /* glibc's fstat; a path finds nothing */
	{SCMP_SYS(prctl), 0, PR_SET_NAME},
	{SCMP_SYS(prctl), 0, PR_GET_SECCOMP},
};

static const struct {
	int level, option;
} confine_set_options[] =
	{
		{SOL_SOCKET, SO_KEEPALIVE},	 {SOL_SOCKET, SO_REUSEADDR},
		{SOL_SOCKET, SO_SNDBUF},	 {SOL_SOCKET, SO_RCVBUF},
		{SOL_SOCKET, SO_RCVTIMEO},	 {SOL_SOCKET, SO_SNDTIMEO},
		{SOL_SOCKET, SO_TIMESTAMPNS},	 {IPPROTO_TCP, TCP_NODELAY},
		{IPPROTO_TCP, TCP_CORK},	 {IPPROTO_TCP, TCP_KEEPIDLE},
		{IPPROTO_TCP, TCP_KEEPINTVL},	 {IPPROTO_TCP, TCP_KEEPCNT},
		{IPPROTO_TCP, TCP_USER_TIMEOUT},
},
  confine_get_options[] = {
	  {SOL_SOCKET, SO_ERROR},     {SOL_SOCKET, SO_TYPE},   {SOL_SOCKET, SO_KEEPALIVE},
	  {SOL_SOCKET, SO_SNDBUF},    {SOL_SOCKET, SO_RCVBUF}, {IPPROTO_TCP, TCP_INFO},
	  {IPPROTO_TCP, TCP_NODELAY},
};

/* Priority inheritance, which has let processes into the kernel more than once, is not needed. */
static const int confine_futexes[] = {
	FUTEX_WAIT,    FUTEX_WAKE,	  FUTEX_REQUEUE,     FUTEX_CMP_REQUEUE,
	FUTEX_WAKE_OP, FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET,
};

static int confine_allow_sockets(scmp_filter_ctx filter)
{
	static const int families[] = {AF_INET, AF_INET6}, protocols[] = {0, IPPROTO_TCP};
	int rc = 0;

	for (size_t f = 0; f < LENGTH(families) && !rc; f++)
		for (size_t p = 0; p < LENGTH(protocols) && !rc; p++)
			rc = seccomp_rule_add(
				filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 3, IS(0, families[f]),
				IS_BUT(1, TYPE_FLAGS, SOCK_STREAM), IS(2, protocols[p]));
	for (size_t i = 0; i < LENGTH(confine_set_options) && !rc; i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt), 2,
				      IS(1, confine_set_options[i].level),
				      IS(2, confine_set_options[i].option));
	for (size_t i = 0; i < LENGTH(confine_get_options) && !rc; i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(getsockopt), 2,
				      IS(1, confine_get_options[i].level),
				      IS(2, confine_get_options[i].option));
	return rc;
}

static int confine_allow_memory(scmp_filter_ctx filter)
{
	int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				  SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));

	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				      SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	return rc;
}

static int confine_allow_itself(scmp_filter_ctx filter)
{
	int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 2, IS(0, getpid()),
				  IS(2, SIGABRT));

	/* It may read its limits. */
	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2, IS(0, 0),
				      SCMP_A2_64(SCMP_CMP_EQ, 0, 0));
	for (size_t i = 0; i < LENGTH(confine_futexes) && !rc; i++)
		rc = seccomp_rule_add(
			filter, SCMP_ACT_ALLOW, SCMP_SYS(futex), 1,
			IS_BUT(1, FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME, confine_futexes[i]));
	/*
	 * The quiet filter is to be set after this one, and refuses this call itself.  libseccomp
	 * adds the second flag where the kernel knows it.
	 */
	if (!rc)
		rc = seccomp_rule_add(
			filter, SCMP_ACT_ALLOW, SCMP_SYS(seccomp), 2,
			IS(0, SECCOMP_SET_MODE_FILTER),
			IS_BUT(1, SECCOMP_FILTER_FLAG_TSYNC_ESRCH, SECCOMP_FILTER_FLAG_TSYNC));
	return rc;
}

/* The first filter: refuses and logs all that is not listed here. */
static int confine_fill(scmp_filter_ctx filter)
{
	int rc = 0;

	for (size_t i = 0; i < LENGTH(confine_free_calls) && !rc; i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, confine_free_calls[i], 0);
	for (size_t i = 0; i < LENGTH(confine_bound_calls) && !rc; i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, confine_bound_calls[i].call, 1,
				      IS(confine_bound_calls[i].arg, confine_bound_calls[i].value));
	if (!rc)
		rc = confine_allow_sockets(filter);
	if (!rc)
		rc = confine_allow_memory(filter);
	if (!rc)
		rc = confine_allow_itself(filter);
	/* A kernel before 4.14 cannot log it. */
	if (!rc)
		(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
	return rc;
}

/* The second filter: see the head of this file. */
static int confine_fill_quiet(scmp_filter_ctx filter)
{
	int rc = seccomp_rule_add(filter, REFUSE, SCMP_SYS(seccomp), 0);

	if (!rc)
		rc = seccomp_rule_add(filter, REFUSE, SCMP_SYS(socket), 1, IS(0, AF_NETLINK));
	if (!rc)
		rc = seccomp_rule_add(filter, REFUSE, SCMP_SYS(newfstatat), 1, IS(3, 0));
	return rc;
}

static int confine_filter_new(scmp_filter_ctx *filter, uint32_t otherwise,
			      int (*fill)(scmp_filter_ctx filter))
{
	int rc;

	*filter = seccomp_init(otherwise);
	if (!*filter)
		return -ENOMEM;
	rc = seccomp_attr_set(*filter, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!rc) /* no_new_privs is set, and the first filter refuses to set it again */
		rc = seccomp_attr_set(*filter, SCMP_FLTATR_CTL_NNP, 0);
	if (!rc)
		rc = seccomp_attr_set(*filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	/* A tree instead of a list; libseccomp before 2.5 has lists only. */
	if (!rc)
		(void)seccomp_attr_set(*filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return rc ? rc : fill(*filter);
}

static int confine_load(void)
{
	scmp_filter_ctx first = NULL, quiet = NULL;
	int rc = confine_filter_new(&first, REFUSE, confine_fill);

	if (!rc)
		rc = confine_filter_new(&quiet, SCMP_ACT_ALLOW, confine_fill_quiet);
	if (!rc)
		rc = seccomp_load(first);
	if (!rc)
		rc = seccomp_load(quiet);
	if (!rc && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER)
		rc = -EPERM;
	if (first)
		seccomp_release(first);
	if (quiet)
		seccomp_release(quiet);
	return rc;
}

int confine_late(struct iocom_err *err)
{
	int rc = confine_alone(err);

	if (rc)
		return rc;
	rc = confine_load();
	if (rc)
		return iocom_err_set(err, rc,
				     "the network part cannot set its filter of system calls: %s",
				     strerror(-rc));
	return 0;
}

#endif
