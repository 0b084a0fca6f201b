/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Settings as the texts that a configuration would need to set them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/settings/settings.h"
#include "iocom/rules.h"

static void put_peer(FILE *out, const struct settings_peer *peer)
{
	fputs(peer->address, out);
	if (peer->port)
		fprintf(out, ":%u", peer->port);
}

static void put_scope(FILE *out, const struct settings *s)
{
	if (!s->scoped)
		return;
	fprintf(out, "cgroup=%s", s->scope_cgroup);
	for (size_t i = 0; i < s->nscope_disks; i++)
		fprintf(out, "%s%s", i ? "+" : ",disk=", s->scope_disks[i]);
	if (s->scope_mount[0])
		fprintf(out, ",mount=%s", s->scope_mount);
}

static void put_limit(FILE *out, int64_t limit)
{
	if (limit > 0)
		fprintf(out, "%" PRId64, limit);
	else
		fputs(limit == SETTINGS_LIMIT_AUTO ? "auto" : "none", out);
}

static void put_custom(FILE *out, const struct settings *s, const char *name)
{
	if (!strcmp(name, "peers"))
		for (size_t i = 0; i < s->npeers; i++) {
			fputs(i ? "," : "", out);
			put_peer(out, &s->peers[i]);
		}
	else if (!strcmp(name, "scope"))
		put_scope(out, s);
	else if (!strcmp(name, "metrics-listen"))
		put_peer(out, &s->metrics);
	else if (!strcmp(name, "pam"))
		fputs(settings_pam_names[s->pam], out);
	else if (!strcmp(name, "feedback"))
		fputs(settings_feedback_names[s->feedback.mode], out);
	else if (!strcmp(name, "feedback-controller"))
		fputs(rules_controller_name((enum rules_controller)s->feedback.controller), out);
	else if (!strcmp(name, "user-tasks-max"))
		put_limit(out, s->user_tasks_max);
	else if (!strcmp(name, "user-memory-mb"))
		put_limit(out, s->user_memory_mb);
	else if (!strcmp(name, "slots"))
		put_limit(out, s->slots);
	else if (!strcmp(name, "log-level"))
		fputs(settings_level_name(s->log_level), out);
}

char *settings_text(const struct settings *s, const struct config_key *key)
{
	const char *field = (const char *)s + key->offset;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	switch (key->type) {
	case CONFIG_STRING:
		fputs(field, out);
		break;
	case CONFIG_NUMBER:
		fprintf(out, "%.15g", *(const double *)field);
		break;
	case CONFIG_COUNT:
		fprintf(out, "%" PRIu32, *(const uint32_t *)field);
		break;
	case CONFIG_BOOL:
		fputs(*(const bool *)field ? "yes" : "no", out);
		break;
	case CONFIG_CUSTOM:
		put_custom(out, s, key->name);
		break;
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
