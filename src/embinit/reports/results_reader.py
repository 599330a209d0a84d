"""Read the results files that `results_file` writes. Every value is checked, because files may come from others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Required, TypedDict, cast

from embinit.errors import EmbinitError
from embinit.experiments.experiment import Baseline, Block, Experiment, Planned, implied_target
from embinit.experiments.measured import Measured, checked
from embinit.experiments.runs import length_buckets
from embinit.experiments.runs.result import LENGTHS, MatrixFacts, Result, RunInfo, contradiction
from embinit.experiments.spec import Spec
from embinit.experiments.spec_reader import spec_of
from embinit.files import component
from embinit.records import Damaged, read_json, typed
from embinit.reports.model import Summary
from embinit.reports.results_file import FORMAT
from embinit.reports.summarize import summarize

_Pairs = list[tuple[str, str]]


class _BaselineFile(TypedDict):
    recipe: str
    at: _Pairs


class _ExperimentFile(TypedDict, total=False):
    name: Required[str]
    title: Required[str]
    question: Required[str]
    baseline: Required[str]
    notes: Required[list[str]]
    kind: Required[str]
    cost: Required[str]
    against: list[_BaselineFile]


class _Line(TypedDict, total=False):
    """A planned run: its axes, or the number of an earlier line with the same axes."""

    axes: dict[str, str]
    like: int
    spec: Required[dict[str, Any]]


class _Finished(TypedDict, total=False):
    """Further fields of the line of a finished run."""

    scores: Required[dict[str, dict[str, float]]]
    lengths: Any
    best_epoch: Required[int]
    diverged: bool
    history: Required[dict[str, list[float | None]]]
    matrices: dict[str, MatrixFacts]
    #: places in the lists of the file
    signatures: Required[int]
    maker: Required[int]
    seconds: Required[float]
    members: Required[int]
    finished: Required[str]


class _BlockFile(TypedDict, total=False):
    name: Required[str]
    score: Required[str]
    split: Required[str]
    paper: Required[list[str]]
    sources: Required[_Pairs]
    missing: Required[str]
    sweep: Required[str]
    candidate: _Pairs
    chooses_for: str
    base: Required[dict[str, Any]]
    runs: Required[list[dict[str, Any]]]


class _File(TypedDict, total=False):
    file: Required[str]
    experiment: Required[_ExperimentFile]
    makers: Required[list[RunInfo]]
    signatures: Required[list[dict[str, str]]]
    measured: Any
    blocks: Required[list[_BlockFile]]


@dataclass(frozen=True)
class ResultsFile:
    """The content of a file of results."""

    experiment: Experiment
    results: dict[str, Result]
    #: the measurements of an experiment that trains nothing
    measured: Measured | None = None
    #: the experiment's TOML
    file: str = ""
    #: a sentence for each run that is damaged and therefore left out
    damaged: tuple[str, ...] = ()

    def summary(self) -> Summary:
        """Return the report."""
        if self.experiment.kind != "training":
            from embinit.reports.analysis.measurements import summarize_measured

            return summarize_measured(self.experiment, self.measured, self.file)
        return summarize(self.experiment, self.results, shown={}, file=self.file)


def read_compact(path: Path) -> ResultsFile:
    """Return the experiment and the results of a file that `write_compact` or `write_measured` wrote.

    A finished run that is damaged is left out and named in `damaged`.

    Raises
    ------
    EmbinitError
        If the file cannot be read, is no file of results, or is damaged.
    """
    if not path.exists():
        raise EmbinitError(f"no such file: {path}")
    content = read_json(path, Any)
    if not isinstance(content, dict) or content.get("embinit results") != FORMAT:
        raise EmbinitError(f"{path} holds no results of an experiment, or results in another version of the format")
    try:
        return _compact(typed(content, _File))
    except Damaged as error:
        raise Damaged(f"{path} is damaged: {error}") from None
    except EmbinitError as error:
        raise EmbinitError(f"{path}: {error}") from None


def _compact(content: _File) -> ResultsFile:
    blocks, results, damaged = [], dict[str, Result](), list[str]()
    names = [block["name"] for block in content["blocks"]]
    for block in content["blocks"]:
        runs: list[Planned] = []
        for number, line in enumerate(block["runs"]):
            place = f"{block['name']}, run {number}"
            planned = _planned(line, runs, block["base"], place)
            runs.append(planned)
            if "scores" in line:
                try:
                    results[planned.spec.key] = _result(planned.spec, typed(line, _Finished), content)
                except Damaged as error:
                    damaged.append(f"{place}: {error}")
        blocks.append(_block(block, runs, names))
    head = content["experiment"]
    experiment = Experiment(
        name=component(head["name"], "experiment.name"),
        title=head["title"],
        question=head["question"],
        blocks=tuple(blocks),
        baseline=head["baseline"],
        notes=tuple(head["notes"]),
        kind=head["kind"],
        cost=head["cost"],
        against=tuple(Baseline(baseline["recipe"], _pairs(baseline["at"])) for baseline in head.get("against", [])),
    )
    measured = content.get("measured")
    if measured is not None:
        measured = checked(measured)
        if measured["kind"] != experiment.kind:
            raise Damaged(f"measured.kind is {measured['kind']!r}, but experiment.kind is {experiment.kind!r}")
    return ResultsFile(experiment, results, measured, content["file"], tuple(damaged))


def _block(content: _BlockFile, runs: list[Planned], names: list[str]) -> Block:
    target = content.get("chooses_for", implied_target(content["name"], names))
    if target and (target == content["name"] or target not in names):
        raise Damaged(f"{content['name']}: chooses_for is {target!r}, but it is no other block of the file")
    return Block(
        name=content["name"],
        runs=tuple(runs),
        score=content["score"],
        split=content["split"],
        paper=tuple(content["paper"]),
        sources=_pairs(content["sources"]),
        missing=content["missing"],
        sweep=content["sweep"],
        candidate=_pairs(content.get("candidate", [])),
        chooses_for=target,
    )


def _pairs(content: _Pairs) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in content)


def _planned(line: dict[str, Any], earlier: list[Planned], base: dict[str, Any], place: str) -> Planned:
    """Return a planned run. A line with `like` has the axes of an earlier run, and the settings that differ from it."""
    try:
        known = cast(_Line, typed(line, _Line))
        if "like" in known:
            if not 0 <= known["like"] < len(earlier):
                raise Damaged(f"like is {known['like']}, but there is no earlier run of this number")
            first = earlier[known["like"]]
            return Planned(spec_of(_changed(first.spec.as_json(), known["spec"])), first.axes)
        if "axes" not in known:
            raise Damaged("it has neither 'axes' nor 'like'")
        axes = tuple((axis, value) for axis, value in known["axes"].items())
        return Planned(spec_of(_changed(base, known["spec"])), axes)
    except Damaged as error:
        raise Damaged(f"{place}: {error}") from None


def _changed(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON value with other values in some places."""
    content: dict[str, Any] = json.loads(json.dumps(base))
    for place, value in changes.items():
        if not place:
            return dict(typed(value, dict[str, Any]))
        *parents, last = place.split("/")
        inner = content
        for name in parents:
            inner = inner.get(name) if isinstance(inner, dict) else None  # type: ignore[assignment]
        if not isinstance(inner, dict):
            raise Damaged(f"spec has a value for {place!r}, which is no place of the spec")
        inner[last] = value
    return content


def _result(spec: Spec, line: _Finished, content: _File) -> Result:
    columns = line["history"]
    if len({len(column) for column in columns.values()}) > 1:
        raise Damaged("the columns of history have different lengths")
    for name in ("signatures", "maker"):
        values = content["makers"] if name == "maker" else content["signatures"]
        if not 0 <= line[name] < len(values):
            raise Damaged(f"{name} is {line[name]}, but the file has {len(values)}")
    result = Result(
        spec=spec,
        history=[dict(zip(columns, record, strict=True)) for record in zip(*columns.values(), strict=True)],
        best_epoch=line["best_epoch"],
        diverged=line.get("diverged", False),
        scores=line["scores"],
        signatures=content["signatures"][line["signatures"]],
        matrices=line.get("matrices", {}),
        outputs={},
        run={
            **content["makers"][line["maker"]],
            "seconds": line["seconds"],
            "members": line["members"],
            "finished": line["finished"],
        },
        lengths=length_buckets.from_json(typed(line.get("lengths", {}), LENGTHS)),
    )
    problem = contradiction(result)
    if problem:
        raise Damaged(problem)
    return result
