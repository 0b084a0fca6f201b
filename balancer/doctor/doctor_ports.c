/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Checks whether the agent's ports are free, its own or another program's.  A port is free if
 * it can be bound.  The listening socket's inode (/proc/net/tcp) leads to the process that
 * holds it, by its descriptors (/proc/PID/fd; only root sees those of other users).
 */
#include "balancer/doctor/doctor.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TCP_LISTENING 0x0a

struct holder {
	pid_t pid;     /* 0: unknown */
	char comm[32]; /* "": unknown */
};

/* The inode of the socket in TABLE that listens at PORT; 0: none. */
static unsigned long listener_in(const char *table, unsigned port)
{
	unsigned long inode = 0, found;
	unsigned local, state;
	char line[512];
	FILE *f = fopen(table, "re");

	if (!f)
		return 0;
	while (!inode && fgets(line, sizeof(line), f))
		if (sscanf(line,
			   "%*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*u %*u %lu",
			   &local, &state, &found) == 3 &&
		    local == port && state == TCP_LISTENING)
			inode = found;
	fclose(f);
	return inode;
}

static bool has_socket(const char *pid, unsigned long inode)
{
	char path[512], want[64], got[64];
	struct dirent *entry;
	bool found = false;
	ssize_t n;
	DIR *dir;

	snprintf(want, sizeof(want), "socket:[%lu]", inode);
	snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		n = readlinkat(dirfd(dir), entry->d_name, got, sizeof(got) - 1);
		if (n <= 0)
			continue;
		got[n] = 0;
		found = !strcmp(got, want);
	}
	if (dir)
		closedir(dir);
	return found;
}

static void read_comm(struct holder *holder)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)holder->pid);
	f = fopen(path, "re");
	if (f && fgets(holder->comm, sizeof(holder->comm), f))
		holder->comm[strcspn(holder->comm, "\n")] = 0;
	if (f)
		fclose(f);
}

/* The agent's network part has its sockets: then the agent, its parent, is who holds them. */
static void blame_parent(struct holder *holder)
{
	char path[64], line[128];
	int parent = 0;
	FILE *f;

	if (strcmp(holder->comm, "iocom-net") != 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)holder->pid);
	f = fopen(path, "re");
	while (f && !parent && fgets(line, sizeof(line), f))
		(void)!sscanf(line, "PPid: %d", &parent);
	if (f)
		fclose(f);
	if (parent <= 1)
		return;
	holder->pid = parent;
	read_comm(holder);
}

static void find_holder(unsigned port, struct holder *holder)
{
	unsigned long inode = listener_in("/proc/net/tcp", port);
	struct dirent *entry;
	DIR *proc;

	memset(holder, 0, sizeof(*holder));
	if (!inode)
		inode = listener_in("/proc/net/tcp6", port);
	proc = inode ? opendir("/proc") : NULL;
	while (proc && !holder->pid && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]) && has_socket(entry->d_name, inode))
			holder->pid = (pid_t)atoi(entry->d_name);
	if (proc)
		closedir(proc);
	if (!holder->pid)
		return;
	read_comm(holder);
	blame_parent(holder);
}

/* Tries to bind PORT at ADDRESS.  Returns 0 or negative errno; -ENXIO: there is no such address. */
static int try_bind(const char *address, unsigned port)
{
	struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *list;
	char host[IOCOM_ADDRESS_MAX], service[16];
	size_t n = strlen(address);
	int fd, rc = 0, one = 1;

	if (n > 2 && address[0] == '[' && address[n - 1] == ']')
		snprintf(host, sizeof(host), "%.*s", (int)n - 2, address + 1);
	else
		snprintf(host, sizeof(host), "%s", address);
	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(strcmp(host, "*") ? host : NULL, service, &hints, &list))
		return -ENXIO;
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		rc = -errno;
	} else {
		/* As the agent does, ignore old connections that are still closing. */
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, list->ai_addr, list->ai_addrlen))
			rc = -errno;
		close(fd);
	}
	freeaddrinfo(list);
	return rc;
}

static void doctor_ports_taken(struct doctor *d, const char *check, unsigned port, const char *what)
{
	struct holder holder;
	json_t *object;

	find_holder(port, &holder);
	if (!holder.pid) {
		doctor_add(d, check, d->agent_pid ? DOCTOR_OK : DOCTOR_SKIPPED,
			   d->root ? NULL : "root sees by whom", "%u (%s) is in use%s", port, what,
			   d->agent_pid ? "; an agent runs" : "");
		return;
	}
	if (!strcmp(holder.comm, "iocomd") && (!d->agent_pid || d->agent_pid == holder.pid))
		object =
			doctor_add(d, check, DOCTOR_OK, NULL, "%u (%s) is in use by iocomd, pid %d",
				   port, what, (int)holder.pid);
	else
		object = doctor_add(d, check, DOCTOR_BROKEN, "stop it, or choose another --port",
				    "%u (%s) is in use by %s%s, pid %d", port, what,
				    strcmp(holder.comm, "iocomd") ? "" : "another ", holder.comm,
				    (int)holder.pid);
	json_object_set_new(object, "pid", json_integer(holder.pid));
}

static void check_port(struct doctor *d, const char *check, unsigned port, const char *what)
{
	int rc = try_bind(d->set.listen, port);

	if (!rc)
		doctor_add(d, check, DOCTOR_OK, NULL, "%u (%s) is free", port, what);
	else if (rc == -EADDRINUSE)
		doctor_ports_taken(d, check, port, what);
	else if (rc == -EACCES && !d->root)
		doctor_add(d, check, DOCTOR_SKIPPED, NULL, "%u (%s): only root may open it", port,
			   what);
	else if (rc == -EADDRNOTAVAIL || rc == -ENXIO)
		doctor_add(d, check, DOCTOR_BROKEN, "correct `listen` in the configuration",
			   "%u (%s): this machine has no address %s", port, what, d->set.listen);
	else
		doctor_add(d, check, DOCTOR_BROKEN, NULL, "%u (%s) cannot be opened at %s: %s",
			   port, what, d->set.listen, strerror(-rc));
}

void doctor_ports(struct doctor *d)
{
	static const char *const what[] = {"bulletins", "control", "job streams"};
	static const char *const names[] = {"port", "port+1", "port+2"};

	if (!d->configured)
		doctor_add(d, names[0], DOCTOR_SKIPPED, NULL, "the configuration names them");
	else if (!settings_networked(&d->set))
		doctor_add(d, names[0], DOCTOR_SKIPPED, NULL,
			   "none is opened: neither peers nor an address to listen at is "
			   "configured");
	else
		for (unsigned i = 0; i < 3; i++)
			check_port(d, names[i], d->set.port + i, what[i]);
}
