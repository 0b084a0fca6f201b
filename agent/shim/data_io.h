/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the two data processes share (data_take.c, data_give.c).  Each runs as the job's user, is
 * the shim's program started anew, hears the client on descriptor 0 and answers on 1 by messages
 * of user/data_stage.h; what it writes to 2 is the sentence with which it fails.
 */
#ifndef IOCOM_SHIM_DATA_IO_H
#define IOCOM_SHIM_DATA_IO_H

#include "user/data_stage.h"

struct data_io {
	size_t head, length;
	uint8_t buffer[2 * DATA_MESSAGE];
};

/*
 * Reads the next message; blocks.  PAYLOAD is valid until the next call.  Returns 0, -EPIPE: the
 * client has gone; -EBADMSG; negative errno.
 */
int data_io_read(struct data_io *io, uint8_t *type, const uint8_t **payload, uint32_t *length);
/* Writes one message; blocks.  Returns 0 or negative errno. */
int data_io_write(enum data_type type, const void *payload, uint32_t length);
/* Writes all of DATA to FD.  Returns 0 or negative errno. */
int data_io_put(int fd, const void *data, size_t length);
/* Says why on 2.  Returns RC. */
__attribute__((format(printf, 2, 3))) int data_io_fail(int rc, const char *fmt, ...);

#define DATA_NO_ROOM 3 /* exit status of the first one: quota, or a full disk */

/* The programs: WORDS are what follows the first word.  They return the exit status. */
int data_take_main(int argc, char **words); /* CACHE NODE QUOTA; the directory is the job's */
int data_give_main(void);

#endif
