/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One TCP connection with a fixed number of bytes: a receiver and a sender, each a process of
 * its own, and how many of each one's calls moved bytes.
 */
#ifndef IOCOM_TESTS_TALK_H
#define IOCOM_TESTS_TALK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TALK_BLOCK (64UL * 1024)

enum talk_receive {
	TALK_READ,
	TALK_PEEK, /* peek at each block first (MSG_PEEK) */
	TALK_WAITALL,
	TALK_TRUNC, /* the kernel throws the bytes away */
	TALK_SPLICE,
	TALK_RECEIVE_NONBLOCK, /* calls that find no bytes do not count */
	TALK_RECEIVE_URING,
};
enum talk_send {
	TALK_WRITE,
	TALK_SENDFILE,
	TALK_ZEROCOPY,
	TALK_SEND_NONBLOCK,
	TALK_SEND_URING,
};

struct talk {
	const char *netns[2]; /* namespaces of sender and receiver; NULL: unchanged */
	const char *address;  /* the receiver's; with a colon it is IPv6, also ::ffff:1.2.3.4 */
	const char *from;     /* the sender's, of the same family; NULL: the kernel chooses */
	const char *cgroup;   /* cgroup of both processes; NULL: unchanged */
	int protocol;	      /* 0, or IPPROTO_MPTCP */
	enum talk_send send;
	enum talk_receive receive;
	size_t bytes;
};

struct talk_end {
	pid_t pid;
	uint64_t calls;
};

/* Runs it to its end: [0] is the sender, [1] the receiver. Returns 0, or -1 if one failed. */
int talk_run(const struct talk *talk, struct talk_end ends[2]);

/* Returns a listening socket at ADDRESS in this network namespace, or -1. */
int talk_listen(const char *address, uint16_t port, int protocol);
/* Returns a connected socket, or -1; FROM may be NULL. */
int talk_connect(const char *address, uint16_t port, const char *from, int protocol);
/* Returns a port that no talk of this program has used. */
uint16_t talk_port(void);
/* Write, or read, BYTES by ordinary calls. Return 0 or -1. */
int talk_give(int fd, size_t bytes);
int talk_take(int fd, size_t bytes);

#endif
