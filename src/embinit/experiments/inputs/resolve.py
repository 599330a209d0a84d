"""Complete the specs of a checked file: prepare its data, and read and align its sources, each once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, Unavailable
from embinit.experiments.definition.architectures import architecture, shared_dim
from embinit.experiments.definition.draft import Draft, DraftBlock, DraftRun, task_of
from embinit.experiments.definition.problems import Problems, listed
from embinit.experiments.experiment import Block, Experiment, Planned
from embinit.experiments.inputs.cache import Unprepared
from embinit.experiments.inputs.locations import Places, missing_of
from embinit.experiments.inputs.outline import described, experiment_of, unresolved
from embinit.experiments.inputs.tasks import Progress, Ready, ready
from embinit.experiments.inputs.vectors import AlignedFile, aligned_rows
from embinit.experiments.spec import side_of_tokens
from embinit.prepared.folder import Prepared
from embinit.training.fit import check_length, check_trainable


@dataclass
class Resolved:
    """Experiments whose specs are complete, and the files that their runs read."""

    experiments: list[Experiment] = field(default_factory=list)
    #: fingerprint of the data -> the prepared task
    tasks: dict[str, Ready] = field(default_factory=dict)
    #: fingerprint of rows -> their file
    rows: dict[str, AlignedFile] = field(default_factory=dict)
    #: (experiment, block) -> why its existing files cannot be used
    damaged: dict[tuple[str, str], str] = field(default_factory=dict)
    #: key of a spec without fingerprints -> its task, prepared or with estimated sizes; only with `Places.read_only`
    estimates: dict[str, Prepared] = field(default_factory=dict)


def resolve(drafts: list[Draft], where: Places, progress: Progress = lambda *_: None) -> Resolved:
    """Return the experiments with all fingerprints; a block that cannot run here states the reason.

    With `where.read_only`, nothing is prepared: a run whose data or rows are not prepared has a spec without fingerprints.
    Mistakes that depend on the data or vectors, such as heads that do not divide a source's dimension, are reported at once.
    """
    resolved, messages = Resolved(), []
    for draft in drafts:
        work = _Resolver(draft, where, progress, resolved)
        blocks = tuple(work.block(block) for block in draft.blocks)
        resolved.experiments.append(experiment_of(draft, blocks))
        messages += work.problems.messages
    if messages:
        raise EmbinitError(listed(messages))
    return resolved


class _Resolver:
    """Resolves the blocks of one file. Blocks share prepared tasks and aligned rows."""

    def __init__(self, draft: Draft, where: Places, progress: Progress, resolved: Resolved) -> None:
        self.problems = Problems(draft.file.name)
        self._draft, self._where, self._progress, self._resolved = draft, where, progress, resolved
        self._tasks: dict[str, Ready] = {}
        self._rows: dict[tuple[str, str, str], AlignedFile] = {}

    @property
    def _beside(self) -> Path:
        return self._draft.file.parent

    def block(self, block: DraftBlock) -> Block:
        """Return a block with all fingerprints, or with the reason why it cannot run here."""
        lack = missing_of(self._draft, block, self._where)
        missing = lack.needs if lack else ""
        runs: list[Planned] = []
        if not missing:
            try:
                if self._draft.kind == "training":
                    self._check_trainable(block)
                runs = [planned for run in block.runs if (planned := self._planned(run, block.name)) is not None]
            except Unavailable as error:
                missing = f"cannot be prepared here: {error}"
            except EmbinitError as error:
                missing = f"cannot be prepared: {error}"
                self._resolved.damaged[self._draft.name, block.name] = missing
        if missing:
            runs = [unresolved(self._draft, run) for run in block.runs]
        return described(self._draft, block, tuple(runs), missing, lack.searched if lack else "")

    def _check_trainable(self, block: DraftBlock) -> None:
        """Raise EmbinitError if a prepared task of the block cannot be trained on, before GloVe is trained for it."""
        for name in dict.fromkeys(run.task for run in block.runs):
            if (task := self._task(name)).data:
                check_trainable(task.prepared)

    def _planned(self, run: DraftRun, block: str) -> Planned | None:
        task = self._task(run.task)
        try:
            return self._complete(run, f"block {block}", task)
        except Unprepared:
            planned = unresolved(self._draft, run)
            self._resolved.estimates[planned.spec.key] = task.prepared
            return planned

    def _complete(self, run: DraftRun, where: str, task: Ready) -> Planned | None:
        if not task.data:
            raise Unprepared(f"{run.task} is not prepared yet")
        aligned = {name: self._aligned(run.task, name, side.source) for name, side in run.sides if side.source}
        model = dict(run.model)
        try:
            dim = shared_dim(
                {side.source: aligned[name].dim for name, side in run.sides if name in aligned}, model.get("dim")
            )
            assert dim is not None, "a run without a source has no dimension"
            self._check_model(model, dim, task)
            for _, side in run.sides:
                side.recipe.check(dim)
        except EmbinitError as error:
            self.problems.add(where, str(error))
            return None
        used = {name: aligned[name].rows for name, side in run.sides if side.uses_source}
        for name in used:
            self._resolved.rows[used[name]] = aligned[name]
        self._resolved.tasks[task.data] = task
        return Planned(run.spec(task_of(self._draft.tasks[run.task], task.data, run.task), used, dim), run.axes)

    def _check_model(self, model: dict[str, Any], dim: int, task: Ready) -> None:
        """Raise EmbinitError if the model cannot be made, or is too short for the task's longest sentence."""
        sizes = tuple(int(task.prepared.manifest["vocabularies"][side]) for side in task.prepared.sides)
        complete = architecture({**model, "dim": dim}, task.prepared.task, dim, sizes)
        check_length(task.prepared, complete.length)

    def _task(self, name: str) -> Ready:
        if name not in self._tasks:
            self._tasks[name] = ready(self._draft.tasks[name], self._where, self._beside, self._progress)
        return self._tasks[name]

    def _aligned(self, task: str, matrix: str, name: str) -> AlignedFile:
        side = side_of_tokens(matrix, self._task(task).prepared.sides)
        key = (task, side, name)
        if key not in self._rows:
            source = self._draft.sources[name]
            aligned = aligned_rows(source, self._task(task), side, self._where, self._beside, self._progress)
            if source.dim is not None and source.dim != aligned.dim:
                self.problems.add(f"sources.{name}.dim", f"{source.dim}, but the vectors have {aligned.dim}")
            self._rows[key] = aligned
        return self._rows[key]
