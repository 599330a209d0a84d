"""Measurements without training: distributions of matrices (Tables 2, 6, 8), the analogy test (Table 4), verdicts.

They are quick, so `embinit run` measures again each time. RUNS/measured/NAME.json keeps the results.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from embinit.diagnosis.analogy import read_questions, table4
from embinit.diagnosis.diagnose import diagnose
from embinit.diagnosis.distribution import Distribution, distribution
from embinit.errors import EmbinitError
from embinit.experiments.definition.draft import Draft, DraftBlock
from embinit.experiments.execution.starts import aligned_of, dim_of, start_of
from embinit.experiments.experiment import Block, Experiment, Planned
from embinit.experiments.inputs.locations import Places
from embinit.experiments.inputs.resolve import Resolved
from embinit.experiments.measured import measured_path
from embinit.experiments.plan import jobs_of
from embinit.experiments.spec import Spec
from embinit.files import replacing
from embinit.hosts import host
from embinit.positions import sinusoidal
from embinit.recipes.recipe import recipe
from embinit.seeds import stream
from embinit.types import Host

_DRAWS, _LENGTH = 30, 20
#: Length of the position table in Table 6 (PAPER.md 2).
_POSITIONS = 5_000
_FIELDS = tuple(Distribution.__dataclass_fields__)


def measure(draft: Draft, experiment: Experiment, resolved: Resolved, runs: Path, where: Places) -> Path:
    """Measure an experiment, write its file, and return the path."""
    blocks = []
    for block, own in zip(experiment.blocks, draft.blocks, strict=True):
        rows: list[dict[str, Any]] = []
        if not block.missing and experiment.kind == "distribution":
            rows = _distributions(block, resolved)
        elif not block.missing and experiment.kind == "verdict":
            rows = _verdicts(block, resolved)
        elif not block.missing:
            rows = _analogy(block, own, resolved, where)
        head = {"name": block.name, "paper": list(block.paper), "sources": dict(block.sources), "task": _task(block)}
        blocks.append({**head, "missing": block.missing, "rows": rows})
    content = {"name": experiment.name, "kind": experiment.kind, "title": experiment.title, "blocks": blocks}
    path = measured_path(runs, experiment.name)
    with replacing(path) as out:
        out.write(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n")
    return path


def _task(block: Block) -> str:
    return block.runs[0].spec.task.name if block.runs else ""


def _distributions(block: Block, resolved: Resolved) -> list[dict[str, Any]]:
    """Return the distributions of each run's matrices, as they are and × √D, and that of the positions."""
    rows = []
    for planned, job in zip(block.runs, jobs_of(resolved, [run.spec for run in block.runs]), strict=True):
        start = start_of(job, resolved.tasks[planned.spec.task.data].prepared)
        facts: dict[str, dict[str, Any]] = {side: {**fact} for side, fact in start.facts.items()}
        factor = dim_of(planned.spec) ** 0.5
        for fact in facts.values():
            spread = Distribution(**{name: fact[name] for name in _FIELDS})
            fact["scaled"] = asdict(spread.scaled(factor))
            del fact["histogram"]
        rows.append({"axes": dict(planned.axes), "seed": planned.spec.seed, "sides": facts})
    if block.runs:
        table = asdict(distribution(sinusoidal(_POSITIONS, dim_of(block.runs[0].spec))))
        rows.append({"axes": {}, "positions": table})
    return rows


def _verdicts(block: Block, resolved: Resolved) -> list[dict[str, Any]]:
    """Return the verdict of `embinit inspect` on each source's rows as they are, with its measurements."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for planned, job in zip(block.runs, jobs_of(resolved, [run.spec for run in block.runs]), strict=True):
        spec, paths = planned.spec, dict(job.rows)
        for name, side in spec.sides:
            if side.source and (name, side.rows) not in rows:
                prepared, model = resolved.tasks[spec.task.data].prepared, _host(spec, block.name)
                aligned = aligned_of(side, paths[name], prepared.vocabularies[name], dim_of(spec))
                as_is = recipe("pretrained", side.fill)
                diagnosis = diagnose(aligned, host=model, recipe=as_is, task=prepared.task, seed=spec.seed)
                facts = {"basis": diagnosis.basis.as_json(), "verdict": diagnosis.verdict.as_dict()}
                rows[name, side.rows] = {"side": name, "source": side.source, "rows": side.rows, **facts}
    return list(rows.values())


def _host(spec: Spec, block: str) -> Host:
    """Return the host of a run: the default of `embinit inspect`, with the settings of the run."""
    model = dict(spec.model)
    if model["positions"] != "sinusoidal" or model.keys() & {"position_dims", "position_gain"}:
        raise EmbinitError(
            f"block {block}: a verdict needs model.positions = 'sinusoidal' without position_dims and position_gain"
        )
    if model["norm"] != "post" or model["embedding_norm"]:
        raise EmbinitError(f"block {block}: a verdict needs model.norm = 'post' and no model.embedding_norm")
    precision = dict(spec.training)["precision"]
    return replace(host("tutorial"), scaled=bool(model["scaled"]), tied=bool(model["tied"]), numbers=precision)


def _analogy(block: Block, own: DraftBlock, resolved: Resolved, where: Places) -> list[dict[str, Any]]:
    """Return Table 4 of each run's last matrix, the decoder's. Only words with an exact match in the source are asked."""
    settings = dict(own.measure)
    if "questions" not in settings or where.data is None:
        raise EmbinitError(
            f"block {block.name} needs questions = FILE, and --data or EMBINIT_DATA for the folder that holds the file"
        )
    asked = read_questions(where.data / settings["questions"], lower=True)
    rows = []
    for planned in block.runs:
        for row in _table4(planned, resolved, asked, settings):
            rows.append({"axes": dict(planned.axes), "seed": planned.spec.seed, **row})
    return rows


def _table4(planned: Planned, resolved: Resolved, asked: Any, settings: dict[str, Any]) -> list[dict[str, Any]]:
    spec = planned.spec
    name, side = spec.sides[-1]
    (job,) = jobs_of(resolved, [spec])
    prepared = resolved.tasks[spec.task.data].prepared
    aligned = aligned_of(side, dict(job.rows)[name], prepared.vocabularies[name], dim_of(spec))
    exact = np.array([kind == "exact" for kind in aligned.kinds], dtype=bool)
    aligned = replace(aligned, found=aligned.found & exact)
    matrix = recipe("pretrained")(aligned, stream(spec.seed, f"{name} matrix"))
    length, draws = settings.get("length", _LENGTH), settings.get("draws", _DRAWS)
    results = table4(aligned, matrix, asked, length=length, draws=draws, seed=spec.seed)
    return [{**asdict(row), "accuracy": row.accuracy} for row in results]
