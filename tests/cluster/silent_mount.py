#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A file system whose server can be silenced: silent_mount.py DIRECTORY. It has one file, `file`,
and says "ready" once it is mounted. SIGUSR1: it says "silent" and answers no more, as a server that
is gone; SIGUSR2: it answers all that waits, and goes on; SIGTERM: it is unmounted. Needs root."""
import ctypes
import os
import select
import signal
import stat
import struct
import sys

LOOKUP, FORGET, GETATTR, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 26, 36, 42
ROOT, FILE = 1, 2
ENOENT, ENOSYS = 2, 38
SIZE = 1000
MNT_DETACH = 2


def attributes(node):
    mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o755
    #            ino   size blocks times      nsec     mode  nlink uid gid rdev blksize flags
    return struct.pack("<QQQQQQIIIIIIIIII", node, SIZE, 2, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(op, node, body):
    """Returns (error, data); nothing is believed for any time, so that each look asks."""
    if op == INIT:
        major, minor, readahead = struct.unpack_from("<III", body)
        return 0, struct.pack("<IIIIHHIIHHIIIIII", 7, min(minor, 31), readahead, 0, 8, 6, 4096, 1, 1, 0, 0, 0, *[0] * 4)
    if op == GETATTR:
        return 0, struct.pack("<QII", 0, 0, 0) + attributes(node)
    if op == LOOKUP:
        if body.rstrip(b"\0") != b"file":
            return ENOENT, b""
        return 0, struct.pack("<QQQQII", FILE, 0, 0, 0, 0, 0) + attributes(FILE)
    return ENOSYS, b""


def serve(device):
    try:
        request = os.read(device, 1 << 17)
    except OSError as error:
        return error.errno in (2, 4)  # the asker was killed
    _, op, unique, node = struct.unpack_from("<IIQQ", request)
    if op not in (FORGET, BATCH_FORGET, INTERRUPT):
        error, data = answer(op, node, request[40:])
        try:
            os.write(device, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)
        except OSError:
            pass  # it is no more waited for
    return True


def main():
    directory = sys.argv[1].encode()
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    if libc.mount(b"silent", directory, b"fuse.sshfs", 0, options.encode()):
        sys.exit(f"silent_mount: {os.strerror(ctypes.get_errno())}")
    state = {"silent": False, "ends": False}
    signal.signal(signal.SIGUSR1, lambda *_: state.update(silent=True))
    signal.signal(signal.SIGUSR2, lambda *_: state.update(silent=False))
    signal.signal(signal.SIGTERM, lambda *_: state.update(ends=True))
    said = ""
    while not state["ends"]:
        now = "silent" if state["silent"] else "ready"
        if now != said:
            print(now, flush=True)
            said = now
        asked = select.select([] if state["silent"] else [device], [], [], 0.1)[0]
        if asked and not state["silent"] and not serve(device):
            break
    libc.umount2(directory, MNT_DETACH)


if __name__ == "__main__":
    main()
