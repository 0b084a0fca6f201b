/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The owner's part of an agent: keeps the rules of the node's owner
 * (balancer/settings/owner/owner.h), applies them at the admission of guests, and lets those change
 * them who may:
 *
 *   root of this node      through the local socket
 *   owners                 (setting) users who may change this node's rules, from any node
 *   administrators         (setting) the same; meant to be the same list at all nodes
 *
 * Who asks from another node has proven who they are (front/forwarded.c).  Each change and each
 * refused one is logged.
 *
 *   owner_part.c      the rules in force, what is asked         owner_admit.c     who gets in
 *   owner_store.c     the file                                  owner_caps.c      control groups
 *   owner_presence.c  does somebody work here                   owner_sessions.c  in windows
 *   owner_names.c     names in lists that nobody has
 */
#ifndef IOCOM_OWNER_PART_H
#define IOCOM_OWNER_PART_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "agent/base/base.h"
#include "agent/guest/guest.h"
#include "balancer/settings/owner/owner.h"

struct accounts;
struct owner_part;

struct owner_config {
	const struct base *base;
	struct accounts *accounts;
	const char *devices;  /* "/dev" */
	const char *sessions; /* logind's files, "/run/systemd/sessions"; NULL: not looked at */
	const char *loginctl; /* the program */
	struct {
		void *arg;
		void (*own_vector)(void *arg, struct iocom_vector *own);
		/* What other nodes are told has changed. */
		void (*says)(void *arg, bool accepts, const char *says);
	} ports;
};

/*
 * Reads the rules; a damaged file is set aside, and the node closed.  Returns 0 or negative errno
 * with the reason in ERR.
 */
int owner_part_new(struct owner_part **part, const struct owner_config *config,
		   struct iocom_err *err);
void owner_part_free(struct owner_part *part);
/* GUEST's jobs are those that the rules are for. */
void owner_part_begin(struct owner_part *part, struct guest *guest);
/* Once a second: the hours, somebody's presence, the control groups. */
void owner_part_chores(struct owner_part *part);
/* The settings were read again. */
void owner_part_reload(struct owner_part *part);

/* The port of guest_ports: `owner`. */
bool owner_part_admit(struct owner_part *part, const struct guest_asking *asking, char *why,
		      size_t size);

/*
 * Obeys what UID, a user of this node or, with FROM, of another one, asks.  Returns 0 and ANSWER, a
 * new document that shows the rules; negative errno with the reason in ERR: -EPERM, -EINVAL,
 * -ENOENT (a job that is no guest here), or the rules could not be written: then a change that only
 * takes from guests holds all the same until the agent ends.
 */
int owner_part_obey(struct owner_part *part, const struct owner_ask *ask, uid_t uid,
		    const char *from, json_t **answer, struct iocom_err *err);
/* Logs and counts that what UID at node FROM asks is refused.  Returns -EPERM with WHY in ERR. */
int owner_part_refuse(struct owner_part *part, uid_t uid, const char *from, const char *why,
		      struct iocom_err *err);

#endif
