/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Looks at files without waiting for a file system that does not answer.  A server that is gone
 * holds whoever asks it in the kernel, where often not even SIGKILL helps: so a child asks, and
 * after LOOK_ASIDE_MS the caller goes on without it.  It leaves once it gets its answer, and has
 * none of our descriptors.  Where no file system is mounted that may hang, the caller looks itself.
 */
#ifndef IOCOM_LOOK_ASIDE_H
#define IOCOM_LOOK_ASIDE_H

#include <stddef.h>

#define LOOK_ASIDE_S  5
#define LOOK_ASIDE_MS (LOOK_ASIDE_S * 1000)

/* Looks as ARG says, and fills OUT.  Prints nothing, and leaves nothing behind but OUT. */
typedef void (*look_aside_fn)(const void *arg, void *out);

/*
 * Calls LOOK; OUT has SIZE bytes, without pointers.  Returns 0; -ETIMEDOUT: it did not come back in
 * time, and OUT is what it had written so far; -EIO: the child died.
 */
int look_aside(look_aside_fn look, const void *arg, void *out, size_t size);
/* Does it in a child in any case, for at most MS; if there can be no child, here. */
int look_aside_for(look_aside_fn look, const void *arg, void *out, size_t size, int ms);

#endif
