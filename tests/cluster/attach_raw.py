# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Attach messages made by hand, which no client would send.

usage: attach_raw.py TARGET JOB NODE [TYPE [TIMES [CHANGE]]]
TARGET is a unix socket's path or ADDRESS:PORT; TYPE is the purpose of the credential,
"none" (no credential) or "junk"; the message is sent TIMES times, with CHANGE ("resume") its ask
is changed after it was sealed.  Prints one line each: the type of the answer, and a sentence.
"""
import hashlib, os, socket, struct, subprocess, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from handmade import pack  # noqa: E402


def receive(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            return data
        data += more
    return data


def send(target, message):
    if target.startswith("/"):
        s = socket.socket(socket.AF_UNIX)
        s.connect(target)
    else:
        address, port = target.rsplit(":", 1)
        s = socket.create_connection((address, int(port)))
    s.settimeout(10)
    s.sendall(b"ic\x02\x0b" + struct.pack(">I", len(message)) + message)
    head = receive(s, 8)
    if len(head) < 8:
        return "closed"
    body = receive(s, struct.unpack(">I", head[4:])[0])
    return "%d %s" % (head[3], body.decode(errors="replace") if head[3] == 3 else "")


target, job, node = sys.argv[1:4]
kind = sys.argv[4] if len(sys.argv) > 4 else "none"
times = int(sys.argv[5]) if len(sys.argv) > 5 else 1
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
if len(sys.argv) > 6:
    ask[sys.argv[6]] = "00"
for i in range(times):
    print(send(target, pack(dict(cred=credential, ask=pack(ask)))))
