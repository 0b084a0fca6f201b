/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Why the seal of a message was refused. */
#ifndef IOCOM_SEAL_REFUSAL_H
#define IOCOM_SEAL_REFUSAL_H

#define SEAL_TTL_S 60 /* messages are valid this long before and after: clocks may differ */

enum seal_refusal {
	SEAL_E_GARBAGE = 1, /* no message of iocom at all */
	SEAL_E_FORGED,	    /* damaged, made with another key, or not by uid 0 */
	SEAL_E_SKEW,	    /* expired, or from the future: clocks differ */
	SEAL_E_REPLAYED,
	SEAL_E_REFUSALS
};

#endif
