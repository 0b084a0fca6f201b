/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* iocom-init is the first process of a job that can move. */
#include "agent/init/init.h"

int main(int argc, char **argv)
{
	return init_main(argc, argv);
}
