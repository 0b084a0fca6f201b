/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Counters of everything that was refused, lost or dropped.  `iocom nodes --json` shows them. */
#ifndef IOCOM_COUNTERS_H
#define IOCOM_COUNTERS_H

#include <stdint.h>

/* X(name): one counter each. */
#define COUNTERS(X)                                                                                \
	X(bulletins_sent)                                                                          \
	X(bulletins_received)                                                                      \
	X(vectors_accepted)                                                                        \
	X(bulletins_refused_garbage) /* not a bulletin */                                          \
	X(bulletins_refused_forged)  /* not made by root of this cluster */                        \
	X(bulletins_refused_skew)    /* expired, or from the future */                             \
	X(bulletins_refused_version) /* another version of iocom */                                \
	X(vectors_refused_garbage)   /* a value out of range */                                    \
	X(vectors_refused_old)	     /* older (boot id, sequence) from its own node */             \
	X(vectors_refused_full)	     /* the matrix has no room */                                  \
	X(vectors_refused_name)	     /* another node uses this node's name */                      \
	X(seal_failures)	     /* munged did not answer */                                   \
	X(seal_questions_refused)    /* too many questions to munged without an answer */          \
	X(credentials_refused_form)  /* no credential by its form: munged was not asked */         \
	X(nodes_dropped)	     /* silent for 3 periods */                                    \
	X(bulletins_refused_key)     /* of an epoch whose key is not here yet */                   \
	X(sessions_begun)	     /* two agents have proven themselves to each other */         \
	X(sessions_failed)	     /* greetings of this node that led to no session */           \
	X(sessions_replaced)	     /* sessions that made room for others */                      \
	X(sessions_unknown)	     /* messages of sessions that one side does not know */        \
	X(controls_received)                                                                       \
	X(controls_refused)    /* forged, replayed, garbage, for another node */                   \
	X(controls_unanswered) /* we asked and got no answer in time */                            \
	X(guests_refused)      /* too many connections, or too many of one address */              \
	X(connections_cut)     /* a message's seal failed, or it was silent and made room */       \
	X(addresses_refused)   /* connections of addresses whose messages' seals failed */         \
	X(control_peers_full)  /* all connections to other agents were busy */                     \
	X(network_refused)     /* messages between the parts of the agent: a queue was full */     \
	X(hellos_refused)      /* nodes that asked to be heard, and too many did */                \
	X(hosts_unresolved)    /* look-ups of other nodes that found nothing, or had no place */   \
	X(keys_refused)	    /* the network part asked for too many keys of bulletins at a time */  \
	X(network_restarts) /* the network part ended, hung or sent nonsense, and was begun anew   \
			     */                                                                    \
	X(peers_refused)    /* a silent peer's agent says that it does not understand us */        \
	X(admissions_granted)                                                                      \
	X(admissions_refused)                                                                      \
	X(clusters_refused)	    /* greetings of nodes of other clusters */                     \
	X(complaints_replaced)	    /* repeated complaints that made room for others */            \
	X(nodes_left)		    /* nodes whose agents said that they stop */                   \
	X(names_failures)	    /* the name service did not answer */                          \
	X(paths_refused)	    /* too many path checks, or checks that hang */                \
	X(restartable_refused_full) /* too many restartable jobs */                                \
	X(jobs_refused_limit)	    /* a user had user_jobs_max jobs here */                       \
	X(places_refused)	    /* a user had as many places of a table as were free */        \
	X(leases_expired)	    /* granted, but the client never came */                       \
	X(gangs_refused)	    /* GANGS_MAX of them are under way */                          \
	X(leases_released)	    /* of parts of gangs that did not get all their nodes */       \
	X(streams_accepted)                                                                        \
	X(streams_refused) /* no lease, not authentic, garbage, too slow, too many */              \
	X(jobs_started)                                                                            \
	X(jobs_ended)                                                                              \
	X(jobs_lost)		 /* their shim died */                                             \
	X(jobs_oom)		 /* the kernel killed processes of them for want of memory */      \
	X(forks_refused)	 /* jobs that were refused forks: user_tasks_max */                \
	X(jobs_restarted)	 /* lost with their node, run again elsewhere */                   \
	X(jobs_fenced)		 /* ended here because home stopped renewing them */               \
	X(jobs_expelled)	 /* guests that this node's owner sent away */                     \
	X(owner_changes)	 /* of this node's owner's rules */                                \
	X(owner_refused)	 /* requests to change them, of users who may not */               \
	X(feedback_steps)	 /* of the feedback controller's buffer */                         \
	X(feedback_at_bound)	 /* samples in which it wanted beyond its bounds */                \
	X(feedback_writes)	 /* of bounds of memory of groups of jobs */                       \
	X(feedback_restored)	 /* originals that it gave back */                                 \
	X(feedback_foreign)	 /* groups that somebody else changed: left alone */               \
	X(feedback_refused)	 /* writes that failed */                                          \
	X(feedback_left_out)	 /* times that more jobs ran than it looks at */                   \
	X(outputs_removed)	 /* outputs of ended jobs: too old, too many, too big */           \
	X(outputs_removed_share) /* those of them removed only for the user's share, spool_user_mb \
				  */                                                               \
	X(outputs_short)	 /* jobs that got less room than they may have */                  \
	X(leases_renewed)                                                                          \
	X(leases_lost)		/* leases of restartable jobs that were not renewed in time */     \
	X(leases_refused)	/* renewals of jobs that home has given up */                      \
	X(jobs_late)		/* their shim lives but did not answer at once */                  \
	X(clients_refused)	/* too many local connections */                                   \
	X(moves_refused)	/* too many jobs are on their way */                               \
	X(policy_moves)		/* of jobs that policies wanted to move away from here */          \
	X(policy_moves_stayed)	/* those of them that did not move */                              \
	X(policy_moves_held)	/* looks in which one more was wanted than moves_a_minute allow */ \
	X(moves_left_out)	/* looks in which more jobs can move than are looked at */         \
	X(moves_rests_replaced) /* jobs that are not left alone as long as they should be */       \
	X(moves_nodes_replaced) /* nodes of which it was forgotten what moves to them cost */      \
	X(signals_refused)	/* too many wait for shims that do not answer */                   \
	X(descriptors_refused) /* too few descriptors left for a connection of others than root */ \
	X(accepts_paused)      /* no descriptor left: connections waited for 100 ms */             \
	X(requests_delayed)    /* a user, or strangers, took half of the loop and had to wait */   \
	X(requests_refused_rate)  /* a user exceeded user_requests_per_s */                        \
	X(forwards_refused)	  /* a client had too many requests to other nodes under way */    \
	X(forwards_unanswered)	  /* requests of clients that another node did not answer */       \
	X(forwarded_served)	  /* requests of users of other nodes that were served */          \
	X(forwarded_refused)	  /* requests of users of other nodes: no proof, or no room */     \
	X(looks_refused)	  /* too many watchers from other nodes */                         \
	X(replays_refused)	  /* too many clients read output of ended jobs */                 \
	X(tickets_refused)	  /* too many clients of other nodes are about to attach */        \
	X(recorders_refused)	  /* too many `iocom record` */                                    \
	X(clients_dropped)	  /* idle, slow or speaking garbage */                             \
	X(top_lines_delayed)	  /* a watcher read too slowly: its interval grew */               \
	X(record_lines_lost)	  /* a recorder read too slowly; its end line says so */           \
	X(reports_unacknowledged) /* home did not answer; sent again later */                      \
	X(outcomes_refused)	  /* a job's end before its submission: its response is unknown */ \
	X(predictions_replaced)	  /* pairs of node and policy that made room for others */         \
	X(progress_replaced)	  /* running jobs whose progress made room for that of others */   \
	X(connections_summed)	  /* connections of gangs that had no row of their own */          \
	X(runs_learned_late)	  /* runs that had to wait for the locked class profiles */        \
	X(runs_not_learned)	  /* runs that the class profiles could not take */                \
	X(profiles_renewed)	  /* times that damaged class profiles were set aside */           \
	X(journal_failures)                                                                        \
	X(journal_sync_failures) /* the disk refused: nobody is told what it may not have */       \
	X(sample_failures)                                                                         \
	X(ticks) /* tick.h */

struct counters {
#define X(name) uint64_t name;
	COUNTERS(X)
#undef X
	uint64_t tick_late_ms; /* no count: the greatest delay in the last minute; tick.h */
};

#endif
