"""Measure time and peak memory as inputs grow: `python -m benchmarks.scale [--scale FACTOR] [--only CASE ...]`.

Each measurement is one command of `embinit` on one core, at a tenth of the size and at the full size. The table shows which
commands grow faster than their input. Data is generated once, below build/bench/scale.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import data

FOLDER = data.FOLDER / "scale"
#: Number of formatted rows. They are repeated under other words, because formatting takes longer than reading.
_REPEATED = 4000
_WORDS = 200_000


@dataclass(frozen=True)
class Step:
    """One command to measure."""

    case: str
    size: str
    words: Sequence[str]
    #: input of the command in bytes or rows; two steps with the same name show the growth
    amount: float
    #: the step's part of the case
    name: str = ""
    #: arguments of Python before `words`
    code: Sequence[str] = ("-m", "embinit")


@dataclass(frozen=True)
class Measurement:
    """The time and memory of a command."""

    case: str
    name: str
    size: str
    amount: float
    seconds: float
    #: processor seconds, which do not depend on other programs
    processor: float
    #: peak in MB (a million bytes each)
    memory: float


def measure(step: Step) -> Measurement:
    """Run a command, and return its time and peak memory."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "NO_COLOR": "1"}
    start = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([sys.executable, *step.code, *step.words], stdout=output, stderr=output, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        if process.returncode:
            output.seek(0)
            raise SystemExit(f"{step.case}, {step.name}, {step.size} failed\n{output.read().decode()[-2000:]}")
    memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
    return Measurement(step.case, step.name, step.size, step.amount, seconds, usage.ru_utime + usage.ru_stime, memory)


# ---------------------------------------------------------------- generated data


def write_once(path: Path, lines: Callable[[], Iterator[str]]) -> Path:
    """Write a text file unless it exists, and return its path."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("w", encoding="utf-8", buffering=1 << 20) as out:
            out.writelines(lines())
        part.rename(path)
    return path


def glove_file(words: int, dim: int = 300) -> Path:
    """Return a GloVe text file with this many words."""

    def lines() -> Iterator[str]:
        rows = np.random.default_rng(0).normal(0, 0.4, (_REPEATED, dim))
        numbers = [" ".join(f"{x:.5f}" for x in row) + "\n" for row in rows.tolist()]
        return (f"w{i} {numbers[i % _REPEATED]}" for i in range(words))

    return write_once(FOLDER / f"source.{words}.{dim}d.txt", lines)


def piece_list(count: int) -> Path:
    """Return a list of SentencePiece tokens; every second one is a word of the source."""
    return write_once(FOLDER / f"pieces.{count}.txt", lambda: (f"{'▁' * (i % 2)}w{i}\n" for i in range(count)))


def sentences(count: int, seed: int) -> Iterator[str]:
    """Yield lines of about twenty words with Zipf's frequencies."""
    rng = np.random.default_rng(seed)
    for start in range(0, count, 10_000):
        lengths = rng.integers(10, 30, min(10_000, count - start))
        ranks = np.minimum(rng.zipf(1.25, lengths.sum()), _WORDS) - 1
        ends = lengths.cumsum().tolist()
        words = [f"w{rank}" for rank in ranks.tolist()]
        for end, length in zip(ends, lengths.tolist(), strict=True):
            yield " ".join(words[end - length : end]) + "\n"


def parallel_text(count: int) -> Path:
    """Return a folder of parallel text with this many training pairs."""
    folder = FOLDER / f"pairs.{count}"
    for place, split in enumerate(("train", "valid", "test")):
        rows = count if split == "train" else 1000
        for side in ("source", "target"):
            seed = 2 * place + (side == "target")
            write_once(folder / f"{split}.{side}.txt", lambda rows=rows, seed=seed: sentences(rows, seed))
    return folder


def running_text(megabytes: int) -> Path:
    """Return a text file of this size in MB."""
    # A line has about 72 bytes.
    return write_once(FOLDER / f"text.{megabytes}.txt", lambda: sentences(megabytes * 14_000, 9))


_EXPERIMENT = """
title = "{runs} runs"
[sources.small]
path = "{vectors}"
about = "generated vectors"
dim = 16
[tasks.small]
name = "files"
path = "pairs.1000"
tokenizer = "whitespace"
min_count = 1
[defaults]
task = "small"
source = "small"
model.heads = 2
model.layers = 1
training.epochs = 1
"""
_BLOCK = """
[[block]]
name = "rate {number}"
training.rate = {rate}
grid.recipe = ["xavier", "pretrained", "normal", "uniform", "pretrained_xavier"]
grid.seed = [{seeds}]
"""


def experiment(runs: int) -> Path:
    """Return an experiment file with this many runs, in blocks of about 500 runs."""
    parallel_text(1000)
    small = write_once(
        FOLDER / "small.txt", lambda: (f"w{i} {' '.join([str(i % 7 / 7)] * 15)} 0.5\n" for i in range(1000))
    )
    path = FOLDER / f"runs.{runs}.toml"
    blocks = max(1, runs // 500)
    seeds = ", ".join(str(seed) for seed in range(1, runs // blocks // 5 + 1))
    text = _EXPERIMENT.format(runs=runs, vectors=small.resolve())
    text += "".join(_BLOCK.format(number=i, rate=(i + 1) / 1e4, seeds=seeds) for i in range(blocks))
    path.write_text(text, encoding="utf-8")
    return path


def finished_runs(runs: int) -> Path:
    """Return a folder with a finished run for every run of the experiment, with generated scores."""
    from embinit.experiments.definition.reader import read_draft
    from embinit.experiments.inputs.locations import Places
    from embinit.experiments.inputs.resolve import resolve
    from embinit.experiments.plan import specs_of
    from embinit.experiments.runs.result import Result

    folder = FOLDER / f"runs.{runs}"
    if (folder / "complete").exists():
        return folder
    places = Places(FOLDER.resolve(), FOLDER.resolve(), folder.resolve() / ".work")
    rng = np.random.default_rng(0)
    for spec in specs_of(resolve([read_draft(experiment(runs))], places)):
        bleu = float(rng.normal(30, 1))
        facts = {
            side: {"mean": 0.0, "std": 0.1, "min": -1.0, "max": 1.0, "rows": 9, "dim": 16} for side, _ in spec.sides
        }
        history = [{"train loss": 3.0, "valid loss": 3.0, "bleu": bleu}]
        scores = {"valid": {"bleu": bleu}, "test": {"bleu": bleu}}
        outputs = {"test": [f"sentence {i}" for i in range(100)]}
        result = Result(spec, history, 1, False, scores, {"bleu": "made"}, facts, outputs, {"device": "none"})  # type: ignore[arg-type]
        result.write(folder)
    (folder / "complete").touch()
    return folder


# ---------------------------------------------------------------- cases


_LOAD = """
import sys
from embinit import load
assert len(load(sys.argv[1])) > 1000
"""


def source_steps(scale: float) -> Iterator[Step]:
    for words in (int(200_000 * scale), int(2_000_000 * scale)):
        path, size = glove_file(words), f"{words:,} x 300"
        few = write_once(FOLDER / "few.txt", lambda: (f"w{i}\n" for i in range(20_000)))
        wanted = ("make", str(path), "--vocab", str(few), "--recipe", "pretrained", "-o", str(FOLDER / "out.npy"))
        yield Step("source of 2 million words", size, wanted, words, "rows of 20,000 words")
        yield Step("source of 2 million words", size, (str(path),), words, "load, all rows", ("-c", _LOAD))
    for words in (int(20_000 * scale), int(200_000 * scale)):
        whole = ("inspect", str(glove_file(words)), "--json")
        yield Step("source of 2 million words", f"{words:,} x 300", whole, words, "inspect, all rows")


def vocabulary_steps(scale: float) -> Iterator[Step]:
    path = glove_file(int(200_000 * scale))
    for count in (int(25_000 * scale), int(250_000 * scale)):
        words = (
            "make",
            str(path),
            "--vocab",
            str(piece_list(count)),
            "--recipe",
            "pretrained",
            "-o",
            str(FOLDER / "out.npy"),
        )
        yield Step("vocabulary of 250,000 pieces", f"{count:,} pieces", words, count, "make")


def pair_steps(scale: float) -> Iterator[Step]:
    for count in (int(50_000 * scale), int(500_000 * scale)):
        out = ("-o", str(FOLDER / f"prepared.{time.time_ns()}"))
        words = ("prepare", "files", "--data", str(parallel_text(count)), "--tokenizer", "whitespace", *out)
        yield Step("500,000 pairs", f"{count:,} pairs", words, count, "prepare")


_PREPARE_TEXT = """
import sys
from pathlib import Path
from embinit.corpora.running_text import read_text
from embinit.prepared.prepare import Settings, prepare
settings = Settings("text", ("whitespace",), False, 2, ("xx",))
prepare(read_text(Path(sys.argv[1])), settings, Path(sys.argv[2]))
"""


def text_steps(scale: float) -> Iterator[Step]:
    for size in (max(1, int(100 * scale)), max(2, int(1000 * scale))):
        words = (str(running_text(size)), str(FOLDER / f"prepared.{time.time_ns()}"))
        yield Step("1 GB of text", f"{size:,} MB", words, size, "prepare", ("-c", _PREPARE_TEXT))


def glove_steps(scale: float) -> Iterator[Step]:
    for size in (max(1, int(100 * scale)), max(2, int(1000 * scale))):
        small = ("--dim", "50", "--epochs", "1", "--threads", "1", "--fresh", "-o", str(FOLDER / "glove.txt"))
        yield Step("1 GB of text", f"{size:,} MB", ("glove", str(running_text(size)), *small), size, "glove, 1 epoch")


def experiment_steps(scale: float) -> Iterator[Step]:
    for runs in (int(1000 * scale), int(10_000 * scale)):
        file, folder = str(experiment(runs)), str(finished_runs(runs))
        places = ("--data", str(FOLDER), "--vectors", str(FOLDER), "--runs", folder)
        for name, words in {
            "run --dry-run": ("run", file, "--dry-run", *places),
            "status": ("status", file, *places),
            "report": ("report", file, *places, "-o", str(FOLDER / "report.html")),
        }.items():
            yield Step("experiment of 10,000 runs", f"{runs:,} runs", words, runs, name)


_TRAIN = """
import sys
from pathlib import Path
import numpy as np
from embinit.corpora.generated import captions
from embinit.models.architecture import Architecture
from embinit.models.model import Member
from embinit.prepared.prepare import Settings, prepare
from embinit.training.loop import train
from embinit.training.options import Training
count, folder = int(sys.argv[1]), Path(sys.argv[2])
task = prepare(captions(200, 0), Settings("captions", ("whitespace",) * 2, True, 2, ("de", "en")), folder)[0]
sizes = tuple(len(task.vocabularies[side]) for side in task.sides)
rng = np.random.default_rng(0)
matrices = tuple((0.1 * rng.standard_normal((rows, 128))).astype(np.float32) for rows in sizes)
members = [Member(seed, matrices) for seed in range(count)]
train(task, Architecture("translation", 128, sizes), members, Training(epochs=1, bleu_every=0), checkpoint=folder / "state")
"""


def member_steps(scale: float) -> Iterator[Step]:
    for count in (max(1, int(6.4 * scale)), max(2, int(64 * scale))):
        words = (str(count), str(FOLDER / f"members.{time.time_ns()}"))
        yield Step("64 members", f"{count} members", words, count, "train, 1 epoch", ("-c", _TRAIN))


CASES: dict[str, Callable[[float], Iterator[Step]]] = {
    "vocabulary": vocabulary_steps,
    "pairs": pair_steps,
    "members": member_steps,
    "experiment": experiment_steps,
    "text": text_steps,
    "glove": glove_steps,
    "source": source_steps,
}


def markdown(measurements: Sequence[Measurement]) -> Iterator[str]:
    """Yield the lines of the table. Growth is the processor seconds over those at a tenth of the size."""
    yield "| task | size | seconds | processor seconds | peak MB | growth |"
    yield "|---|---|---:|---:|---:|---:|"
    first: dict[tuple[str, str], Measurement] = {}
    for row in measurements:
        smaller = first.setdefault((row.case, row.name), row)
        growth = "" if smaller is row else f"{row.processor / smaller.processor:.1f} x"
        cells = (f"{row.seconds:,.1f}", f"{row.processor:,.1f}", f"{row.memory:,.0f}", growth)
        yield f"| {row.name} | {row.size} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="factor of every size; 0.01 is a quick check")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="measure only these cases")
    options = parser.parse_args(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    screen = Console(width=110)
    results = FOLDER / f"x {options.scale:g}"
    results.mkdir(exist_ok=True)
    for name in options.only:
        measurements: list[Measurement] = []
        for step in CASES[name](options.scale):
            row = measure(step)
            measurements.append(row)
            screen.print(
                f"[dim]{row.name}, {row.size}: {row.seconds:.1f} s, {row.memory:,.0f} MB[/dim]", highlight=False
            )
            (results / f"{name}.json").write_text(json.dumps([asdict(row) for row in measurements], indent=1))
    files = [results / f"{name}.json" for name in CASES]
    rows = [Measurement(**record) for file in files if file.exists() for record in json.loads(file.read_text())]
    table = Table("task", "size", "seconds", "processor", "peak MB")
    for row in rows:
        table.add_row(row.name, row.size, f"{row.seconds:,.1f}", f"{row.processor:,.1f}", f"{row.memory:,.0f}")
    screen.print(table)
    (FOLDER / "scale.md").write_text("\n".join(markdown(rows)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
