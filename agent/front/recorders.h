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

#include "agent/agent.h"
#include "balancer/view/view_decide.h"

#define RECORDERS_MAX	  8
#define RECORDERS_BACKLOG (8u << 20) /* bytes that may wait for a client */

/* A decision taken here; all borrowed. */
struct recorders_decision {
	const struct job_order *order;
	const struct rules_request *request;
	const struct view_file *view;
	const struct view_decision *decision;
	bool run; /* the job was submitted, not only asked about */
};

/* CLIENT records from now on, or is told why not: root and the agent's own user may. */
size_t recorders_count(const struct agent *a);
void recorders_begin(struct agent *a, struct client *client);
/* CLIENT sends no more: it gets the end line. */
void recorders_end(struct agent *a, const struct client *client);
/* CLIENT is gone. */
void recorders_forget(struct agent *a, const struct client *client);
/* A period has ended: the nodes that have told something new. */
void recorders_period(struct agent *a);
void recorders_decided(struct agent *a, const struct recorders_decision *d);
/* A job that was submitted here ended; FROM: the node where. */
void recorders_finished(struct agent *a, const char *from, const struct job_report *report);
/* The agent stops: everybody gets the end line. */
void recorders_stop(struct agent *a);

#endif
