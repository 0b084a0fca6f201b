/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reads and writes view files; see view_json.h. */
#include "balancer/view/view_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/view/view_node.h"
#include "iocom/array.h"

#define KNOWN(name)                                                                                \
	{                                                                                          \
		name, FIELD_ELSEWHERE, 0, 0                                                        \
	}

static const struct field view_fields[] = {
	KNOWN("version"),
	FIELD_OF(FIELD_NUMBER, view_file, time_ms),
	FIELD_OF(FIELD_COUNT, view_file, home),
	FIELD_OF(FIELD_LARGE, view_file, seed),
	KNOWN("network_mb_per_s"),
	KNOWN("reference_mips"),
	KNOWN("rates"),
	KNOWN("params"),
	KNOWN("nodes"),
	KNOWN("job"),
};

#define VIEW_FIELDS view_fields, FIELD_COUNT_OF(view_fields)

void view_file_init(struct view_file *view, enum rules_rates rates)
{
	*view = (struct view_file){.seed = 1};
	rules_params_default(&view->params, rates);
}

void view_file_fini(struct view_file *view)
{
	for (uint32_t i = 0; i < view->nnodes; i++)
		view_node_fini(&view->nodes[i]);
	free(view->nodes);
	free(view->com_ms);
	free(view->corrections);
	free(view->held);
	free(view->cached);
	free(view->pairs);
	*view = (struct view_file){0};
}

int view_file_add(struct view_file *view, const struct rules_node *node)
{
	uint32_t n = view->nnodes;
	struct view_node from = {.node = *node};

	if (array_reserve(view->nodes, view->room, n + 1, 16))
		return -ENOMEM;
	if (view_node_copy(&view->nodes[n], &from))
		return -ENOMEM;
	view->nnodes++;
	return 0;
}

static void remove_correction(struct view_file *view, uint32_t index)
{
	struct rules_request *job = &view->job;
	size_t kept = 0;

	for (size_t i = 0; i < job->ncorrections; i++) {
		struct rules_correction c = view->corrections[i];

		if (c.node == index)
			continue;
		c.node -= c.node > index;
		view->corrections[kept++] = c;
	}
	job->ncorrections = kept;
}

/* Returns how many of the N are left. */
static size_t remove_held(struct rules_held *held, size_t n, uint32_t index)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct rules_held h = held[i];

		if (h.node == index)
			continue;
		h.node -= h.node > index;
		held[kept++] = h;
	}
	return kept;
}

static void remove_shared(struct rules_shared *shared, uint32_t index)
{
	if (!shared->served)
		return;
	shared->served = shared->server != index;
	shared->server -= shared->server > index;
}

void view_file_remove(struct view_file *view, uint32_t index)
{
	view_node_fini(&view->nodes[index]);
	memmove(&view->nodes[index], &view->nodes[index + 1],
		(view->nnodes - index - 1) * sizeof(*view->nodes));
	view->nnodes--;
	remove_correction(view, index);
	view->job.nheld = remove_held(view->held, view->job.nheld, index);
	view->job.shared.ncached = remove_held(view->cached, view->job.shared.ncached, index);
	remove_shared(&view->job.shared, index);
	if (view->home > index)
		view->home--;
	else if (view->home == index)
		view->home = 0;
}

