"""Compare embinit with gensim, pandas, a plain loop and transformers: `python -m benchmarks.vectors [--quick]`.

Each measurement runs in its own process. Times exclude imports unless the row says otherwise. Memory is the peak above an
interpreter with numpy. All files are in the page cache. The results of all tools are checked for equality.
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
from benchmarks.data import FOLDER, Sizes
from benchmarks.measure import Measurement, measure

#: Runs of embinit and of transformers; the fastest counts.
RUNS = 3


@dataclass(frozen=True)
class Bar:
    """A required value, and whether the measurement meets it."""

    what: str
    promised: str
    found: str
    kept: bool


@dataclass(frozen=True)
class Case:
    """One task with the measurement of each tool, embinit first."""

    name: str
    measured: Sequence[Measurement]
    #: how closely the results agree
    equal: str
    bars: Sequence[Bar] = field(default_factory=list)


def at_least(what: str, times: float, slow: float, fast: float) -> Bar:
    ratio = slow / fast
    return Bar(what, f">= {times:g} x", f"{ratio:.1f} x", ratio >= times)


def at_most(what: str, most: float, found: float) -> Bar:
    return Bar(what, f"<= {most:,.0f} MB", f"{found:,.0f} MB", found <= most)


# ---------------------------------------------------------------- cases


def text_cases(sizes: Sizes) -> Iterator[Case]:
    narrow, about = data.glove(sizes)
    yield from text_file(narrow, about, sizes, "50d")
    wide = data.text_file(sizes.wide_words, 300)
    yield from text_file(wide, f"generated, {sizes.wide_words:,} x 300", sizes, "300d")


def text_file(path: Path, about: str, sizes: Sizes, dim: str) -> Iterator[Case]:
    words = data.read_words(path)  # this also brings the file into the page cache
    wanted = data.save_json(f"wanted.{dim}.json", data.evenly_spaced(words, sizes.wanted))
    peers = {"gensim": "gensim_text", "pandas": "pandas_text", "plain loop": "loop_text"}
    for name, asked, bar in (
        ("full load", None, 5.0),
        (f"{sizes.wanted:,} words", wanted, 50.0),
    ):
        ours = measure("embinit", "embinit_load", RUNS, path=str(path), wanted=asked)
        theirs = [measure(tool, task, path=str(path), wanted=asked) for tool, task in peers.items()]
        for peer in theirs:
            require_same_rows(ours, peer, exact=peer.tool != "pandas")
        bars = [at_least(f"{name}, {dim}: gensim / embinit", bar, theirs[0].seconds, ours.seconds)]
        if asked is not None and ours.vectors is not None:
            limit = 1.5 * ours.vectors.nbytes / 1e6 + 100
            bars.append(at_most(f"{name}, {dim}: memory, 1.5 x result + 100 MB", limit, ours.memory))
        yield Case(f"{about}: {name}", [ours, *theirs], "bit for bit (pandas: to 1e-6)", bars)


def fasttext_case(sizes: Sizes) -> Iterator[Case]:
    path = data.fasttext_model(sizes)
    half = sizes.model_asked // 2
    known = data.evenly_spaced([data.model_word(i) for i in range(sizes.model_words)], half)
    absent = [data.model_word(sizes.model_words + i) for i in range(sizes.model_asked - half)]
    wanted = data.save_json("wanted.fasttext.json", known + absent)
    ours = measure("embinit", "embinit_load", RUNS, path=str(path), wanted=wanted)
    theirs = measure("gensim", "gensim_fasttext", path=str(path), wanted=wanted)
    require_same_rows(ours, theirs, exact=False)
    what = f"fastText .bin, {sizes.buckets:,} x {sizes.model_dim}"
    bars = [
        at_least(f"{what}: gensim / embinit, time", 100, theirs.seconds, ours.seconds),
        at_least(f"{what}: gensim / embinit, memory", 50, theirs.memory, ours.memory),
    ]
    yield Case(f"{what}: {sizes.model_asked:,} words, half from n-grams", [ours, theirs], "to 1e-6", bars)


def checkpoint_case(sizes: Sizes) -> Iterator[Case]:
    from embinit.text.vocabulary import from_file

    path, about = data.checkpoint(sizes)
    tokens = from_file(path).tokens
    ids = list(range(0, len(tokens), max(1, len(tokens) // sizes.rows)))[: sizes.rows]
    wanted = data.save_json("wanted.checkpoint.json", [tokens[i] for i in ids])
    ours = measure("embinit", "embinit_load", RUNS, path=str(path), wanted=wanted)
    theirs = measure("transformers", "transformers_rows", RUNS, path=str(path), ids=data.save_json("ids.json", ids))
    require_same_rows(ours, replace(theirs, answer=[tokens[i] for i in ids]), exact=True)
    with_imports = [
        replace(ours, tool="embinit, with imports", seconds=ours.seconds_with_imports),
        replace(theirs, tool="transformers, with imports", seconds=theirs.seconds_with_imports),
    ]
    what = f"{about}: {len(ids):,} rows"
    # A user waits for the imports too. Without them, both tools map the same file and are equally fast.
    bar = at_least(
        f"{what}: transformers / embinit, with imports", 10, with_imports[1].seconds, with_imports[0].seconds
    )
    yield Case(what, [*with_imports, ours, theirs], "bit for bit", [bar])


def growth_case(sizes: Sizes) -> Iterator[Case]:
    wanted = data.save_json("wanted.growth.json", [f"w{i}" for i in range(0, 20_000, max(1, 20_000 // sizes.rows))])
    small, large = (
        measure(
            f"embinit, {others / 1e6:,.0f} MB of other weights", "embinit_load", RUNS, path=str(folder), wanted=wanted
        )
        for others in (sizes.others, 10 * sizes.others)
        for folder in [data.padded_checkpoint(others)]
    )
    require_same_rows(small, large, exact=True)
    bar = at_most("checkpoint of ten times the size: more memory", 20, abs(large.memory - small.memory))
    yield Case("rows of a small and a large checkpoint", [small, large], "bit for bit", [bar])


def analogy_case(sizes: Sizes) -> Iterator[Case]:
    vectors, about = data.glove(sizes)
    questions, description = data.questions(sizes, vectors)
    arguments = {"path": str(vectors), "questions": str(questions), "most": sizes.candidates}
    ours = measure("embinit", "embinit_analogies", RUNS, **arguments)
    theirs = measure("gensim", "gensim_analogies", **arguments)
    right, total = (sum(pair[i] for pair in ours.answer.values()) for i in (0, 1))
    if {name: pair[1] for name, pair in ours.answer.items()} != {name: pair[1] for name, pair in theirs.answer.items()}:
        raise SystemExit("analogies: embinit and gensim answer different numbers of questions")
    differing = sum(abs(pair[0] - theirs.answer[name][0]) for name, pair in ours.answer.items())
    # Candidates whose cosines are equal up to float32's precision may swap places.
    if differing > total / 5000:
        raise SystemExit(f"analogies: {differing} of {total} answers differ")
    bar = at_least("analogies: gensim / embinit", 10, theirs.seconds, ours.seconds)
    name = f"{about}, {description}: {total:,} answered, {sizes.candidates:,} candidates"
    yield Case(name, [ours, theirs], f"{right / total:.1%} right, {differing} answers differ", [bar])


CASES: dict[str, Callable[[Sizes], Iterator[Case]]] = {
    "text": text_cases,
    "fasttext": fasttext_case,
    "checkpoint": checkpoint_case,
    "growth": growth_case,
    "analogy": analogy_case,
}


def require_same_rows(ours: Measurement, theirs: Measurement, exact: bool) -> None:
    """Exit with an error unless both tools return the same rows for the same tokens."""
    assert ours.vectors is not None and theirs.vectors is not None
    if sorted(ours.answer) != sorted(theirs.answer):
        raise SystemExit(f"{theirs.tool} and embinit returned different tokens")
    place = {token: i for i, token in enumerate(ours.answer)}
    rows = ours.vectors[[place[token] for token in theirs.answer]]
    same = np.array_equal(rows, theirs.vectors) if exact else np.allclose(rows, theirs.vectors, rtol=1e-6, atol=1e-6)
    if not same:
        raise SystemExit(
            f"{theirs.tool} and embinit returned different rows, up to {np.abs(rows - theirs.vectors).max():g} apart"
        )


# ---------------------------------------------------------------- output


def print_table(cases: Sequence[Case], screen: Console) -> None:
    table = Table(title=f"best of {RUNS} runs of embinit and transformers, one run of the others", title_justify="left")
    table.add_column("task", max_width=60)
    for column in ("seconds", "x embinit", "peak MB"):
        table.add_column(column, justify="right")
    for case in cases:
        table.add_row(f"[bold]{case.name}[/bold]\n[dim]equal: {case.equal}[/dim]")
        for place, row in enumerate(case.measured):
            # The ratio is to the last row of embinit before this one: with imports, or without.
            base = next(m for m in reversed(case.measured[: place + 1]) if m.tool.startswith("embinit"))
            ratio = "" if row is base else f"{row.seconds / base.seconds:,.1f}"
            table.add_row(f"  {row.tool}", f"{row.seconds:,.3f}", ratio, f"{row.memory:,.1f}")
        table.add_section()
    screen.print(table)


def print_bars(cases: Sequence[Case], screen: Console) -> bool:
    bars = [bar for case in cases for bar in case.bars]
    for bar in bars:
        mark = "[green]PASS[/green]" if bar.kept else "[red]FAIL[/red]"
        screen.print(f"{mark}  {bar.what}: {bar.found} (bar {bar.promised})", highlight=False)
    return all(bar.kept for bar in bars)


def write_json(cases: Sequence[Case], sizes: Sizes, path: Path) -> None:
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
    parser.add_argument("--quick", action="store_true", help="only check that the results for small files are equal")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="measure only these cases")
    options = parser.parse_args(arguments)
    sizes = data.QUICK if options.quick else data.FULL
    FOLDER.mkdir(parents=True, exist_ok=True)
    screen = Console(width=100)
    cases: list[Case] = []
    for name in options.only:
        for case in CASES[name](sizes):
            screen.print(f"[dim]done: {case.name}[/dim]", highlight=False)
            cases.append(replace(case, measured=[replace(row, answer=None, vectors=None) for row in case.measured]))
    print_table(cases, screen)
    path = FOLDER / ("vectors.quick.json" if options.quick else "vectors.json")
    write_json(cases, sizes, path)
    if options.quick:
        screen.print("quick: results are equal; no bars, because times of small files mean nothing")
        return 0
    return 0 if print_bars(cases, screen) else 1


if __name__ == "__main__":
    sys.exit(main())
