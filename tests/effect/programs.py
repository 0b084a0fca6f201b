# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The programs of bench-effect: what each needs to be installed, how large its inputs are at scale 1
and how its seeded inputs and the line that it must print are made.

A program is a function of job.sh of the same name.  Its maker gets an empty directory, a random
generator and a scale; it writes the inputs there and returns the expected line, which it computes
by other means than the program.
"""
import glob
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import zlib

KIB, MIB = 1024, 1024 * 1024
VARIANTS = 2


class Missing(Exception):
    """A program cannot be prepared on this machine; the sentence says why."""


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def write(directory, name, data):
    with open(os.path.join(directory, name), "wb") as f:
        f.write(data)


def make_text(rng, size):
    """Lines of words.  A block of 256 KiB repeats with another number in front of each line."""
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9)))
             for _ in range(2000)]
    block = []
    while sum(map(len, block)) < 256 * KIB:
        block.append(" ".join(rng.choices(words, k=400)) + " ")
    parts = "".join(block).split(" ")
    lines = [" ".join(parts[i:i + 9]) for i in range(0, len(parts), 9)]
    out, length, number = [], 0, 0
    while length < size:
        for line in lines:
            number += 1
            out.append(f"{(number * 7919) % 1000003:07d} {line}\n")
            length += len(out[-1])
    return "".join(out)[:size].rsplit("\n", 1)[0] + "\n"


def make_rows(rng, count):
    """Rows (id, k, body)."""
    return [(i + 1, rng.randrange(100000), f"{rng.getrandbits(256):064x}") for i in range(count)]


def make_csv(directory, rows):
    write(directory, "rows.csv", "".join(f"{i},{k},{b}\n" for i, k, b in rows).encode())


def make_tree(directory, rng, files, size):
    """FILES files of SIZE bytes each, half of them random; returns [(path, data)] by path."""
    text, made = make_text(rng, size), []
    for n in range(files):
        name = f"tree/d{n // 10:02d}/f{n:03d}"
        data = text.encode()[:size // 2] + rng.randbytes(size - size // 2)
        os.makedirs(os.path.join(directory, os.path.dirname(name)), exist_ok=True)
        write(directory, name, data)
        made.append((name, data))
    return sorted(made)


def grep_inputs(directory, rng, scale):
    text = make_text(rng, int(24 * MIB * scale))
    word = text.split("\n", 1)[0].split()[3]
    write(directory, "text", text.encode())
    write(directory, "word", word.encode())
    return str(sum(word in line for line in text.splitlines()))


def sort_inputs(directory, rng, scale):
    text = make_text(rng, int(8 * MIB * scale))
    write(directory, "text", text.encode())
    return sha256("".join(sorted(text.splitlines(keepends=True))).encode())


def sqlite_load_inputs(directory, rng, scale):
    rows = make_rows(rng, int(25000 * scale))
    make_csv(directory, rows)
    return f"{len(rows)}|{sum(k for _, k, _ in rows)}"


def sqlite_scan_inputs(directory, rng, scale):
    rows = make_rows(rng, int(220000 * scale))
    with sqlite3.connect(os.path.join(directory, "db")) as db:
        db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, k INTEGER, body TEXT)")
        db.executemany("INSERT INTO t VALUES(?,?,?)", rows)
    db.close()
    return f"{len(rows)}|{sum(k for _, k, _ in rows)}|{64 * len(rows)}"


def targz_inputs(directory, rng, scale):
    made = make_tree(directory, rng, max(4, int(40 * scale)), 160 * KIB)
    return sha256(b"".join(data for _, data in made))


def gcc_inputs(directory, rng, scale):
    """Functions of integer arithmetic; their sum is computed here, too."""
    functions, calls, total = [], [], 0
    for n in range(max(10, int(350 * scale))):
        a, b, c = (rng.randrange(1, 1000) for _ in range(3))
        functions.append(f"static unsigned f{n}(unsigned x)\n{{\n\tfor (unsigned i = 0; i < {c % 7 + 2}; i++)\n"
                         f"\t\tx = x * {a}u + (x >> 5) + {b}u;\n\treturn x;\n}}\n")
        calls.append(f"\ts += f{n}({c}u);\n")
        x = c
        for _ in range(c % 7 + 2):
            x = (x * a + (x >> 5) + b) & 0xffffffff
        total = (total + x) & 0xffffffff
    write(directory, "program.c", ("#include <stdio.h>\n#include <stdlib.h>\n" + "".join(functions) +
                                   "int main(void)\n{\n\tunsigned s = 0;\n" + "".join(calls) +
                                   "\tprintf(\"%u\\n\", s);\n\treturn 0;\n}\n").encode())
    return str(total)


def postgres_inputs(directory, rng, scale):
    """A small database cluster: one database with one table."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not found:
        raise Missing("no PostgreSQL server is installed (postgresql)")
    rows = int(15000 * scale)
    seed = rng.randrange(1000)
    home = tempfile.mkdtemp(prefix="iocom-effect-", dir="/var/tmp")
    try:
        shutil.chown(home, "postgres", "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        cluster = os.path.join(home, "cluster")
        common = dict(check=True, capture_output=True, text=True, cwd=home)
        subprocess.run([*as_user, found[-1] + "/initdb", "-D", cluster, "-U", "postgres", "-A", "trust",
                        "-N", "--no-locale", "-E", "SQL_ASCII", "--wal-segsize=1"], **common)
        with open(cluster + "/postgresql.conf", "a", encoding="ascii") as f:
            f.write("max_wal_size = 4MB\nmin_wal_size = 2MB\nmax_connections = 5\n"
                    "max_worker_processes = 0\nmax_wal_senders = 0\nwal_level = minimal\n"
                    "full_page_writes = off\n")
        sql = ["UPDATE pg_database SET datistemplate = false WHERE datname = 'template0'",
               "DROP DATABASE template0", "DROP DATABASE postgres",
               "CREATE TABLE t(id integer PRIMARY KEY, k bigint, body text)",
               f"INSERT INTO t SELECT i, i * 7 % 1000 + {seed}, repeat(md5(i::text), 3)"
               f" FROM generate_series(1, {rows}) i", "VACUUM t", "CHECKPOINT"]
        # One statement a line; VACUUM must not share a transaction with others.
        subprocess.run([*as_user, found[-1] + "/postgres", "--single", "-D", cluster, "template1"],
                       input="\n".join(sql) + "\n", **common)
        subprocess.run(["cp", "-a", cluster, directory], check=True)
    except LookupError as error:
        raise Missing(f"there is no user postgres: {error}") from error
    except subprocess.CalledProcessError as error:
        raise Missing(f"a PostgreSQL cluster cannot be made: {(error.stderr or '').strip()[-300:]}") \
            from error
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return f"{rows} {sum(i * 7 % 1000 + seed for i in range(1, rows + 1)) + rows // 10} {96 * rows}"


def fio_inputs(directory, _rng, scale):
    kib = max(64, int(6 * KIB * scale) // 64 * 64)
    write(directory, "kib", str(kib).encode())
    return f"{kib} {kib} 0"


def mmap_inputs(directory, rng, scale):
    data = rng.randbytes(int(20 * MIB * scale))
    write(directory, "bytes", data)
    return str(zlib.crc32(data))


def hog_inputs(directory, rng, scale):
    data, times = rng.randbytes(MIB), max(8, int(90 * scale))
    write(directory, "bytes", data)
    write(directory, "times", str(times).encode())
    held, crc = bytearray(data) * times, 0
    for turn in range(6):
        held[turn::4096] = bytes(len(range(turn, len(held), 4096)))
        crc = zlib.adler32(held, crc)
    return f"{len(held)} {crc}"


def awk_inputs(directory, rng, scale):
    rows = make_rows(rng, int(150000 * scale))
    make_csv(directory, rows)
    return f"{len(rows)} {sum(k for _, k, _ in rows)}"


def python_inputs(directory, rng, scale):
    rows = [dict(k=rng.randrange(500), v=rng.randrange(100), s=f"{rng.getrandbits(160):040x}")
            for _ in range(int(40000 * scale))]
    write(directory, "rows.json", "".join(json.dumps(r) + "\n" for r in rows).encode())
    return f"{len({r['k'] for r in rows})} {sum(r['k'] * r['v'] for r in rows)}"


def openssl_inputs(directory, rng, scale):
    data = rng.randbytes(int(12 * MIB * scale))
    write(directory, "bytes", data)
    return sha256(data)


def xz_inputs(directory, rng, scale):
    text = make_text(rng, int(4 * MIB * scale)).encode()
    write(directory, "text", text)
    return sha256(text)


def zstd_inputs(directory, rng, scale):
    text = make_text(rng, int(16 * MIB * scale)).encode()
    write(directory, "text", text)
    return sha256(text)


def perl_inputs(directory, rng, scale):
    text = make_text(rng, int(3 * MIB * scale))
    write(directory, "text", text.encode())
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return f"{len(counts)} {max(counts.values())}"


def copy_inputs(directory, rng, scale):
    data = rng.randbytes(int(8 * MIB * scale))
    write(directory, "bytes", data)
    return sha256(data)


def checksum_inputs(directory, rng, scale):
    made = make_tree(directory, rng, max(4, int(60 * scale)), 160 * KIB)
    rows = sorted((f"./{name.split('/', 1)[1]}", data) for name, data in made)
    return sha256("".join(f"{sha256(data)}  {name}\n" for name, data in rows).encode())


# name: set, weight in the mix, tools, maker of the inputs, memory in MB as a user would tell it,
# bytes of a request as a user would tell it
PROGRAMS = {
    "grep": ("main", 4, ["grep"], grep_inputs, 10, 128 * KIB),
    "sort": ("main", 3, ["sort"], sort_inputs, 20, 128 * KIB),
    "sqlite-load": ("main", 3, ["sqlite3"], sqlite_load_inputs, 20, 4 * KIB),
    "sqlite-scan": ("main", 4, ["sqlite3"], sqlite_scan_inputs, 20, 64 * KIB),
    "targz": ("main", 3, ["tar", "gzip"], targz_inputs, 10, 128 * KIB),
    "gcc": ("main", 3, ["gcc"], gcc_inputs, 60, 4 * KIB),
    "postgres": ("main", 2, ["psql", "setpriv"], postgres_inputs, 60, 64 * KIB),
    "fio": ("main", 3, ["fio"], fio_inputs, 40, 16 * KIB),
    "mmap": ("main", 3, ["python3"], mmap_inputs, 30, 128 * KIB),
    "hog": ("main", 2, ["python3"], hog_inputs, 110, 128 * KIB),
    "awk": ("holdout", 3, ["awk"], awk_inputs, 10, 128 * KIB),
    "python": ("holdout", 3, ["python3"], python_inputs, 20, 128 * KIB),
    "openssl": ("holdout", 3, ["openssl"], openssl_inputs, 20, 128 * KIB),
    "xz": ("holdout", 3, ["xz"], xz_inputs, 20, 128 * KIB),
    "zstd": ("holdout", 3, ["zstd"], zstd_inputs, 40, 128 * KIB),
    "perl": ("holdout", 3, ["perl"], perl_inputs, 30, 128 * KIB),
    "copy": ("holdout", 3, ["dd"], copy_inputs, 10, 1024 * KIB),
    "checksum": ("holdout", 3, ["find", "sha256sum"], checksum_inputs, 10, 128 * KIB),
}


def of_set(which):
    """The names of a set, or of a comma list of programs."""
    sets = {s for s, *_ in PROGRAMS.values()}
    if which in sets:
        return [name for name, (s, *_) in PROGRAMS.items() if s == which]
    names = which.split(",")
    wrong = [n for n in names if n not in PROGRAMS]
    if wrong or len(set(names)) < len(names):
        raise ValueError(f"SET takes {', '.join(sorted(sets))} or a list of different programs "
                         f"({', '.join(PROGRAMS)}), not '{which}'")
    return names
