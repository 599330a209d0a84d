"""Compare members in lockstep with PyTorch's tutorial, Marian under transformers' Trainer, and JoeyNMT, in one table.

    python -m benchmarks.training [--prepared DIR]     CPU; generated captions by default
    python3 -m benchmarks.gpu DIR                      one card

DIR is a folder that `embinit prepare multi30k` wrote. A step includes choosing and moving the batch, the forward and
backward passes, and Adam. It excludes validation, checkpoints and building the model. On the CPU, each row runs in its own
process, and memory is the peak of that process with its imports. On a card, memory is the allocated memory.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from benchmarks import environments
from benchmarks.cases import Case, SplitStatistics, Timing, read_split, steps_per_epoch
from benchmarks.clock import product_size
from benchmarks.row import measure
from benchmarks.rows import DECODING, OURS, TUTORIAL, Bar, Row, add_ratios, bars, make_row
from benchmarks.table import print_table

MARIAN, JOEYNMT = "Marian, transformers", "JoeyNMT"
#: Further rows of a card: a sweep as one group, a whole training, two whole trainings at once.
MIXED, WHOLE, GROUPS, MPS = (
    f"{OURS}, {name}" for name in ("mixed settings", "end to end", "two groups", "two groups, MPS")
)
#: Row of benchmarks.text.
TRAINER = "GPT-2, Trainer"
PROGRAMS = {
    "embinit": OURS, "tutorial": TUTORIAL, "marian": MARIAN, "joeynmt": JOEYNMT, "decoding": DECODING, "mixed": MIXED,
    "whole": WHOLE, "groups": GROUPS, "mps": MPS,
}  # fmt: skip
#: Vocabulary sizes of Multi30k. Generated captions have about 1,200 words per side; their model gets these sizes.
MULTI30K = (7853, 5893)


# ---------------------------------------------------------------- cases


def cases(
    options: argparse.Namespace, prepared: str, vocabularies: tuple[int, int], split: SplitStatistics
) -> Iterator[Case]:
    """Yield the cases of the table: peers, embinit, a wider model on a card, decoding."""
    cuda = options.device.startswith("cuda")
    case = Case(
        OURS, prepared, vocabularies, options.device, options.precisions[0],
        dim=options.dim, heads=options.heads, batch=options.batch, steps=options.steps or (100 if cuda else 40),
        threads=options.threads, sentences=options.sentences,
    )  # fmt: skip
    yield replace(case, what=TUTORIAL)
    yield replace(case, what=MARIAN)
    if not cuda:
        yield replace(case, what=JOEYNMT)
    # A card runs a whole epoch, so that the time includes shuffling. After an epoch, decoded sentences end with <eos>.
    epoch = replace(case, steps=steps_per_epoch(case, split)) if cuda and options.steps is None else case
    for precision in options.precisions:
        for members in options.members:
            yield replace(epoch, precision=precision, members=members)
    yield replace(epoch, what=DECODING, members=16 if cuda else 1)
    if cuda and options.wide:
        wide = replace(case, dim=768, heads=12, batch=128)
        yield replace(wide, what=TUTORIAL)
        for precision in options.precisions:
            steps = options.steps or steps_per_epoch(wide, split)
            yield replace(wide, members=16, precision=precision, steps=steps)
    yield replace(epoch, what=MIXED, members=max(options.members))
    if cuda:
        several = options.several
        if several not in options.members:
            yield replace(epoch, members=several)
        for what in (WHOLE, GROUPS, MPS):
            yield replace(epoch, what=what, members=several)


# ---------------------------------------------------------------- measuring


def run_case(case: Case) -> Timing:
    """Measure a case: on a card in this process, otherwise in a new one."""
    if case.cuda:
        return measure(case)
    command = [str(interpreter(case.what)), "-m", "benchmarks.row", case.to_json()]
    process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=environments.ROOT)
    if process.returncode:
        print(process.stderr[-3000:], file=sys.stderr)
        lines = [line for line in process.stderr.splitlines() if line.strip()]
        raise RuntimeError(lines[-1] if lines else "no error message")
    return Timing(**json.loads(process.stdout.splitlines()[-1]))


def interpreter(what: str) -> Path:
    """Return a Python interpreter with the packages of a program; peers get their own environment if necessary."""
    if what == JOEYNMT:
        return environments.environment("joeynmt", *environments.JOEYNMT)
    if what in (MARIAN, TRAINER) and find_spec("accelerate") is None:
        return environments.environment("marian", *environments.MARIAN)
    return Path(sys.executable)


def try_case(case: Case, split: SplitStatistics, peaks: dict[str, float]) -> Row:
    """Return the row of a case; if it cannot be measured, its note gives the reason."""
    try:
        return make_row(case, run_case(case), split, peaks)
    except Exception as reason:
        if case.cuda:
            traceback.print_exc()
        first = f"{type(reason).__name__}: {reason}".splitlines()[0]
        return Row(case, note=f"not measured: {first}")


def peaks(options: argparse.Namespace, prepared: str) -> dict[str, float]:
    """Return the operations per second of a large matrix product, for each precision."""
    speeds = {}
    for precision in options.precisions:
        case = Case("matrix product", prepared, MULTI30K, options.device, precision, threads=options.threads)
        speeds[precision] = 2 * product_size(case) ** 3 / run_case(case).seconds
    return speeds


def fastest(rounds: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the fastest round of each row."""
    return [min(repeats, key=lambda row: row.seconds or float("inf")) for repeats in zip(*rounds, strict=True)]


