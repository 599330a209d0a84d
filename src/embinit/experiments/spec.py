"""The specification of a run as one frozen value; equal specs are the same run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

VERSION = 1
#: The name of the matrix of an untied output layer among the sides of a run.
OUTPUT = "output"
#: The names of matrices in experiment files, with their names in specs, and the other way round.
SIDES = {"encoder": "source", "decoder": "target", "text": "text", "output": OUTPUT}
FILE_SIDES = {side: name for name, side in SIDES.items()}
#: Settings that were added after the first runs, each with the value that means the earlier behaviour. A spec omits the
#: setting at this value, so that existing runs keep their keys.
LATER: dict[str, Any] = {
    "model.position_dims": 0, "model.position_gain": 1.0, "training.found_rate": 1.0, "model.norm_kind": "layer",
    "model.norm_epsilon": 1e-5, "model.final_norm": True, "model.biases": True, "model.output_bias": True,
    "model.output_block": False, "model.hidden_dropout": True, "model.initial": "xavier",
    "training.final_rate": 0.0, "training.weight_decay": 0.0, "training.decay_embeddings": True, "training.stride": 0,
    "training.mask_rate": 0.15, "task.kind": None, "task.boundary": None,
}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """A data set and how it is prepared; None is the data set's own default."""

    name: str
    pair: str | None = None
    tokenizer: str = "spacy"
    lower: bool | None = None
    min_count: int | None = None
    #: number of training rows that are kept, one sample for all seeds; None: all
    rows: int | None = None
    #: tokens after which a sentence is cut; None: never
    longest: int | None = None
    #: number of training rows of generated data; None: the number that `embinit prepare` makes
    size: int | None = None
    #: test splits of other data sets that are scored as well: `iwslt2017:test`
    also: tuple[str, ...] = ()
    #: sha256 over the prepared files' contents; empty until the task is prepared
    data: str = ""
    #: running text: `language_model` or `masked_language_model`; None for other tasks
    kind: str | None = None
    #: running text: `line` or `blank`, as in `prepared.prepare.Settings`; None: `line`
    boundary: str | None = None


@dataclass(frozen=True)
class Side:
    """The origin of one embedding matrix: its source, its recipe and its fill."""

    #: a name from the experiment's `[sources]`; empty for random rows
    source: str
    recipe: str
    #: sha256 over the aligned rows; empty until they are read, and if there is no source
    rows: str = ""
    #: the name or the steps of the recipe
    steps: str = ""
    #: fill for the tokens that the source lacks
    fill: str = "target"


@dataclass(frozen=True)
class Spec:
    """One run. `model` and `training` hold plain values with all defaults, except those of LATER."""

    task: Task
    #: `source` and `target` of a translation, `text` of the other tasks, in the model's order; `output` comes last if the
    #: run sets the rows of its output layer
    sides: tuple[tuple[str, Side], ...]
    seed: int
    #: fields of Architecture, without task, vocabularies and classes, which the prepared task decides
    model: tuple[tuple[str, Any], ...]
    #: fields of Training
    training: tuple[tuple[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the spec as plain JSON values."""
        return {
            "version": VERSION,
            "task": _plain(_before_later("task", asdict(self.task))),
            "sides": {name: asdict(side) for name, side in self.sides},
            "seed": self.seed,
            "model": _plain(dict(self.model)),
            "training": _plain(dict(self.training)),
        }

    @cached_property
    def key(self) -> str:
        """Return the run's name: a hash of everything that decides its numbers."""
        return digest(self.as_json())

    @property
    def token_sides(self) -> tuple[tuple[str, Side], ...]:
        """Return the matrices of the tokens that the model reads: all but the output layer's."""
        return tuple((name, side) for name, side in self.sides if name != OUTPUT)

    @property
    def resolved(self) -> bool:
        """Return whether the fingerprints of the data and of the rows are known."""
        return bool(self.task.data) and all(side.rows or not side.source for _, side in self.sides)

    def blank(self, dim: bool = True) -> Spec:
        """Return the spec without fingerprints (and without its dimension): the part that the file alone decides."""
        return replace(
            self,
            task=replace(self.task, data=""),
            sides=tuple((name, replace(side, rows="")) for name, side in self.sides),
            model=self.model if dim else tuple(pair for pair in self.model if pair[0] != "dim"),
        )


def side_of_tokens(matrix: str, sides: Sequence[str]) -> str:
    """Return the side whose tokens a matrix has rows for; an output layer predicts those of the last side.

    >>> side_of_tokens("output", ("source", "target")), side_of_tokens("source", ("source", "target"))
    ('target', 'source')
    """
    return sides[-1] if matrix == OUTPUT else matrix


def from_json(content: Mapping[str, Any]) -> Spec:
    """Return the spec that `as_json` wrote."""
    return Spec(
        task=Task(**dict(_frozen(content["task"]))),
        sides=tuple((name, Side(**side)) for name, side in content["sides"].items()),
        seed=int(content["seed"]),
        model=_frozen(content["model"]),
        training=_frozen(content["training"]),
    )


def digest(content: Any) -> str:
    """Return 16 hex digits of a JSON value; the order of its keys does not matter."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _before_later(part: str, values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in values.items() if (key := f"{part}.{name}") not in LATER or value != LATER[key]
    }


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in sorted(values.items())}


def _frozen(values: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in sorted(values.items()))
