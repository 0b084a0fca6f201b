/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom-sim merge`: joins the parts of a sweep that was run in shards. */
#include <sys/stat.h>

#include "sim/cli/cli.h"
#include "sim/report/part.h"

static const char help[] =
	"usage: iocom-sim merge DIR PART...\n"
	"Joins the part files that `--shard 1/N` ... `--shard N/N` wrote.  DIR gets the same\n"
	"bytes that one run without --shard writes.\n"
	"\n"
	"  --force               replace files that are there\n"
	"  --json                the results as JSON on standard output too\n"
	"\n"
	"exit: 0 done, 1 failed (a part missing, damaged, of another sweep), 2 usage\n";

int cmd_merge(int argc, char **argv, const volatile sig_atomic_t *cancel)
{
	struct cli cli = {.command = "iocom-sim merge", .cancel = cancel};
	struct iocom_err err = {0};
	struct parts parts;
	struct stat st;
	int first, ret = cli_parse(&cli, argc, argv, CLI_TAKES_OUT | CLI_TAKES_FORCE, help, &first);

	if (ret)
		return ret < 0 ? CLI_OK : ret;
	if (first < argc && !stat(argv[first], &st) && !S_ISDIR(st.st_mode))
		return cli_fail(&cli, CLI_USAGE,
				"expected DIR PART...: the directory to write to comes first, and "
				"'%s' is none",
				argv[first]);
	if (argc - first < 2)
		return cli_fail(&cli, CLI_USAGE,
				"expected DIR PART...: the directory to write to, then the parts");
	cli.out = argv[first];
	if (parts_read(&parts, argv + first + 1, (size_t)(argc - first - 1), &err))
		return cli_fail(&cli, CLI_FAILED, "%s", err.text);
	if (cli_judge(parts.reports, parts.n)) {
		parts_free(&parts);
		return cli_fail(&cli, CLI_FAILED, "no memory");
	}
	ret = cli_deliver(&cli, parts.reports, parts.n, parts.page, 0);
	parts_free(&parts);
	cli_free(&cli);
	return ret;
}
