/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See amount.h. */
#include "balancer/view/amount.h"

#include <stdio.h>

#define NEXT_UNIT 999.5 /* rounds to four digits */

void amount_of_mb(char *out, size_t size, double mb)
{
	static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
	const size_t last = sizeof(units) / sizeof(units[0]) - 1;
	double value = mb * 1e6;
	size_t unit = 0;

	for (; value >= NEXT_UNIT && unit < last; unit++)
		value /= 1000;
	if (value >= NEXT_UNIT)
		snprintf(out, size, "%.0f %s", value, units[unit]);
	else if (value < 0.5 && !unit)
		snprintf(out, size, "0 MB");
	else
		snprintf(out, size, "%.3g %s", value, units[unit]);
}
