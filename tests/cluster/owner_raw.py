# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Requests to the owner's part of another node made by hand, which no client would send.

usage: owner_raw.py NODE HOW WORD...
The agent at $IOCOM_RUN_DIR forwards them to NODE; munged, at $IOCOM_MUNGE_SOCKET, seals them for
nobody.  HOW:
  good                      as a client does
  twice                     the same again
  later                     the same again with a new credential, which munged has not seen
  old, early, boot, node    made 200 s ago or ahead; for an earlier agent; for another node
  changed                   another word than the credential binds
  attach                    the credential is for another purpose
  none, junk, garbage       without a credential; with nonsense; nonsense in the request itself
Prints one line each: the type of the answer, and a sentence.
"""
import hashlib, json, os, socket, struct, subprocess, sys, time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from handmade import pack, receive  # noqa: E402


def ask_agent(**request):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect(os.environ["IOCOM_RUN_DIR"] + "/iocom.sock")
        body = pack(dict(op="owner", v=1, **request))
        s.sendall(b"ic" + bytes([1, 1]) + struct.pack(">I", len(body)) + body)
        head = receive(s, 8)
        return head[3], receive(s, struct.unpack(">I", head[4:])[0]).decode()


def request(words, **changes):
    fields = dict(node=node, nonce=os.urandom(16).hex(), boot_id=boot, at_s=int(time.time()),
                  reason="", idle_s=0, grace_s=0, words=words)
    fields.update(changes)
    return fields


def credential(fields, purpose="owner", target=None):
    binding = dict(type=purpose, job="", node=target or node, nonce=fields["nonce"],
                   hash=hashlib.sha256(pack(fields)).digest())
    return subprocess.run(
        ["munge", "--socket=" + os.environ["IOCOM_MUNGE_SOCKET"], "--restrict-uid=0", "--ttl=60"],
        input=pack(binding), stdout=subprocess.PIPE, check=True, user=65534, group=65534,
        extra_groups=[]).stdout.decode().strip()


def send(fields, cred):
    kind, text = ask_agent(packed=pack(fields), cred=cred)
    print(kind, text if kind == 3 else "done")


node, how, words = sys.argv[1], sys.argv[2], sys.argv[3:]
boot = 0
boot = int(json.loads(ask_agent(packed=pack(request(["show"])), cred="")[1])["boot_id"], 16)
wrong = dict(old=dict(at_s=int(time.time()) - 200), early=dict(at_s=int(time.time()) + 200),
             boot=dict(boot_id=boot ^ 1)).get(how, {})
fields = request(words, **wrong)
if how == "none":
    send(fields, "")
elif how == "junk":
    send(fields, "MUNGE:anything:")
elif how == "garbage":
    print(*ask_agent(packed=b"\xc1" * 100, cred=""))
elif how == "node":
    send(fields, credential(fields, target="n9"))
elif how == "attach":
    send(fields, credential(fields, purpose="attach"))
elif how == "changed":
    cred = credential(fields)
    fields["words"] = ["drain"]
    send(fields, cred)
else:
    cred = credential(fields)
    send(fields, cred)
    if how == "twice":
        send(fields, cred)
    elif how == "later":
        send(fields, credential(fields))
