#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Checks a directory that `iocom-sim figures` wrote: the page, and how its figures are drawn.

page_check.py page DIR     the page: well-formed, its numbers are those of the JSON files
page_check.py svg FILE...  no text on another or outside, two labels at each axis
Prints a line for each fault; exits 1 if there is any.
"""
import base64
import hashlib
import json
import os
import re
import sys
import xml.etree.ElementTree as tree

HTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
VERDICTS = ["holds", "exceeded", "contradicted", "undecided", "not tested"]
faults = 0


def fault(text):
    global faults
    faults += 1
    print(text)


def text_of(node):
    return "".join(node.itertext())


# --- the page ------------------------------------------------------------------------


def near(shown, value, scale):
    """Whether the text SHOWN is VALUE, rounded to what is shown; null is infinite."""
    if value is None:
        return shown in ("inf", "-inf", "nan", "-nan")
    value *= scale
    return abs(float(shown) - value) <= max(0.051, 0.0051 * abs(value))


def check_headline(row, directory):
    name, n = row.get("data-id"), int(row.get("data-claim"))
    cells = [text_of(cell) for cell in row.findall(HTML + "td")]
    path = os.path.join(directory, name + ".json")
    if not os.path.exists(path):
        if cells[3] != "not run" or name not in cells[4]:
            fault(f"{name}.{n}: not run, and not marked: {cells}")
        return "not run"
    with open(path, encoding="utf-8") as f:
        claim = json.load(f)["claims"][n - 1]
    if cells[3] != claim["verdict"]:
        fault(f"{name}.{n}: {cells[3]}, in the JSON {claim['verdict']}")
    if not cells[4]:
        fault(f"{name}.{n}: no reason")
    if "interval" not in claim or claim["verdict"] == "not tested":
        return claim["verdict"]
    low, mean, high = claim["bounds"]["low"], claim["interval"]["mean"], claim["bounds"]["high"]
    if claim["verdict"] == "holds" and not (low or -1e99) <= mean <= (high or 1e99):
        if not cells[2] or not claim["measured"].startswith(cells[2]):
            fault(f"{name}.{n}: {cells[2]}, in the JSON {claim['measured']}")
        return claim["verdict"]  # an alternative holds, and the interval is of another
    numbers = re.match(r"(\S+)( %| times|) \[(\S+), (\S+)\]$", cells[2])
    if not numbers:
        fault(f"{name}.{n}: no number with an interval: {cells[2]}")
        return claim["verdict"]
    scale = 100 if numbers.group(2) == " %" else 1
    for shown, part in zip(numbers.group(1, 3, 4), ("mean", "low", "high")):
        if not near(shown, claim["interval"][part], scale):
            fault(f"{name}.{n}: {part} {shown}, in the JSON {claim['interval'][part]}")
    if ("%" in cells[1]) != ("%" in cells[2]) and "no number" not in cells[1]:
        fault(f"{name}.{n}: two units: {cells[1]}, {cells[2]}")
    return claim["verdict"]


def check_effects(page, rows, verdicts):
    """The sentence above the headlines counts their effects as the rows tell them."""
    run = [v for v in verdicts if v != "not run"]
    told = [text_of(p) for p in page.iter(HTML + "p") if text_of(p).startswith("The effect that")]
    if len(told) != bool(run):
        fault(f"{len(told)} sentences of effects")
    if not told:
        return
    there, of = map(int, re.search(r"there in (\d+) of (\d+)", told[0]).groups())
    number = {words: sum(map(int, re.findall(rf"(\d+) {words}", told[0])))
              for words in ("as reported", "larger", "smaller", "of a size that is open")}
    unseen = int(re.search(r"not seen in (\d+)", told[0]).group(1))
    unknown = re.search(r"and open in (\d+)", told[0])
    said = [text_of(row.findall(HTML + "td")[-1]) for row in rows]
    rows_say = {
        "as reported": run.count("holds"),
        "larger": run.count("exceeded"),
        "smaller": sum(t.startswith("There, but smaller.") for t in said),
        "of a size that is open": sum(t.startswith("There, but how large") for t in said),
    }
    if number != rows_say or there != sum(number.values()):
        fault(f"{told[0]} The rows: {rows_say}")
    if there + unseen + (int(unknown.group(1)) if unknown else 0) != of or of != len(run):
        fault(f"{told[0]} {len(run)} headlines were run")


def check_counts(page, claims):
    """The table of counts has the claims below it, and these are all."""
    listed, shown = {}, {}
    for item in page.iter(HTML + "li"):
        if item.get("data-calibrates"):
            continue  # a setting was chosen by it
        key = item.get("data-paper"), item.get("data-verdict")
        listed[key] = listed.get(key, 0) + 1
    for row in page.iter(HTML + "tr"):
        for cell in row.findall(HTML + "td"):
            if row.get("data-paper") and cell.get("data-verdict"):
                shown[row.get("data-paper"), cell.get("data-verdict")] = int(text_of(cell))
    if {k: v for k, v in shown.items() if v} != listed:
        fault(f"counts {shown} of claims {listed}")
    led = [int(text_of(row.findall(HTML + "td")[-1])) for row in page.iter(HTML + "tr")
           if row.get("data-paper") and row.find(HTML + "td/" + HTML + "svg") is not None]
    if sum(led) != sum(c["calibrates"] for c in claims):
        fault(f"{led} claims led to a setting, in the JSON {sum(c['calibrates'] for c in claims)}")
    for verdict in VERDICTS:
        told = sum(n for (_, v), n in shown.items() if v == verdict)
        count = sum(c["verdict"] == verdict and not c["calibrates"] for c in claims)
        if told != count:
            fault(f"{told} {verdict}, in the JSON {count}")


def check_links(page, directory):
    ids = [node.get("id") for node in page.iter() if node.get("id")]
    for name in {name for name in ids if ids.count(name) > 1}:
        fault(f"id {name} is given {ids.count(name)} times")
    for node in page.iter():
        for name, value in node.attrib.items():
            if name.startswith("on") or name == "style":
                fault(f"attribute {name}: the page's policy forbids it")
            if name not in ("href", "src"):
                continue
            if value.startswith("#"):
                if value[1:] not in ids:
                    fault(f"link to {value}, which is not there")
            elif not value.startswith("data:image/svg+xml;base64,"):
                if not os.path.exists(os.path.join(directory, value)):
                    fault(f"{name} {value} is no file of the page")


def check_policy(text, page):
    """The policy allows the page's own style and script by their hashes, and nothing else."""
    policy = [m.get("content") for m in page.iter(HTML + "meta") if m.get("http-equiv")]
    for part in ("style", "script"):
        inside = re.search(f"<{part}>(.*?)</{part}>", text, re.S).group(1)
        digest = hashlib.sha256(inside.encode()).digest()
        allowed = f"{part}-src 'sha256-{base64.b64encode(digest).decode()}'"
        if len(policy) != 1 or allowed not in policy[0]:
            fault(f"the policy does not allow the {part}: {policy}")
    if "default-src 'none'" not in policy[0] or "unsafe" in policy[0]:
        fault(f"the policy is open: {policy}")


