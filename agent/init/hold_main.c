/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* iocom-hold keeps a restored job from running before it is decided that it may. */
#include "agent/init/hold.h"

int main(void)
{
	return hold_main();
}
