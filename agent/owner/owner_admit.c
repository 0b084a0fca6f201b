/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Who gets in by the owner's rules, with numbers of this moment: state, hours and presence; users;
 * classes; closed resources; caps.
 */
#include "agent/owner/owner_own.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/accounts.h"
#include "agent/guest/users.h"
#include "agent/jobs/job_order.h"

static struct users_policy admit_policy(const struct owner_part *part)
{
	return (struct users_policy){.member = accounts_member, .arg = part->config.accounts};
}

static bool admit_user(const struct owner_part *part, const struct account *user, char *why,
		       size_t size)
{
	const struct users_policy policy = admit_policy(part);
	const struct owner_rules *r = &part->rules;
	char doubt[192];

	if (users_listed(&policy, user, r->users_deny, doubt, sizeof(doubt)))
		snprintf(why, size, "denies user %.64s (users deny %.100s)", user->name,
			 r->users_deny);
	else if (*doubt)
		snprintf(why, size, "denies everybody while `users deny` has %s", doubt);
	else if (*r->users_allow &&
		 !users_listed(&policy, user, r->users_allow, doubt, sizeof(doubt)))
		snprintf(why, size, "allows only some users (users allow %.100s)", r->users_allow);
	else
		return true;
	return false;
}

static bool admit_class(const struct owner_rules *r, const char *class_name, char *why, size_t size)
{
	if (owner_listed(r->classes_deny, class_name))
		snprintf(why, size, "denies jobs of class %.64s", class_name);
	else if (*r->classes_allow && !owner_listed(r->classes_allow, class_name))
		snprintf(why, size, "allows only some classes (classes allow %.100s)",
			 r->classes_allow);
	else
		return true;
	return false;
}

static bool admit_faucet(const struct owner_rules *r, const struct need *need, char *why,
			 size_t size)
{
	double per_s = need_declared_per_ms(need) * 1e3;

	if (r->shut[OWNER_DISK] && per_s > 0)
		snprintf(why, size, "has closed the disk, the job needs %.3g requests/s of it",
			 per_s);
	else if (r->shut[OWNER_NETWORK] && need->value[NEED_COM_MS] > 0)
		snprintf(why, size, "has closed the network, the job needs %.3g s of it",
			 need->value[NEED_COM_MS] / 1e3);
	else
		return true;
	return false;
}

static bool admit_caps(const struct owner_part *part, const struct guest_asking *asking, char *why,
		       size_t size)
{
	const struct need *need = &asking->order->need;
	struct iocom_vector own = {0};
	struct guest_use use;
	double cap[OWNER_RESOURCES], disk, network;

	if (!owner_caps_any(&part->rules))
		return true;
	guest_use(part->guest, &use);
	part->config.ports.own_vector(part->config.ports.arg, &own);
	for (enum owner_resource at = 0; at < OWNER_RESOURCES; at++)
		cap[at] = owner_caps_amount(part, at, &own);
	disk = need_declared_per_ms(need) * need->value[NEED_IO_SIZE_KB];
	network = own.sent_mb_per_s + own.received_mb_per_s;
	/* One guest always gets in: the control group slows it down, or it is alone. */
	if (cap[OWNER_CPU] >= 0 && use.jobs && (double)use.jobs >= ceil(cap[OWNER_CPU]))
		snprintf(why, size, "caps cpu: %zu guests are there, %.3g cores are for guests",
			 use.jobs, cap[OWNER_CPU]);
	else if (cap[OWNER_MEMORY] >= 0 &&
		 (use.memory_mb + need->value[NEED_MEMORY_MB]) * 1e6 > cap[OWNER_MEMORY])
		snprintf(why, size,
			 "caps memory: guests need %.0f MB and the job %.0f MB, %.0f MB are for "
			 "guests",
			 use.memory_mb, need->value[NEED_MEMORY_MB], cap[OWNER_MEMORY] / 1e6);
	else if (cap[OWNER_DISK] >= 0 && disk > 0 && use.disk_mb_per_s + disk > cap[OWNER_DISK])
		snprintf(
			why, size,
			"caps the disk: guests need %.3g MB/s and the job %.3g MB/s, %.3g MB/s are "
			"for guests",
			use.disk_mb_per_s, disk, cap[OWNER_DISK]);
	else if (cap[OWNER_NETWORK] >= 0 && network > cap[OWNER_NETWORK])
		snprintf(why, size,
			 "caps the network: %.3g MB/s go through it now, guests get in below %.3g "
			 "MB/s",
			 network, cap[OWNER_NETWORK]);
	else
		return true;
	return false;
}

bool owner_part_admit(struct owner_part *part, const struct guest_asking *asking, char *why,
		      size_t size)
{
	struct owner_moment moment;
	const struct owner_rules *r = &part->rules;

	owner_part_moment(part, OWNER_NOW_NS, &moment);
	if (!owner_says(r, &moment, why, size))
		return false;
	*why = 0;
	return (!asking->user || admit_user(part, asking->user, why, size)) &&
	       admit_class(r, asking->order->class_name, why, size) &&
	       admit_faucet(r, &asking->order->need, why, size) &&
	       admit_caps(part, asking, why, size);
}

bool owner_admit_change(const struct owner_part *part, uid_t uid, const char *from, char *why,
			size_t size)
{
	const struct settings *set = part->base->set;
	const struct users_policy policy = admit_policy(part);
	struct account user;
	char doubt[192];
	bool may;

	if (uid == 0 && !*from)
		return true;
	if (accounts_find(part->config.accounts, uid, &user)) {
		snprintf(why, size,
			 "uid %u is unknown at node %s, or the name service does not "
			 "answer",
			 (unsigned)uid, set->name);
		return false;
	}
	may = users_listed(&policy, &user, set->owners, doubt, sizeof(doubt)) ||
	      users_listed(&policy, &user, set->administrators, doubt, sizeof(doubt));
	if (!may && uid == 0)
		snprintf(why, size,
			 "root of node %s is not root of node %s, and may not change its owner's "
			 "rules: it could if the setting administrators (or owners) of %s named "
			 "root",
			 from, set->name, set->name);
	else if (!may)
		snprintf(why, size,
			 "user %.64s may not change the owner's rules of node %s: its root, and "
			 "users in its settings owners and administrators may",
			 user.name, set->name);
	account_free(&user);
	return may;
}
