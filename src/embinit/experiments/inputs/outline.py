"""Build an experiment from its file alone, without reading data or vectors."""

from __future__ import annotations

from pathlib import Path

from embinit.experiments.definition.architectures import stated_dim
from embinit.experiments.definition.draft import Draft, DraftBlock, DraftRun, task_of
from embinit.experiments.definition.reader import read_draft
from embinit.experiments.definition.settings import SourceSettings
from embinit.experiments.experiment import Block, Experiment, Planned
from embinit.experiments.inputs.locations import Lack, Places, missing_of, places


def read_experiment(path: Path, where: Places | None = None) -> Experiment:
    """Return the experiment of a file without reading data or vectors: its specs have no fingerprints.

    `store.results_of` finds their runs nevertheless, and `resolve` adds the fingerprints.
    """
    return outline(read_draft(path), where if where is not None else places())


def outline(draft: Draft, where: Places) -> Experiment:
    """Return the experiment of a checked file, its specs without fingerprints."""
    blocks = []
    for block in draft.blocks:
        lack = missing_of(draft, block, where) or Lack("")
        blocks.append(described(draft, block, tuple(unresolved(draft, run) for run in block.runs), *lack))
    return experiment_of(draft, tuple(blocks))


def unresolved(draft: Draft, run: DraftRun) -> Planned:
    """Return a run with the settings of the file, without fingerprints."""
    dims = [stated_dim(draft, side.source) for _, side in run.sides]
    dim = dict(run.model).get("dim") or next((dim for dim in dims if dim is not None), None)
    return Planned(run.spec(task_of(draft.tasks[run.task], label=run.task), {}, dim), run.axes)


def described(draft: Draft, block: DraftBlock, runs: tuple[Planned, ...], missing: str, searched: str) -> Block:
    """Return a block with its runs and the descriptions of its sources."""
    sources = tuple((name, _source_text(draft.sources[name])) for name in block.source_names())
    return Block(
        block.name, runs, block.score, block.split, block.paper, sources, missing, block.sweep, block.candidate,
        block.chooses_for, searched,
    )  # fmt: skip


def _source_text(source: SourceSettings) -> str:
    about = source.about or _shown(source)
    return f"{about}; stands in for {source.stands_in_for}" if source.stands_in_for else about


def _shown(source: SourceSettings) -> str:
    """Return the file, hub id or name of a source, without the folder of an absolute path."""
    if source.path is None:
        return "trained here"
    path = Path(source.path).expanduser()
    return path.name if path.is_absolute() else source.path


def experiment_of(draft: Draft, blocks: tuple[Block, ...]) -> Experiment:
    """Return the experiment with these blocks."""
    return Experiment(
        draft.name, draft.title, draft.question, blocks, draft.baseline, draft.notes, draft.kind, draft.cost,
        draft.against,
    )  # fmt: skip
