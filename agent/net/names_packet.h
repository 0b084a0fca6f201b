/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The packets between names.c and its helper (names_helper.c), two parts of one program.  The
 * first packet is the helper's: a struct names_ready.
 */
#ifndef IOCOM_NAMES_PACKET_H
#define IOCOM_NAMES_PACKET_H

#include <stdint.h>

#include "agent/net/names.h"
#include "iocom/vector.h"

#define NAMES_WHY_MAX 128

struct names_ready {
	int32_t rc; /* 0, or negative errno with the reason */
	struct iocom_err err;
};

struct names_question {
	uint32_t slot; /* below NAMES_WORKERS */
	char host[IOCOM_ADDRESS_MAX];
};

struct names_reply {
	uint32_t slot;
	uint32_t n; /* 0: not found */
	char addresses[NAMES_ADDRESSES_MAX][INET6_ADDRSTRLEN];
	char why[NAMES_WHY_MAX]; /* if not found */
};

#endif
