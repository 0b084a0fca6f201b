/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The settings of iocomd: the table behind its options and its configuration. */
#ifndef IOCOM_SETTINGS_H
#define IOCOM_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/config.h"
#include "iocom/vector.h"
#include "user/log.h"
#include "balancer/settings/settings_feedback.h"
#include "balancer/settings/settings_moves.h"
#include "balancer/settings/settings_rules.h"

#define SETTINGS_POLICY	     "least-delay" /* of jobs that name none, unless configured */
#define SETTINGS_PEERS_MAX   256
#define SETTINGS_DISKS_MAX   16
#define SETTINGS_PATH_MAX    256
#define SETTINGS_ACCOUNT_MAX 64
#define SETTINGS_NET_USER    "iocom-net" /* the default of net_user */
#define SETTINGS_USERS_MAX   1024

enum settings_pam { SETTINGS_PAM_OFF, SETTINGS_PAM_AUTO, SETTINGS_PAM_ON };

#define SETTINGS_LIMIT_AUTO (-1) /* by what the machine has */
#define SETTINGS_LIMIT_NONE 0

struct settings_peer {
	char address[IOCOM_ADDRESS_MAX];
	uint16_t port;
};

struct settings {
	char name[IOCOM_NAME_MAX];
	char cluster[64];		 /* nodes of other clusters are refused */
	char listen[IOCOM_ADDRESS_MAX];	 /* "": not given */
	char address[IOCOM_ADDRESS_MAX]; /* what peers are told; "": the listen address */
	uint32_t port;
	struct settings_peer peers[SETTINGS_PEERS_MAX];
	size_t npeers;
	double period_s;
	double sensitivity; /* the part of a load by which it changes before it is told at once */
	char run_dir[SETTINGS_PATH_MAX];
	char state_dir[SETTINGS_PATH_MAX];
	char munge_socket[SETTINGS_PATH_MAX];
	char shim[SETTINGS_PATH_MAX];
	char synthetic[SETTINGS_PATH_MAX]; /* a file of loads that are made up; "": measure */
	char net_program[SETTINGS_PATH_MAX];
	char net_user[SETTINGS_ACCOUNT_MAX];

	bool scoped;
	char scope_cgroup[SETTINGS_PATH_MAX]; /* relative; "": the root cgroup */
	char scope_disks[SETTINGS_DISKS_MAX][32];
	size_t nscope_disks;
	char scope_mount[SETTINGS_PATH_MAX]; /* where the node's disk is mounted */

	double cpu_speed, disk_mb_per_s, disk_fixed_ms, network_mb_per_s; /* 0: not configured */
	double disk_parallel;
	char policy[32];
	struct settings_rules rules; /* the rules' parameters */
	struct settings_feedback feedback;
	struct settings_moves moves;
	bool moves_precopy; /* memory is sent while a job runs (agent/shim/move/precopy.h) */
	enum log_level log_level;
	bool accept_jobs;
	bool all_connections; /* of ordinary jobs, too, not only of gangs (part_talk.h) */
	bool allow_root;
	uint32_t min_uid; /* the least uid that users of other nodes need to run jobs here */
	char allow_users[SETTINGS_USERS_MAX], deny_users[SETTINGS_USERS_MAX];
	/* Who may change the owner's rules (agent/owner/owner_part.h). */
	char owners[SETTINGS_USERS_MAX], administrators[SETTINGS_USERS_MAX];
	enum settings_pam pam;		 /* AUTO: if its service file exists */
	char pam_dir[SETTINGS_PATH_MAX]; /* the directory of the service file; "": /etc/pam.d */
	uint32_t begin_limit_s;		 /* seconds for PAM, and again for exec */
	uint32_t user_jobs_max;		 /* at a time here; 0: no bound, as for root */
	int64_t user_tasks_max, user_memory_mb; /* of one user's jobs; or a SETTINGS_LIMIT_* */
	int64_t slots; /* for tasks of parallel jobs, or SETTINGS_LIMIT_AUTO: its processors */
	uint32_t user_requests_per_s; /* at the local socket; 0: no bound, as for root */
	uint32_t keep_jobs, keep_days;
	/* the lease of restartable jobs that are submitted here */
	uint32_t lease_s;
	uint32_t light_ms; /* classes that need less processor and disk stay at home; 0: none */
	uint32_t spool_mb, spool_total_mb; /* MiB of detached jobs' output: of one, of all */
	uint32_t spool_user_mb;		   /* MiB of one user other than root; 0: half of all */
	char criu[SETTINGS_PATH_MAX]; /* which saves and restores jobs that move; "": the usual one
				       */
	char data_dir[SETTINGS_PATH_MAX]; /* of data that goes along with jobs */
	uint32_t data_cache_mb;		  /* MiB of it that are kept for one user */
	struct settings_peer metrics;	  /* where /metrics is served; address "": nowhere */
	uint32_t metrics_max_jobs;	  /* jobs that have series of their own */
	bool foreground;

	/* What was set and is not used any more, and where: settings_retired puts it into words. */
	char retired[SETTINGS_PATH_MAX + 256];
	unsigned nretired;
};

/* Returns whether PEER is this node, as one list of peers may serve all nodes. */
bool settings_is_self(const struct settings *s, const struct settings_peer *peer);
/*
 * Fails if peers that are other machines are told an ADDRESS, numeric, that each has itself
 * (127.0.0.1): they would never hear this node, which hears them.  NAME: what the address was found
 * by, if not "".  A peer that is given by name may be this machine, and is not judged.
 */
int settings_reached(const struct settings *s, const char *address, const char *name,
		     struct iocom_err *err);
extern const struct config_program settings_program;

extern const char *const settings_pam_names[]; /* the names by enum settings_pam */
const char *settings_level_name(enum log_level level);
/*
 * Returns KEY's value as text that can be read back; the caller owns it.  Returns NULL if there is
 * no memory.
 */
char *settings_text(const struct settings *s, const struct config_key *key);

/*
 * Fills in what depends on other settings: the name (from the host's name), listen and address.
 * Returns 0 or -EINVAL with the reason in ERR.
 */
int settings_complete(struct settings *s, struct iocom_err *err);

struct view_policy;
/*
 * Finds a policy, in upper or lower case, by which an agent with the feedback controller in MODE
 * can decide.  Returns 0 or -EINVAL with the reason in ERR.
 */
int settings_policy(const char *name, enum settings_feedback_mode mode, struct view_policy *policy,
		    struct iocom_err *err);
/* Returns whether S asks for the network: it has peers or an address to listen at. */
bool settings_networked(const struct settings *s);
/*
 * Returns whether S was given settings that are not used any more.  SENTENCE says which, where they
 * are, and what to do.
 */
bool settings_retired(const struct settings *s, struct iocom_err *sentence);

#endif
