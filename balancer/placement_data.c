/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See placement_data.h. */
#include "balancer/placement_data.h"

#include <stdio.h>
#include <string.h>

#include "user/shared_fs.h"

_Static_assert(PLACEMENT_SHARED_MAX == SHARED_FS_MAX, "a request names any of them");

#define BYTES_PER_MB 1e6

void placement_data_init(struct placement_data *data)
{
	*data = (struct placement_data){.set = {.directory = -1}};
}

void placement_data_free(struct placement_data *data)
{
	data_memory_close(data->memory);
	data_set_free(&data->set);
	placement_data_init(data);
}

/* How much will come home: as earlier runs of the class say, or as what is there now. */
static void placement_data_expect(struct placement_data *data, struct placement_request *request,
				  char *const *command)
{
	struct placement_ask *ask = &request->ask;
	uint64_t bytes;

	placement_request_class(request, command, data->class_name);
	ask->bring_runs = data_memory_brought(data->memory, data->class_name, &bytes);
	ask->bring_bytes = (int64_t)(ask->bring_runs ? bytes : data_set_brought(&data->set));
}

int placement_data_look(struct placement_data *data, struct placement_request *request,
			const char *cwd, const char *executable, char *const *command,
			struct iocom_err *err)
{
	struct placement_ask *ask = &request->ask;
	int rc;

	if (!request->names.ndata && !request->names.nbrings)
		return 0;
	if (data->measured)
		ask->need.value[NEED_DATA_MB] = -1;
	placement_data_free(data);
	ask->data = false;
	*ask->data_held = 0;
	ask->bring_bytes = ask->bring_runs = -1;
	/* All that is named is below this directory, and so at the same place everywhere. */
	if (cwd && !shared_fs_name(SHARED_FS_TABLE, cwd, ask->shared, sizeof(ask->shared)))
		return 0;
	*ask->shared = 0;
	if (cwd && strlen(cwd) < sizeof(ask->shared) - sizeof(SHARED_FS_HERE) &&
	    shared_fs_exported(SHARED_FS_EXPORTS, cwd)) {
		snprintf(ask->shared, sizeof(ask->shared), SHARED_FS_HERE ":%s", cwd);
		return 0;
	}
	rc = data_set_look(&data->set, &request->names, executable, err);
	if (rc)
		return rc;
	data->memory = data_memory_open();
	data_memory_hashes(data->memory, &data->set);
	data_memory_held(data->memory, &data->set, ask->data_held, sizeof(ask->data_held));
	data->measured = ask->need.value[NEED_DATA_MB] < 0;
	if (data->measured)
		ask->need.value[NEED_DATA_MB] = (double)data->set.bytes / BYTES_PER_MB;
	if (data->set.nbrings)
		placement_data_expect(data, request, command);
	ask->data = data->used = true;
	return 0;
}

void placement_data_note(const struct placement_data *data, uint64_t bytes)
{
	if (data->used && data->set.nbrings)
		data_memory_note_brought(data->memory, data->class_name, bytes);
}