int view_file_charge(struct view_file *view, uint32_t index, const struct rules_request *request)
{
	struct view_node *node;
	struct rules_request *grown;

	if (index >= view->nnodes)
		return -EINVAL;
	node = &view->nodes[index];
	grown = realloc(node->charged, (node->ncharged + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	node->charged = grown;
	grown[node->ncharged] = *request;
	grown[node->ncharged].tasks = 1;
	grown[node->ncharged].corrections = NULL;
	grown[node->ncharged].ncorrections = 0;
	grown[node->ncharged].held = NULL;
	grown[node->ncharged].nheld = 0;
	grown[node->ncharged].shared = (struct rules_shared){0};
	grown[node->ncharged].correction = 0;
	grown[node->ncharged++].com_ms = NULL;
	return 0;
}

/* --- reading -------------------------------------------------------------------- */

int view_rates_read(struct field_reader *r, const json_t *object, enum rules_rates *rates)
{
	const json_t *value = json_object_get(object, "rates");
	const char *text = json_string_value(value);

	*rates = RULES_RATES_COMPUTATION;
	if (!value || (text && !strcmp(text, "computation")))
		return 0;
	*rates = RULES_RATES_WALL;
	if (text && !strcmp(text, "wall"))
		return 0;
	field_enter(r, "rates", 0);
	return field_expected(r, "\"computation\" or \"wall\"", value);
}

static int read_version(struct field_reader *r, const json_t *value)
{
	if (!value || (json_is_integer(value) && json_integer_value(value) == 1))
		return 0;
	field_enter(r, "version", 0);
	return field_expected(r, "1, the version that this program reads", value);
}

static int read_param(struct field_reader *r, const char *name, const json_t *value,
		      struct rules_params *params)
{
	size_t mark = field_enter(r, name, 0);
	double number = json_is_true(value) ? 1 : 0;
	int rc = json_is_boolean(value) ? 0 : field_number(r, value, &number);

	if (rc)
		return rc;
	rc = rules_params_set(params, name, number);
	if (rc == -ENOENT)
		return field_fail(r, "no parameter of the rules has this name; "
				     "iocom-view(5) lists them");
	if (rc)
		return field_expected(r, "a value in the parameter's range", value);
	field_leave(r, mark);
	return 0;
}

int view_params_read(struct field_reader *r, const json_t *object, struct rules_params *params)
{
	const json_t *list = json_object_get(object, "params");
	const char *at_top[] = {"network_mb_per_s", "reference_mips"};
	size_t mark = field_enter(r, "params", 0);
	const char *name;
	json_t *value;
	int rc = 0;

	if (list && !json_is_object(list))
		return field_expected(r, "an object of parameters", list);
	json_object_foreach ((json_t *)list, name, value) {
		rc = read_param(r, name, value, params);
		if (rc)
			return rc;
	}
	field_leave(r, mark);
	for (int i = 0; i < 2; i++) {
		value = json_object_get(object, at_top[i]);
		if (value && json_object_get(list, at_top[i])) {
			field_enter(r, at_top[i], 0);
			return field_fail(r, "expected once, found in \"params\" as well");
		}
		rc = value ? read_param(r, at_top[i], value, params) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

/* Names are unique: adds them with their numbers to SEEN, and refuses the second of two. */
static int number_names(struct field_reader *r, const struct view_file *view, json_t *seen)
{
	int rc = seen ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < view->nnodes && !rc; i++) {
		const char *name = view->nodes[i].node.name;
		json_t *first = json_object_get(seen, name);

		if (first) {
			field_enter(r, NULL, i);
			field_enter(r, "name", 0);
			rc = field_fail(
				r,
				"expected a unique name; \"%s\" is nodes[%" JSON_INTEGER_FORMAT
				"]'s name",
				name, json_integer_value(first));
		} else {
			rc = field_set(seen, name, json_integer(i));
		}
	}
	return rc;
}

static int read_nodes(struct field_reader *r, const json_t *list, struct view_file *view,
		      json_t *names)
{
	size_t mark = field_enter(r, "nodes", 0), i;
	json_t *object;
	int rc = 0;

	if (!json_array_size(list))
		return field_expected(r, "a list of at least one node", list);
	if (json_array_size(list) > UINT32_MAX / 2)
		return field_fail(r, "too many nodes");
	view->nodes = calloc(json_array_size(list), sizeof(*view->nodes));
	if (!view->nodes)
		return -ENOMEM;
	view->room = (uint32_t)json_array_size(list);
	json_array_foreach (list, i, object) {
		size_t inner = field_enter(r, NULL, i);

		view_node_init(&view->nodes[i], (uint32_t)i);
		view->nnodes++;
		rc = view_node_read(r, object, view->params.rates, &view->nodes[i]);
		if (rc)
			return rc;
		field_leave(r, inner);
	}
	rc = number_names(r, view, names);
	field_leave(r, mark);
	return rc;
}

static int read_job(struct field_reader *r, const json_t *object, const json_t *names,
		    struct view_file *view)
{
	const struct view_places places = {.numbers = names};
	struct view_job_own own;
	int rc;

	field_enter(r, "job", 0);
	rc = view_job_read(r, object, view->params.rates, &places, &view->job, &own);
	view->com_ms = own.com_ms;
	view->corrections = own.corrections;
	view->held = own.held;
	view->cached = own.cached;
	view->pairs = own.pairs;
	return rc;
}

/* NAMES gets those of the nodes. */
static int read_view(struct field_reader *r, const json_t *document, struct view_file *view,
		     json_t *names)
{
	enum rules_rates rates;
	int rc = field_read(r, document, VIEW_FIELDS, view);

	if (!rc)
		rc = read_version(r, json_object_get(document, "version"));
	if (!rc)
		rc = view_rates_read(r, document, &rates);
	if (rc)
		return rc;
	rules_params_default(&view->params, rates);
	rc = view_params_read(r, document, &view->params);
	if (!rc)
		rc = read_nodes(r, json_object_get(document, "nodes"), view, names);
	if (!rc && view->home >= view->nnodes) {
		field_enter(r, "home", 0);
		return field_fail(r, "expected the index of a node, 0 to %u, found %u",
				  view->nnodes - 1, view->home);
	}
	return rc ? rc : read_job(r, json_object_get(document, "job"), names, view);
}

int view_file_decode(const char *name, const char *text, size_t length, struct view_file *view,
		     struct iocom_err *err)
{
	struct field_reader r = {
		.file = name, .err = err, .text = text, .text_length = length, .line = 1};
	json_t *document, *names;
	int rc;

	if (length > VIEW_BYTES_MAX)
		return iocom_err_set(err, -EINVAL,
				     "%.250s: larger than %u MB, the most that is read", name,
				     VIEW_BYTES_MAX / 1000000);
	rc = field_parse(&r, &document);
	if (rc)
		return rc;
	view_file_init(view, RULES_RATES_COMPUTATION);
	names = json_object();
	rc = read_view(&r, document, view, names);
	json_decref(names);
	json_decref(document);
	if (rc)
		view_file_fini(view);
	if (rc == -ENOMEM)
		iocom_err_set(err, rc, "out of memory");
	return rc;
}

/* Reads FD to its end, or slightly more than VIEW_BYTES_MAX. */
static int view_json_slurp(int fd, char **text, size_t *length)
{
	size_t used = 0, room = 0;
	char *bytes = NULL;
	ssize_t n = 1;
	int rc = 0;

	while (n && used <= VIEW_BYTES_MAX) {
		rc = array_reserve(bytes, room, used + 1, 65536);
		if (rc)
			break;
		n = read(fd, bytes + used, room - used);
		if (n < 0 && errno != EINTR) {
			rc = -errno;
			break;
		}
		used += n > 0 ? (size_t)n : 0;
	}
	if (rc)
		free(bytes);
	*text = rc ? NULL : bytes;
	*length = used;
	return rc;
}

int view_file_read(const char *path, struct view_file *view, struct iocom_err *err)
{
	bool input = !strcmp(path, "-");
	const char *name = input ? "standard input" : path;
	int fd = input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	size_t length = 0;
	int rc = fd < 0 ? -errno : view_json_slurp(fd, &text, &length);

	if (fd >= 0 && !input)
		close(fd);
	if (rc)
		return iocom_err_set(err, rc, "cannot read %s: %s", name, strerror(-rc));
	rc = view_file_decode(name, text, length, view, err);
	free(text);
	return rc;
}

/* --- writing -------------------------------------------------------------------- */

int view_params_write(json_t *object, const struct rules_params *params,
		      const struct rules_params *base)
{
	json_t *list = json_object();
	const char *name;
	int rc = list ? 0 : -ENOMEM;

	for (unsigned int i = 0; !rc; i++) {
		double value = rules_params_get(params, i, &name);

		if (!name)
			break;
		if (base && rules_params_get(base, i, &name) == value)
			continue;
		/* These two are written beside "params". */
		if (base || (strcmp(name, "network_mb_per_s") && strcmp(name, "reference_mips")))
			rc = field_set(list, name, json_real(value));
	}
	if (!rc)
		return field_set(object, "params", list);
	json_decref(list);
	return rc;
}

const char *view_rates_name(enum rules_rates rates)
{
	return rates == RULES_RATES_WALL ? "wall" : "computation";
}

static json_t *view_json_nodes_json(const struct view_file *view)
{
	json_t *list = json_array();
	int rc = list ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < view->nnodes && !rc; i++) {
		json_t *node = json_object();

		rc = node ? view_machine_write(node, &view->nodes[i]) : -ENOMEM;
		if (!rc)
			rc = view_load_write(node, &view->nodes[i]);
		if (rc)
			json_decref(node);
		else if (json_array_append_new(list, node))
			rc = -ENOMEM;
	}
	if (!rc)
		return list;
	json_decref(list);
	return NULL;
}

static const char *file_node_name(const void *arg, uint32_t index)
{
	const struct view_file *view = arg;

	return index < view->nnodes ? view->nodes[index].node.name : NULL;
}

static int view_json_write_view(json_t *o, const struct view_file *view)
{
	const struct rules_params *p = &view->params;
	int rc = field_set(o, "version", json_integer(1));

	if (!rc)
		rc = field_write(o, VIEW_FIELDS, view);
	if (!rc)
		rc = field_set(o, "network_mb_per_s", json_real(p->network_mb_per_s));
	if (!rc && p->reference_mips > 0)
		rc = field_set(o, "reference_mips", json_real(p->reference_mips));
	if (!rc)
		rc = field_set(o, "rates", json_string(view_rates_name(p->rates)));
	if (!rc)
		rc = view_params_write(o, p, NULL);
	if (!rc)
		rc = field_set(o, "nodes", view_json_nodes_json(view));
	if (!rc)
		rc = field_set(o, "job", view_job_json(&view->job, file_node_name, view));
	return rc;
}

json_t *view_file_json(const struct view_file *view)
{
	json_t *document = json_object();

	if (document && view_json_write_view(document, view)) {
		json_decref(document);
		return NULL;
	}
	return document;
}
