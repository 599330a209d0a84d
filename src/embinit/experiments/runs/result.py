"""Run folders: the result of one run as plain files, which are written once.

RUNS/KEY/ holds `spec.json`; `history.json`, one record per epoch; `scores.json`; `matrices.json`, the statistics of each
embedding matrix before training; `output.SPLIT.txt`, one decoded sentence or label per line; and `run.json`: machine,
versions and times. Every file except `run.json` depends on the spec alone. With `--keep-weights`, `weights.safetensors`
holds the weights of the best epoch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Required, TypedDict

from embinit.errors import EmbinitError
from embinit.experiments.experiment import Block
from embinit.experiments.runs import length_buckets
from embinit.experiments.runs.length_buckets import Lengths
from embinit.experiments.spec import Spec
from embinit.experiments.spec_reader import read_spec
from embinit.files import replacing_folder
from embinit.records import Damaged, read_json, typed

if TYPE_CHECKING:
    from embinit.experiments.runs.weights import KeptWeights

_REMEDY = "remove the folder and run it again"

#: The split that every training has: it chooses the epoch that is scored.
VALID = "valid"


class Histogram(TypedDict):
    """Counts of a matrix's values, and the edges of the bins."""

    counts: list[int]
    edges: list[float]


class Coverage(TypedDict):
    """The shares of types and of running tokens that have a row in the source."""

    types: float
    tokens: float | None


class MatrixFacts(TypedDict, total=False):
    """The statistics of one embedding matrix before training."""

    mean: Required[float]
    std: Required[float]
    min: Required[float]
    max: Required[float]
    kurtosis: float
    norm_mean: float
    norm_min: float
    norm_max: float
    rows: Required[int]
    dim: Required[int]
    histogram: Histogram
    #: None for random rows
    coverage: Coverage | None
    #: how a row was found -> number of rows
    kinds: dict[str, int]


RunInfo = TypedDict(
    "RunInfo",
    {
        "device": str,
        "versions": dict[str, str],
        #: the number of runs that trained side by side
        "members": int,
        "commit": str,
        "seconds": float,
        "training seconds": float,
        #: ISO time
        "finished": str,
    },
    total=False,
)


class FailureFile(TypedDict, total=False):
    """RUNS/KEY.failed.json: why a run failed."""

    key: str
    reason: Required[str]
    #: ISO time
    when: str
    traceback: str


class _ScoresFile(TypedDict):
    best_epoch: int
    diverged: bool
    scores: dict[str, dict[str, float]]
    signatures: dict[str, str]


#: split -> score -> [low, high, sentences, score]
LENGTHS = dict[str, dict[str, list[tuple[int, int | None, int, float]]]]


