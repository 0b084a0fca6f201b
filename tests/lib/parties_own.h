/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What parties.c, parties_bus.c and parties_client.c share. */
#ifndef IOCOM_TESTS_PARTIES_OWN_H
#define IOCOM_TESTS_PARTIES_OWN_H

#include "tests/lib/parties.h"

/* Between these two calls the programs' log lines go to the trace. */
void parties_enter(struct parties *all);
void parties_leave(struct parties *all);
uint64_t parties_now_ns(const struct parties *all);
/* COND must always hold; if it does not, the sentence is kept for parties_end. */
__attribute__((format(printf, 3, 4))) void parties_must(struct parties *all, bool cond,
							const char *fmt, ...);
/* Waits until no thread looks at directories any more, while no virtual time passes. */
void parties_settle(struct parties *all);

/* These implement peers_asker and guest_ports.answer; PARTY is the node that asks or answers. */
int bus_ask(void *party, const char *node, const char *address, uint16_t port,
	    const struct peer_request *request, peers_answered answered, void *arg,
	    struct iocom_err *err);
void bus_answer(void *party, uint64_t ticket, enum peer_type type,
		const struct peer_answer *answer);
/* Returns when the next message is due; UINT64_MAX: never. */
uint64_t bus_due_ns(const struct parties *all);
/* Delivers the messages that are due. */
void bus_run(struct parties *all);
/* Answers PARTY's open questions with -ECANCELED, as control_free does. */
void bus_cancel(struct party *party);
void bus_free(struct parties *all);

#endif
