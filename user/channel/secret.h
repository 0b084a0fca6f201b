/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The secret of one attempt of a job, and the keys that are derived from it by label.  Home makes
 * it, and gives it to the node where the attempt runs, over the session of the two agents; the
 * client gets only the key of its streams.  It never crosses the network in clear, and neither does
 * a key.
 */
#ifndef IOCOM_SECRET_H
#define IOCOM_SECRET_H

#include <stddef.h>
#include <stdint.h>

#define SECRET_BYTES 32
#define SECRET_KEY   32
/* The name of a ticket: 16 random bytes in hex digits, and NUL. */
#define SECRET_TICKET_MAX 33

enum secret_label {
	SECRET_STREAM,	/* streams of the client that started the job */
	SECRET_ATTACH,	/* streams of a client that attached with a ticket */
	SECRET_RENEWAL, /* questions and answers about the lease (user/renewal.h) */
	SECRET_LABELS
};

/* Fills SECRET with new random bytes. */
void secret_new(uint8_t secret[SECRET_BYTES]);
/*
 * Derives the key for LABEL of the attempt JOB.  TICKET names the key of one attaching client; ""
 * for the other labels.  HMAC-SHA-256 of the label, the job and the ticket, keyed by SECRET.
 */
void secret_derive(uint8_t key[SECRET_KEY], const uint8_t secret[SECRET_BYTES],
		   enum secret_label label, const char *job, const char *ticket);
/* Fills TICKET with the name of a new ticket. */
void secret_ticket(char ticket[SECRET_TICKET_MAX]);

/* "0123..." for a key, and back; secret_parse returns 0 or -EBADMSG. */
void secret_text(char out[2 * SECRET_KEY + 1], const uint8_t key[SECRET_KEY]);
int secret_parse(uint8_t key[SECRET_KEY], const char *text);

#endif
