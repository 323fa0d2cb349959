"""Pictures of results: launches, workloads against peers, bandwidth over sizes.

    python benchmarks/plot.py results/launch-*.json results/kernels-*.json results/sweeps-*.json

Each file gives pictures named after it, as PNG and SVG, in docs/pictures. Needs matplotlib; no GPU.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from common import ROOT

COLOURS = {"fkl": "#1b7f4d", "C": "#444444", "other": "#b9b9b9"}


def colour(name: str) -> str:
    if name.startswith(("k(", "k.", "fkl", "three k")):
        return COLOURS["fkl"]
    return COLOURS["C"] if name.startswith(("C ", "equal copy", "by hand")) else COLOURS["other"]


def caption(data) -> str:
    m = data["machine"]
    return f"{m['gpu']}, Python {m['python']}, torch {m['packages'].get('torch', '-')}, commit {m['commit']}"


def bars(ax, values: dict[str, float], unit: str, log: bool = False, most: float | None = None) -> None:
    """Horizontal bars, the shortest on top, each with its number. Bars beyond ``most`` are cut."""
    names = sorted(values, key=values.get, reverse=True)
    ax.barh(names, [values[n] for n in names], color=[colour(n) for n in names])
    for i, n in enumerate(names):
        text = f" {values[n]:,.0f}" if values[n] >= 100 else f" {values[n]:.1f}"
        cut = most is not None and values[n] > most
        ax.text(most * 0.98 if cut else values[n], i, text + (" (cut)" if cut else ""), va="center", ha="right" if cut else "left", fontsize=8)
    if most is not None and max(values.values()) > most:
        ax.set_xlim(0, most)
    ax.set_xlabel(unit)
    ax.tick_params(labelsize=8)
    if log:
        ax.set_xscale("log")
    ax.spines[["top", "right"]].set_visible(False)
    if most is None:
        ax.margins(x=0.12)


def launch(plt, data):
    values = {n: v for n, v in data["nanoseconds a call"].items() if "p99" not in n and n != "empty Python loop"}
    waits = {n: v for n, v in values.items() if "sync" in n or "flag" in n or ".run(" in n}
    figure, axes = plt.subplots(2, 1, figsize=(8, 9), height_ratios=[len(values) - len(waits), len(waits)])
    bars(axes[0], {n: v for n, v in values.items() if n not in waits}, "nanoseconds a call", log=True)
    bars(axes[1], waits, "nanoseconds until the result is there, median")
    axes[0].set_title("What a call costs the host")
    return figure


def kernels(plt, data):
    found = data["workloads"]
    figure, axes = plt.subplots(-(-len(found) // 2), 2, figsize=(11, 2.2 * -(-len(found) // 2)))
    for ax, (name, r) in zip(axes.flat, found.items(), strict=False):
        bars(ax, r["microseconds"], "microseconds of GPU time", most=2.5 * r["microseconds"]["fkl"])
        ax.set_title(name, fontsize=9)
    for ax in axes.flat[len(found) :]:
        ax.axis("off")
    return figure


def sweeps(plt, data):
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), sharey=True)
    for ax, (name, rows) in zip(axes, data["sizes"].items(), strict=True):
        key = "side" if "side" in rows[0] else "batch"
        at = [r[key] for r in rows]
        ax.plot(at, [r["GB/s"] for r in rows], "o-", color=COLOURS["fkl"], label="fkl")
        ax.plot(at, [r["copy GB/s"] for r in rows], "s--", color=COLOURS["C"], label="a copy of as many bytes")
        ax.set_xscale("log", base=2)
        ax.set_xlabel("side of the square image" if key == "side" else "images of a batch")
        ax.set_title(name, fontsize=10)
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("GB/s read and written")
    axes[0].legend()
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    args = parser.parse_args()
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "fkl"
    import matplotlib.pyplot as plt

    args.out.mkdir(parents=True, exist_ok=True)
    for path in args.files:
        data = json.loads(path.read_text())
        kind = path.stem.partition("-")[0]
        figure = {"launch": launch, "kernels": kernels, "sweeps": sweeps}[kind](plt, data)
        figure.text(0.99, 0.005, caption(data), ha="right", fontsize=7, color="#666666")
        figure.tight_layout(rect=(0, 0.02, 1, 1))
        for suffix in ("png", "svg"):
            figure.savefig(args.out / f"{kind}.{suffix}", dpi=110, metadata={"Date": None} if suffix == "svg" else None)
        plt.close(figure)
        print(f"wrote {args.out / kind}.png and .svg")


if __name__ == "__main__":
    main()
