#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Jobs with a terminal that move while they are attached: this plays the user at a terminal.

usage: migrate_terminal.py IOCOM RUN-DIR [PART...]

Prints a line "ok WHAT" or "not ok WHAT: ..." for each thing that it finds.
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

IOCOM, RUN_DIR, *PARTS = sys.argv[1:]
LIMIT = 60
ENV = dict(os.environ, IOCOM_RUN_DIR=RUN_DIR, TERM="xterm", LC_ALL="C")


def told(good, what, detail=""):
    print(("ok " if good else "not ok ") + what + ("" if good else ": " + repr(detail)), flush=True)


class Terminal:
    """A client at a terminal of ours."""

    def __init__(self, *command, rows=24, columns=80):
        self.seen = ""
        self.status = None
        reader, writer = os.pipe()
        self.pid, self.master = pty.fork()
        if not self.pid:
            os.dup2(writer, 3)
            # When a session's leader ends, what its terminal has not shown yet is lost.
            words = ["sh", "-c", 'trap : INT; "$@"; echo ended $?; exec sleep 1000', "sh", IOCOM,
                     "run", "--node", "n1", "--pty", "--migratable", "--status-fd", "3", "--", *command]
            os.execve("/bin/sh", words, ENV)
        os.close(writer)
        self.resize(rows, columns)
        with os.fdopen(reader) as said:
            for line in said:
                state = json.loads(line)
                if state["state"] == "started":
                    break
            self.job = state["job"]
            self.rest = os.dup(said.fileno())

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self, seconds):
        """Reads what comes within so many seconds; returns False at the end."""
        ready = select.select([self.master], [], [], seconds)[0]
        if not ready:
            return True
        try:
            self.seen += os.read(self.master, 65536).decode(errors="replace")
        except OSError:
            return False
        return True

    def expect(self, regex, what=None):
        until = time.monotonic() + LIMIT
        found = re.search(regex, self.seen, re.M)
        while not found and time.monotonic() < until:
            if not self.read(0.2):
                break
            found = re.search(regex, self.seen, re.M)
        found = found or re.search(regex, self.seen, re.M)
        if what or not found:
            told(found, what or regex, self.seen[-600:])
        return found

    def quiet(self, seconds=0.5):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if not self.read(0.1):
                return

    def move(self, node, what=None, regex="frozen for"):
        done = subprocess.run([IOCOM, "migrate", self.job, node], env=ENV, capture_output=True,
                              text=True, timeout=100, check=False)
        said = done.stdout + done.stderr
        told(re.search(regex, said), what or f"it moves to {node}", said)

    def ends(self, status, what):
        how = self.expect(r"ended \d+\r", None)
        told(how and int(how.group()[6:]) == status, what, self.seen[-300:])
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.master)


ECHO = r"""
import sys
n = 0
for line in sys.stdin:
    print("%d:%s;" % (n, line.rstrip("\n")), flush=True)
    n += 1
    if line == "over\n":
        sys.exit(9)
"""


def lines():
    """Lines typed before, between and after moves: each is there once."""
    t = Terminal("python3", "-c", ECHO)
    t.type("one\n")
    t.expect("0:one;")
    t.move("n2")
    t.type("two\n")
    t.expect("1:two;", "what is typed after a move reaches it")
    t.type("half")
    t.quiet()
    t.move("n1", "with a line that is begun")
    t.type(" and half\n")
    t.expect("2:half and half;", "the line is whole")
    t.quiet()
    told(t.seen.count("half") == 4, "the terminal shows it as often as without a move", t.seen)
    t.type("wrong")
    t.quiet()
    t.move("n2", "with a line to be corrected")
    t.type("\x7f" * 5 + "right\n")
    t.expect("3:right;", "keys that erase reach what was typed before")
    t.type("over\n")
    t.ends(9, "its status")


SLOW = r"""
import os, sys, time
ready = sys.argv[1]
print("waits", flush=True)
while not os.path.exists(ready):
    time.sleep(0.05)
os.unlink(ready)
while True:
    data = os.read(0, 100)
    print("<%s>" % data.decode().replace("\n", "/"), flush=True)
    if not data:
        print("end", flush=True)
    if data == b"over\n":
        sys.exit(4)
"""


def unread():
    """Whole lines, ends of input and a part of a line that nobody has read yet."""
    ready = RUN_DIR + "/unread"
    t = Terminal("python3", "-c", SLOW, ready)
    t.expect("waits")
    t.type("first\nsecond\n\x04third\x04\x16\x04literal\nrest")
    t.quiet()
    t.move("n2", "with lines that it has not read")
    t.quiet(1)
    t.move("n1", "twice")
    with open(ready, "w", encoding="ascii"):
        pass
    t.expect("<first/>.*\n.*<second/>.*\n.*<>.*\nend.*\n.*<third>.*\n.*<\x04literal/>",
             "it reads them, and the ends between, as they were typed")
    t.type(" of it\nover\n")
    t.expect("<rest of it/>", "and the line that was begun")
    t.ends(4, "and ends")


