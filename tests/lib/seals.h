/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A seal with a loop of its own, for tests and tools that wait for each of munged's answers. */
#ifndef TEST_SEALS_H
#define TEST_SEALS_H

#include "agent/cluster/seal.h"

struct seals {
	struct loop *loop;
	struct counters counters;
	struct seal *seal;
	struct seal_answer answer; /* the last one; what it points to was taken or freed */
	bool answered;
};

/* These return as the functions of seal.h do, and wait where those call back. */
int seals_new(struct seals *s, const char *socket, struct iocom_err *err);
void seals_free(struct seals *s);
int seals_message(struct seals *s, const void *data, size_t length, char **credential,
		  struct iocom_err *err);
int seals_open(struct seals *s, const void *credential, size_t length, void **data,
	       size_t *data_length, struct iocom_err *err);
int seals_credential(struct seals *s, struct credential *credential, const char *text,
		     struct iocom_err *err);

#endif
