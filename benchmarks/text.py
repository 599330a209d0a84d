"""Language models in lockstep beside a compiled PyTorch loop and transformers' Trainer: one table, one run.

    python -m benchmarks.text [--prepared DIR]      on the CPU, 4 layers x 128; generated captions unless a folder is named
    python3 -m benchmarks.gpu DIR                   on one card, 6 layers x 384, for a folder that holds a running text

DIR is a folder that `embinit prepare wikitext2` wrote. All sides train GPT-2 without dropout in bfloat16 with fused AdamW,
on blocks of 256 tokens, 8 a step and member, with the same vocabulary. embinit is measured twice: as it trains by default,
with the first layer in float32, and all in bfloat16 as its peers. Steps are measured as in benchmarks.training.
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

from benchmarks.cases import Case, Timed, text_products
from benchmarks.clock import product_size
from benchmarks.training import TRAINER, machine, taken

OURS, COMPILED = "embinit, language model", "compiled loop"
WHO = {"embinit": OURS, "compiled": COMPILED, "trainer": TRAINER}


@dataclass(frozen=True)
class TextRow:
    """What is known of a case; rates are sums over all members that train side by side."""

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
    """Return whether a folder is a prepared running text."""
    manifest = Path(folder, "manifest.json")
    return manifest.is_file() and json.loads(manifest.read_text("utf-8"))["task"] == "language_model"


def cases(options: argparse.Namespace, prepared: str) -> Iterator[Case]:
    """Yield the rows of the table: the peers, then ours with each number of members."""
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


def row(case: Case, found: Timed, peak: float | None) -> TextRow:
    """Return the row of a case; `peak` is the operations a second of a large matrix product."""
    tokens = case.members * case.batch * case.length / found.seconds
    share = case.members * text_products(case) / found.seconds / peak if peak else None
    return TextRow(case, found.seconds, found.parameters, tokens, share, found.memory, note=found.note)


def attempted(case: Case, peak: float | None) -> TextRow:
    """Return the row of a case; one that cannot be measured says why, and the others go on."""
    try:
        return row(case, taken(case), peak)
    except Exception as reason:
        return TextRow(case, note=f"not measured: {type(reason).__name__}: {reason}".splitlines()[0])


def compared(rows: Sequence[TextRow]) -> list[TextRow]:
    """Return the rows with what they are beside the compiled loop."""
    base = next((row.tokens_per_s for row in rows if row.case.what == COMPILED), None)
    return [replace(row, times_compiled=row.tokens_per_s / base) if base and row.tokens_per_s else row for row in rows]


def bars(rows: Sequence[TextRow]) -> list[tuple[str, bool]]:
    """Return the promises of text.toml and whether they are kept, all programs in bfloat16.

    A bar may be kept by either of two quantities.
    """
    listed = tomllib.loads(Path(__file__).with_name("text.toml").read_text("utf-8"))["bar"]
    judged = []
    for bar in listed:
        fitting = [
            row
            for row in rows
            if row.case.what == OURS
            and not row.case.protected
            and row.case.device.partition(":")[0] == bar["device"]
            and row.case.members == bar["members"]
            and row.times_compiled is not None
        ]
        for row in fitting:
            times, share = row.times_compiled or 0.0, row.share_of_peak or 0.0
            kept = times >= bar["times_compiled"] or share >= bar.get("or_share_of_peak", float("inf"))
            judged.append((f"{bar['says']}: {times:.2f} times, {100 * share:.0f} % of peak", kept))
    return judged


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.text", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prepared", metavar="DIR", help="a prepared running text; by default generated captions")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--members", type=int, nargs="+", help="1 4 on the CPU, 1 16 on a card")
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--layers", type=int, help="4, on a card 6")
    parser.add_argument("--dim", type=int, help="128, on a card 384")
    parser.add_argument("--heads", type=int, help="4, on a card 6")
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, help="that count, after a fifth as many; 20, on a card 200")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="+", choices=WHO, default=list(WHO), help="some rows only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write JSON lines: machine, rows, bars")
    parser.add_argument("--strict", action="store_true", help="exit with 1 where a bar is not kept")
    options = parser.parse_args(arguments)
    usual = {"layers": (4, 6), "dim": (128, 384), "heads": (4, 6), "steps": (20, 200), "members": ([1, 4], [1, 16])}
    for name, values in usual.items():
        if getattr(options, name) is None:
            setattr(options, name, values[options.device.startswith("cuda")])
    return options


def captions() -> str:
    """Return a prepared folder of generated captions as running text."""
    command = [sys.executable, "-m", "embinit", "prepare", "captions-text", "--tokenizer", "whitespace", "--json"]
    done = subprocess.run([*command, "-o", "build/bench/prepared"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return str(json.loads(done.stdout)["path"])


def shown(rows: Sequence[TextRow]) -> None:
    """Print the table."""
    from benchmarks.table import number, plain

    lines = [["", "members", "size", "M param.", "ms a step", "tokens/s", "% of peak", "peak MB", "x compiled"]]
    for one in rows:
        case = one.case
        lines.append(
            [
                ", ".join(part for part in (case.what, "" if case.protected else "all in bfloat16", one.note) if part),
                str(case.members), f"{case.layers} x {case.dim}",
                number(one.parameters / 1e6 or None, 2), number(one.seconds and 1e3 * one.seconds, 1),
                number(one.tokens_per_s, 0), number(one.share_of_peak and 100 * one.share_of_peak, 1),
                number(one.peak_mb, 0), number(one.times_compiled, 2),
            ]
        )  # fmt: skip
    print(plain(lines))


def main(arguments: Sequence[str] | None = None) -> int:
    options = read_options(arguments)
    prepared = str(Path(options.prepared or captions()).resolve())
    product = Case("matrix product", prepared, (8,), options.device, options.precision, threads=options.threads)
    peak = 2 * product_size(product) ** 3 / taken(product).seconds
    asked = {WHO[name] for name in options.only}
    rows = []
    for case in cases(options, prepared):
        if case.what in asked:
            print(f"{case.what}, {case.members} x {case.layers} x {case.dim} ...", file=sys.stderr, flush=True)
            rows.append(attempted(case, peak))
    rows = compared(rows)
    about, judged = machine(options, prepared, {options.precision: peak}), bars(rows)
    shown(rows)
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    for text, kept in judged:
        print(f"{'PASS' if kept else 'FAIL'}  {text}")
    if options.json:
        records = [{"machine": about}, *({"row": asdict(one)} for one in rows), *({"bar": bar} for bar in judged)]
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return 1 if options.strict and not all(kept for _, kept in judged) else 0


if __name__ == "__main__":
    sys.exit(main())
