/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How much the network part's tables hold: it keeps these bounds, and root shows them. */
#ifndef IOCOM_NET_LIMITS_H
#define IOCOM_NET_LIMITS_H

#define BULLETIN_DIALED_MAX	384  /* a node of 16,384 hears 260 */
#define CONNECTION_LIMIT_MAX	1024 /* of other agents, at the port of bulletins and at control's */
#define CONNECTION_LIMIT_OF_ONE 64
#define ADDRESS_BUDGETS_MAX	256
#define NET_CONTROL_PEERS_MAX	128 /* connections to other agents; a new one replaces an unused */
#define NAMES_ASKS_MAX		512 /* look-ups of hosts that have no answer yet */
#define NET_STREAMS_MAX		256 /* job streams that have not begun */

#endif
