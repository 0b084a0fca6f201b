/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The signals by which people and programs end jobs. */
#ifndef IOCOM_ENDING_SIGNAL_H
#define IOCOM_ENDING_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/* Whether SIGNAL asks a program to end, which may refuse. */
static inline bool signal_asks_to_end(int signal)
{
	return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

/* Whether a program that does not expect it ends by SIGNAL. */
static inline bool signal_ends(int signal)
{
	return signal == SIGKILL || signal_asks_to_end(signal);
}

#endif
