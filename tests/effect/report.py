# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The report of bench-effect: tables in Markdown and a figure, from the kept passes alone."""
import os
import shutil
import subprocess

import choosers
import estimates
import plan
import replayed

REFERENCES = ("nlb", "fewest-jobs")
STATISTICS = (estimates.mean, estimates.geometric_mean, estimates.median, estimates.p95)


def slowdown(job):
    """Wall time over the median wall time alone on the idle home node."""
    return job["s"] / job["alone_s"]


def chosen(passes, with_void):
    """One attempt of each pass: the first valid one; with WITH_VOID the last if none is valid."""
    best = {}
    for p in passes:
        key = p["layout"], p["rate"], p["repetition"], p["chooser"]
        if not p["void"]:
            if key not in best or best[key]["void"]:
                best[key] = p
        elif with_void and (key not in best or best[key]["void"]):
            best[key] = p
    return list(best.values())


def by_chooser(passes):
    """{cell: {chooser: passes}}, in the order of the layouts, the rates, and of the names."""
    out = {}
    names = choosers.names(choosers.POLICIES)

    def order(p):
        return (list(plan.LAYOUTS).index(p["layout"]), plan.RATES[p["rate"]],
                names.index(p["chooser"]), p["repetition"])
    for p in sorted(passes, key=order):
        out.setdefault((p["layout"], p["rate"]), {}).setdefault(p["chooser"], []).append(p)
    return out


def slowdowns(passes):
    """{(repetition, job): slowdown} of the jobs that ended well."""
    return {(p["repetition"], j["number"]): slowdown(j)
            for p in passes for j in p["jobs"] if not j["wrong"]}


def moved(passes):
    jobs = [j for p in passes for j in p["jobs"]]
    return sum(j["node"] not in (None, j["home"]) for j in jobs), len(jobs)


def stayed(passes):
    """slowdowns() of the jobs that ran at home."""
    return slowdowns([dict(p, jobs=[j for j in p["jobs"] if j["node"] == j["home"]])
                      for p in passes])


def interval(triple, digits=2):
    value, low, high = triple
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def ratio(ours, theirs, rng):
    """The geometric mean of the ratios paired by job, with its interval; "-": no pairs."""
    found = estimates.bootstrap(estimates.paired_ratios(ours, theirs), [estimates.geometric_mean],
                                rng)
    return interval(found[0]) if found else "-"


def summary(passes, references, rng):
    """What the table says of one chooser in one cell; REFERENCES: {name: its slowdowns()}."""
    by_pass = {}
    ours = slowdowns(passes)
    for (repetition, _), value in ours.items():
        by_pass.setdefault(repetition, []).append(value)
    away, of = moved(passes)
    return dict(passes=len(passes), jobs=len(ours),
                numbers=estimates.bootstrap(list(by_pass.values()), STATISTICS, rng),
                makespan_s=estimates.mean([p["makespan_s"] for p in passes]),
                moved=away, of=of,
                harm=ratio(stayed(passes), references.get("nlb", {}), rng),
                ratios={name: ratio(ours, references.get(name, {}), rng) for name in REFERENCES})


HEAD = ["chooser", "passes", "mean slowdown", "geometric mean", "median", "95th percentile",
        "makespan, s", "moved", "stayed jobs / nlb", "jobs / nlb", "jobs / fewest-jobs"]


def table(head, rows):
    return "\n".join("| " + " | ".join(row) + " |"
                     for row in [head, ["---"] * len(head), *rows]) + "\n"


def row(name, s):
    numbers = [interval(n) for n in s["numbers"]] or ["-"] * len(STATISTICS)
    return [name, str(s["passes"]), *numbers, f"{s['makespan_s']:.0f}",
            f"{s['moved']} of {s['of']}", s["harm"], s["ratios"]["nlb"], s["ratios"]["fewest-jobs"]]


