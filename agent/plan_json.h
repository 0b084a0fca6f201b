/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A plan as the answer form of a view file: policy, home, node, tied, reasons. */
#ifndef IOCOM_PLAN_JSON_H
#define IOCOM_PLAN_JSON_H

#include <jansson.h>

#include "iocom/rules.h"

/* NULL when memory is out. */
json_t *plan_json(const struct rules_plan *plan, const struct rules_view *view, uint32_t home,
		  enum rules_policy policy);

#endif
