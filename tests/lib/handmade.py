# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Messages made by hand: MessagePack in forms that hold anything."""
import struct


def receive(s, n):
    """N bytes of the socket S, or fewer: the other side closed."""
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            return data
        data += more
    return data


def pack(o):
    if o is None:
        return b"\xc0"
    if isinstance(o, bool):
        return b"\xc3" if o else b"\xc2"
    if isinstance(o, int):
        return b"\xcf" + struct.pack(">Q", o)
    if isinstance(o, str):
        return b"\xda" + struct.pack(">H", len(o)) + o.encode()
    if isinstance(o, bytes):
        return b"\xc5" + struct.pack(">H", len(o)) + o
    if isinstance(o, list):
        return b"\xdc" + struct.pack(">H", len(o)) + b"".join(pack(e) for e in o)
    return b"\xde" + struct.pack(">H", len(o)) + b"".join(pack(k) + pack(v) for k, v in o.items())
