/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Contradictions between an owner's rules; see owner.h. */
#include "balancer/settings/owner/owner.h"

#include <errno.h>
#include <string.h>

#define OWNER_BLANKS ", \t"

void owner_init(struct owner_rules *rules)
{
	*rules = (struct owner_rules){.idle_s = OWNER_IDLE_S};
}

const char *owner_next(const char *list, char name[OWNER_LIST_MAX])
{
	size_t n;

	list += strspn(list, OWNER_BLANKS);
	n = strcspn(list, OWNER_BLANKS);
	if (!n || n >= OWNER_LIST_MAX)
		return NULL;
	memcpy(name, list, n);
	name[n] = 0;
	return list + n;
}

bool owner_listed(const char *list, const char *name)
{
	char entry[OWNER_LIST_MAX];

	while ((list = owner_next(list, entry)))
		if (!strcmp(entry, name))
			return true;
	return false;
}

static int owner_check_lists(const char *what, const char *allow, const char *deny,
			     struct iocom_err *err)
{
	char name[OWNER_LIST_MAX];

	while ((allow = owner_next(allow, name)))
		if (owner_listed(deny, name))
			return iocom_err_set(
				err, -EINVAL,
				"`%s allow %s` contradicts `%s deny %s`: take it out of one of "
				"the lists",
				what, name, what, name);
	return 0;
}

static int owner_check_cap(const struct owner_rules *r, enum owner_resource at,
			   struct iocom_err *err)
{
	const char *name = owner_resource_names[at];
	char cap[32];

	if (r->caps[at].unit == OWNER_NO_CAP)
		return 0;
	owner_cap_text(at, &r->caps[at], cap, sizeof(cap));
	if (r->shut[at])
		return iocom_err_set(
			err, -EINVAL,
			"`cap %s=%s` contradicts `close %s`: guests may have a part of "
			"it or nothing; `open %s` or `cap %s=none` ends one of them",
			name, cap, name, name, name);
	if (r->caps[at].value <= 0)
		return iocom_err_set(
			err, -EINVAL,
			"`cap %s=%s` contradicts that %s is open: say `close%s%s` instead", name,
			cap, name, at >= OWNER_DISK ? " " : "", at >= OWNER_DISK ? name : "");
	return 0;
}

/* A line that is too long for the file would make it unreadable at the next start. */
static int owner_check_hours(const struct owner_rules *r, struct iocom_err *err)
{
	char text[2 * OWNER_HOURS_MAX];

	for (size_t i = 0; i < r->nhours; i++)
		if (r->hours[i].from == r->hours[i].until || !r->hours[i].days)
			return iocom_err_set(
				err, -EINVAL,
				"`hours` from and until the same minute contradict each "
				"other: a whole day is 00:00-24:00, never is `close`");
	owner_hours_text(r, text, sizeof(text));
	if (strlen(text) <= OWNER_HOURS_MAX)
		return 0;
	return iocom_err_set(err, -EINVAL,
			     "the hours have more than %d characters when they are written out "
			     "(%.60s...): use fewer spans",
			     OWNER_HOURS_MAX, text);
}

int owner_check(const struct owner_rules *r, struct iocom_err *err)
{
	int rc = owner_check_lists("users", r->users_allow, r->users_deny, err);

	if (!rc)
		rc = owner_check_lists("classes", r->classes_allow, r->classes_deny, err);
	for (enum owner_resource at = 0; at < OWNER_RESOURCES && !rc; at++)
		rc = owner_check_cap(r, at, err);
	return rc ? rc : owner_check_hours(r, err);
}