def predictions(passes, corrected=True):
    """One list a pass of (chooser, program, measured / expected time where the job ran); without
    jobs that failed or of which nothing was expected.  CORRECTED False: what the rules alone
    expected, without jobs whose answer does not say how it was corrected."""
    out = []
    for p in passes:
        found = []
        for j in p["jobs"]:
            expected = j["expected"] or {}
            ms = expected.get("there_ms")
            factor = 1 if corrected else expected.get("there_factor")
            if ms and factor and not j["wrong"]:
                found.append((p["chooser"], j["program"], j["s"] * 1000 / (ms / factor)))
        out.append(found)
    return out


def within(values, factor):
    return sum(1 / factor <= v <= factor for v in values) / len(values)


def prediction(passes, rng):
    """The statistics of the ratios in PASSES, one list a pass; None: there are none."""
    flat = [v for p in passes for v in p]
    if not flat:
        return None
    return dict(jobs=len(flat), p5=estimates.quantile(flat, 0.05), p95=estimates.p95(flat),
                median=estimates.bootstrap(passes, [estimates.median], rng)[0],
                within_1_25=within(flat, 1.25), within_2=within(flat, 2.0))


KINDS = {"corrected": True, "rules alone": False}


def prediction_rows(passes, column, names):
    """{name: {kind: prediction()}} for the NAMES in COLUMN (0 chooser, 1 program) of
    predictions(); name "all" takes everything."""
    found = {kind: predictions(passes, corrected) for kind, corrected in KINDS.items()}
    out = {}
    for name in [*names, "all"]:
        of = {kind: prediction([[v[2] for v in p if name in (v[column], "all")] for p in lists],
                               estimates.generator("predictions", column, name))
              for kind, lists in found.items()}
        if of["corrected"]:
            out[name] = of
    return out


def prediction_summaries(passes):
    """prediction_rows() by chooser and by program."""
    ordered = [p for rows in by_chooser(passes).values() for found in rows.values() for p in found]
    return {what: prediction_rows(ordered, column, dict.fromkeys(
        v[column] for p in predictions(ordered) for v in p))
        for column, what in enumerate(("chooser", "program"))}


def prediction_table(what, rows):
    head = [what, "expected", "jobs", "measured / expected: 5th percentile", "median",
            "95th percentile", "within 1.25x", "within 2x"]
    return table(head, [[name, kind, str(s["jobs"]), f"{s['p5']:.2f}", interval(s["median"]),
                         f"{s['p95']:.2f}", f"{100 * s['within_1_25']:.0f} %",
                         f"{100 * s['within_2']:.0f} %"]
                        for name, kinds in rows.items() for kind, s in kinds.items() if s])


def prediction_section(found):
    if not found["chooser"]:
        return ["Nothing was expected of any job.\n"]
    return ["Measured over expected time of each job where it ran; 1 is right. *corrected*: what the "
            "decision expected. *rules alone*: without the correction by earlier runs.\n",
            *(prediction_table(what, rows) for what, rows in found.items())]


def void_table(passes):
    rows = [[p["layout"], p["rate"], str(p["repetition"]), p["chooser"], "; ".join(p["void"])]
            for p in passes if p["void"]]
    if not rows:
        return "None.\n"
    return table(["layout", "rate", "repetition", "chooser", "why"],
                 [[c.replace("|", "\\|").replace("\n", " ") for c in r] for r in rows])


def alone_table(alone):
    rows = [[f"{float(speed):g}", program, f"{v['s']:.2f}", f"{v['cpu_s']:.2f}",
             f"{v['disk_mb']:.1f}", f"{100 * v['foreign']:.1f} %"]
            for speed, programs in sorted(alone.items(), key=lambda i: -float(i[0]))
            for program, v in programs.items()]
    return table(["disk, MB/s", "program", "alone, s", "CPU, s", "disk, MB", "taken by others"], rows)


