/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See settings_rules.h. */
#include "balancer/settings/settings_rules.h"

#include "iocom/rules.h"

void settings_rules_apply(const struct settings_rules *s, struct rules_params *params)
{
	/* No configuration gives 0 intervals. */
	if (!s->zatti_intervals)
		return;
		/* The settings' ranges are within those of the rules. */
#define APPLY(kind, type, member, name, value, help, usual, least, most)                           \
	(void)rules_params_set(params, #member, (double)s->member);
	SETTINGS_RULES(APPLY)
#undef APPLY
}
