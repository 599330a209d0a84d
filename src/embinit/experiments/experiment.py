"""An experiment: blocks of planned runs, each with what it is called in a table."""

from __future__ import annotations

from dataclasses import dataclass, field

from embinit.experiments.spec import Spec


@dataclass(frozen=True)
class Planned:
    """One run of an experiment: its spec, and its values on the axes that its block varies."""

    spec: Spec
    #: axis -> value as text, in the file's order, seed aside: {"recipe": "xavier", "model.norm": "pre"}
    axes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Block:
    """Runs that belong into one part of a table; `missing` says why they cannot be run here, if so."""

    name: str
    runs: tuple[Planned, ...]
    #: the score that the block is judged by: "bleu", "accuracy" ...
    score: str
    #: the split that it is read from
    split: str
    #: what the paper calls this block: (table, task, embedding); empty where it has none
    paper: tuple[str, ...] = ()
    #: names of sources -> what they are and whom they stand in for, as text
    sources: tuple[tuple[str, str], ...] = ()
    missing: str = ""
    #: sweeps: the axis to draw the score against, e.g. "recipe" scales; empty: none
    sweep: str = ""
    #: the axes of a start that was named before the block was run, and is judged here; empty: none
    candidate: tuple[tuple[str, str], ...] = ()


#: The recipe of a baseline that is each row's own, in the setting that is pinned.
SAME = "same"


@dataclass(frozen=True)
class Baseline:
    """What rows are compared with: a recipe in each row's own setting, or where `at` pins an axis, in that one."""

    #: `same`: the row's own
    recipe: str
    #: axis -> value as text; axes that a block does not vary are no matter to it
    at: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Experiment:
    """A question with its blocks."""

    name: str
    title: str
    question: str
    blocks: tuple[Block, ...]
    #: recipes are compared against this one, in the same setting ...
    baseline: str = "xavier"
    notes: tuple[str, ...] = field(default=())
    #: `training`, or a measure that trains nothing: `distribution` (Tables 2, 6, 8), `analogy` (Table 4), `verdict`
    kind: str = "training"
    #: what it took, as the file's head says
    cost: str = ""
    #: ... or, where this is not empty, against each of these; the first has `baseline`'s recipe
    against: tuple[Baseline, ...] = ()

    @property
    def baselines(self) -> tuple[Baseline, ...]:
        """Return all that rows are compared with."""
        return self.against or (Baseline(self.baseline),)
