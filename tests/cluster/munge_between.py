# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A proxy for munged that can hold up what a user gets sealed.

usage: munge_between.py SOCKET REAL DIR: listens at SOCKET and passes everything on to REAL
with the identity of the client.  For an ordinary user, while DIR/hold exists, it makes DIR/asks
and waits for DIR/ask before it asks; when it has the answer it makes DIR/has and waits for
DIR/give.
"""
import os, signal, socket, struct, sys, time

at, real, directory = sys.argv[1:4]


def wait_for(mark, go):
    open(os.path.join(directory, mark), "w").close()
    while not os.path.exists(os.path.join(directory, go)):
        time.sleep(0.02)


def serve(client, uid, gid):
    held = uid and os.path.exists(os.path.join(directory, "hold"))
    if held:
        wait_for("asks", "ask")
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    with socket.socket(socket.AF_UNIX) as munged:
        munged.connect(real)
        # One question and its answer: a header of 11 bytes, whose last 4 are the length of the
        # rest.
        for source, sink in ((client, munged), (munged, client)):
            head = source.recv(11, socket.MSG_WAITALL)
            body = source.recv(struct.unpack(">I", head[7:])[0], socket.MSG_WAITALL)
            if held and sink is client:
                wait_for("has", "give")
            sink.sendall(head + body)


signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.umask(0)
listener = socket.socket(socket.AF_UNIX)
listener.bind(at)
listener.listen(64)
while True:
    client, _ = listener.accept()
    pid, uid, gid = struct.unpack("iii", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if os.fork() == 0:
        try:
            serve(client, uid, gid)
        except OSError:
            pass
        os._exit(0)
    client.close()
