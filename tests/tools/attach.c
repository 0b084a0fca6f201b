/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* attach FILE [PREFIX]: attaches an eBPF object's programs (with such names) until input ends. */
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int attach_all(struct bpf_object *object, const char *prefix)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
	{
		const char *name = bpf_program__name(program);

		if (!strncmp(name, prefix, strlen(prefix)) && !bpf_program__attach(program))
			return fprintf(stderr, "attach: %s is refused\n", name), 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct bpf_object *object;
	char byte;

	if (argc != 2 && argc != 3)
		return fprintf(stderr, "usage: attach FILE [PREFIX]\n"), 2;
	object = bpf_object__open(argv[1]);
	if (!object || bpf_object__load(object))
		return fprintf(stderr, "attach: the kernel refuses %s\n", argv[1]), 1;
	if (attach_all(object, argc == 3 ? argv[2] : ""))
		return 1;
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	bpf_object__close(object);
	return 0;
}