def check_reasons(page, claims):
    """A reason stands once below the headlines, however many claims give it."""
    for table in page.iter(HTML + "table"):
        if table.get("class") == "heads":
            table.clear()
    for item in page.iter(HTML + "li"):
        if item.get("data-verdict") in ("holds", "undecided") and "why: " in text_of(item):
            fault(f"a reason for what is not known to fail: {text_of(item)}")
    text = text_of(page)
    for why in {c["why"] for c in claims if c.get("why") and c["verdict"] != "holds"}:
        if text.count(why + ".") != 1:
            fault(f"{text.count(why)} times: {why}")


def check_page(directory):
    with open(os.path.join(directory, "index.html"), encoding="utf-8") as f:
        text = f.read()
    page = tree.fromstring(text)
    claims = []
    for name in sorted(os.listdir(directory)):
        if name.endswith(".json"):
            with open(os.path.join(directory, name), encoding="utf-8") as f:
                claims += json.load(f)["claims"]
    rows = [row for row in page.iter(HTML + "tr") if row.get("data-id")]
    verdicts = [check_headline(row, directory) for row in rows]
    if len(rows) < 10 or len({(r.get("data-id"), r.get("data-claim")) for r in rows}) != len(rows):
        fault(f"{len(rows)} headlines")
    print("# headlines:", ", ".join(f"{verdicts.count(v)} {v}" for v in sorted(set(verdicts))))
    check_effects(page, rows, verdicts)
    check_counts(page, claims)
    check_links(page, directory)
    check_policy(text, page)
    form = [f for f in page.iter(HTML + "form")]
    if len(form) != 1 or form[0].get("hidden") is None:
        fault("without the script the page shows a form that does nothing")
    check_reasons(page, claims)


