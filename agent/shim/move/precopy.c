/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See precopy.h. */
#include "agent/shim/move/precopy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/clock.h"
#include "user/record.h"

#define PAGEMAP_SOFT_DIRTY (1ULL << 55)
#define PAGES_FILE	   "pages-" /* of criu: the contents of pages, and nothing else */
#define STATS_FILE	   "stats-dump"
#define STATS_MOST	   512

bool precopy_tracks(void)
{
	volatile uint64_t word = 0;
	uint64_t entry = 0;
	off_t page = (off_t)((uintptr_t)&word / (uintptr_t)sysconf(_SC_PAGESIZE));
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	word = 1; /* its page has changed: only such a kernel says so */
	if (pread(fd, &entry, sizeof(entry), page * (off_t)sizeof(entry)) != sizeof(entry))
		entry = 0;
	close(fd);
	return entry & PAGEMAP_SOFT_DIRTY;
}

/* --- the directory of a round ------------------------------------------------------------ */

/* Calls DO of each file of the directory FD; it returns the sum. */
static uint64_t each_file(int fd, uint64_t (*act)(int fd, const char *name))
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	const struct dirent *entry;
	uint64_t sum = 0;

	if (!dir && again >= 0)
		close(again);
	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			sum += act(fd, entry->d_name);
	if (dir)
		closedir(dir);
	return sum;
}

static uint64_t file_bytes(int fd, const char *name)
{
	struct stat st;

	return !fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode)
		       ? (uint64_t)st.st_size
		       : 0;
}

/* Of what was sent criu needs all but the contents of pages, which would take room. */
static uint64_t file_empty(int fd, const char *name)
{
	int file;

	if (strncmp(name, PAGES_FILE, strlen(PAGES_FILE)) != 0)
		return 0;
	file = openat(fd, name, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
	if (file >= 0)
		close(file);
	return 0;
}

static uint64_t file_remove(int fd, const char *name)
{
	return (uint64_t) !!unlinkat(fd, name, 0);
}

/* Reads a number of seven bits a byte at AT, before END.  Returns what follows it. */
static const uint8_t *stats_number(const uint8_t *at, const uint8_t *end, uint64_t *number)
{
	unsigned shift = 0;

	*number = 0;
	while (at < end && shift < 64) {
		*number |= (uint64_t)(*at & 0x7f) << shift;
		shift += 7;
		if (!(*at++ & 0x80))
			break;
	}
	return at;
}

/* How long criu says that it stopped the job, in us: the second number of its statistics. */
static uint64_t round_frozen_us(int fd)
{
	uint8_t data[STATS_MOST];
	ssize_t n = record_slurp(fd, STATS_FILE, data, sizeof(data));
	const uint8_t *end = data + (n > 0 ? n : 0), *at = data + 12; /* two words, the size */
	uint64_t key = 0, number = 0;

	if (n < 14 || *at++ != (1 << 3 | 2))
		return 0;
	at = stats_number(at, end, &number);
	while (at < end && key != (2 << 3)) {
		at = stats_number(at, end, &key);
		at = stats_number(at, end, &number);
	}
	return key == (2 << 3) ? number : 0;
}

/* --- rounds ------------------------------------------------------------------------------ */

/* A signal that ends this process waits while criu works, and not while it sends. */
static void round_may_end(bool may)
{
	sigset_t term;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(may ? SIG_UNBLOCK : SIG_BLOCK, &term, NULL);
}

/* Saves what has changed to NAME.  Returns its directory, or negative errno. */
static int round_save(struct precopy *p, const char *name)
{
	char path[IMAGES_PATH_MAX + TRANSFER_ROUND_NAME], before[TRANSFER_ROUND_NAME + 4];
	const struct criu_job job = {
		.init = p->init, .group = p->group, .previous = p->rounds ? before : NULL};
	int fd, rc;

	if (mkdirat(p->images->fd, name, 0700))
		return iocom_err_set(&p->why, -errno, "no room for a round: %s", strerror(errno));
	fd = openat(p->images->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return iocom_err_set(&p->why, -errno, "no room for a round: %s", strerror(errno));
	snprintf(path, sizeof(path), "%s/%s", p->images->path, name);
	snprintf(before, sizeof(before), "../%s", p->previous);
	rc = criu_predump(p->criu, &job, path, PRECOPY_ROUND_MS, &p->why);
	if (!rc && p->bytes + each_file(fd, file_bytes) > TRANSFER_ROUNDS_BYTES(p->room_bytes))
		rc = iocom_err_set(&p->why, -ENOSPC, "it changes its memory too fast");
	if (!rc)
		return fd;
	/* What this round has seen the kernel has forgotten: all must be saved again. */
	each_file(fd, file_remove);
	close(fd);
	unlinkat(p->images->fd, name, AT_REMOVEDIR);
	p->previous[0] = 0;
	return rc;
}

static int round_send(struct precopy *p, int fd, uint64_t *bytes, struct iocom_err *err)
{
	int rc;

	*bytes = each_file(fd, file_bytes);
	p->frozen_us += round_frozen_us(fd);
	round_may_end(true);
	rc = transfer_round(p->sending, p->images, err);
	round_may_end(false);
	each_file(fd, file_empty);
	p->bytes += *bytes;
	p->rounds++;
	return rc;
}

/* Is another round worth it, after one of BYTES in ROUND_MS, and BEFORE bytes in the one before? */
static bool round_pays(const struct precopy *p, uint64_t bytes, uint64_t before, uint64_t round_ms)
{
	return p->rounds < TRANSFER_ROUNDS_MAX && round_ms > PRECOPY_REST_MS &&
	       (p->rounds == 1 || bytes < before / 4 * PRECOPY_SHRINK) &&
	       (p->rounds == 1 || p->bytes + bytes <= TRANSFER_ROUNDS_BYTES(p->room_bytes));
}

int precopy_run(struct precopy *p, struct iocom_err *err)
{
	uint64_t begin_ms = clock_boot_ms(), round_ms, before, bytes = 0;
	char name[TRANSFER_ROUND_NAME];
	int rc = 0, fd;

	do {
		before = bytes;
		round_ms = clock_boot_ms();
		transfer_round_name(name, p->rounds + 1);
		fd = round_save(p, name);
		if (fd < 0)
			return criu_is_inside(p->group) ? -EIO : 0;
		memcpy(p->previous, name, sizeof(name));
		rc = round_send(p, fd, &bytes, err);
		close(fd);
		round_ms = clock_boot_ms() - round_ms;
	} while (!rc && round_pays(p, bytes, before, round_ms) &&
		 clock_boot_ms() - begin_ms < PRECOPY_LIMIT_MS);
	return rc;
}
