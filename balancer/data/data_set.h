/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What goes along with a job, as it is at home now: the files and directories that --data names,
 * and the program if it is below the working directory.  All of it is below that directory, links
 * included: the job finds it elsewhere by the same relative names.
 */
#ifndef IOCOM_DATA_SET_H
#define IOCOM_DATA_SET_H

#include <stdbool.h>
#include <sys/stat.h>

#include "iocom/err.h"
#include "user/data_stage.h"

struct data_item {
	struct data_entry entry;
	/* the file as it was looked at: whoever changes it changes one of these */
	dev_t device;
	ino_t inode;
	struct timespec mtime, ctime;
};

struct data_set {
	int directory; /* the working directory; -1: there is no set */
	char *root;    /* its name, without links */
	struct data_item *at;
	size_t count, room;
	uint64_t bytes;
	char *brings[DATA_PATHS]; /* what is fetched afterwards */
	size_t nbrings;
	char *program; /* the program's name below the directory; NULL: it is elsewhere */
};

/* What is asked for, as the options name it. */
struct data_names {
	const char *data[DATA_PATHS], *brings[DATA_PATHS];
	size_t ndata, nbrings;
};

/* Takes a path of --bring.  Returns 0, or -EINVAL: there are too many. */
int data_names_bring(struct data_names *names, const char *path, struct iocom_err *err);
/*
 * Checks that what is named goes with the option OTHER ("-N", "--detach"; NULL: neither).  Returns
 * 0 or -EINVAL with the reason in ERR.
 */
int data_names_check(const struct data_names *names, const char *other, struct iocom_err *err);
/*
 * Looks at all of NAMES below the current directory; EXECUTABLE is the job's program (absolute, or
 * a bare name).  Returns 0, or negative errno with the sentence in ERR: outside, missing, a link
 * that leads out, no file and no directory, too many.  The caller frees SET in any case.
 */
int data_set_look(struct data_set *set, const struct data_names *names, const char *executable,
		  struct iocom_err *err);
/* Returns the bytes of what --bring names, as it is here now; what cannot be read counts 0. */
uint64_t data_set_brought(const struct data_set *set);
void data_set_free(struct data_set *set);
/*
 * Opens item I for reading and checks that it is as it was looked at.  Returns a descriptor or
 * negative errno with the sentence in ERR.
 */
int data_set_open(const struct data_set *set, size_t i, struct iocom_err *err);
/* Checks, when all of FD was read, that item I is still as it was.  Returns 0 or -ESTALE. */
int data_set_same(const struct data_set *set, size_t i, int fd, struct iocom_err *err);
/* Opens PATH below the directory AT, through links only while they stay below it. */
int data_set_beneath(int at, const char *path, int flags, mode_t mode);

#endif
