# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The plan of a run of chaos: rounds with jobs and one event each, made from a seed.

A plan is plain data (lists and dicts), so that it can be logged and replayed.
"""
import random

# kind: weight, (shortest, longest) seconds until it is repaired
EVENTS = {
    "agent": (6, (0.0, 0.6)),       # kill -9 of an agent; a new one starts after this time
    "agents": (2, (0.0, 0.6)),      # the same with all agents at once
    "client": (3, (0.0, 0.0)),      # kill -9 of a client
    "shim": (3, (0.0, 0.0)),        # kill -9 of a job's supervisor
    "agent-shim": (2, (0.0, 0.6)),  # kill -9 of an agent and one of its supervisors
    "stop-agent": (2, (0.3, 3.0)),  # SIGSTOP, then SIGCONT
    "stop-shim": (2, (2.5, 4.0)),   # SIGSTOP of a supervisor; its agent is killed meanwhile
    "network": (4, (0.0, 0.0)),     # kill -9 of an agent's network part
    "networks": (2, (0.0, 0.0)),    # the same with all of them at once
    "stop-network": (2, (0.3, 3.0)),  # SIGSTOP, then SIGCONT
    "cut": (3, (0.3, 3.0)),         # the node's link goes down, then up
    "munged": (2, (0.2, 1.5)),      # kill -9, started again
    "full": (3, (0.5, 2.0)),        # the file system of the state directory is full
    "full-agent": (1, (0.5, 1.5)),  # full, and the agent is killed meanwhile
}
# Longer than the others may be: the peers give each other up, or the agent its network part. Rare,
# because it is slow.
LONG = {"cut-long": (38.0, 42.0), "stop-long": (11.0, 13.0), "stop-network-long": (12.5, 14.0)}
LONG_EVERY = 40
# A clock that is so many seconds wrong: more than credentials live, or less.
SKEW = {"skew": (90, 600), "skew-within": (5, 25)}
SKEW_EVERY = 25


def make_skew(rng, kind, nodes):
    return dict(kind=kind, node=rng.choice(nodes), seconds=0, pick=rng.random(),
                ahead=rng.choice([-1, 1]) * rng.randint(*SKEW[kind]))


def make_event(rng, number, nodes):
    if number % SKEW_EVERY in (8, 18):
        return make_skew(rng, "skew" if number % SKEW_EVERY == 8 else "skew-within", nodes)
    if number % LONG_EVERY == 2:
        kind = "cut-long" if number // LONG_EVERY % 2 == 0 else "stop-long"
        span = LONG[kind]
    elif number % LONG_EVERY in (5, 12):
        kind = "stop-long" if number % LONG_EVERY == 5 else "stop-network-long"
        span = LONG[kind]
    else:
        kind = rng.choices(list(EVENTS), [e[0] for e in EVENTS.values()])[0]
        span = EVENTS[kind][1]
    return dict(kind=kind, node=rng.choice(nodes), seconds=round(rng.uniform(*span), 2),
                pick=rng.random())


KINDS = {"piped": 6, "detached": 3, "restartable": 1}  # their weights
TOO_MUCH = 150000  # lines; more than the node keeps of a detached job


def make_job(rng, number, nodes):
    home = rng.choice(nodes)
    # Most name their node, and a policy places the rest.
    how = ["--node", rng.choice(nodes)] if rng.random() < 0.7 else ["--policy", "random"]
    job = dict(kind=rng.choices(list(KINDS), KINDS.values())[0], id=number, home=home, how=how,
               lines=rng.choice([1, 500, 5000, 40000]), ms=rng.randint(0, 4000),
               echo=rng.choice([0, 0, 1000, 20000]), child=rng.random() < 0.3,
               at=round(rng.uniform(0, 1), 2))
    if job["kind"] == "detached":
        # When a client attaches, at which byte it is killed, and from where the next one reads.
        job.update(echo=0, wait=rng.random() < 0.5, tail=round(rng.random(), 3),
                   later=round(rng.choice([0, rng.uniform(0, 6)]), 2),
                   lines=TOO_MUCH if rng.random() < 0.1 else job["lines"],
                   cuts=sorted(rng.randrange(20 * job["lines"])
                               for _ in range(rng.choice([0, 1, 3]))))
    elif job["kind"] == "restartable":
        # Not at home, because only on another node it has a lease.
        others = [n for n in nodes if n != home]
        job.update(echo=0, alone=True, restarts=3, ms=rng.randint(2000, 6000),
                   how=["--node", rng.choice(others)] if rng.random() < 0.3 else
                   ["--policy", "random"])
    return job


def make(seed, rounds, nodes, jobs=3):
    """Returns the plan: a dict per round, {"jobs": [...], "event": {...}, "seconds": how long}."""
    rng = random.Random(seed)
    plan, at, free = [], 0, dict.fromkeys(nodes, 0)
    for number in range(rounds):
        first = 1 + number * jobs
        # Anything that waits behind a long event would delay everything else.
        event = make_event(rng, number, [n for n in nodes if free[n] <= at] or nodes)
        plan.append(dict(jobs=[make_job(rng, first + i, nodes) for i in range(jobs)],
                         event=event, seconds=round(rng.uniform(1.2, 2.4), 2)))
        at += plan[-1]["seconds"]
        free[event["node"]] = at + (event["seconds"] if event["seconds"] > 5 else 0)
    return plan
