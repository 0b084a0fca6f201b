#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""No circle of files in the agent is larger than MOST, and no header is everybody's.

A file uses another when its object refers to a symbol that the other's object defines (calls
and tables; calls through function pointers are what ports are for, and do not count).  A circle
is a strongly connected set of files.  Usage: check-circles.py BUILD [ROOM]
"""
import pathlib
import re
import subprocess
import sys

MOST = 5  # files in one circle
SHARE = 3  # a header is included by at most one file in so many
EVERYBODYS = ("base/",)  # but these: what every part stands on


def symbols(path):
    """(defined, used) global symbols of an object."""
    defined, used = set(), set()
    for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
        kind, name = line.split()[-2:]
        if kind == "U":
            used.add(name)
        elif kind in "TDRBVW":
            defined.add(name)
    return defined, used


def graph(build, room):
    """file -> files that it uses, by the objects of sources that are there."""
    sources = [p for p in sorted(pathlib.Path(room).rglob("*.c"))]
    tables = {str(p): symbols(f"{build}/obj/{p.with_suffix('.o')}") for p in sources}
    home = {}
    for path, (defined, _) in tables.items():
        for name in defined:
            home.setdefault(name, path)
    return {
        path: {home[name] for name in used if home.get(name, path) != path}
        for path, (_, used) in tables.items()
    }


def circles(edges):
    """Strongly connected sets of more than one file (Tarjan), largest first."""
    index, low, stack, found, count = {}, {}, [], [], [0]

    def visit(v):
        index[v] = low[v] = count[0]
        count[0] += 1
        stack.append(v)
        for w in edges[v]:
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            one = []
            while True:
                w = stack.pop()
                one.append(w)
                if w == v:
                    break
            if len(one) > 1:
                found.append(sorted(one))

    sys.setrecursionlimit(10000)
    for v in edges:
        if v not in index:
            visit(v)
    return sorted(found, key=len, reverse=True)


def popular(room):
    """(header, how many files include it, of how many)."""
    files = [p for p in pathlib.Path(room).rglob("*.[ch]")]
    counts = {}
    for path in files:
        for name in set(re.findall(r'#include "(' + room + r'/[^"]+)"', path.read_text())):
            counts[name] = counts.get(name, 0) + 1
    return sorted(((n, h) for h, n in counts.items()), reverse=True), len(files)


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    room = sys.argv[2] if len(sys.argv) > 2 else "agent"
    bad = 0
    found = circles(graph(build, room))
    for one in found:
        if len(one) > MOST:
            print(f"check-circles: {len(one)} files of {room}/ form one circle: {' '.join(one)}", file=sys.stderr)
            bad = 1
    counts, files = popular(room)
    for n, header in counts:
        if n * SHARE > files and not header.startswith(tuple(f"{room}/{e}" for e in EVERYBODYS)):
            print(f"check-circles: {header} is included by {n} of {files} files", file=sys.stderr)
            bad = 1
    largest = len(found[0]) if found else 1
    top = next(((n, h) for n, h in counts if not h.startswith(f"{room}/base/")), (0, "none"))
    print(f"check-circles: {room}/: the largest circle has {largest} files; {top[1]} is included by {top[0]} of {files}")
    for one in found if "-v" in sys.argv else []:
        print("  circle:", " ".join(one))
    sys.exit(bad)


main()
