/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Shared by the experiments of FC's figures and of its controllers. */
#ifndef SIM_EXPERIMENTS_FC_H
#define SIM_EXPERIMENTS_FC_H

#define FC_WHY_STEP                                                                                \
	"as printed, (4.13) changes the buffer by half a MB per unit of slowdown "                 \
	"(O-26): the buffer stays near its start, and the weight changes at "                      \
	"random. Larger gains make it worse (FC-CTRL-G). The best static buffer, "                 \
	"and our predictive controller from any start, would more than halve slowdown here, "      \
	"and with 400 KB of data (FC-REACH)"

#endif
