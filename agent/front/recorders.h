/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Who records this node: clients that asked op "record" get the lines of a
 * recording (recording.h), one a frame: what this node hears of the others each
 * period, every decision taken here with the view it looked at, jobs submitted here
 * and how they ended.
 *
 * A client that reads too slowly loses whole lines, never more: each recorder
 * keeps what its lines have told, so that the next ones make up for the loss, and
 * the end line counts it.  Nothing here waits.  Without a recorder every call is one
 * comparison.
 */
#ifndef IOCOM_RECORDERS_H
#define IOCOM_RECORDERS_H

#include "agent/front/front.h"
#include "balancer/view/view_decide.h"

#define RECORDERS_MAX	  8
#define RECORDERS_BACKLOG (8u << 20) /* bytes that may wait for a client */

/* The most clients that may record.  The request is record_request (front.h). */
size_t recorders_count(const struct front *front);
/* CLIENT sends no more, so it gets the end line. */
void recorders_end(struct front *front, const struct client *client);
/* CLIENT is gone. */
void recorders_forget(struct front *front, const struct client *client);
/* A period has ended: the nodes that have told something new. */
void recorders_period(struct front *front);
void recorders_decided(struct front *front, const struct home_decision *d);
/* Call it when a job that was submitted here has ended; FROM is the node where it ran. */
void recorders_finished(struct front *front, const char *from, const struct job_report *report);
/* The agent stops: everybody gets the end line. */
void recorders_stop(struct front *front);

#endif
