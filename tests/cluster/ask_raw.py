# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A user's requests to another node's agent made by hand, which no client would send.

usage: ask_raw.py NODE HOW [OP [JOB]]
HOW is what is wrong with it: nothing; none and junk: its credential; purpose, node, nonce, hash: what
the credential binds; addressed: it is for another node than it goes to; twice: it is sent twice;
short: it is no request.
Prints one line for each time: "answered", or the sentence that came instead.
"""
import hashlib, json, os, socket, struct, subprocess, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from handmade import pack  # noqa: E402

node, how = sys.argv[1:3]
op = sys.argv[3] if len(sys.argv) > 3 else "jobs"
request = dict(op=op, v=1)
if len(sys.argv) > 4:
    request.update(job=sys.argv[4], uid=0, user="root")  # nobody reads the last two
nonce = os.urandom(16).hex()
ask = pack(dict(v=1, node="n1" if how == "addressed" else node, nonce=nonce, request=pack(request)))
binding = dict(type="attach" if how == "purpose" else "ask", job="",
               node="n1" if how in ("node", "addressed") else node,
               nonce="0" * 32 if how == "nonce" else nonce,
               hash=hashlib.sha256(b"other" if how == "hash" else ask).digest())
if how == "none":
    credential = "-"
elif how == "junk":
    credential = "MUNGE:" + "A" * 200 + ":"
else:
    credential = subprocess.run(
        ["munge", "--socket=" + os.environ["IOCOM_MUNGE_SOCKET"], "--restrict-uid=0", "--ttl=60"],
        input=pack(binding), stdout=subprocess.PIPE, check=True).stdout.decode().strip()
if how == "short":
    ask = ask[:-1]
one = pack(dict(node=node, ask=ask, cred=credential))
asks = b"\xdc" + struct.pack(">H", 1) + one
message = b"\xde" + struct.pack(">H", 3) + pack("op") + pack("gather") + pack("v") + pack(1) + \
    pack("asks") + asks


def receive(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            sys.exit("closed")
        data += more
    return data


for _ in range(2 if how == "twice" else 1):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(os.environ["IOCOM_RUN_DIR"] + "/iocom.sock")
        s.settimeout(10)
        s.sendall(b"ic" + bytes([1, 1]) + struct.pack(">I", len(message)) + message)
        head = receive(s, 8)
        body = receive(s, struct.unpack(">I", head[4:])[0])
    if head[3] == 3:
        print(body.decode())
        continue
    said = json.loads(body)["answers"][0]
    print("answered" if "answer" in said else said["error"])
