/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The subcommands of `iocom`, one file each.  ARGV[0] is the subcommand's name; each returns
 * the exit code: 0 ok, 1 failed, 2 usage (`run`: the job's own status, or 125 when iocom failed
 * before the job started).
 */
#ifndef IOCOM_COMMANDS_H
#define IOCOM_COMMANDS_H

int cmd_batch(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_complete(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_feedback(int argc, char **argv);
int cmd_jobs(int argc, char **argv);
int cmd_kill(int argc, char **argv);
int cmd_migrate(int argc, char **argv);
int cmd_nodes(int argc, char **argv);
int cmd_owner(int argc, char **argv);
int cmd_place(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_rsh(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_wait(int argc, char **argv);

#endif
