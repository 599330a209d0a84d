"""Members in lockstep beside PyTorch's tutorial, Marian under transformers' Trainer, and JoeyNMT: one table, one run.

    python -m benchmarks.training [--prepared DIR]     on the CPU; generated captions unless a folder is named
    python3 -m benchmarks.gpu DIR                      the same on one card

DIR is a folder that `embinit prepare multi30k` wrote. A step is everything that training does for it: choosing and
moving the batch, forward, backward, Adam; validation, checkpoints and the making of the model are not in it. On the CPU
every row is a process of its own, and memory is its peak with all that it imported; on a card it is allocated memory.
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
from benchmarks.cases import Case, Data, Timed, data, steps_an_epoch
from benchmarks.clock import product_size
from benchmarks.row import measured
from benchmarks.rows import DECODING, OURS, TUTORIAL, Bar, Row, bars, compared, row
from benchmarks.table import shown

MARIAN, JOEYNMT = "Marian, transformers", "JoeyNMT"
#: what a card is also measured by: a sweep as one group, a whole training, two of them at once
MIXED, WHOLE, GROUPS, MPS = (
    f"{OURS}, {name}" for name in ("mixed settings", "end to end", "two groups", "two groups, MPS")
)
#: of language models (benchmarks.text)
TRAINER = "GPT-2, Trainer"
WHO = {
    "embinit": OURS, "tutorial": TUTORIAL, "marian": MARIAN, "joeynmt": JOEYNMT, "decoding": DECODING, "mixed": MIXED,
    "whole": WHOLE, "groups": GROUPS, "mps": MPS,
}  # fmt: skip
#: Generated captions have some 1,200 words a side; a model of Multi30k's size has so many.
MULTI30K = (7853, 5893)


# ---------------------------------------------------------------- cases


def cases(options: argparse.Namespace, prepared: str, vocabularies: tuple[int, int], found: Data) -> Iterator[Case]:
    """Yield the rows of the table: peers, ours, a wider model on a card, decoding."""
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
    # A card does all steps of an epoch, so that making its order is in them; after one, members decode sentences that end.
    epoch = replace(case, steps=steps_an_epoch(case, found)) if cuda and options.steps is None else case
    for precision in options.precisions:
        for members in options.members:
            yield replace(epoch, precision=precision, members=members)
    yield replace(epoch, what=DECODING, members=16 if cuda else 1)
    if cuda and options.wide:
        wide = replace(case, dim=768, heads=12, batch=128)
        yield replace(wide, what=TUTORIAL)
        for precision in options.precisions:
            steps = options.steps or steps_an_epoch(wide, found)
            yield replace(wide, members=16, precision=precision, steps=steps)
    yield replace(epoch, what=MIXED, members=max(options.members))
    if cuda:
        several = options.several
        if several not in options.members:
            yield replace(epoch, members=several)
        for what in (WHOLE, GROUPS, MPS):
            yield replace(epoch, what=what, members=several)


# ---------------------------------------------------------------- measuring


def taken(case: Case) -> Timed:
    """Return what a case took: on a card in this process, and else in one of its own."""
    if case.cuda:
        return measured(case)
    command = [str(interpreter(case.what)), "-m", "benchmarks.row", case.written()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=environments.ROOT)
    if done.returncode:
        print(done.stderr[-3000:], file=sys.stderr)
        complaint = [line for line in done.stderr.splitlines() if line.strip()]
        raise RuntimeError(complaint[-1] if complaint else "no reason given")
    return Timed(**json.loads(done.stdout.splitlines()[-1]))


def interpreter(what: str) -> Path:
    """Return the Python that has what a row needs; peers get an environment of their own where this one lacks it."""
    if what == JOEYNMT:
        return environments.environment("joeynmt", *environments.JOEYNMT)
    if what in (MARIAN, TRAINER) and find_spec("accelerate") is None:
        return environments.environment("marian", *environments.MARIAN)
    return Path(sys.executable)


def attempted(case: Case, found: Data, peaks: dict[str, float]) -> Row:
    """Return the row of a case; one that cannot be measured says why, and the others go on."""
    try:
        return row(case, taken(case), found, peaks)
    except Exception as reason:
        if case.cuda:
            traceback.print_exc()
        first = f"{type(reason).__name__}: {reason}".splitlines()[0]
        return Row(case, note=f"not measured: {first}")


def peaks(options: argparse.Namespace, prepared: str) -> dict[str, float]:
    """Return the operations a second of a large matrix product, for each precision."""
    found = {}
    for precision in options.precisions:
        case = Case("matrix product", prepared, MULTI30K, options.device, precision, threads=options.threads)
        found[precision] = 2 * product_size(case) ** 3 / taken(case).seconds
    return found


def best(rounds: Sequence[Sequence[Row]]) -> list[Row]:
    """Return of each row the fastest of its rounds."""
    return [min(same, key=lambda one: one.seconds or float("inf")) for same in zip(*rounds, strict=True)]


# ---------------------------------------------------------------- data, options, output


def captions() -> str:
    """Return a prepared folder of generated captions, as many as Multi30k has."""
    command = [sys.executable, "-m", "embinit", "prepare", "captions", "--size", "29000", "--json"]
    done = subprocess.run([*command, "-o", "build/bench/prepared"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return str(json.loads(done.stdout)["path"])


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.training", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prepared", metavar="DIR", help="a prepared translation; by default generated captions")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--members", type=int, nargs="+", help="1 4 on the CPU, 1 4 16 32 on a card")
    parser.add_argument("--precisions", nargs="+", help="the first is the peers'; float32 bfloat16, on a card tf32")
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--heads", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, help="that count, after a fifth as many; 40, on a card 100 and an epoch")
    parser.add_argument("--sentences", type=int, help="that are decoded; 100, on a card 1000")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=1, help="measure all rows so often; the best counts")
    parser.add_argument("--only", nargs="+", choices=WHO, default=list(WHO), help="some rows only")
    parser.add_argument("--no-wide", dest="wide", action="store_false", help="no D = 768, batch 128 on a card")
    parser.add_argument("--several", type=int, default=20, help="members of a whole training, and of two groups")
    parser.add_argument("--within", type=float, default=float("inf"), help="begin no row after this many seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write JSON lines: machine, rows, bars")
    parser.add_argument("--strict", action="store_true", help="exit with 1 where a bar is not kept")
    options = parser.parse_args(arguments)
    cuda = options.device.startswith("cuda")
    options.members = options.members or ([1, 16, 32] if cuda else [1, 4])
    options.sentences = options.sentences or (1000 if cuda else 100)
    options.precisions = options.precisions or usual_precisions(cuda)
    return options


def usual_precisions(cuda: bool) -> list[str]:
    from benchmarks.lockstep import precisions

    return [name for name in ("tf32" if cuda else "float32", "bfloat16") if name in precisions()]


def sizes(prepared: str, generated: bool) -> tuple[int, int]:
    """Return the rows of a model's embeddings."""
    manifest = json.loads(Path(prepared, "manifest.json").read_text("utf-8"))
    if manifest["task"] != "translation":
        raise SystemExit(f"{prepared} is a {manifest['task']}; the peers translate")
    return MULTI30K if generated else tuple(manifest["vocabularies"][side] for side in ("source", "target"))


