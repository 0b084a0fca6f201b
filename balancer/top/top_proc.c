/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Reads parents and command lines from /proc and remembers them for some documents; see
 * top_proc.h.
 */
#include "balancer/top/top_proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/top/top_index.h"
#include "user/utf8.h"

#define TURNS_FRESH 8	  /* an answer stays valid for this many documents */
#define ANSWERS_MAX 32768 /* the most answers of each kind; further ones stay unknown */
#define PATH_BYTES  128
#define STAT_BYTES  512
#define COMM_BYTES  64

/* One answer; a command line follows the structure. */
struct answer {
	struct top_entry entry; /* id: the pid */
	uint64_t turn;		/* when it was read; 0: read it again */
	char comm[COMM_BYTES];	/* the name of the task that it belongs to */
	bool known;
	pid_t parent;
	char command[];
};

struct top_proc {
	const char *root;
	struct top_index parents, commands;
	uint64_t turn;
};

struct top_proc *top_proc_new(const char *root)
{
	struct top_proc *proc = calloc(1, sizeof(*proc));

	if (proc) {
		proc->root = root;
		proc->turn = 1;
	}
	return proc;
}

const char *top_proc_root(const char *node)
{
	return node ? "/dev/null" : "/proc"; /* nothing is below a device */
}

void top_proc_free(struct top_proc *proc)
{
	if (!proc)
		return;
	top_index_clear(&proc->parents);
	top_index_clear(&proc->commands);
	free(proc);
}

static bool fresh(const struct top_entry *entry, void *arg)
{
	const struct answer *answer = (const struct answer *)entry;
	const struct top_proc *proc = arg;

	return answer->turn && answer->turn + TURNS_FRESH > proc->turn;
}

void top_proc_turn(struct top_proc *proc)
{
	proc->turn++;
	top_index_sweep(&proc->parents, fresh, proc);
	top_index_sweep(&proc->commands, fresh, proc);
}

/* Reads /proc/PID/NAME, at most SIZE - 1 bytes and a NUL.  Returns the number of bytes; 0: none. */
static size_t top_proc_read_file(const struct top_proc *proc, pid_t pid, const char *name,
				 char *out, size_t size)
{
	char path[PATH_BYTES];
	ssize_t n;
	int fd, length = snprintf(path, sizeof(path), "%s/%d/%s", proc->root, (int)pid, name);

	out[0] = 0;
	if (pid <= 0 || length < 0 || (size_t)length >= sizeof(path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return 0;
	n = read(fd, out, size - 1);
	close(fd);
	n = n < 0 ? 0 : n;
	out[n] = 0;
	return (size_t)n;
}

/*
 * Parses "PID (NAME) STATE PARENT ...".  The name may hold any bytes, so its end is the last
 * ')'.
 */
static bool read_stat(const struct top_proc *proc, pid_t pid, const char *comm, pid_t *parent)
{
	char stat[STAT_BYTES], name[COMM_BYTES];
	const char *begin, *end;
	int number = 0;

	if (!top_proc_read_file(proc, pid, "stat", stat, sizeof(stat)))
		return false;
	begin = strchr(stat, '(');
	end = strrchr(stat, ')');
	if (!begin || !end || end < begin || sscanf(end + 1, " %*c %d", &number) != 1)
		return false;
	/* Compare in the document's form: valid UTF-8, at most 15 bytes of the kernel's name. */
	utf8_copy(name, sizeof(name), begin + 1, (size_t)(end - begin - 1));
	*parent = number > 0 ? number : 0;
	return !strcmp(name, comm);
}

/* Remembers a new answer, with room for a text of LENGTH bytes; NULL: impossible. */
static struct answer *answer_add(struct top_proc *proc, struct top_index *index, pid_t pid,
				 const char *comm, size_t length)
{
	struct answer *answer;

	if (index->n >= ANSWERS_MAX)
		return NULL;
	answer = calloc(1, sizeof(*answer) + length + 1);
	if (!answer)
		return NULL;
	answer->entry.id = (uint64_t)pid;
	answer->turn = proc->turn;
	snprintf(answer->comm, sizeof(answer->comm), "%s", comm);
	if (top_index_add(index, &answer->entry)) {
		free(answer);
		return NULL;
	}
	return answer;
}

/*
 * Finds the answer for this very task; *ASKED: its pid was looked up recently.  If the task has
 * a new name now, we replace the answer only at the next turn, as its text may be in use.
 */
static struct answer *answer_find(struct top_index *index, pid_t pid, const char *comm, bool *asked)
{
	struct answer *answer = top_index_find(index, (uint64_t)pid);

	*asked = answer != NULL;
	if (answer && strcmp(answer->comm, comm)) {
		answer->turn = 0;
		return NULL;
	}
	return answer;
}

pid_t top_proc_parent(struct top_proc *proc, pid_t pid, const char *comm)
{
	bool asked;
	struct answer *answer = answer_find(&proc->parents, pid, comm, &asked);
	pid_t parent = 0;

	if (asked)
		return answer && answer->known ? answer->parent : 0;
	answer = answer_add(proc, &proc->parents, pid, comm, 0);
	if (!answer)
		return 0;
	answer->known = read_stat(proc, pid, comm, &parent);
	answer->parent = parent;
	return answer->known ? parent : 0;
}

const char *top_proc_command(struct top_proc *proc, pid_t pid, const char *comm)
{
	char raw[TOP_COMMAND_MAX], clean[3 * TOP_COMMAND_MAX] = "";
	bool asked;
	struct answer *answer = answer_find(&proc->commands, pid, comm, &asked);
	pid_t parent;
	size_t n;

	if (asked)
		return answer && answer->known ? answer->command : NULL;
	n = top_proc_read_file(proc, pid, "cmdline", raw, sizeof(raw));
	while (n && !raw[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		raw[i] = raw[i] ? raw[i] : ' ';
	if (n && read_stat(proc, pid, comm, &parent))
		utf8_copy(clean, sizeof(clean), raw, n);
	answer = answer_add(proc, &proc->commands, pid, comm, strlen(clean));
	if (!answer)
		return NULL;
	answer->known = *clean != 0;
	strcpy(answer->command, clean);
	return answer->known ? answer->command : NULL;
}
