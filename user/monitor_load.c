/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Loads the eBPF object.  Which programs fit is asked of the running kernel's
 * type information, never of its version: distributions backport.
 */
#include "monitor_internal.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * libbpf's print hook is one per process and has no context argument; its last
 * words are kept per thread for the sentence of the failing call.
 */
static _Thread_local char last_words[256];

static int keep_words(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[256];
	size_t length;

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(line, sizeof(line), format, args);
	length = strcspn(line, "\n");
	line[length] = '\0';
	/* The first complaint tells the cause, the later ones only who passed it on. */
	if (!last_words[0])
		memcpy(last_words, line, length + 1);
	return 0;
}

int monitor_load_probe(struct hooks *hooks, struct iocom_err *err)
{
	struct btf *btf;

	if (geteuid() != 0)
		return iocom_err_set(err, -EPERM,
				     "cannot load the monitor's eBPF programs as an ordinary user: "
				     "run as root");
	libbpf_set_print(keep_words);
	btf = hooks_btf(err);

	if (!btf)
		return -EOPNOTSUPP;
	hooks_probe(hooks, btf, NULL);
	btf__free(btf);
	return hooks_needed(hooks, err);
}

/* The program that libbpf's words "prog 'NAME': ..." are about; "" for none. */
static void accused(char *name, size_t size)
{
	const char *from = strstr(last_words, "prog '"), *end;

	name[0] = '\0';
	from = from ? from + strlen("prog '") : NULL;
	end = from ? strchr(from, '\'') : NULL;
	if (end)
		snprintf(name, size, "%.*s", (int)(end - from), from);
}

static int load_once(struct iocom_bpf **skel, const struct hooks *hooks,
		     const struct monitor_knobs *knobs, struct iocom_err *err)
{
	struct bpf_program *program;
	int rc;

	last_words[0] = '\0';
	*skel = iocom_bpf__open();
	if (!*skel)
		return iocom_err_set(err, -errno, "cannot open the monitor's eBPF object: %s%s%s",
				     strerror(errno), last_words[0] ? ": " : "", last_words);
	(*skel)->rodata->cfg_scope_cgid = knobs->scope_id;
	(*skel)->rodata->cfg_scope_level = knobs->scope_level;
	(*skel)->rodata->cfg_all_disks = knobs->all_disks;
	bpf_object__for_each_program(program, (*skel)->obj) bpf_program__set_autoload(
		program, hooks_program_used(hooks, bpf_program__name(program)));
	rc = iocom_bpf__load(*skel);
	if (!rc)
		return 0;
	iocom_bpf__destroy(*skel);
	*skel = NULL;
	return iocom_err_set(err, rc, "the kernel refused the monitor's eBPF programs: %s%s%s",
			     strerror(-rc), last_words[0] ? ": " : "", last_words);
}

int monitor_load_open(struct iocom_bpf **skel, struct hooks *hooks,
		      const struct monitor_knobs *knobs, struct iocom_err *err)
{
	char name[64];
	int rc;

	/* Each round leaves out one more program, so this ends. */
	do {
		rc = load_once(skel, hooks, knobs, err);
		accused(name, sizeof(name));
	} while (rc && hooks_refuse(hooks, name, last_words));
	return rc;
}

static int attach_one(struct bpf_program *program, struct bpf_link **link, struct iocom_err *err)
{
	int rc;

	last_words[0] = '\0';
	*link = bpf_program__attach(program);
	if (*link)
		return 0;
	rc = errno ? -errno : -EINVAL;
	return iocom_err_set(err, rc, "cannot attach eBPF program %s: %s%s%s",
			     bpf_program__name(program), strerror(-rc), last_words[0] ? ": " : "",
			     last_words);
}

int monitor_load_attach(struct iocom_bpf *skel, struct hooks *hooks, struct iocom_err *err)
{
	for (int i = 0; i < skel->skeleton->prog_cnt; i++) {
		struct bpf_prog_skeleton *prog = &skel->skeleton->progs[i];
		int rc;

		if (*prog->link || !bpf_program__autoload(*prog->prog))
			continue;
		rc = attach_one(*prog->prog, prog->link, err);
		if (rc)
			return hooks_refuse(hooks, prog->name, err->text) ? MONITOR_E_AGAIN : rc;
	}
	return 0;
}
