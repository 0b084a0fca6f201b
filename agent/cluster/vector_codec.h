/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "balancer/view/vector_codec.h"