def processor() -> str:
    """Return what the CPU calls itself."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "CPU"


def machine(options: argparse.Namespace, prepared: str, peak: dict[str, float]) -> dict[str, object]:
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


def stored(about: dict[str, object], rows: Sequence[Row], judged: Sequence[Bar], path: Path) -> None:
    records = [{"machine": about}, *({"row": row.record()} for row in rows), *({"bar": asdict(row)} for row in judged)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    options, start = read_options(arguments), time.perf_counter()
    prepared = str(Path(options.prepared or captions()).resolve())
    found = data(prepared)
    peak = peaks(options, prepared)
    asked = {WHO[name] for name in options.only}
    listed = [
        case
        for case in cases(options, prepared, sizes(prepared, options.prepared is None), found)
        if case.what in asked
    ]
    about = machine(options, prepared, peak)
    rounds: list[list[Row]] = []
    for _ in range(options.rounds):
        rounds.append([])
        for case in listed:
            if time.perf_counter() - start > options.within:
                rounds[-1].append(Row(case, note="not measured: no time left"))
                continue
            print(f"{case.what}, {case.members} x D = {case.dim}, {case.precision} ...", file=sys.stderr, flush=True)
            rounds[-1].append(attempted(case, found, peak))
            if options.json:  # what was measured is kept, whatever becomes of the next row
                stored(about, compared(rounds[-1]), [], options.json)
    rows = compared(best(rounds))
    judged = bars(rows)
    shown(rows, about)
    for bar in judged:
        print(f"{'PASS' if bar.kept else 'FAIL'}  {bar.says}: {bar.found:.3g} (bar {bar.promised})")
    if options.json:
        stored(about, rows, judged, options.json)
    return 1 if options.strict and not all(bar.kept for bar in judged) else 0


if __name__ == "__main__":
    sys.exit(main())
