/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Amounts of bytes as people read them. */
#ifndef IOCOM_AMOUNT_H
#define IOCOM_AMOUNT_H

#include <stddef.h>

/* Writes MB (10^6 bytes) in three digits, with the unit that suits: "900 KB", "41.9 MB", "5 TB". */
void amount_of_mb(char *out, size_t size, double mb);

#endif