# --- figures -------------------------------------------------------------------------

LETTER = 0.53  # width of a letter, in heights; real fonts have 0.5 to 0.6


class Text:
    def __init__(self, group, text):
        x, y = map(float, re.match(r"translate\(([-\d.]+),([-\d.]+)\)", group).groups())
        turn = re.search(r"rotate\(([-\d.]+)", group)
        self.turned = float(turn.group(1)) if turn else 0
        self.words, self.x, self.y = text.text.strip(), x, y

    def box(self, size, anchor):
        width, self.anchor = LETTER * size * len(self.words), anchor
        start = {"start": 0, "middle": width / 2, "end": width}[anchor]
        if not self.turned:
            return self.x - start, self.y - 0.75 * size, self.x - start + width, self.y + 0.2 * size
        if abs(self.turned) in (90, 270):
            top = self.y - width + start
            return self.x - 0.75 * size, top, self.x + 0.2 * size, top + width
        return None  # names below bars: turned alike, and so apart from each other


def texts_of(svg):
    found = []
    for group in svg.iter(SVG + "g"):
        inside = group.find(SVG + "text")
        if inside is None or not group.get("transform") or not (inside.text or "").strip():
            continue
        text = Text(group.get("transform"), inside)
        text.area = text.box(float(group.get("font-size")), group.get("text-anchor"))
        found.append(text)
    return found


def check_legend(name, svg, texts):
    """The names in a legend stand beside the plots, whose grid lines show where they are."""
    plots = {}
    for path in svg.iter(SVG + "path"):
        ends = re.findall(r"[ML]([-\d.]+),([-\d.]+)", path.get("d", ""))
        if path.get("class") == "gridline" and len(ends) == 2 and ends[0][1] == ends[1][1]:
            plots.setdefault(float(ends[0][0]), []).append((float(ends[1][0]), float(ends[0][1])))
    for t in texts:
        middle = (t.area[1] + t.area[3]) / 2
        for left, ends in plots.items():
            right, y = max(x for x, _ in ends), [y for _, y in ends]  # a line ends at a legend
            if (t.anchor == "start" and left < t.x < right - 1
                    and min(y) - 8 < middle < max(y) + 8):
                fault(f"{name}: '{t.words}' stands in the plot")


def check_svg(path):
    svg = tree.parse(path).getroot()
    width, height = float(svg.get("width")), float(svg.get("height"))
    name = os.path.basename(path)
    texts = texts_of(svg)
    plain = [t for t in texts if t.area]
    for t in plain:
        if t.area[0] < -1 or t.area[1] < -1 or t.area[2] > width + 1 or t.area[3] > height + 1:
            fault(f"{name}: '{t.words}' leaves the figure")
    for i, a in enumerate(plain):
        for b in plain[:i]:
            if (min(a.area[2], b.area[2]) - max(a.area[0], b.area[0]) > 1
                    and min(a.area[3], b.area[3]) - max(a.area[1], b.area[1]) > 1):
                fault(f"{name}: '{a.words}' stands on '{b.words}'")
    check_legend(name, svg, plain)
    # The labels of vertical axes end at the same place; a panel's name stands turned beside them.
    panels = len([t for t in texts if abs(t.turned) in (90, 270)])
    columns = {}
    for t in plain:
        if t.anchor == "end" and re.match(r"[-\d.e]+$", t.words):
            columns.setdefault(round(t.x), []).append(t)
    labels = sum(map(len, columns.values()))
    if labels < 2 * max(panels, 1):
        fault(f"{name}: {labels} labels at the vertical axes of {panels} plots")
    if "log scale" in text_of(svg) and not any("log scale" in t.words for t in texts):
        fault(f"{name}: the logarithmic scale is not said at the axis")


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("page", "svg"):
        sys.exit(__doc__)
    for path in sys.argv[2:]:
        (check_page if sys.argv[1] == "page" else check_svg)(path)
    sys.exit(1 if faults else 0)


main()
