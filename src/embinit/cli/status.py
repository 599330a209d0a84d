"""`embinit status`: what is done, running, failed, missing and stale."""

from __future__ import annotations

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
    """Show what is done of experiments, what is running and where, what failed and why.

    Stale are finished runs that none of the files names. Nothing is trained; data and vectors that were not looked at yet
    are prepared, for only then it is known which run is which.

    embinit status experiments/demo.toml
    """
    from embinit.cli.console import console, print_json
    from embinit.cli.listing import lines_table, not_run
    from embinit.experiments.status import lines_of, stale, state_of
    from embinit.format import plural

    experiments = planning.experiments_of(files, runs, planning.places_of(runs, work, data, vectors))
    state = state_of(runs)
    lines = [line for one in experiments for line in lines_of(one, runs, state)]
    unnamed = stale(experiments, runs)
    keys = {key for line in lines for key in line.keys if not line.missing}
    done = {key for line in lines for key in line.done}
    if json:
        print_json(
            {
                "runs": len(keys),
                "done": sorted(done),
                "running": {key: {"by": str(by), "far": how} for key, (by, how) in state.running.items()},
                "stopped": state.stopped,
                "failed": state.failed,
                "stale": [path.name for path in unnamed],
                "lines": [{**vars(line), "axes": dict(line.axes)} for line in lines],
            }
        )
        return
    screen = console()
    screen.print(lines_table(lines))
    for text in not_run(lines):
        screen.print(text, markup=False, soft_wrap=True)
    screen.print(f"{len(done):,} of {plural(len(keys), 'run')} done", markup=False)
    for by in dict.fromkeys(owner for owner, _ in state.running.values()):
        own = [how for owner, how in state.running.values() if owner == by]
        screen.print(f"running: {plural(len(own), 'run')} by {by}, {own[0]}", markup=False)
    if state.stopped:
        far = next(iter(state.stopped.values()))
        screen.print(
            f"stopped: {plural(len(state.stopped), 'run')}, {far}; `embinit run` goes on from there", markup=False
        )
    for reason in dict.fromkeys(state.failed.values()):
        failed = [key for key, why in state.failed.items() if why == reason]
        screen.print(
            f"failed: {plural(len(failed), 'run')} ({failed[0]}{' ...' * (len(failed) > 1)}): {reason}",
            markup=False,
            soft_wrap=True,
        )
    if unnamed:
        screen.print(
            f"stale: {plural(len(unnamed), 'run')} that these files do not name; `embinit clean` removes what is stale",
            markup=False,
        )