RAW = r"""
import fcntl, os, signal, struct, sys, termios, time, tty
def size(*_):
    print("size %dx%d\r" % struct.unpack("4H", fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))[:2], flush=True)
signal.signal(signal.SIGWINCH, lambda *_: (print("WINCH\r"), size()))
tty.setraw(0)
print("raw\r", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
while True:
    try:
        data = os.read(0, 1000)
    except InterruptedError:
        continue
    print("[%s]\r" % data.hex(), flush=True)
    if data == b"s":
        size()
    if data == b"q":
        sys.exit(3)
"""


def raw():
    """A program that reads keys, as editors do."""
    ready = RUN_DIR + "/raw"
    t = Terminal("python3", "-c", RAW, ready, rows=31, columns=97)
    t.expect("raw")
    t.type("a\x03\x04\x16\r\nz")
    t.quiet()
    t.move("n2", "with keys that it has not read")
    with open(ready, "w", encoding="ascii"):
        pass
    t.expect(r"\[610304160d0a7a\]", "it reads each as it was typed")
    t.quiet()
    t.type("s")
    t.expect("size 31x97", "its size is the same")
    told("WINCH" not in t.seen, "it was told of no other", t.seen)
    t.type("\x03")
    t.expect(r"\[03\]", "its modes are the same")
    t.resize(40, 120)
    t.expect("WINCH\r\n*size 40x120", "it is told of a new size after the move")
    t.move("n1")
    t.resize(41, 121)
    t.expect("WINCH\r\n*size 41x121", "and of another one after the next")
    t.type("q")
    t.ends(3, "its status")


def shell():
    """A shell with job control, in whose foreground a program runs."""
    t = Terminal("bash", "--norc", "-i")
    t.type("PS1=; stty -echo; trap 'echo caught' INT\n")
    t.quiet()
    t.type("sleep 1000 & echo back$((20+3))\n")
    t.expect("back23")
    t.move("n2")
    t.type("echo at$((40+2)); ps -o tty= -p $$; jobs\n")
    t.expect("at42\r\npts/[0-9]+\r\n.*Running +sleep 1000", "a shell goes on, with its background")
    t.type("sleep 2000; echo with $?\n")
    t.quiet(1)
    t.move("n1", "with a program in the foreground")
    t.type("\x1a")
    t.expect("Stopped +sleep 2000", "^Z stops the program")
    t.type("fg; echo fg $?\n")
    t.quiet(1)
    t.move("n2", "again")
    t.type("\x03")
    t.expect("fg 130", "^C ends the program, and not the shell")
    t.type("echo on >/dev/tty; kill %1; exit 6\n")
    t.expect("on", "/dev/tty is its terminal")
    t.quiet()
    t.type("exit 6\n")
    t.ends(6, "the shell's status")


def interrupt():
    """^C, typed after a move."""
    t = Terminal("sleep", "1000")
    t.quiet()
    t.move("n2")
    t.type("\x03")
    t.ends(130, "^C after a move: 130")


def flood():
    """Output that comes faster than it is shown."""
    t = Terminal("sh", "-c", "seq 200000; exit 8")
    t.expect("^100\r")
    t.move("n2", "while it writes without a pause")
    t.ends(8, "to its end")
    numbers = [int(n) for n in re.findall(r"^(\d+)\r*$", t.seen, re.M)]
    told(numbers == list(range(1, 200001)), "each line of its output is there once",
         (len(numbers), numbers[-3:]))


REFUSED = (
    ("opened once more", "import os, time; f = os.open(os.ttyname(0), os.O_RDWR); print('there'); time.sleep(1000)",
     "it has opened its terminal by its name"),
    ("given up", "import os, time; print('there', flush=True)\nfor i in range(3): os.close(i)\ntime.sleep(1000)",
     "it has given its terminal up"),
    ("another one", "import pty, time; p = pty.openpty(); print('there'); time.sleep(1000)", "it has a device open"),
)


def refused():
    """What cannot move goes on where it is."""
    for name, script, why in REFUSED:
        t = Terminal("python3", "-uc", script)
        t.expect("there")
        t.quiet(0.3)
        t.move("n2", "a terminal " + name + ": refused", "goes on at node n1: " + why)
        subprocess.run([IOCOM, "kill", "-KILL", t.job], env=ENV, check=False)
        t.ends(137, "it is there still")
    t = Terminal("python3", "-c", ECHO)
    t.type("first\n")
    t.expect("0:first;")
    t.type("\x13")
    t.quiet()
    t.move("n2", "stopped output: refused", "is stopped")
    t.type("\x11begun")
    t.quiet()
    t.move("n9", "no such node", "n9")
    t.type("\x16")
    t.quiet()
    t.move("n2", "half a key: refused", "half typed")
    t.type("x\n")
    t.expect("1:begunx;", "nothing of it is lost by that")
    t.type("over\n")
    t.ends(9, "its status")


def main():
    for part in (lines, unread, raw, shell, interrupt, flood, refused):
        if not PARTS or part.__name__ in PARTS:
            part()


signal.signal(signal.SIGPIPE, signal.SIG_DFL)
main()
