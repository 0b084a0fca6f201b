/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom profile --matrix`: who of a parallel job sent how much to whom. */
#ifndef IOCOM_PROFILE_MATRIX_H
#define IOCOM_PROFILE_MATRIX_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "iocom/err.h"

#define MATRIX_RANKS_MAX 4096

/* How the answer is shown. */
struct profile_matrix_ask {
	const char *run_dir;
	bool json, csv;
	const char *svg; /* the file to write; NULL: none */
};

/* The jobs of NAMES are shown as one.  Returns the exit status. */
int profile_matrix(const struct profile_matrix_ask *ask, int n, char **names);

/* --- what its parts share --------------------------------------------------------------- */

struct matrix_rank {
	int part;
	char node[64];
};

/* The matrix in the order of nodes, then ranks: `order` has the rank of each line. */
struct matrix_picture {
	uint32_t tasks;
	struct matrix_rank *ranks;
	uint32_t *order;
	double *bytes; /* [from's line * tasks + to's line] */
	double most;
};

/* Checks and takes the agent's answer.  Returns 0, -EBADMSG, -ENOMEM; matrix_picture_fini after 0.
 */
int matrix_picture_take(struct matrix_picture *p, const json_t *answer, struct iocom_err *err);
void matrix_picture_fini(struct matrix_picture *p);
/* Prints it with letters, within WIDTH columns.  Returns 0 or -ENOMEM. */
int matrix_picture_print(const struct matrix_picture *p, unsigned width, FILE *out);
/* Writes it as SVG. */
void matrix_picture_svg(const struct matrix_picture *p, const char *title, FILE *out);

#endif
