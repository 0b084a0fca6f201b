/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* attach FILE: attaches all programs of an eBPF object until standard input ends. */
#include <bpf/libbpf.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct bpf_object *object;
	struct bpf_program *program;
	char byte;

	if (argc != 2)
		return fprintf(stderr, "usage: attach FILE\n"), 2;
	object = bpf_object__open(argv[1]);
	if (!object || bpf_object__load(object))
		return fprintf(stderr, "attach: the kernel refuses %s\n", argv[1]), 1;
	bpf_object__for_each_program(
		program,
		object) if (!bpf_program__attach(program)) return fprintf(stderr, "attach: %s\n",
									  bpf_program__name(
										  program)),
		1;
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	bpf_object__close(object);
	return 0;
}
