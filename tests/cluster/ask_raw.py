# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A user's requests to another node's agent made by hand, which no client would send.

usage: ask_raw.py NODE HOW [OP [JOB]]
       ask_raw.py NODE HOW owner WORD...
Root has nobody make the credential. HOW is what is wrong with it: nothing; none and junk: its
credential; purpose, node, nonce, hash: what the credential binds; addressed: it is for another node
than it goes to; old, early: it was made 200 s ago, or ahead; boot, unbound: it is for an earlier
start of the agent, or for any; twice: it is sent twice; later: again with a new credential, which
munged has not seen; kept: it is sent from the file $ASK_KEPT, or goes there; short: it is no request;
garbage: what is asked is none.
Prints one line for each time: "answered", or the sentence that came instead.
"""
import hashlib, json, os, socket, struct, subprocess, sys, time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from handmade import pack, receive  # noqa: E402

node, how = sys.argv[1:3]
op = sys.argv[3] if len(sys.argv) > 3 else "jobs"
OTHER = "n1" if node != "n1" else "n9"


def ask_agent(**request):
    """The type of the answer of this node's agent, and its text."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(os.environ["IOCOM_RUN_DIR"] + "/iocom.sock")
        body = pack(request)
        s.sendall(b"ic" + bytes([1, 1]) + struct.pack(">I", len(body)) + body)
        head = receive(s, 8)
        if len(head) < 8:
            sys.exit("closed")
        return head[3], receive(s, struct.unpack(">I", head[4:])[0]).decode()


def sealed(binding):
    user = dict(user=65534, group=65534, extra_groups=[]) if os.geteuid() == 0 else {}
    return subprocess.run(
        ["munge", "--socket=" + os.environ["IOCOM_MUNGE_SOCKET"], "--restrict-uid=0", "--ttl=60"],
        input=pack(binding), stdout=subprocess.PIPE, check=True, **user).stdout.decode().strip()


def made(request, boot, wrong=""):
    """REQUEST as another node's agent gets it, and what its credential binds."""
    nonce = os.urandom(16).hex()
    at_s = int(time.time()) + dict(old=-200, early=200).get(wrong, 0)
    ask = pack(dict(v=2, node=OTHER if wrong == "addressed" else node, nonce=nonce, boot_id=boot,
                    at_s=at_s, request=b"\xc1" * 100 if wrong == "garbage" else pack(request)))
    binding = dict(type="attach" if wrong == "purpose" else "ask", job="",
                   node=OTHER if wrong in ("node", "addressed") else node,
                   nonce="0" * 32 if wrong == "nonce" else nonce,
                   hash=hashlib.sha256(b"other" if wrong == "hash" else ask).digest())
    return ask, binding


def send(ask, credential):
    """Returns what the node says, or None and prints the sentence."""
    kind, text = ask_agent(op="gather", v=1, asks=[dict(node=node, ask=ask, cred=credential)])
    said = {} if kind == 3 else json.loads(text)["answers"][0]
    if "answer" not in said:
        print(said.get("error", text))
    return said.get("answer")


def owner(*words):
    return dict(op="owner", v=1, packed=pack(dict(reason="", idle_s=0, grace_s=0, words=list(words))))


boot = 0
request = dict(op=op, v=1)
if op == "owner":
    ask, binding = made(owner("show"), 0)
    boot = int(send(ask, sealed(binding))["boot_id"], 16)
    boot = dict(boot=boot ^ 1, unbound=0).get(how, boot)
    request = owner(*sys.argv[4:])
elif len(sys.argv) > 4:
    request.update(job=sys.argv[4], uid=0, user="root")  # nobody reads the last two
ask, binding = made(request, boot, how)
credential = {"none": "-", "junk": "MUNGE:" + "A" * 200 + ":"}.get(how) or sealed(binding)
if how == "short":
    ask = ask[:-1]
if how == "kept":  # the whole request of an earlier time, which $ASK_KEPT has
    kept = os.environ["ASK_KEPT"]
    if os.path.exists(kept):
        with open(kept, "rb") as f:
            credential, ask = f.read().split(b"\n", 1)
        credential = credential.decode()
    else:
        with open(kept, "wb") as f:
            f.write(credential.encode() + b"\n" + ask)
for _ in range(2 if how in ("twice", "later") else 1):
    if send(ask, credential):
        print("answered")
    if how == "later":
        credential = sealed(binding)
