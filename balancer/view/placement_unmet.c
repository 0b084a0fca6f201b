/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Stated needs that no node can meet.  There is no queue in which such a job could wait for a
 * larger node, so it runs where the policy sends it, and its user is told.  A need that a busy node
 * cannot meet now is none of these: what counts is what the node has.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "balancer/view/amount.h"
#include "balancer/view/placement.h"

static double unmet_stated(const struct placement *p, enum need_field field)
{
	return p->need.source[field] == NEED_OPTION ? p->need.value[field] : 0;
}

static void unmet_add(struct placement *p, enum need_field field)
{
	struct placement_unmet *u;
	double wanted = unmet_stated(p, field);

	if (!(wanted > 0) || p->nunmet == PLACEMENT_UNMET_MAX)
		return;
	u = &p->unmet[p->nunmet++];
	*u = (struct placement_unmet){.wanted = wanted};
	snprintf(u->need, sizeof(u->need), "%s", need_name(field));
}

void placement_unmet_begin(struct placement *p)
{
	p->nunmet = 0;
	unmet_add(p, NEED_MEMORY_MB);
	/* A disk's rate is learned, so a fast one is not known to be slow: it is there or not. */
	unmet_add(p, NEED_IO_PER_S);
}

/* What NODE has of the need; a disk is enough for any rate. */
static double unmet_offered(const struct placement_unmet *u, const struct iocom_vector *node)
{
	if (!strcmp(u->need, need_name(NEED_MEMORY_MB)))
		return node->memory_mb;
	return node->disks ? u->wanted : 0;
}

void placement_unmet_node(struct placement *p, const struct iocom_vector *node, bool home)
{
	if (!home && !node->accepts_jobs)
		return;
	for (size_t i = 0; i < p->nunmet; i++) {
		struct placement_unmet *u = &p->unmet[i];
		double offered = unmet_offered(u, node);

		if (!(offered > u->most))
			continue;
		u->most = offered;
		snprintf(u->node, sizeof(u->node), "%s", node->name);
	}
}

void placement_unmet_end(struct placement *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->nunmet; i++)
		if (p->unmet[i].most < p->unmet[i].wanted)
			p->unmet[kept++] = p->unmet[i];
	p->nunmet = kept;
}

int placement_unmet_write(const struct placement *p, json_t *document)
{
	json_t *list = p->nunmet ? json_array() : NULL;

	for (size_t i = 0; list && i < p->nunmet; i++) {
		const struct placement_unmet *u = &p->unmet[i];

		if (json_array_append_new(list,
					  json_pack("{s:s,s:f,s:f,s:s}", "need", u->need, "wanted",
						    u->wanted, "most", u->most, "node", u->node))) {
			json_decref(list);
			return -ENOMEM;
		}
	}
	if (!p->nunmet)
		return 0;
	return json_object_set_new(document, "unmet", list) ? -ENOMEM : 0;
}

int placement_unmet_read(struct placement *p, const json_t *document)
{
	const json_t *list = json_object_get(document, "unmet"), *one;
	size_t i;

	p->nunmet = 0;
	if (list && !json_is_array(list))
		return -EPROTO;
	json_array_foreach (list, i, one) {
		const char *need = json_string_value(json_object_get(one, "need"));
		const char *node = json_string_value(json_object_get(one, "node"));
		const json_t *wanted = json_object_get(one, "wanted");
		const json_t *most = json_object_get(one, "most");
		struct placement_unmet *u = &p->unmet[p->nunmet];

		if (!need || !node || !json_is_number(wanted) || !json_is_number(most))
			return -EPROTO;
		if (p->nunmet == PLACEMENT_UNMET_MAX)
			break; /* a newer agent may know of more */
		u->wanted = json_number_value(wanted);
		u->most = json_number_value(most);
		snprintf(u->need, sizeof(u->need), "%s", need);
		snprintf(u->node, sizeof(u->node), "%s", node);
		p->nunmet++;
	}
	return 0;
}

void placement_unmet_text(const struct placement *p, size_t i, char *out, size_t size)
{
	const struct placement_unmet *u = &p->unmet[i];
	const char *node = *p->node ? p->node : p->plan.node;
	char home[IOCOM_NAME_MAX + 16] = "", wanted[32], most[32];

	if (!strcmp(node, p->home))
		snprintf(home, sizeof(home), ", its home");
	amount_of_mb(wanted, sizeof(wanted), u->wanted);
	amount_of_mb(most, sizeof(most), u->most);
	if (!strcmp(u->need, need_name(NEED_MEMORY_MB)))
		snprintf(out, size,
			 "no node has the %s of memory that the job needs as stated: the "
			 "largest, %s, has %s; it goes to %s%s all the same",
			 wanted, u->node, most, node, home);
	else if (!strcmp(u->need, need_name(NEED_IO_PER_S)) && !*u->node)
		snprintf(out, size,
			 "no node has a disk for the %.0f requests/s that the job needs as "
			 "stated; it goes to %s%s all the same",
			 u->wanted, node, home);
	else
		snprintf(out, size,
			 "no node has what the job needs as stated, %s %.6g: the largest, %s, has "
			 "%.6g; it goes to %s%s all the same",
			 u->need, u->wanted, u->node, u->most, node, home);
}
