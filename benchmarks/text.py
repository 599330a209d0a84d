"""Compare language models in lockstep with a compiled PyTorch loop and with transformers' Trainer, in one table.

    python -m benchmarks.text [--prepared DIR]      CPU, 4 layers x 128; generated captions by default
    python3 -m benchmarks.gpu DIR                   one card, 6 layers x 384; DIR holds a running text

DIR is a folder that `embinit prepare wikitext2` wrote. All programs train GPT-2 without dropout in bfloat16 with fused
AdamW. A step has 8 blocks of 256 tokens per member, and the vocabulary is the same. embinit is measured twice: with its
default, the first layer in float32, and entirely in bfloat16 like its peers. Steps are timed as in benchmarks.training.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.cases import Case, Timing, text_step_flops
from benchmarks.clock import product_size
from benchmarks.training import TRAINER, describe_machine, run_case

OURS, COMPILED = "embinit, language model", "compiled loop"
PROGRAMS = {"embinit": OURS, "compiled": COMPILED, "trainer": TRAINER}


@dataclass(frozen=True)
class TextRow:
    """The results of a case; rates are sums over all members of a group."""

    case: Case
    seconds: float | None = None
    parameters: int = 0
    tokens_per_s: float | None = None
    share_of_peak: float | None = None
    peak_mb: float | None = None
    #: tokens/s over those of the compiled loop
    times_compiled: float | None = None
    note: str = ""


def is_text(folder: str) -> bool:
    """Return whether a folder holds a prepared running text."""
    manifest = Path(folder, "manifest.json")
    return manifest.is_file() and json.loads(manifest.read_text("utf-8"))["task"] == "language_model"


def cases(options: argparse.Namespace, prepared: str) -> Iterator[Case]:
    """Yield the cases of the table: the peers, then embinit with each number of members."""
    manifest = json.loads(Path(prepared, "manifest.json").read_text("utf-8"))
    case = Case(
        COMPILED, prepared, (int(manifest["vocabularies"]["text"]),), options.device, options.precision,
        dim=options.dim, heads=options.heads, batch=options.batch, steps=options.steps, threads=options.threads,
        layers=options.layers, length=options.length,
    )  # fmt: skip
    yield case
    yield replace(case, what=TRAINER)
    for members in options.members:
        for protected in (True, False):
            yield replace(case, what=OURS, members=members, protected=protected)


def make_row(case: Case, timing: Timing, peak: float | None) -> TextRow:
    """Return the row of a case; `peak` is the operations per second of a large matrix product."""
    tokens = case.members * case.batch * case.length / timing.seconds
    share = case.members * text_step_flops(case) / timing.seconds / peak if peak else None
    return TextRow(case, timing.seconds, timing.parameters, tokens, share, timing.memory, note=timing.note)


def try_case(case: Case, peak: float | None) -> TextRow:
    """Return the row of a case; if it cannot be measured, its note gives the reason."""
    try:
        return make_row(case, run_case(case), peak)
    except Exception as reason:
        return TextRow(case, note=f"not measured: {type(reason).__name__}: {reason}".splitlines()[0])


def add_ratios(rows: Sequence[TextRow]) -> list[TextRow]:
    """Return the rows with their ratios to the compiled loop."""
    compiled = next((row.tokens_per_s for row in rows if row.case.what == COMPILED), None)
    return [
        replace(row, times_compiled=row.tokens_per_s / compiled) if compiled and row.tokens_per_s else row
        for row in rows
    ]


def bars(rows: Sequence[TextRow]) -> list[tuple[str, bool]]:
    """Return each bar of text.toml with the measured values, and whether embinit with its default settings meets it.

    Some bars are met by either of two quantities.
    """
    entries = tomllib.loads(Path(__file__).with_name("text.toml").read_text("utf-8"))["bar"]
    judged = []
    for bar in entries:
        fitting_rows = [
            row
            for row in rows
            if row.case.what == OURS
            and row.case.protected
            and row.case.device.partition(":")[0] == bar["device"]
            and row.case.members == bar["members"]
            and row.times_compiled is not None
        ]
        for row in fitting_rows:
            times, share = row.times_compiled or 0.0, row.share_of_peak or 0.0
            kept = times >= bar["times_compiled"] or share >= bar.get("or_share_of_peak", float("inf"))
            judged.append((f"{bar['says']}: {times:.2f} times, {100 * share:.0f} % of peak", kept))
    return judged


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.text", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prepared", metavar="DIR", help="prepared running text (default: generated captions)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--members", type=int, nargs="+", help="default: 1 4 on the CPU, 1 16 on a card")
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--layers", type=int, help="default: 4, on a card 6")
    parser.add_argument("--dim", type=int, help="default: 128, on a card 384")
    parser.add_argument("--heads", type=int, help="default: 4, on a card 6")
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, help="timed steps (default: 20, on a card 200)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS), help="measure only these rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the machine, rows and bars as JSON lines")
    parser.add_argument("--strict", action="store_true", help="exit with status 1 if a bar is not met")
    options = parser.parse_args(arguments)
    defaults = {"layers": (4, 6), "dim": (128, 384), "heads": (4, 6), "steps": (20, 200), "members": ([1, 4], [1, 16])}
    for name, values in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, values[options.device.startswith("cuda")])
    return options


def captions() -> str:
    """Return a folder with generated captions, prepared as running text."""
    command = [sys.executable, "-m", "embinit", "prepare", "captions-text", "--tokenizer", "whitespace", "--json"]
    process = subprocess.run([*command, "-o", "build/bench/prepared"], capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(process.stderr)
    return str(json.loads(process.stdout)["path"])


def print_table(rows: Sequence[TextRow]) -> None:
    """Print the table."""
    from benchmarks.table import align_columns, decimal

    lines = [["", "members", "size", "M param.", "ms a step", "tokens/s", "% of peak", "peak MB", "x compiled"]]
    for row in rows:
        case = row.case
        lines.append(
            [
                ", ".join(part for part in (case.what, "" if case.protected else "all in bfloat16", row.note) if part),
                str(case.members), f"{case.layers} x {case.dim}",
                decimal(row.parameters / 1e6 or None, 2), decimal(row.seconds and 1e3 * row.seconds, 1),
                decimal(row.tokens_per_s, 0), decimal(row.share_of_peak and 100 * row.share_of_peak, 1),
                decimal(row.peak_mb, 0), decimal(row.times_compiled, 2),
            ]
        )  # fmt: skip
    print(align_columns(lines))


def main(arguments: Sequence[str] | None = None) -> int:
    options = read_options(arguments)
    prepared = str(Path(options.prepared or captions()).resolve())
    product = Case("matrix product", prepared, (8,), options.device, options.precision, threads=options.threads)
    peak = 2 * product_size(product) ** 3 / run_case(product).seconds
    programs = {PROGRAMS[name] for name in options.only}
    rows = []
    for case in cases(options, prepared):
        if case.what in programs:
            print(f"{case.what}, {case.members} x {case.layers} x {case.dim} ...", file=sys.stderr, flush=True)
            rows.append(try_case(case, peak))
    rows = add_ratios(rows)
    description, judged = describe_machine(options, prepared, {options.precision: peak}), bars(rows)
    print_table(rows)
    print(", ".join(f"{key} {value}" for key, value in description.items()))
    for text, kept in judged:
        print(f"{'PASS' if kept else 'FAIL'}  {text}")
    if options.json:
        records = [{"machine": description}, *({"row": asdict(row)} for row in rows), *({"bar": bar} for bar in judged)]
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return 1 if options.strict and not all(kept for _, kept in judged) else 0


if __name__ == "__main__":
    sys.exit(main())
