#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How right the learned needs of real programs are: `make bench-profiles`.

Each program runs TRUTHS times under tests/tools/truth, which measures by other means than iocom, and
then RUNS times as a job of its own class on a node of the testbed.  After 1, 3 and 10 runs the
class's needs are held against the median truth: computation, bytes read from and written to the
disk, and peak memory.  A need is right if it is within 20 % of the truth (strict), or off by no
more than what is stated for tiny values (allowance).  A program is right if all its needs are.

The disk's files leave the page cache before each run; programs and libraries, which are on another
disk, stay in it.  Then a class learns from inputs of four sizes, and what it expects of a fourth,
twice as large, is held against the truth.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys

TRUTHS = 3
RUNS = (1, 3, 10)
PART = 0.2
NEEDS = ("cpu_ms", "read_mb", "written_mb", "memory_mb")
# What one reading of the machine is off by, whatever the program: ticks and start-up; a block of
# the journal and of an inode table.
ALLOWED = {"cpu_ms": 5.0, "read_mb": 0.3, "written_mb": 0.3, "memory_mb": 0.5}
MIB = 1 << 20

LOOP = "total = 0\nfor i in range(4000000):\n    total += i * i % 7\nprint(total)\n"


def text(rng, size):
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(3000)]
    block = "".join(" ".join(rng.choices(words, k=9)) + "\n" for _ in range(20000))
    out = "".join(f"{(i * 7919) % 1000003:07d} {line}\n" for i, line in
                  enumerate(block.splitlines() * (size // len(block) + 1)))
    return out[:size].encode()


def source(functions):
    body = "".join(f"int f{i}(int a, int b) {{ int s = {i}; for (int i = 0; i < a; i++) s += (i ^ b) % {i + 3};"
                   f" return s > b ? s - b : s * {i + 1}; }}\n" for i in range(functions))
    return body.encode()


def put(directory, name, data):
    with open(os.path.join(directory, name), "wb") as out:
        out.write(data)


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


def programs(d):
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


class Bed:
    def __init__(self, testbed):
        self.testbed = testbed

    def run(self, command, **kw):
        return subprocess.run([self.testbed, "exec", "n1", "--", *command], check=True, text=True, **kw)

    def read(self, command):
        return self.run(command, stdout=subprocess.PIPE).stdout


EVICT = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.system("sync -f " + sys.argv[1])
for base, _, names in os.walk(sys.argv[1]):
    for name in names:
        try:
            f = os.open(os.path.join(base, name), os.O_RDONLY)
        except OSError:
            continue
        os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(f)
"""


def truth_of(bed, tool, d, command, times):
    """The median of each need."""
    seen = []
    for _ in range(times):
        bed.run(["python3", "-c", EVICT, d])
        seen.append(json.loads(bed.read([tool, d, *command])))
        if seen[-1]["status"]:
            sys.exit(f"profiles: {command} failed")
    return {need: statistics.median(s[need] for s in seen) for need in NEEDS}


def job(bed, d, name, command):
    bed.run(["python3", "-c", EVICT, d])
    bed.run(["iocom", "run", "--policy", "nlb", "--class", name, "--", *command], stdout=subprocess.DEVNULL)


def learned(bed, name, size_mb=None):
    more = [] if size_mb is None else ["--input", f"{size_mb}M"]
    document = json.loads(bed.read(["iocom", "profile", "show", name, "--json", *more]))
    needs = document["profiles"][0]["needs"]
    value = {n: needs[n]["value"] for n in NEEDS}
    value["read_mb"] += needs["fault_mb"]["value"]
    return value


def off(need, value, truth):
    """(strictly right, right with the allowance, the text of the difference)"""
    difference = value - truth
    strict = abs(difference) <= PART * truth or difference == 0
    part = f"{100 * difference / truth:+.0f}%" if truth > 0 else ("0" if not difference else f"{difference:+.2g}")
    return strict, strict or abs(difference) <= ALLOWED[need], part


def table(rows, runs):
    print(f"\nAfter {runs} run{'s' if runs > 1 else ''} (truth, and the learned need's difference):")
    print(f"  {'PROGRAM':10} " + " ".join(f"{n:>20}" for n in NEEDS) + "  RIGHT")
    strict = allowed = strict_needs = allowed_needs = 0
    for name, truth, value in rows:
        judged = [off(n, value[n], truth[n]) for n in NEEDS]
        good = all(j[0] for j in judged), all(j[1] for j in judged)
        strict, allowed = strict + good[0], allowed + good[1]
        strict_needs += sum(j[0] for j in judged)
        allowed_needs += sum(j[1] for j in judged)
        cells = " ".join(f"{truth[n]:12.2f} {j[2]:>7}" for n, j in zip(NEEDS, judged))
        print(f"  {name:10} {cells}  {'yes' if good[0] else 'allowed' if good[1] else 'NO'}")
    total = len(rows) * len(NEEDS)
    print(f"  within 20 %: {strict} of {len(rows)} programs ({strict_needs} of {total} needs); "
          f"with the allowances: {allowed} of {len(rows)} ({allowed_needs} of {total})")
    return {"runs": runs, "programs": len(rows), "strict": strict, "allowed": allowed,
            "needs": total, "needs_strict": strict_needs, "needs_allowed": allowed_needs}


def sizes(bed, tool, d):
    """What sha256sum's class expects of an input that is twice as large as any it saw."""
    for n in (8, 16, 24, 32):
        job(bed, d, "by-size", ["sha256sum", f"{d}/size{n}"])
    value = learned(bed, "by-size", 64 * MIB / 1e6)
    truth = truth_of(bed, tool, d, ["sha256sum", f"{d}/size64"], TRUTHS)
    return table([("by-size", truth, value)], 4)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build")
    p.add_argument("--testbed", default="tests/testbed/testbed")
    p.add_argument("--programs", help="only these, with commas between")
    p.add_argument("--runs", type=int, default=max(RUNS), help="runs of each program")
    p.add_argument("--out", help="write the results to this file as JSON")
    args = p.parse_args()
    bed = Bed(args.testbed)
    tool = os.path.abspath(f"{args.build}/tests/tools/truth")
    d = bed.read(["sh", "-c", "echo $IOCOM_TESTBED_DISK"]).strip() + "/profiles"
    bed.run(["mkdir", "-p", d])
    bed.run([sys.executable, "-B", os.path.abspath(__file__), "--inputs", d])
    chosen = [(n, c) for n, c in programs(d) if shutil.which(c[0]) and
              (not args.programs or n in args.programs.split(","))]
    truths = {}
    rows = {runs: [] for runs in RUNS}
    for name, command in chosen:
        truths[name] = truth_of(bed, tool, d, command, TRUTHS)
        for done in range(1, args.runs + 1):
            job(bed, d, name, command)
            if done in RUNS:
                rows[done].append((name, truths[name], learned(bed, name)))
        print(f"  {name}: {args.runs} runs", file=sys.stderr)
    print(f"Allowances for tiny values: {', '.join(f'{n} {a}' for n, a in ALLOWED.items())}")
    results = [table(r, runs) for runs, r in rows.items() if r]
    print("\nBy the size of the input: sha256sum of 64 MiB, after runs on 8, 16, 24 and 32 MiB")
    by_size = sizes(bed, tool, d)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as out:
            json.dump({"after": results, "by_size": by_size,
                       "programs": {str(runs): [{"program": n, "truth": t, "learned": v} for n, t, v in r]
                                    for runs, r in rows.items()}}, out, indent=1)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--inputs":
        make_inputs(sys.argv[2])
    else:
        main()