# ---------------------------------------------------------------- data, options, output


def captions() -> str:
    """Return a prepared folder with as many generated captions as Multi30k has."""
    command = [sys.executable, "-m", "embinit", "prepare", "captions", "--size", "29000", "--json"]
    process = subprocess.run([*command, "-o", "build/bench/prepared"], capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(process.stderr)
    return str(json.loads(process.stdout)["path"])


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.training", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prepared", metavar="DIR", help="prepared translation task (default: generated captions)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--members", type=int, nargs="+", help="default: 1 4 on the CPU, 1 16 32 on a card")
    parser.add_argument(
        "--precisions", nargs="+", help="default: float32 (card: tf32) and bfloat16; peers use the first"
    )
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--heads", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, help="timed steps (default: 40, on a card 100 or an epoch)")
    parser.add_argument("--sentences", type=int, help="test sentences to decode (default: 100, on a card 1000)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=1, help="measure each row this many times and keep the fastest")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS), help="measure only these rows")
    parser.add_argument("--no-wide", dest="wide", action="store_false", help="skip D = 768, batch 128 on a card")
    parser.add_argument("--several", type=int, default=20, help="members of the whole training and of both groups")
    parser.add_argument("--within", type=float, default=float("inf"), help="start no row after this many seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the machine, rows and bars as JSON lines")
    parser.add_argument("--strict", action="store_true", help="exit with status 1 if a bar is not met")
    options = parser.parse_args(arguments)
    cuda = options.device.startswith("cuda")
    options.members = options.members or ([1, 16, 32] if cuda else [1, 4])
    options.sentences = options.sentences or (1000 if cuda else 100)
    options.precisions = options.precisions or default_precisions(cuda)
    return options


def default_precisions(cuda: bool) -> list[str]:
    from benchmarks.lockstep import precisions

    return [name for name in ("tf32" if cuda else "float32", "bfloat16") if name in precisions()]


def sizes(prepared: str, generated: bool) -> tuple[int, int]:
    """Return the number of rows of the source and of the target embedding."""
    manifest = json.loads(Path(prepared, "manifest.json").read_text("utf-8"))
    if manifest["task"] != "translation":
        raise SystemExit(f"{prepared} holds a {manifest['task']}; this benchmark needs a translation")
    return MULTI30K if generated else tuple(manifest["vocabularies"][side] for side in ("source", "target"))


def processor() -> str:
    """Return the name of the CPU."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "CPU"


def describe_machine(options: argparse.Namespace, prepared: str, peak: dict[str, float]) -> dict[str, object]:
    import torch

    versions = {}
    for package in ("torch", "transformers", "numpy"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    cuda = options.device.startswith("cuda")
    return {
        "data": Path(prepared).name, "device": torch.cuda.get_device_name() if cuda else processor(),
        "threads": options.threads, "python": platform.python_version(), **versions,
        "peak_tflops": {name: round(value / 1e12, 3) for name, value in peak.items()},
    }  # fmt: skip


def write_json(description: dict[str, object], rows: Sequence[Row], judged: Sequence[Bar], path: Path) -> None:
    records = [
        {"machine": description},
        *({"row": row.record()} for row in rows),
        *({"bar": asdict(bar)} for bar in judged),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    options, start = read_options(arguments), time.perf_counter()
    prepared = str(Path(options.prepared or captions()).resolve())
    split = read_split(prepared)
    peak = peaks(options, prepared)
    programs = {PROGRAMS[name] for name in options.only}
    selected = [
        case
        for case in cases(options, prepared, sizes(prepared, options.prepared is None), split)
        if case.what in programs
    ]
    description = describe_machine(options, prepared, peak)
    rounds: list[list[Row]] = []
    for _ in range(options.rounds):
        rounds.append([])
        for case in selected:
            if time.perf_counter() - start > options.within:
                rounds[-1].append(Row(case, note="not measured: no time left"))
                continue
            print(f"{case.what}, {case.members} x D = {case.dim}, {case.precision} ...", file=sys.stderr, flush=True)
            rounds[-1].append(try_case(case, split, peak))
            if options.json:  # keeps the measured rows if the next one crashes
                write_json(description, add_ratios(rounds[-1]), [], options.json)
    rows = add_ratios(fastest(rounds))
    judged = bars(rows)
    print_table(rows, description)
    for bar in judged:
        print(f"{'PASS' if bar.kept else 'FAIL'}  {bar.says}: {bar.found:.3g} (bar {bar.promised})")
    if options.json:
        write_json(description, rows, judged, options.json)
    return 1 if options.strict and not all(bar.kept for bar in judged) else 0


if __name__ == "__main__":
    sys.exit(main())
