# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The programs whose needs are learned, and their inputs.

first() is the list that earlier results are about; some of its runs take a few milliseconds.
second() has more of what people run, and longer.  Both lists stay as they are whatever is measured.
"""
import json
import os
import random
import subprocess

MIB = 1 << 20
TREE_FILES = 1500
UNITS = 12

LOOP = "total = 0\nfor i in range(4000000):\n    total += i * i % 7\nprint(total)\n"

SUMS = """import collections, csv, json, sys
sums = collections.defaultdict(lambda: [0, 0])
with open(sys.argv[1]) as f:
    for row in json.load(f):
        s = sums[row["group"]]
        s[0] += 1
        s[1] += row["value"]
with open(sys.argv[2], "w") as out:
    w = csv.writer(out)
    for group, (n, total) in sorted(sums.items()):
        w.writerow([group, n, total, total / n])
"""


def text(rng, size):
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(3000)]
    block = "".join(" ".join(rng.choices(words, k=9)) + "\n" for _ in range(20000))
    out = "".join(f"{(i * 7919) % 1000003:07d} {line}\n" for i, line in
                  enumerate(block.splitlines() * (size // len(block) + 1)))
    return out[:size].encode()


def source(functions, name="f"):
    body = "".join(f"int {name}{i}(int a, int b) {{ int s = {i}; for (int i = 0; i < a; i++) s += (i ^ b) % {i + 3};"
                   f" return s > b ? s - b : s * {i + 1}; }}\n" for i in range(functions))
    return body.encode()


def put(directory, name, data):
    with open(os.path.join(directory, name), "wb") as out:
        out.write(data)


def make_sources(d, rng):
    """A tree of small files in directories, as of a program's sources, and its archive."""
    words = text(rng, 64 * 1024)
    for i in range(TREE_FILES):
        base = os.path.join(d, "sources", f"part{i // 100}")
        os.makedirs(base, exist_ok=True)
        at = rng.randrange(32 * 1024)
        put(base, f"file{i}.txt", words[at:at + rng.randrange(500, 24 * 1024)])
    subprocess.run(["tar", "cf", os.path.join(d, "sources.tar"), "-C", d, "sources"], check=True)


def make_project(d):
    """C units and a makefile that builds all of them."""
    base = os.path.join(d, "project")
    os.makedirs(base, exist_ok=True)
    for i in range(UNITS):
        put(base, f"unit{i}.c", source(60, f"u{i}_"))
    put(base, "main.c", b"int u0_1(int a, int b);\nint main(int c, char **v)\n{\n\t(void)v;\n\treturn u0_1(c, 3);\n}\n")
    objects = " ".join(f"unit{i}.o" for i in range(UNITS)) + " main.o"
    put(base, "Makefile", f"CFLAGS = -O2\nall: program\nprogram: {objects}\n\t$(CC) -o $@ {objects}\n".encode())


def make_inputs(d):
    """Writes all inputs to directory D."""
    rng = random.Random(1)
    put(d, "random", os.urandom(40 * MIB))
    put(d, "text", text(rng, 24 * MIB))
    put(d, "loop.py", LOOP.encode())
    put(d, "many.c", source(1500))
    for n in (8, 16, 24, 32, 64):
        put(d, f"size{n}", os.urandom(n * MIB))
    os.makedirs(os.path.join(d, "tree"), exist_ok=True)
    for i in range(200):
        put(os.path.join(d, "tree"), f"file{i}", os.urandom(100000))
    rows = "".join(f"insert into t values({i}, {i * 7919 % 10007}, '{i * 31337:064x}');\n" for i in range(60000))
    subprocess.run(["sqlite3", os.path.join(d, "rows.db")], check=True,
                   input="begin;create table t(a, b, c);\n" + rows + "commit;\n", text=True)
    make_sources(d, rng)
    make_project(d)
    put(d, "sums.py", SUMS.encode())
    put(d, "rows.csv", ("a,b,c\n" + "".join(f"{i},{i * 7919 % 10007},{i * 31337:032x}\n"
                                            for i in range(300000))).encode())
    put(d, "rows.json", json.dumps([{"id": i, "group": f"group{i * 7919 % 5003}", "value": i * 31337 % 1009 / 7}
                                    for i in range(250000)]).encode())


def first(d):
    """name, command"""
    return [
        ("sha256sum", ["sha256sum", f"{d}/random"]),
        ("gzip", ["sh", "-c", f"gzip -c {d}/text > {d}/text.gz"]),
        ("xz", ["sh", "-c", f"xz -0 -T1 -c {d}/text > {d}/text.xz"]),
        ("zstd", ["zstd", "-q", "-f", f"{d}/text", "-o", f"{d}/text.zst"]),
        ("sort", ["sort", "-S", "30M", "-T", d, f"{d}/text", "-o", f"{d}/sorted"]),
        ("grep", ["grep", "-c", "ab.*yz", f"{d}/text"]),
        ("dd-read", ["dd", f"if={d}/random", "of=/dev/null", "bs=1M", "iflag=direct", "status=none"]),
        ("dd-fsync", ["dd", "if=/dev/zero", f"of={d}/zero", "bs=1M", "count=32", "conv=fsync", "status=none"]),
        ("sqlite3", ["sqlite3", f"{d}/rows.db", "select b, count(*), max(c) from t group by b order by 2 desc limit 5;"]),
        ("python3", ["python3", f"{d}/loop.py"]),
        ("tar", ["tar", "cf", f"{d}/tree.tar", "-C", d, "tree"]),
        ("find", ["find", f"{d}/tree", "-type", "f", "-size", "+50k"]),
        ("gcc", ["gcc", "-O1", "-pipe", "-c", f"{d}/many.c", "-o", f"{d}/many.o"]),
        ("awk", ["awk", "{ n[$1 % 1000] += length($0) } END { print length(n) }", f"{d}/text"]),
    ]


def second(d):
    """name, command"""
    return [
        ("bzip2", ["bzip2", "-k", "-f", f"{d}/text"]),
        ("openssl", ["openssl", "enc", "-aes-256-cbc", "-pbkdf2", "-pass", "pass:secret",
                     "-in", f"{d}/random", "-out", f"{d}/random.enc"]),
        ("grep-tree", ["grep", "-r", "-c", "ab.*yz", f"{d}/sources"]),
        ("untar", ["sh", "-c", f"rm -rf {d}/untar && mkdir {d}/untar && tar xf {d}/sources.tar -C {d}/untar"]),
        ("rsync", ["sh", "-c", f"rm -rf {d}/copy && rsync -a {d}/sources/ {d}/copy"]),
        ("make", ["make", "-B", "-s", "-C", f"{d}/project"]),
        ("import", ["sh", "-c", f"rm -f {d}/import.db && sqlite3 {d}/import.db '.mode csv' '.import {d}/rows.csv t' "
                                "'create index i on t(b)'"]),
        ("python-json", ["python3", f"{d}/sums.py", f"{d}/rows.json", f"{d}/sums.csv"]),
        ("git-add", ["sh", "-c", f"rm -rf {d}/repo && git init -q {d}/repo && "
                                 f"git --git-dir={d}/repo/.git --work-tree={d}/sources add -A"]),
        ("perl", ["perl", "-ne", "$n{$_}++ for split; END { print scalar(keys %n), \"\\n\" }", f"{d}/text"]),
    ]
