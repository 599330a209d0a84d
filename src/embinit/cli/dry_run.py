"""`embinit run --dry-run`: the planned runs, the finished ones, and the estimated cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embinit.experiments.inputs.resolve import Resolved


def print_dry_run(resolved: Resolved, runs: Path, device: str, members: int | None, json: bool) -> None:
    """Print the planned runs, the number of finished ones, and the estimated cost of the others."""
    from embinit.cli.console import console, print_json
    from embinit.cli.listing import found_by_settings, lines_table, not_run
    from embinit.experiments.execution.cost import likely_device
    from embinit.experiments.plan import specs_of
    from embinit.experiments.status import estimate_resolved, lines_of, state_of
    from embinit.format import duration, plural

    state = state_of(runs)
    lines = [line for experiment in resolved.experiments for line in lines_of(experiment, runs, state)]
    specs = specs_of(resolved)
    chosen = likely_device(device)
    cost = estimate_resolved(resolved, runs, members, chosen)
    if json:
        content = [{**vars(line), "axes": dict(line.axes)} for line in lines]
        print_json({"lines": content, "runs": len(specs), "estimate": {"device": chosen, **vars(cost)}})
        return
    screen = console()
    screen.print(lines_table(lines))
    for text in not_run(lines):
        screen.print(text, markup=False, soft_wrap=True)
    screen.print(f"{plural(len(specs), 'run')}, {len(specs) - cost.runs:,} done, {cost.runs:,} to train", markup=False)
    if cost.runs:
        room = f"{cost.memory / 1e9:.1f} GB"
        screen.print(
            f"estimated on {chosen}: {duration(cost.seconds)} in {plural(cost.groups, 'group')}, up to {room}"
            f"{'' if cost.prepared else ' (estimate, not prepared)'}",
            markup=False,
        )
    for note in (*found_by_settings(lines), *data_notes(resolved)):
        screen.print(note, markup=False, soft_wrap=True)


def data_notes(resolved: Resolved) -> list[str]:
    """Return notes about the data: held-out or rejected rows, cut sentences, and unofficial sizes."""
    notes: dict[str, None] = {}
    for experiment in resolved.experiments:
        for block in experiment.blocks:
            for spec in (planned.spec for planned in block.runs):
                ready = resolved.tasks.get(spec.task.data)
                prepared = ready.prepared if ready is not None else resolved.estimates.get(spec.key)
                for note in prepared.manifest["notes"] if prepared is not None else ():
                    notes[f"note: {spec.task.name}: {note}"] = None
    return list(notes)
