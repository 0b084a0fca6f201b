# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Attach messages made by hand, which no client would send.

usage: attach_raw.py TARGET JOB NODE [TYPE [TIMES [CHANGE]]]
TARGET is a unix socket's path or "network": then the stream goes to where the agent at
$IOCOM_RUN_DIR says that the job is, with a ticket of that node.  TYPE is the purpose of the
credential, "none" (no credential) or "junk"; the message is sent TIMES times, each with a ticket of
its own; CHANGE is KEY=VALUE, which its ask gets after it was sealed, or "ticket": it has none.
Prints one line each: the type of the answer, and a sentence.
"""
import hashlib, json, os, socket, struct, subprocess, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from handmade import pack, receive  # noqa: E402

SEALED = os.path.join(os.environ.get("IOCOM_BUILD", "build"), "tests/tools/sealed")


def frame(version, kind, payload):
    return b"ic" + bytes([version, kind]) + struct.pack(">I", len(payload)) + payload


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.settimeout(10)
    return s


def answer(s):
    head = receive(s, 8)
    if len(head) < 8:
        return 0, "closed"
    body = receive(s, struct.unpack(">I", head[4:])[0])
    return head[3], body.decode(errors="replace") if head[3] <= 3 else ""


def place(name):
    """What this node's agent says of where the job is, or its refusal."""
    s = connect(os.environ["IOCOM_RUN_DIR"] + "/iocom.sock")
    s.sendall(frame(1, 1, pack(dict(op="attach", v=1, job=name))))
    kind, text = answer(s)
    return (None, text) if kind == 3 else (json.loads(text), "")


def to_network():
    """The test's end of a sealed stream to the job's node, and its process."""
    where, refused = place(job)
    if not where:
        return None, None, refused
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [SEALED, where["address"], str(where["port"]), where["node"], where["job"], "attach",
         where["key"], where["ticket"] if change != "ticket" else ""],
        stdin=theirs.fileno(), stdout=theirs.fileno())
    theirs.close()
    ours.settimeout(10)
    return ours, process, ""


def send(message):
    process = None
    if target == "network":
        s, process, refused = to_network()
        if not s:
            return "3 " + refused
    else:
        s = connect(target)
    try:
        s.sendall(frame(2, 11, message))
    except OSError:
        pass  # refused before
    said = "%d %s" % answer(s)
    s.close()
    if process:
        process.kill()
        process.wait()
    return said


target, job, node = sys.argv[1:4]
kind = sys.argv[4] if len(sys.argv) > 4 else "none"
times = int(sys.argv[5]) if len(sys.argv) > 5 else 1
change = sys.argv[6] if len(sys.argv) > 6 else ""
nonce = os.urandom(16).hex()
ask = dict(v=2, job=job, node=node, nonce=nonce, resume="", out=2**64 - 1, err=2**64 - 1,
           out_taken=0, err_taken=0)
sealed = pack(ask)
credential = None
if kind == "junk":
    credential = "MUNGE:anything:"
elif kind != "none":
    binding = dict(type=kind, job=job, node=node, nonce=nonce,
                   hash=hashlib.sha256(sealed).digest())
    credential = subprocess.run(
        ["munge", "--socket=" + os.environ["IOCOM_MUNGE_SOCKET"], "--restrict-uid=0", "--ttl=60"],
        input=pack(binding), stdout=subprocess.PIPE, check=True).stdout.decode().strip()
if "=" in change:
    ask.update([change.split("=", 1)])
for i in range(times):
    print(send(pack(dict(cred=credential, ask=pack(ask)))))