@dataclass(frozen=True)
class Result:
    """The result of one run."""

    spec: Spec
    #: one record per epoch: "train loss", "valid loss", "bleu" or "accuracy" (validation), "σ, source" ...
    history: list[dict[str, float | None]]
    #: the epoch, counted from 1, whose weights were scored; 0 if no epoch had finite losses
    best_epoch: int
    diverged: bool
    #: split -> name of the score -> value: bleu (over the model's own tokens), sacrebleu, chrf; accuracy, macro_f1, matthews
    scores: dict[str, dict[str, float]]
    #: name of the score -> how it was computed
    signatures: dict[str, str]
    #: side -> statistics of its matrix
    matrices: dict[str, MatrixFacts]
    #: split -> one line a sentence
    outputs: dict[str, list[str]]
    run: RunInfo
    #: BLEU over the model's own tokens, or accuracy, by the length of the input; runs of earlier versions have none
    lengths: Lengths = field(default_factory=dict)
    #: the best weights, if they should be kept; None in a result that was read from its folder
    weights: KeptWeights | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> str:
        """Return the run's name."""
        return self.spec.key

    def write(self, runs: Path) -> Path:
        """Write the run's folder, whole or not at all; an existing run is not changed."""
        path = runs / self.key
        if (path / "run.json").is_file():
            return path
        contents: dict[str, Any] = {
            "spec.json": self.spec.as_json(),
            "history.json": self.history,
            "scores.json": {
                "best_epoch": self.best_epoch,
                "diverged": self.diverged,
                "scores": self.scores,
                "signatures": self.signatures,
                **({"lengths": length_buckets.as_json(self.lengths)} if self.lengths else {}),
            },
            "matrices.json": self.matrices,
            "run.json": self.run,
        }
        with replacing_folder(path) as folder:
            for name, content in contents.items():
                text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
                (folder / name).write_text(text + "\n", "utf-8")
            for split, lines in self.outputs.items():
                (folder / f"output.{split}.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
            if self.weights is not None:
                from embinit.experiments.runs.weights import NAME

                (folder / NAME).write_bytes(self.weights.as_bytes())
        return path


def read_result(path: Path) -> Result:
    """Return the result in a run's folder; raise Damaged if a file is missing or has other content than embinit writes."""

    def content(name: str, kind: Any) -> Any:
        if not (path / name).is_file():
            raise Damaged(f"{path} is not a complete run folder: it has no {name}")
        return read_json(path / name, kind, _REMEDY)

    scores: dict[str, Any] = content("scores.json", _ScoresFile)
    by_length = scores.get("lengths", {})
    try:
        lengths = length_buckets.from_json(typed(by_length, LENGTHS))
    except Damaged as error:
        raise Damaged(f"{path / 'scores.json'} is damaged: lengths: {error}; {_REMEDY}") from None
    if not (path / "spec.json").is_file():
        raise Damaged(f"{path} is not a complete run folder: it has no spec.json")
    result = Result(
        spec=read_spec(path / "spec.json"),
        history=content("history.json", list[dict[str, float | None]]),
        best_epoch=scores["best_epoch"],
        diverged=scores["diverged"],
        scores=scores["scores"],
        signatures=scores["signatures"],
        matrices=content("matrices.json", dict[str, MatrixFacts]),
        outputs={
            file.name.removeprefix("output.").removesuffix(".txt"): _lines(file)
            for file in sorted(path.glob("output.*.txt"))
        },
        run=content("run.json", RunInfo),
        lengths=lengths,
    )
    problem = contradiction(result)
    if problem:
        raise Damaged(f"{path} is damaged: {problem}; {_REMEDY}")
    return result


def contradiction(result: Result) -> str:
    """Return a sentence if the files of a run contradict each other; empty if they agree."""
    if not 0 <= result.best_epoch <= len(result.history):
        return f"best_epoch is {result.best_epoch}, and history.json has {len(result.history)} epochs"
    if result.matrices.keys() - dict(result.spec.sides).keys():
        return f"matrices.json has {', '.join(result.matrices)}, and the spec has {', '.join(dict(result.spec.sides))}"
    for side, facts in result.matrices.items():
        if facts["dim"] < 1 or facts["rows"] < 0 or facts["std"] < 0:
            return f"the matrix of {side} has {facts['rows']} rows of {facts['dim']} numbers and σ = {facts['std']}"
        histogram = facts.get("histogram")
        if histogram is not None and len(histogram["edges"]) != len(histogram["counts"]) + 1:
            return f"the histogram of {side} has {len(histogram['counts'])} counts and {len(histogram['edges'])} edges"
    return ""


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text("utf-8").split("\n")[:-1]
    except UnicodeDecodeError:
        raise Damaged(f"{file} is damaged: it is not UTF-8; {_REMEDY}") from None
    except OSError as error:
        raise EmbinitError(f"cannot read {file}: {error.strerror or error}") from None


def with_scored_split(block: Block, results: Mapping[str, Result]) -> Block:
    """Return the block, judged on the validation rows if its runs have scores there and none on its own split.

    A user's data set may have only training and validation rows. The experiment file does not tell, and the data may be
    elsewhere when a report is written, so the scores of the finished runs decide.
    """
    scores = [results[run.spec.key].scores for run in block.runs if run.spec.key in results]
    if any(block.score in splits.get(block.split, {}) for splits in scores):
        return block
    return replace(block, split=VALID) if any(block.score in splits.get(VALID, {}) for splits in scores) else block
