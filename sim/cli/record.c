/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "cli.h"

int cli_record(struct cli *cli, const struct sweep *s)
{
	(void)s;
	return cli_fail(cli, CLI_FAILED, "later");
}
