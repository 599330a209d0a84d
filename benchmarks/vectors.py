"""embinit beside gensim, pandas, a plain loop and transformers: `python -m benchmarks.vectors [--quick]`.

Every measurement is a process of its own. Times leave imports out, unless said; memory is the peak over an interpreter
with numpy. The files are in the page cache on all sides. What the sides return is compared before anything is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import data
from benchmarks.data import MADE, Sizes
from benchmarks.measure import Measured, measure

RUNS = 3


@dataclass(frozen=True)
class Bar:
    """What is promised, and whether it was kept."""

    what: str
    promised: str
    found: str
    kept: bool


@dataclass(frozen=True)
class Case:
    """One task as each tool does it, embinit first."""

    name: str
    measured: Sequence[Measured]
    #: how the results agree
    equal: str
    bars: Sequence[Bar] = field(default_factory=list)


def at_least(what: str, times: float, slow: float, fast: float) -> Bar:
    ratio = slow / fast
    return Bar(what, f">= {times:g} x", f"{ratio:.1f} x", ratio >= times)


def below(what: str, most: float, found: float) -> Bar:
    return Bar(what, f"<= {most:,.0f} MB", f"{found:,.0f} MB", found <= most)


# ---------------------------------------------------------------- cases


def text_cases(sizes: Sizes) -> Iterator[Case]:
    real, about = data.glove(sizes)
    yield from text_file(real, about, sizes, "50d")
    wide = data.text_file(sizes.wide_words, 300)
    yield from text_file(wide, f"made, {sizes.wide_words:,} x 300", sizes, "300d")


def text_file(path: Path, about: str, sizes: Sizes, dim: str) -> Iterator[Case]:
    words = data.words_of(path)  # and the file is in the page cache now
    wanted = data.saved(f"wanted.{dim}.json", data.spread(words, sizes.wanted))
    peers = {"gensim": "gensim_text", "pandas": "pandas_text", "plain loop": "loop_text"}
    for name, asked, bar in (
        ("full load", None, 5.0),
        (f"{sizes.wanted:,} words", wanted, 50.0),
    ):
        ours = measure("embinit", "embinit_load", RUNS, path=str(path), wanted=asked)
        theirs = [measure(tool, task, path=str(path), wanted=asked) for tool, task in peers.items()]
        for peer in theirs:
            same_rows(ours, peer, exact=peer.tool != "pandas")
        bars = [at_least(f"{name}, {dim}: gensim / embinit", bar, theirs[0].seconds, ours.seconds)]
        if asked is not None and ours.vectors is not None:
            limit = 1.5 * ours.vectors.nbytes / 1e6 + 100
            bars.append(below(f"{name}, {dim}: memory, 1.5 x result + 100 MB", limit, ours.memory))
        yield Case(f"{about}: {name}", [ours, *theirs], "bit for bit (pandas: to 1e-6)", bars)


def fasttext_case(sizes: Sizes) -> Iterator[Case]:
    path = data.fasttext_model(sizes)
    half = sizes.model_asked // 2
    known = data.spread([data.model_word(i) for i in range(sizes.model_words)], half)
    absent = [data.model_word(sizes.model_words + i) for i in range(sizes.model_asked - half)]
    wanted = data.saved("wanted.fasttext.json", known + absent)
    ours = measure("embinit", "embinit_load", RUNS, path=str(path), wanted=wanted)
    theirs = measure("gensim", "gensim_fasttext", path=str(path), wanted=wanted)
    same_rows(ours, theirs, exact=False)
    what = f"fastText .bin, {sizes.buckets:,} x {sizes.model_dim}"
    bars = [
        at_least(f"{what}: gensim / embinit, time", 100, theirs.seconds, ours.seconds),
        at_least(f"{what}: gensim / embinit, memory", 50, theirs.memory, ours.memory),
    ]
    yield Case(f"{what}: {sizes.model_asked:,} words, half made", [ours, theirs], "to 1e-6", bars)


def checkpoint_case(sizes: Sizes) -> Iterator[Case]:
    from embinit.text.vocabulary import from_file

    path, about = data.checkpoint(sizes)
    tokens = from_file(path).tokens
    ids = list(range(0, len(tokens), max(1, len(tokens) // sizes.rows)))[: sizes.rows]
    wanted = data.saved("wanted.checkpoint.json", [tokens[i] for i in ids])
    ours = measure("embinit", "embinit_load", RUNS, path=str(path), wanted=wanted)
    theirs = measure("transformers", "transformers_rows", RUNS, path=str(path), ids=data.saved("ids.json", ids))
    same_rows(ours, replace(theirs, answer=[tokens[i] for i in ids]), exact=True)
    with_imports = [
        replace(ours, tool="embinit, with imports", seconds=ours.seconds_with_imports),
        replace(theirs, tool="transformers, with imports", seconds=theirs.seconds_with_imports),
    ]
    what = f"{about}: {len(ids):,} rows"
    # Who wants rows waits for the imports too; without them, both sides map one file and are alike.
    bar = at_least(
        f"{what}: transformers / embinit, with imports", 10, with_imports[1].seconds, with_imports[0].seconds
    )
    yield Case(what, [*with_imports, ours, theirs], "bit for bit", [bar])


def growth_case(sizes: Sizes) -> Iterator[Case]:
    wanted = data.saved("wanted.growth.json", [f"w{i}" for i in range(0, 20_000, max(1, 20_000 // sizes.rows))])
    small, large = (
        measure(f"embinit, {others / 1e6:,.0f} MB of others", "embinit_load", RUNS, path=str(folder), wanted=wanted)
        for others in (sizes.others, 10 * sizes.others)
        for folder in [data.padded_checkpoint(others)]
    )
    same_rows(small, large, exact=True)
    bar = below("checkpoint of ten times the size: more memory", 20, abs(large.memory - small.memory))
    yield Case("rows of two checkpoints that differ in size", [small, large], "bit for bit", [bar])


def analogy_case(sizes: Sizes) -> Iterator[Case]:
    vectors, about = data.glove(sizes)
    questions, asked = data.questions(sizes, vectors)
    arguments = {"path": str(vectors), "questions": str(questions), "most": sizes.candidates}
    ours = measure("embinit", "embinit_analogies", RUNS, **arguments)
    theirs = measure("gensim", "gensim_analogies", **arguments)
    right, total = (sum(pair[i] for pair in ours.answer.values()) for i in (0, 1))
    if {name: pair[1] for name, pair in ours.answer.items()} != {name: pair[1] for name, pair in theirs.answer.items()}:
        raise SystemExit("analogies: the two sides ask different questions")
    apart = sum(abs(pair[0] - theirs.answer[name][0]) for name, pair in ours.answer.items())
    # Two candidates whose cosines differ by less than float32 can tell may change places.
    if apart > total / 5000:
        raise SystemExit(f"analogies: {apart} of {total} answers differ")
    bar = at_least("analogies: gensim / embinit", 10, theirs.seconds, ours.seconds)
    name = f"{about}, {asked}: {total:,} asked of {sizes.candidates:,} words"
    yield Case(name, [ours, theirs], f"{right / total:.1%} right, {apart} answers differ", [bar])


CASES: dict[str, Callable[[Sizes], Iterator[Case]]] = {
    "text": text_cases,
    "fasttext": fasttext_case,
    "checkpoint": checkpoint_case,
    "growth": growth_case,
    "analogy": analogy_case,
}


def same_rows(ours: Measured, theirs: Measured, exact: bool) -> None:
    """Stop where the two sides do not return the same rows for the same tokens."""
    assert ours.vectors is not None and theirs.vectors is not None
    if sorted(ours.answer) != sorted(theirs.answer):
        raise SystemExit(f"{theirs.tool} returned other tokens than embinit")
    place = {token: i for i, token in enumerate(ours.answer)}
    rows = ours.vectors[[place[token] for token in theirs.answer]]
    same = np.array_equal(rows, theirs.vectors) if exact else np.allclose(rows, theirs.vectors, rtol=1e-6, atol=1e-6)
    if not same:
        raise SystemExit(f"{theirs.tool} returned other rows: up to {np.abs(rows - theirs.vectors).max():g} apart")


# ---------------------------------------------------------------- output


def printed(cases: Sequence[Case], screen: Console) -> None:
    table = Table(title=f"best of {RUNS} runs for embinit and transformers, one for the others", title_justify="left")
    table.add_column("task", max_width=60)
    for column in ("seconds", "x embinit", "peak MB"):
        table.add_column(column, justify="right")
    for case in cases:
        table.add_row(f"[bold]{case.name}[/bold]\n[dim]equal: {case.equal}[/dim]")
        for place, row in enumerate(case.measured):
            # embinit with imports stands before its peer with imports, and so on
            base = next(m for m in reversed(case.measured[: place + 1]) if m.tool.startswith("embinit"))
            ratio = "" if row is base else f"{row.seconds / base.seconds:,.1f}"
            table.add_row(f"  {row.tool}", f"{row.seconds:,.3f}", ratio, f"{row.memory:,.1f}")
        table.add_section()
    screen.print(table)


def judged(cases: Sequence[Case], screen: Console) -> bool:
    bars = [bar for case in cases for bar in case.bars]
    for bar in bars:
        mark = "[green]PASS[/green]" if bar.kept else "[red]FAIL[/red]"
        screen.print(f"{mark}  {bar.what}: {bar.found} (bar {bar.promised})", highlight=False)
    return all(bar.kept for bar in bars)


def stored(cases: Sequence[Case], sizes: Sizes, path: Path) -> None:
    packages = ("numpy", "gensim", "pandas", "transformers", "torch")
    content = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        "versions": {name: version(name) for name in packages},
        "sizes": asdict(sizes),
        "cases": [
            {
                "name": case.name,
                "equal": case.equal,
                "measured": [
                    {key: value for key, value in vars(row).items() if key not in ("answer", "vectors")}
                    for row in case.measured
                ],
                "bars": [asdict(bar) for bar in case.bars],
            }
            for case in cases
        ],
    }
    path.write_text(json.dumps(content, indent=2))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vectors", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small made files: does it run, and are results equal?")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="some cases only")
    options = parser.parse_args(arguments)
    sizes = data.QUICK if options.quick else data.FULL
    MADE.mkdir(parents=True, exist_ok=True)
    screen = Console(width=100)
    cases: list[Case] = []
    for name in options.only:
        for case in CASES[name](sizes):
            screen.print(f"[dim]done: {case.name}[/dim]", highlight=False)
            cases.append(replace(case, measured=[replace(one, answer=None, vectors=None) for one in case.measured]))
    printed(cases, screen)
    path = MADE / ("vectors.quick.json" if options.quick else "vectors.json")
    stored(cases, sizes, path)
    if options.quick:
        screen.print("quick: results are equal; times of small files mean nothing, so no bar is set")
        return 0
    return 0 if judged(cases, screen) else 1


if __name__ == "__main__":
    sys.exit(main())
