"""An experiment: blocks of planned runs that are compared with each other."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TypeAlias

from embinit.experiments.spec import Spec

#: Axes of a block with their values as text, in the file's order, without the seed:
#: (("recipe", "xavier"), ("model.norm", "pre")). Hashable; runs with equal axes are one table row.
Axes: TypeAlias = tuple[tuple[str, str], ...]

#: In files without `chooses_for`, a block named `X, chosen on` chooses for the block `X`.
_CHOSEN_ON = ", chosen on"


@dataclass(frozen=True)
class Planned:
    """One run of an experiment: its spec, and its values on the axes that its block varies."""

    spec: Spec
    axes: Axes


@dataclass(frozen=True)
class Block:
    """Runs that belong to one part of a report."""

    name: str
    runs: tuple[Planned, ...]
    #: the score that the block is judged by: "bleu", "accuracy" ...
    score: str
    #: the split that the score is read from
    split: str
    #: the paper's name for this block: (table, task, embedding); empty if the paper has no such block
    paper: tuple[str, ...] = ()
    #: pairs of a source's name and its description
    sources: tuple[tuple[str, str], ...] = ()
    #: why the block cannot run on this machine; empty if it can
    missing: str = ""
    #: the axis to draw the score against, e.g. "recipe" for scales; empty: none
    sweep: str = ""
    #: the start that the file names, before any run, as the expected winner; empty: none
    candidate: Axes = ()
    #: the name of the block in which the best start of this block is judged on other seeds; empty: none
    chooses_for: str = ""
    #: where a missing file was searched, and the nearest name; kept in no file, because it names folders of this machine
    searched: str = ""

    @property
    def explained(self) -> str:
        """Return why the block cannot run here, with the places that were searched."""
        return f"{self.missing}: {self.searched}" if self.searched else self.missing


#: As a baseline's recipe: each table row's own recipe, in the pinned setting.
SAME = "same"


@dataclass(frozen=True)
class Baseline:
    """The start that table rows are compared with: a recipe in each table row's own setting, or in a pinned one."""

    #: `same`: the table row's own recipe
    recipe: str
    #: pinned axes; a block that does not vary such an axis ignores it
    at: Axes = ()


@dataclass(frozen=True)
class Experiment:
    """A question with its blocks."""

    name: str
    title: str
    question: str
    blocks: tuple[Block, ...]
    #: the recipe that the others are compared with in the same setting
    baseline: str = "xavier"
    notes: tuple[str, ...] = field(default=())
    #: `training`, or a measurement that trains nothing: `distribution` (Tables 2, 6, 8), `analogy` (Table 4), `verdict`
    kind: str = "training"
    #: the cost of the runs, as the file states it
    cost: str = ""
    #: several baselines, of which the first has the recipe `baseline`; empty: `baseline` alone
    against: tuple[Baseline, ...] = ()

    @property
    def baselines(self) -> tuple[Baseline, ...]:
        """Return every baseline."""
        return self.against or (Baseline(self.baseline),)


def implied_target(name: str, names: Collection[str]) -> str:
    """Return the block that a block chooses for according to its name alone; empty if the name says nothing.

    >>> implied_target("SST-2, chosen on", ["SST-2", "SST-2, chosen on"])
    'SST-2'
    """
    target = name.removesuffix(_CHOSEN_ON)
    return target if target != name and target in names else ""