def figure(store, cells):
    """Mean slowdowns with their intervals, one panel a cell; the reason if there is no figure."""
    if not shutil.which("gnuplot"):
        return "gnuplot is not installed"
    data, plots = [], []
    for number, ((layout, rate), rows) in enumerate(cells.items()):
        for at, (name, s) in enumerate(rows.items()):
            if s["numbers"]:
                data.append(f"{at} \"{name}\" {' '.join(f'{v:.6g}' for v in s['numbers'][0])}")
        data.append("\n")
        plots.append(f"set title '{layout}, {rate} rate'\n"
                     f"plot 'effect.dat' index {number} using 1:3:4:5:xtic(2) with yerrorbars "
                     "pt 7 ps 0.7 lc rgb '#204a87' notitle\n")
    columns = 1 if len(cells) == 1 else 2
    lines = -(-len(cells) // columns)
    head = (f"set terminal pngcairo size {700 * columns},{420 * lines} font 'sans,10'\n"
            "set output 'effect.png'\nset xtics rotate by -40\nset grid ytics\n"
            "set ylabel 'mean slowdown (95 % interval)'\nset yrange [0:*]\n"
            "set offsets 0.5, 0.5, 0, 0\n"
            f"set multiplot layout {lines},{columns}\n")
    for name, text in (("effect.dat", "\n".join(data) + "\n"), ("effect.gp", head + "".join(plots))):
        with open(store.path(name), "w", encoding="utf-8") as f:
            f.write(text)
    done = subprocess.run(["gnuplot", "effect.gp"], cwd=store.directory, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL)
    if done.returncode or not os.path.getsize(store.path("effect.png")):
        return "gnuplot failed: " + done.stderr.strip()[-300:]
    return ""


def summaries(passes):
    """{cell: {chooser: summary}}."""
    out = {}
    for cell, rows in by_chooser(passes).items():
        references = {name: slowdowns(rows[name]) for name in REFERENCES if name in rows}
        out[cell] = {name: summary(found, references, estimates.generator("bootstrap", *cell, name))
                     for name, found in rows.items()}
    return out


def write(store, with_void=False):
    """Writes report.md, report.json and effect.png; returns the report."""
    everything = store.all()
    settings = store.read("plan.json") or {}
    passes = chosen(everything, with_void)
    cells = summaries(passes)
    skipped = (store.read("inputs/expected.json") or {}).get("skipped", {})
    parts = ["# The effect of placement on real applications\n",
             f"Set {settings.get('set')}, seed {settings.get('seed')}, {settings.get('jobs')} jobs a "
             f"pass, inputs at scale {settings.get('scale'):g}. Intervals: 95 %, by a bootstrap over "
             "passes, then jobs. Ratios: geometric means, paired by job; below 1 is better.\n"
             if settings else "No results yet.\n"]
    if any(p["void"] for p in passes):
        parts.append("**VOID: the tables have void passes in them. They show that the benchmark "
                     "works; the numbers mean nothing.**\n")
    alone = store.read("alone.json", {})
    if any(v["foreign"] > plan.FOREIGN_MAX for rows in alone.values() for v in rows.values()):
        parts.append("**VOID: others took too much of the machine while the times alone were "
                     "measured, so no slowdown is right. Start again with an empty OUT.**\n")
    parts += [f"Skipped: {name}: {reason}.\n" for name, reason in skipped.items()]
    if not cells:
        parts.append("No valid pass.\n")
    for (layout, rate), rows in cells.items():
        parts += [f"## {layout} disks, {rate} rate ({100 * plan.RATES[rate]:.0f} %)\n",
                  table(HEAD, [row(name, s) for name, s in rows.items()])]
    if cells:
        problem = figure(store, cells)
        parts.append(f"No figure: {problem}.\n" if problem else "![mean slowdowns](effect.png)\n")
        parts += ["## Predictions\n", *prediction_section(prediction_summaries(passes))]
    compared = replayed.rows(passes)
    if compared:
        parts += ["## Recorded and replayed\n",
                  "Differences: the median over the passes (least to most); 0 is right, the goal is 10. Void: "
                  "others took too much while it was recorded, or lines are missing.\n",
                  table(replayed.HEAD, compared)]
    parts += ["## Void passes\n", void_table(everything), "## Alone\n", alone_table(alone)]
    text = "\n".join(parts)
    with open(store.path("report.md"), "w", encoding="utf-8") as f:
        f.write(text)
    store.write("report.json", dict({"/".join(cell): rows for cell, rows in cells.items()},
                                    predictions=prediction_summaries(passes)))
    return text
