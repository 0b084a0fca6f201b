/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Unit and source of every parameter; a number like 5.1 or O-15 is one of the model's. */
#include <string.h>

#include "cli.h"

static const struct {
	const char *name, *unit, *source;
} rows[] = {
	{"fidelity", "0/1", "0 request level (each disk access an event), 1 fluid (rates)"},
	{"seed", "", "workload and every random choice of a run"},
	{"threads", "", "threads inside one run; results do not depend on it"},
	{"slice_ms", "ms", "5.1: time slice of the CPU"},
	{"switch_ms", "ms", "5.1: cost of a context switch; 0: ideal processor sharing"},
	{"page_fault_ms", "ms", "5.2: service of a page fault"},
	{"page_fault_at_disk", "yes/no", "reading 2: page faults queue at the disk, no pure delay"},
	{"information_period_ms", "ms", "O-15: how old what nodes know of others gets; 0: exact"},
	{"measure_window_ms", "ms", "O-8(d): what the measured disk state averages over"},
	{"cpu_load_runnable", "yes/no",
	 "reading 1: L_CPU counts runnable tasks, not resident ones"},
	{"transit_counts", "yes/no", "reading 7: tasks on their way count at the target"},
	{"transfer_disk_work", "yes/no", "reading 5: moved data is work for both disks"},
	{"local_messages_free", "yes/no", "reading 7: messages inside a node cost nothing"},
	{"port_contention", "yes/no", "O-38: flows share a node's port"},
	{"dedicated_buffer", "yes/no", "O-3: the time alone uses the buffer"},
	{"control_per_node", "yes/no", "O-27: a feedback controller a node, not one a cluster"},
	{"bs_backfill", "yes/no", "O-30: later jobs may pass a waiting one"},
	{"priority_decay", "yes/no", "O-50: CPU hogs lose priority"},
	{"network_latency_ms", "ms", "least time of anything between nodes"},
	{"memory_scale", "", "O-49: multiplies every job's memory"},
	{"cpu_scale", "", "reading 6: multiplies every job's computation"},
	{"warmup_ms", "ms", "jobs that arrive before are not in the means"},
	{"until_ms", "ms", "stop then; 0: when all jobs are done"},
	{"sample_ms", "ms", "period of the time series; 0: none"},
	{"fixed_cost_ms", "ms", "2.3 e, O-10: fixed cost of a remote execution"},
	{"cpu_threshold", "tasks/core", "O-18: CPU overload"},
	{"rho_max", "", "O-8(d): disk utilisation is cut there"},
	{"io_significance", "1/ms", "3.7: below it a node has no explicit I/O load"},
	{"reference_mips", "MIPS",
	 "O-8(e): speed at which computation was measured; 0: the home's"},
	{"network_mb_per_s", "MB/s", "bandwidth where a node does not say"},
	{"literal_requests", "yes/no",
	 "O-8(c): requests t*lambda, not less hits and with page faults"},
	{"measured_state", "yes/no", "O-8(d): use the measured disk state where there is one"},
	{"io_cost_test", "yes/no", "O-21: response-time criterion in IO-RE too"},
	{"cpu_cost_test", "yes/no", "O-18, O-19: cost test in CPU-RE and MEM-RE"},
	{"cpu_speed_weighted", "yes/no", "O-18: task count weighted by speed"},
	{"require_memory", "yes/no", "(ours) a candidate must hold the job without paging"},
	{"stage_fallthrough", "yes/no", "(ours) IOCM-RE tries the later stages as well"},
	{"try_next", "yes/no", "(ours) CPU-RE, MEM-RE try the next lightest node"},
	{"examine_max", "nodes", "(ours) a stage judges at most so many nodes; 0: all"},
	{"overload_ratio", "", "3.10, O-20: load over mean load that is overload"},
	{"w_io", "", "3.10, O-25: weight of I/O; W_CPU = 1 - w_io"},
	{"wal_normalise", "yes/no", "1.8: each index over the cluster's mean of it"},
	{"wal_discrepancy", "yes/no", "O-25, O-12: the discrepancy rule in WAL too"},
	{"discrepancy_after", "yes/no", "O-12: the home's load counts the job"},
	{"closed_loop_bound", "yes/no", "O-8(d): a response is bounded by the tasks doing I/O"},
	{"mem_ratio_test", "yes/no", "O-19: acceptance test of the memory stage"},
	{"mem_order_free", "yes/no", "O-19: target by most free memory"},
	{"cm_memory_ratio", "yes/no", "O-20: memory imbalance by the ratio to the mean"},
	{"io_useful_test", "yes/no", "3.5: IO tests discrepancy and response"},
	{"io_order_share", "yes/no", "O-21: least L_IO over threshold, not least L_IO"},
	{"hom_stage_explicit", "yes/no", "O-22: the first stage asks for explicit load only"},
	{"spread_tasks", "yes/no", "O-16: among ties a node without a task of the job"},
	{"parallel_start", "", "O-17: tasks start 0 all at home, 1 round-robin from home"},
	{"migration_fixed_ms", "ms", "2.4 f, O-10: fixed cost of a migration"},
	{"migrations_max", "", "O-24: most migrations a decision; 0: until not overloaded"},
	{"migration_examine", "nodes", "3.9: targets examined a migration; 0: all"},
	{"age_criterion", "yes/no", "CPU-PM: age > cost / (n - m) in place of r_PM"},
	{"com_decision", "",
	 "O-14: 0 demand counted at home, 1 literal (5), 2 one process a node first"},
	{"com_port_contention", "yes/no", "O-13: communication time scaled by the port's load"},
	{"com_strict_maximum", "yes/no", "O-28: balance whichever resource is the maximum"},
	{"com_always_spread", "yes/no", "O-29: communication-intensive jobs spread in every case"},
	{"com_printed_cost", "yes/no", "E-4: criterion (8) as printed"},
	{"eager_probes", "nodes", "O-34: L, nodes canvassed"},
	{"eager_threshold", "tasks", "O-34: T"},
	{"hop_max", "", "O-37: forwarded so often, a job stays"},
	{"zatti_idle", "yes/no", "3.14: the CPU field is idle per cent, not the run queue"},
	{"zatti_idle_percent", "%", "3.14: busy below it"},
	{"zatti_queue", "tasks", "3.14: local threshold of the run queue"},
	{"zatti_queue_delta", "tasks", "3.14: local minus remote threshold"},
	{"zatti_blocks_per_s", "blocks/s", "3.14: local threshold of I/O traffic"},
	{"zatti_blocks_delta", "blocks/s", "3.14: local minus remote threshold"},
	{"zatti_relative", "yes/no", "O-32: delta from the local value"},
	{"zatti_superset", "yes/no", "O-31: exact slot, then supersets"},
	{"zatti_intervals", "", "3.15: intervals a domain"},
	{"zatti_cpu_need", "%", "4.5: below it no CPU need"},
	{"zatti_io_need", "blocks/s", "4.5: below it no I/O need"},
	{"fb_controller", "", "0 as published (3.11); 1, 2 ours"},
	{"fb_gain_w", "", "(4.9): gain of W_IO"},
	{"fb_gain_b", "", "(4.13): gain of the buffer"},
	{"fb_buffer_unit_mb", "MB", "O-26: MB a unit of slowdown"},
	{"fb_history", "jobs", "3.11: slowdowns averaged"},
	{"fb_sign_w", "", "O-27: first direction of W_IO, 1 up, 0 down"},
	{"fb_sign_b", "", "O-27: first direction of the buffer"},
	{"fb_buffer_min_mb", "MB", "O-27: least buffer, and least memory left for jobs"},
	{"fb_filter", "", "(ours) weight of the newest slowdown in a smoothed one"},
	{"fb_dead_band", "", "(ours) relative change below it is noise"},
};

bool param_describe(const char *name, const char **unit, const char **source)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, name))
			continue;
		*unit = rows[i].unit;
		*source = rows[i].source;
		return true;
	}
	return false;
}
