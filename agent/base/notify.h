/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Tells systemd the state of the service (the sd_notify protocol, without its library). */
#ifndef IOCOM_NOTIFY_H
#define IOCOM_NOTIFY_H

/* STATE: "READY=1", "STOPPING=1", "WATCHDOG=1".  Does nothing outside systemd. */
void notify_systemd(const char *state);

#endif
