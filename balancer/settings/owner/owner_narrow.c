/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Does a change of an owner's rules only take from guests?  See owner.h. */
#include <string.h>

#include "balancer/settings/owner/owner.h"

#define DAY_MINUTES 1440

static bool narrow_cap(const struct owner_cap *from, const struct owner_cap *to)
{
	if (from->unit == OWNER_NO_CAP)
		return true;
	return from->unit == to->unit && to->value <= from->value;
}

/* Returns true if each name of LIST is in ALL. */
static bool narrow_in(const char *list, const char *all)
{
	char name[OWNER_LIST_MAX];

	while ((list = owner_next(list, name)))
		if (!owner_listed(all, name))
			return false;
	return true;
}

/* An empty list allows everybody. */
static bool narrow_allow(const char *from, const char *to)
{
	return !*from || (*to && narrow_in(to, from));
}

static bool narrow_hours(const struct owner_rules *from, const struct owner_rules *to)
{
	if (!from->nhours)
		return true;
	for (int minute = 0; minute < 7 * DAY_MINUTES; minute++) {
		const struct tm at = {.tm_wday = minute / DAY_MINUTES,
				      .tm_hour = minute % DAY_MINUTES / 60,
				      .tm_min = minute % 60};

		if (owner_hours_open(to, &at) && !owner_hours_open(from, &at))
			return false;
	}
	return true;
}

static bool narrow_presence(const struct owner_rules *from, const struct owner_rules *to)
{
	return !from->presence || (to->presence && to->idle_s >= from->idle_s);
}

bool owner_narrows(const struct owner_rules *from, const struct owner_rules *to)
{
	for (enum owner_resource at = 0; at < OWNER_RESOURCES; at++)
		if ((from->shut[at] && !to->shut[at]) ||
		    !narrow_cap(&from->caps[at], &to->caps[at]))
			return false;
	return (from->state == OWNER_OPEN || to->state != OWNER_OPEN) &&
	       narrow_allow(from->users_allow, to->users_allow) &&
	       narrow_in(from->users_deny, to->users_deny) &&
	       narrow_allow(from->classes_allow, to->classes_allow) &&
	       narrow_in(from->classes_deny, to->classes_deny) && narrow_hours(from, to) &&
	       narrow_presence(from, to);
}
