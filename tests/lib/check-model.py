#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""
Every citation of the model leads somewhere: "MODEL 3.11", "O-8(d)", "E-4" and "reading 7" in a
tracked source, script, manual page or document have an entry in balancer/rules/README.md, and a
document named in capitals ("README.md") is in the tree.  The tables of parameters there name all
parameters with the defaults that the code gives them.

Usage: check-model.py [FILE...]: these files in place of the tracked ones; --self-test.
"""
import os
import re
import subprocess
import sys
import tempfile

MODEL = "balancer/rules/README.md"
READ = (".c", ".h", ".scd", ".sh", ".py", ".md")

# "MODEL 4.6, 4.7", "MODEL 5.1-5.4", "MODEL sections 1 and 2", "MODEL 2.3 (a new task) or 2.4",
# also where a comment's line ends within.  A second item without a dot has one digit.
GAP = r'(?:[ \t"\\]|\n[ \t]*(?:\*|//|#|")?)+'
NUMBER = r"[0-9]+(?:\.[0-9]+)?(?![0-9])"
JOIN = rf"(?:,{GAP}and|,|{GAP}and|(?:{GAP}\([^()]*\))?{GAP}or|{GAP}to)"
MORE = rf"(?:{JOIN}{GAP}(?:section{GAP})?(?:[0-9]+\.[0-9]+|[0-9])(?![0-9.]*[0-9])|[-–/][0-9]+\.[0-9]+)"
SECTIONS = re.compile(rf"(?<!\w)MODEL{GAP}(?:sections?{GAP})?({NUMBER}{MORE}*)")
# "O-8(d)", not "ISO-8859" or "1E-4".
ENTRY = re.compile(r"(?<![\w.-])([OE]-[0-9]+)((?:\([a-z]\))?)(?!\w|\.\d)")
ENTRIES = re.compile(r"(?<![\w.-])([OE])-([0-9]+)(?:-| to |–)(?:\1-)?([0-9]+)(?!\w|\.\d)")
# Followed by punctuation: "a reading 16 bytes long" is something else.
READING = re.compile(rf"\breadings?{GAP}([0-9]+)(?:{GAP}(?:to|and){GAP}([0-9]+))?(?=[:;,.)]|\s+of\b)")
# A section without "MODEL": at the start of a comment in the headers of parameters, of a text
# that explains one.
BARE_COMMENT = re.compile(r"/\* (?:[a-z] of )?([1-9]\.[0-9]{1,2})(?=[:;,]| \*/| \()")
BARE_TEXT = re.compile(r'"([1-9]\.[0-9]{1,2})(?: [a-z])?(?=: |, O-)')
BARE_HEADERS = ("include/iocom/rules.h", "sim/params.h")
DOCUMENT = re.compile(r"(?<![\w/.-])([A-Z][A-Z_]+\.md)\b")


def entries(text):
    """What the model has: its headings and the items "- (a)" under them."""
    found, under = set(), None
    for line in text.split("\n"):
        heading = re.match(r"#{2,4} (?:([0-9]+(?:\.[0-9]+)?|[OE]-[0-9]+)|Reading ([0-9]+))\b", line)
        item = re.match(r"- (\([a-z]\)) ", line)
        if heading:
            under = heading[1] or "reading " + heading[2]
            if under in found:
                raise SystemExit(f"{MODEL}: two entries {under}")
            found.add(under)
        elif re.match(r"#", line):
            under = None
        elif item and under:
            found.add(under + item[1])
    return found


def citations(name, text):
    """(offset, entry) of all that TEXT cites."""
    for m in SECTIONS.finditer(text):
        listed = re.sub(r"\([^()]*\)", "", m[1])
        for n in re.findall(r"[0-9]+(?:\.[0-9]+)?", listed):
            yield m.start(), n
        for a, b in re.findall(r"([0-9]+\.[0-9]+)[-–]([0-9]+\.[0-9]+)", listed):
            major, first, last = a.split(".")[0], int(a.split(".")[1]), int(b.split(".")[1])
            for n in range(first, last + 1):
                yield m.start(), f"{major}.{n}"
    for m in ENTRY.finditer(text):
        yield m.start(), m[1] + m[2]
    for m in ENTRIES.finditer(text):
        for n in range(int(m[2]), int(m[3]) + 1):
            yield m.start(), f"{m[1]}-{n}"
    for m in READING.finditer(text):
        for n in range(int(m[1]), int(m[2] or m[1]) + 1):
            yield m.start(), f"reading {n}"
    if name in BARE_HEADERS:
        for m in BARE_COMMENT.finditer(text):
            yield m.start(), m[1]
    if name.startswith("sim/") and name.endswith((".c", ".h")):
        for m in BARE_TEXT.finditer(text):
            yield m.start(), m[1]


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True)
    return [f for f in listed.stdout.split("\0") if f]


def read(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


def check_citations(files, known, documents):
    """The complaints, and how many citations there were."""
    wrong, count = [], 0
    for name in files:
        text = read(name)
        for at, entry in citations(name, text):
            count += 1
            if entry not in known:
                line = text.count("\n", 0, at) + 1
                wrong.append(f"{name}:{line}: {entry}: no such entry in {MODEL}")
        for m in DOCUMENT.finditer(text):
            if m[1] not in documents:
                line = text.count("\n", 0, m.start()) + 1
                wrong.append(f"{name}:{line}: {m[1]}: no such document")
    return wrong, count


def block(text, start, end):
    at = text.index(start)
    return text[at : text.index(end, at)]


def told(value):
    return {"true": "yes", "false": "no", "SIM_REQUEST": "0"}.get(value, value)


def defaults():
    """Field -> the cells of its row: default and, of the rules, the one in wall rates."""
    rules = read("balancer/rules/params.c")
    common = dict(re.findall(r"\.(\w+) = ([^,\n]+),", block(rules, "papers = {", "};")))
    wall = dict(
        re.findall(r"params->(\w+) = ([^;]+);", block(rules, "void rules_params_default", "\n}"))
    )
    del common["rates"]
    rows = {k: [told(v), told(wall.get(k, v))] for k, v in common.items()}
    sim = read("sim/engine/params.c")
    table = block(sim, "params_table[] = {", "};")
    given = dict(re.findall(r"\.(\w+) = ([^,\n]+),", block(sim, "*p = (struct sim_params){", "};")))
    for kind, k in re.findall(r"\b(ROW|NUMBER|BOOLEAN)\((\w+)", table):
        rows[k] = [told(given.get(k, "false" if kind == "BOOLEAN" else "0"))]
    return rows


def check_parameters(text, rows):
    """The tables of section 9 against what the code has."""
    section = text[text.index("\n## 9 ") : text.index("\n## 10 ")]
    listed = {
        m[1]: [c.strip() for c in m[2].split("|")]
        for m in re.finditer(r"^\| `(\w+)` \|(.*)\|$", section, re.MULTILINE)
    }
    listed = {k: v for k, v in listed.items() if k not in ("rules_params", "sim_params")}
    wrong = [f"{MODEL}: section 9 lacks the parameter {k}" for k in rows if k not in listed]
    wrong += [f"{MODEL}: section 9: {k} is no parameter" for k in listed if k not in rows]
    for k, cells in rows.items():
        if k in listed and listed[k][: len(cells)] != cells:
            wrong.append(
                f"{MODEL}: section 9: {k} is {', '.join(listed[k][:len(cells)])}, "
                f"in the code {', '.join(cells)}"
            )
    return wrong


def check(files):
    text = read(MODEL)
    all_files = tracked()
    files = files or [f for f in all_files if f.endswith(READ) and not skipped(f)]
    documents = {os.path.basename(f) for f in all_files}
    known = entries(text)
    wrong, count = check_citations(files, known, documents)
    wrong += check_parameters(text, defaults())
    for line in wrong:
        print("check-model: " + line, file=sys.stderr)
    if not wrong:
        print(f"check-model: {count} citations of {len(known)} entries, none leads nowhere")
    return not wrong


def skipped(name):
    """This file is full of citations that are examples."""
    return name == "tests/lib/check-model.py"


# --- the check checked ------------------------------------------------------------------------

KNOWN = {"1", "2", "2.3", "2.4", "3.9", "3.10", "3.11", "5.7", "5.8", "6"}
KNOWN |= {"O-8", "O-8(d)", "O-17", "O-18", "O-19", "E-4", "E-10", "E-11", "reading 1", "reading 2"}
GOOD = [
    "/* as MODEL 3.11 has it, O-8(d) */",
    "(MODEL 2.3 (a new task) or 2.4",
    "(MODEL 5.7, 5.8, section 6)",
    "MODEL sections 1 and 2",
    " * the model, MODEL\n * 2.3, is there",
    "MODEL 3.11: S = 2.0, 1.8, 1.9",
    "MODEL 5.8, ZAT Table 1; MODEL 2.3-2.4",
    "O-18/O-19; O-17, O-19; (E-10, E-11)",
    "O-17 to O-19, readings 1 to 2: all",
    "ISO-8859-1, 1E-99, 2.5E-77, IO-99, -O-99, COM-E-99, o-99",
    "a reading 99 bytes long",
]
# Text, and what of it leads nowhere.
BAD = [
    ("see O-999", "O-999"),
    ("It is E-99.", "E-99"),
    ("see O-8(z)", "O-8(z)"),
    ("E-16 is none", "E-16"),
    ("(MODEL 3.99)", "3.99"),
    ("(MODEL 2.3, 3.98)", "3.98"),
    ("MODEL 2.3 (a task) or 3.97", "3.97"),
    ("MODEL 3.9-3.12", "3.12"),
    ("the model, MODEL\n * 3.96, is", "3.96"),
    ("sections: MODEL section 7", "7"),
    ("O-17 to O-20", "O-20"),
    ("(reading 9)", "reading 9"),
    ("as NOWHERE.md says", "NOWHERE.md"),
]


def self_test():
    failed = 0

    def expect(what, holds):
        nonlocal failed
        failed += not holds
        print(("ok" if holds else "not ok") + f" - {what!r}")

    with tempfile.TemporaryDirectory() as folder:

        def complaints(text):
            name = os.path.join(folder, "twin.c")
            with open(name, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            return check_citations([name], KNOWN, {"README.md"})[0]

        for text in GOOD:
            expect(text, complaints(text) == [])
        for text, entry in BAD:
            wrong = complaints(text)
            expect(text, bool(wrong) and all(f": {entry}: no such" in w for w in wrong))
        # As it is run: a bad twin fails, and a file, its line and the citation are named.
        name = os.path.join(folder, "twin.c")
        with open(name, "w", encoding="utf-8") as file:
            file.write("/* fine: O-8(d) */\n/* O-999 */\n")
        run = subprocess.run([sys.executable, "-B", __file__, name], capture_output=True, text=True)
        expect(f"a bad twin: {run.stderr.strip()}", run.returncode == 1 and
               run.stderr.startswith(f"check-model: {name}:2: O-999: "))
    expect("bare sections of the parameters' headers",
           [e for _, e in citations("sim/params.h", "double x; /* 5.1; 10 and 0.1 */ /* 8.1 ms */")]
           == ["5.1"])
    expect("bare sections of texts",
           [e for _, e in citations("sim/cli/x.c", '{"a", "2.3 e, O-10: b"}, {"1.25", "5.9 per"}')]
           == ["O-10", "2.3"])
    heads = entries("## 3 A\n### 3.1 B\n### O-8 C\n- (a) x\n#### Reading 1: y\n# 9 no\n- (b) z\n")
    expect("entries", heads == {"3", "3.1", "O-8", "O-8(a)", "reading 1"})
    text, rows = read(MODEL), defaults()
    expect("the parameters", check_parameters(text, rows) == [])
    expect("a parameter's other default", check_parameters(text, {**rows, "rho_max": ["1", "1"]}))
    expect("a parameter more", check_parameters(text, {**rows, "rho_min": ["1", "1"]}))
    return failed == 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(not self_test())
    sys.exit(not check(sys.argv[1:]))
