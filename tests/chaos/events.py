# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Events that hit the nodes.  Each node has one thread, so that its events keep their order."""
import os
import queue
import signal
import threading
import time

from skew import skew


def pick(items, fraction):
    return items[int(fraction * len(items))] if items else None


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def wait_for(what, seconds):
    """Waits until WHAT() is true, and returns it."""
    limit = time.monotonic() + seconds
    while True:
        found = what()
        if found or time.monotonic() >= limit:
            return found
        time.sleep(0.01)


class Events:
    def __init__(self, bed, running, note):
        """RUNNING() returns the running jobs; NOTE(dict) writes to the log."""
        self.bed, self.running, self.note = bed, running, note
        self.counts, self.missed = {}, {}
        self.failures = []
        self.shims_killed = 0
        self.calm_since = dict.fromkeys(bed.nodes, time.monotonic())  # None: it is not calm
        self.queues = {name: queue.Queue() for name in bed.nodes}
        self.threads = [threading.Thread(target=self._serve, args=(name,), daemon=True)
                        for name in bed.nodes]
        for thread in self.threads:
            thread.start()

    def put(self, event):
        self.queues[event["node"]].put(event)

    def waiting(self):
        return sum(q.unfinished_tasks for q in self.queues.values())

    def finish(self):
        for q in self.queues.values():
            q.put(None)
        for thread in self.threads:
            thread.join()

    def _serve(self, name):
        q = self.queues[name]
        while True:
            event = q.get()
            if event is None:
                return
            self.calm_since[name] = None
            self._one(event)
            self.calm_since[name] = time.monotonic()
            q.task_done()

    def _one(self, event):
        kind = event["kind"]
        began = time.time()
        try:
            done = getattr(self, kind.replace("-", "_"))(self.bed.nodes[event["node"]], event)
        except Exception as e:  # the run goes on, and fails
            self.failures.append(f"event {event}: {e!r}")
            done = f"failed: {e!r}"
        table = self.missed if done is False else self.counts
        table[kind] = table.get(kind, 0) + 1
        self.note(dict(event, began=began, ended=time.time(), done=done))

    def _restart(self, node):
        took = node.start_agent()
        node.reattached.append(took)
        return round(took, 3)

    # --- agents ---
    def agent(self, node, event):
        node.end_agent()
        time.sleep(event["seconds"])
        return self._restart(node)

    def agents(self, node, event):
        others = [n for n in self.bed.nodes.values() if n is not node]
        for other in others:  # their own threads start them again
            self.put(dict(event, kind="agent", node=other.name))
        return self.agent(node, event)

    def stop_agent(self, node, event):
        node.signal_agent(signal.SIGSTOP)
        time.sleep(event["seconds"])
        node.signal_agent(signal.SIGCONT)

    stop_long = stop_agent

    # --- network parts ---
    def network(self, node, event):
        pid = wait_for(node.network, 1.5)
        return bool(pid) and send(pid, signal.SIGKILL)

    def networks(self, node, event):
        for other in self.bed.nodes.values():
            if other is not node:
                self.put(dict(event, kind="network", node=other.name))
        return self.network(node, event)

    def stop_network(self, node, event):
        pid = wait_for(node.network, 1.5)
        if not pid or not send(pid, signal.SIGSTOP):
            return False
        time.sleep(event["seconds"])
        return node.network() != pid or send(pid, signal.SIGCONT)

    def stop_network_long(self, node, event):
        """The agent takes it for hung, and has another one when this is over."""
        pid = wait_for(node.network, 1.5)
        self.stop_network(node, event)
        if not wait_for(lambda: node.network() not in (None, pid), 30):
            raise RuntimeError(f"{node.name}: its network part {pid} hangs, and is not ended")

    # --- clients and supervisors ---
    def client(self, node, event):
        jobs = wait_for(lambda: [j for j in self.running() if j.running()], 1)
        job = pick(jobs, event["pick"])
        return job.kill_client() and job.job["id"] if job else False

    def _shim(self, node, event):
        return pick(wait_for(node.shims, 1.5), event["pick"])

    def shim(self, node, event):
        pid = self._shim(node, event)
        return bool(pid) and self._kill_shim(pid)

    def _kill_shim(self, pid):
        done = send(pid, signal.SIGKILL)
        self.shims_killed += done
        return done

    def agent_shim(self, node, event):
        pid = self._shim(node, event)
        node.end_agent()
        if pid:
            self._kill_shim(pid)
        time.sleep(event["seconds"])
        took = self._restart(node)
        return took if pid else False

    def stop_shim(self, node, event):
        """The shim neither answers nor ends while a new agent looks for it."""
        pid = self._shim(node, event)
        if not pid or not send(pid, signal.SIGSTOP):
            return False
        try:
            node.end_agent()
            took = self._restart(node)
            time.sleep(event["seconds"])
        finally:
            send(pid, signal.SIGCONT)
        return took

    # --- clocks ---
    def skew(self, node, event):
        return skew(self, node, event["ahead"])

    skew_within = skew

    # --- link, munged, disk ---
    def cut(self, node, event):
        node.link("down")
        try:
            time.sleep(event["seconds"])
        finally:
            node.link("up")

    cut_long = cut

    def munged(self, node, event):
        node.kill_munged()
        time.sleep(event["seconds"])
        node.start_munged()

    def full(self, node, event):
        node.fill()
        try:
            time.sleep(event["seconds"])
        finally:
            node.empty()

    def full_agent(self, node, event):
        node.fill()
        node.end_agent()
        restart = threading.Timer(event["seconds"], node.empty)
        restart.start()
        node.start_agent()  # tries until there is room, so its time means nothing
        restart.join()
