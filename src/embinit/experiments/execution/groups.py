"""Train one group of jobs: make the matrices, train the members, score their outputs, and return the results."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError
from embinit.experiments.execution.members import predicted, read_text, train_members, translated, weights_of
from embinit.experiments.execution.provenance import device_name, versions
from embinit.experiments.execution.scoring import Scores, score_labels, score_text, score_translations, scored_splits
from embinit.experiments.execution.starts import start_of
from embinit.experiments.jobs import Group
from embinit.experiments.runs.result import Result, RunInfo
from embinit.experiments.spec import Spec
from embinit.prepared.folder import Prepared, fingerprint, open_prepared
from embinit.types import TEXT_TASKS


def results_of_group(
    group: Group,
    device: str,
    progress: Callable[[Any], None],
    checkpoint: Path,
    every: float,
    stopping: Callable[[], bool],
    commit: str,
    keep_weights: bool = False,
) -> list[Result]:
    """Return the result of each job of a group."""
    start = time.perf_counter()
    specs = [job.spec for job in group.jobs]
    prepared = _opened(group.jobs[0].task, specs[0].task.data)
    starts = [start_of(job, prepared) for job in group.jobs]
    before = time.perf_counter() - start
    outcome = train_members(prepared, specs, starts, device, progress, checkpoint, every, stopping)
    start = time.perf_counter()
    scores = _scored(outcome, prepared, specs[0], device)
    run: RunInfo = {
        "device": device_name(device), "versions": versions(), "members": len(specs), "commit": commit,
        "seconds": round(before + outcome.seconds + time.perf_counter() - start, 3),
        "training seconds": round(outcome.seconds, 3),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }  # fmt: skip
    return [
        Result(
            spec=spec,
            history=[_finite(record) for record in trained.history],
            best_epoch=trained.best_epoch,
            diverged=trained.diverged,
            scores=own.scores,
            signatures=own.signatures,
            matrices=start.facts,
            outputs=own.outputs,
            run=run,
            lengths=own.lengths,
            weights=weights_of(outcome, place, prepared, spec) if keep_weights and trained.best_epoch else None,
        )
        for place, (spec, trained, own, start) in enumerate(zip(specs, outcome.members, scores, starts, strict=True))
    ]


@cache
def _opened(path: Path, expected: str) -> Prepared:
    """Return a prepared task; an error if its files differ from the plan."""
    prepared = open_prepared(path)
    if fingerprint(path) != expected:
        raise EmbinitError(f"{path} differs from the plan; plan it again")
    return prepared


def _scored(outcome: Any, prepared: Prepared, spec: Spec, device: str) -> list[Scores]:
    """Return each member's scores; a member whose losses were never finite has none."""
    scores = [Scores() for _ in outcome.members]
    sound = [place for place, trained in enumerate(outcome.members) if trained.best_epoch > 0]
    for split in scored_splits(prepared) if sound else []:
        if prepared.task == "translation":
            texts = translated(outcome, prepared, split, device)
            for place in sound:
                score_translations(scores[place], split, texts[place], prepared)
        elif prepared.task in TEXT_TASKS:
            sums = read_text(outcome, prepared, split, spec, device)
            for place in sound:
                score_text(scores[place], split, *sums[place], prepared, spec)
        else:
            labels = predicted(outcome, prepared, split, device)
            for place in sound:
                score_labels(scores[place], split, labels[place], prepared)
    return scores


def _finite(record: dict[str, float]) -> dict[str, float | None]:
    """Return the record of an epoch for JSON, in which NaN and infinity become null."""
    return {name: float(value) if math.isfinite(value) else None for name, value in record.items()}
