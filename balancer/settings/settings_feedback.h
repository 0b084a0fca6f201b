/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The settings of the feedback controller (MODEL 3.11, agent/feedback/feedback.h).  All of them
 * are live: a reload switches the controller on and off and changes its parameters.
 */
#ifndef IOCOM_SETTINGS_FEEDBACK_H
#define IOCOM_SETTINGS_FEEDBACK_H

#include <stdbool.h>
#include <stdint.h>

enum settings_feedback_mode { FEEDBACK_OFF, FEEDBACK_DRY_RUN, FEEDBACK_ON, FEEDBACK_MODES };

/* X(kind, type, member, name, value's name, help, default, least, most) */
#define SETTINGS_FEEDBACK(X)                                                                       \
	X(COUNT, uint32_t, interval_s, "feedback-interval-s", "S",                                 \
	  "seconds between samples of the feedback controller, each at most one step", "10", 1,    \
	  3600)                                                                                    \
	X(COUNT, uint32_t, jobs, "feedback-jobs", "N",                                             \
	  "ended jobs that a sample needs before it is one (published, smoothed)", "1", 1, 10000)  \
	X(COUNT, uint32_t, persist, "feedback-persist", "N",                                       \
	  "samples in a row that must ask for the same direction before the buffer moves", "3", 1, \
	  1000)                                                                                    \
	X(NUMBER, double, band, "feedback-band", "X",                                              \
	  "part of the memory: a smaller difference from what is wanted counts as none", "0.005",  \
	  0, 0.5)                                                                                  \
	X(NUMBER, double, step, "feedback-step", "X",                                              \
	  "part of the memory by which a step moves the buffer at most", "0.025", 0.0001, 1)       \
	X(NUMBER, double, least, "feedback-min", "X",                                              \
	  "part of the memory that the buffer has at least", "0.1", 0.001, 0.999)                  \
	X(NUMBER, double, most, "feedback-max", "X",                                               \
	  "part of the memory that the buffer has at most, and at first", "0.9", 0.001, 0.999)     \
	X(COUNT, uint32_t, history, "feedback-history", "N",                                       \
	  "slowdowns of ended jobs that are averaged", "50", 1, 10000)                             \
	X(NUMBER, double, gain_w, "feedback-gain-w", "X", "gain of the weight of disk load",       \
	  "0.5", 0, 1000)                                                                          \
	X(NUMBER, double, gain_b, "feedback-gain-b", "X", "gain of the buffer", "0.5", 0, 1000)    \
	X(NUMBER, double, reaccess, "feedback-reaccess", "X",                                      \
	  "how often jobs read the same data again, assumed by gradient and predictive", "5", 0,   \
	  1e6)                                                                                     \
	X(NUMBER, double, faults_per_ms, "feedback-faults-per-ms", "X",                            \
	  "page faults per ms of computing assumed of jobs that make fewer", "0", 0, 1e6)

#define SETTINGS_FEEDBACK_MEMBER(kind, type, member, name, value, help, usual, least_, most_)      \
	type member;

struct settings_feedback {
	enum settings_feedback_mode mode;
	uint32_t controller; /* enum rules_controller */
	bool restore;	     /* only give back what a killed agent's controller changed, and end */
	SETTINGS_FEEDBACK(SETTINGS_FEEDBACK_MEMBER)
};

extern const char *const settings_feedback_names[FEEDBACK_MODES]; /* "off", "dry-run", "on" */

#endif
