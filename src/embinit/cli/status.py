"""`embinit status`: the finished, running, failed and missing runs of experiments."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from embinit.cli import inputs as planning
from embinit.cli import options as shared

NEEDS_ARGUMENTS = True


def command(
    files: planning.Files,
    runs: planning.MadeRuns = planning.RUNS,
    work: planning.Work = None,
    data: planning.Data = None,
    vectors: planning.Vectors = None,
    json: shared.Json = False,
) -> None:
    """Show which runs of experiments are finished, which are in training and where, and which failed and why.

    Nothing is prepared or trained. If the data of a run is not prepared, the run is found by its other settings. A run is
    stale if a file planned it before and has since changed, or if it is from a quick look (`embinit run --epochs`).

    embinit status my.toml
    """
    from embinit.cli.console import console, print_json
    from embinit.cli.listing import found_by_settings, lines_table, not_run
    from embinit.experiments.runs.registry import unplanned
    from embinit.experiments.status import lines_of, state_of
    from embinit.format import plural

    plans = planning.looked_up_plans(files, planning.places_of(runs, work, data, vectors))
    state = state_of(runs)
    lines = [line for experiment in plans.values() for line in lines_of(experiment, runs, state)]
    blocks = [block for experiment in plans.values() for block in experiment.blocks if not block.missing]
    planned = {run.spec.key for block in blocks for run in block.runs}
    done = {key for line in lines for key in line.done}
    # Runs of a block that cannot be run here may have been finished before its files were moved.
    elsewhere = {key for line in lines if not line.missing for key in line.done}
    counted = len(planned) + len({key for line in lines if line.missing for key in line.done} - elsewhere)
    old, other = unplanned(plans, runs)
    others = _others(other, runs)
    if json:
        print_json(
            {
                "runs": counted,
                "done": sorted(done),
                "running": {key: {"by": str(owner), "far": far} for key, (owner, far) in state.running.items()},
                "stopped": state.stopped,
                "failed": state.failed,
                "stale": [path.name for path in old],
                "others": others,
                "lines": [{**vars(line), "axes": dict(line.axes)} for line in lines],
            }
        )
        return
    screen = console()
    screen.print(lines_table(lines))
    for text in not_run(lines):
        screen.print(text, markup=False, soft_wrap=True)
    for text in found_by_settings(lines):
        screen.print(text, markup=False, soft_wrap=True)
    screen.print(f"{len(done):,} of {plural(counted, 'run')} done", markup=False)
    for owner in dict.fromkeys(owner for owner, _ in state.running.values()):
        progress = [far for other, far in state.running.values() if other == owner]
        screen.print(f"running: {plural(len(progress), 'run')} by {owner}, {progress[0]}", markup=False)
    if state.stopped:
        far = next(iter(state.stopped.values()))
        screen.print(
            f"stopped: {plural(len(state.stopped), 'run')}, {far}; `embinit run` continues from there", markup=False
        )
    for reason in dict.fromkeys(state.failed.values()):
        keys = [key for key, other in state.failed.items() if other == reason]
        screen.print(
            f"failed: {plural(len(keys), 'run')} ({keys[0]}{' ...' * (len(keys) > 1)}): {reason}",
            markup=False,
            soft_wrap=True,
        )
    if old:
        text = (
            f"stale: {plural(len(old), 'run')} of a quick look, or that these files planned before; "
            "`embinit clean` removes them"
        )
        screen.print(text, markup=False, soft_wrap=True)
    for name, count in others.items():
        screen.print(f"also in {runs}: {plural(count, 'run')} of {name or 'no known experiment'}", markup=False)


def _others(paths: list[Path], runs: Path) -> dict[str, int]:
    """Return the number of runs of each other experiment; the empty name counts runs of no known experiment."""
    from embinit.experiments.runs.registry import experiments_of_runs

    names = experiments_of_runs(runs)
    return dict(Counter(", ".join(names.get(path.name, [])) for path in paths))
