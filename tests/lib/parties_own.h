/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What parties.c and parties_bus.c share. */
#ifndef IOCOM_TESTS_PARTIES_OWN_H
#define IOCOM_TESTS_PARTIES_OWN_H

#include "tests/lib/parties.h"

/* Within: what the programs log is written down. */
void parties_enter(struct parties *all);
void parties_leave(struct parties *all);
uint64_t parties_now_ns(const struct parties *all);
/* COND is to hold always; else the sentence is kept for parties_end. */
__attribute__((format(printf, 3, 4))) void parties_must(struct parties *all, bool cond,
							const char *fmt, ...);
/* Looks for directories that threads take are waited for, in no time. */
void parties_settle(struct parties *all);

/* peers_asker and guest_ports.answer; PARTY: who asks, who answers. */
int bus_ask(void *party, const char *node, const char *address, uint16_t port,
	    const struct peer_request *request, peers_answered answered, void *arg,
	    struct iocom_err *err);
void bus_answer(void *party, uint64_t ticket, enum peer_type type,
		const struct peer_answer *answer);
/* When something is due next; UINT64_MAX: never. */
uint64_t bus_due_ns(const struct parties *all);
/* Delivers what is due. */
void bus_run(struct parties *all);
/* What PARTY asked is answered with -ECANCELED, as control_free does. */
void bus_cancel(struct party *party);
void bus_free(struct parties *all);

#endif
