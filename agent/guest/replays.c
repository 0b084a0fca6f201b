/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Sends the kept output of jobs that are over; see replays.h. */
#include "agent/guest/replays.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/places.h"
#include "user/record.h"
#include "user/process_slot.h"

#define PLACE_MAX (SETTINGS_PATH_MAX + 32)

struct replays {
	struct replay {
		struct guest *guest;
		int leash;  /* closes when the shim is done; -1: no shim of ours */
		bool found; /* an earlier agent began it: we check its place */
		uid_t uid;  /* the reading user */
		char job[SPEC_JOB_MAX];
		struct loop_fd entry;
	} all[REPLAYS_MAX];
};

static void replays_place_of(const struct guest *guest, size_t i, char out[PLACE_MAX])
{
	snprintf(out, PLACE_MAX, "%s/replays/%zu", guest->base->set->run_dir, i);
}

static void replays_ended(void *arg, uint32_t what)
{
	struct replay *r = arg;
	char ignored[256];

	(void)what;
	if (recv(r->leash, ignored, sizeof(ignored), MSG_DONTWAIT) > 0)
		return;
	loop_remove(r->guest->base->loop, &r->entry);
	close(r->leash);
	r->leash = -1;
}

static struct replays *replays_table(struct guest *guest)
{
	if (guest->replays)
		return guest->replays;
	guest->replays = calloc(1, sizeof(*guest->replays));
	for (size_t i = 0; guest->replays && i < REPLAYS_MAX; i++)
		guest->replays->all[i] = (struct replay){.guest = guest, .leash = -1};
	return guest->replays;
}

/* Returns true if R still works. */
static bool replays_busy(const struct guest *guest, const struct replay *r)
{
	char place[PLACE_MAX];
	uid_t uid;
	pid_t pid;

	if (r->leash >= 0 || !r->found)
		return r->leash >= 0;
	replays_place_of(guest, (size_t)(r - guest->replays->all), place);
	return process_slot_holder(place, &pid, &uid) > 0;
}

/* Returns a free entry for UID, or NULL with the reason in ERR (places.h). */
static struct replay *free_for(struct guest *guest, uid_t uid, struct iocom_err *err)
{
	static const struct places places = {
		.what = "readers of ended jobs' output",
		.limit = "replays",
		.one = "replays",
		.max = REPLAYS_MAX,
		.of_root = REPLAYS_OF_ROOT,
		.of_one = REPLAYS_OF_ONE,
	};
	struct replay *found = NULL;
	size_t own = 0, used = 0;

	for (size_t i = 0; replays_table(guest) && i < REPLAYS_MAX; i++) {
		struct replay *r = &guest->replays->all[i];

		if (replays_busy(guest, r)) {
			own += r->uid == uid;
			used++;
		} else if (!found) {
			found = r;
		}
	}
	if (!guest->replays)
		iocom_err_set(err, -ENOMEM, "out of memory");
	else if (places_ask(&places, uid, used, own, guest->base->counters, err))
		return NULL;
	return found;
}

size_t replays_count(const struct guest *guest)
{
	size_t n = 0;

	for (size_t i = 0; guest->replays && i < REPLAYS_MAX; i++)
		n += replays_busy(guest, &guest->replays->all[i]);
	return n;
}

bool replays_read(const struct guest *guest, const char *job)
{
	for (size_t i = 0; guest->replays && i < REPLAYS_MAX; i++)
		if (guest->replays->all[i].leash >= 0 && !strcmp(guest->replays->all[i].job, job))
			return true;
	return false;
}

int replays_start(struct guest *guest, const char *job, const struct launch_ask *ask, int fd,
		  uid_t uid, struct iocom_err *err)
{
	struct replay *r = free_for(guest, uid, err);
	char place[PLACE_MAX];
	int rc;

	if (!r) {
		guest->base->counters->replays_refused++;
		return -EAGAIN;
	}
	snprintf(place, sizeof(place), "%s/replays", guest->base->set->run_dir);
	rc = record_make_dirs(place, err);
	if (rc)
		return rc;
	replays_place_of(guest, (size_t)(r - guest->replays->all), place);
	rc = guest->launcher->replay(guest->base->set->shim, guest->base->set->scope_cgroup,
				     guest->jobs_dir, place, uid, ask, fd, &r->leash, err);
	if (rc) {
		r->leash = -1;
		return rc;
	}
	r->uid = uid;
	r->found = false;
	snprintf(r->job, sizeof(r->job), "%s", job);
	r->entry = (struct loop_fd){.fd = r->leash, .ready = replays_ended, .arg = r};
	if (loop_add(guest->base->loop, &r->entry, EPOLLIN)) {
		close(r->leash); /* the shim goes on and keeps its place */
		r->leash = -1;
		r->found = true;
	}
	return 0;
}

/* Takes over one occupied place. */
static void replays_take_found(struct guest *guest, unsigned long i, const char *place, uid_t uid)
{
	size_t own = 0;

	for (size_t k = 0; k < REPLAYS_MAX; k++)
		own += guest->replays->all[k].found && guest->replays->all[k].uid == uid;
	if (i >= REPLAYS_MAX || (uid != 0 && own >= REPLAYS_OF_ONE)) {
		/* Its client connects again and is counted then. */
		if (!process_slot_kill(place))
			guest->base->counters->replays_refused++;
		return;
	}
	guest->replays->all[i].found = true;
	guest->replays->all[i].uid = uid;
}

void replays_recover(struct guest *guest)
{
	char place[PLACE_MAX];
	const struct dirent *entry;
	size_t n;
	DIR *all;

	snprintf(place, sizeof(place), "%s/replays", guest->base->set->run_dir);
	all = opendir(place);
	while (all && replays_table(guest) && (entry = readdir(all))) {
		char *end;
		unsigned long i = strtoul(entry->d_name, &end, 10);
		uid_t uid;
		pid_t pid;

		if (*end || end == entry->d_name || entry->d_name[0] < '0' ||
		    entry->d_name[0] > '9')
			continue;
		snprintf(place, sizeof(place), "%s/replays/%lu", guest->base->set->run_dir, i);
		if (process_slot_holder(place, &pid, &uid) > 0)
			replays_take_found(guest, i, place, uid);
	}
	if (all)
		closedir(all);
	n = replays_count(guest);
	if (n)
		log_write(guest->base->log, LOG_L_INFO,
			  "%zu client%s of an earlier agent read%s the output of ended jobs", n,
			  n == 1 ? "" : "s", n == 1 ? "s" : "");
}

void replays_stop(struct guest *guest)
{
	for (size_t i = 0; guest->replays && i < REPLAYS_MAX; i++)
		if (guest->replays->all[i].leash >= 0) {
			loop_remove(guest->base->loop, &guest->replays->all[i].entry);
			close(guest->replays->all[i].leash);
		}
	free(guest->replays);
	guest->replays = NULL;
}
