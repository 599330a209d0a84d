"""`embinit run`: experiments from their files to finished runs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embinit.cli import inputs as planning
from embinit.cli import options as shared

if TYPE_CHECKING:
    from embinit.experiments.definition.draft import Draft
    from embinit.experiments.execution.observer import ExecutionSummary
    from embinit.experiments.inputs.locations import Places
    from embinit.experiments.inputs.resolve import Resolved

NEEDS_ARGUMENTS = True


def command(
    files: planning.Files,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would run, what is done, and what it would take.")
    ] = False,
    block: Annotated[
        list[str] | None,
        typer.Option(
            "--block",
            metavar="TEXT",
            help="Only blocks whose name has this in it (may be given again).",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            min=1,
            metavar="N",
            help="Only the first N seeds of each block: a first answer soon; the others are added whenever they run.",
            show_default=False,
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="DIR",
            help="Write a folder to be executed on another machine (jobs, data, rows) instead of running.",
            show_default=False,
        ),
    ] = None,
    device: planning.Device = "auto",
    members: planning.Members = None,
    workers: planning.Workers = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="local|ray", help="Who trains: this machine, or a Ray cluster.")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            metavar="HOST:PORT",
            help="The address of a Ray cluster, or `auto`; by default one is started on this machine.",
            show_default=False,
        ),
    ] = None,
    keep_weights: planning.KeepWeights = False,
    runs: planning.Runs = planning.RUNS,
    work: planning.Work = None,
    data: planning.Data = None,
    vectors: planning.Vectors = None,
    json: shared.Json = False,
) -> None:
    """Run experiments; what is done is not done again, and what was stopped goes on.

    Equal runs are the same run, in whichever file they stand. Ctrl-C finishes the step, writes a checkpoint and says how to
    go on; a second one stops at once. Blocks whose data or vectors are not here are said and left out; where they
    are here and cannot be read, the others run and the exit code is 1.

    embinit run experiments/demo.toml
    """
    from embinit.cli.console import console
    from embinit.cli.execute import executed, report
    from embinit.errors import EmbinitError
    from embinit.experiments.plan import specs_of, with_first_seeds, write_plan
    from embinit.experiments.runs.store import is_done

    _check_engine(engine, address, workers, device)
    where = planning.places_of(runs, work, data, vectors)
    drafts = planning.drafts_of(files, block)
    resolved = planning.looked_up(drafts, where) if dry_run else planning.resolved_of(drafts, where)
    if seeds is not None:
        resolved = with_first_seeds(resolved, seeds)
    if dry_run:
        _dry(resolved, runs, device, members, json)
        return
    specs = specs_of(resolved)
    _record(drafts, resolved, runs, whole=not block and seeds is None)
    _say_missing(resolved)
    for note in _notes(resolved):
        console(err=True).print(note, markup=False, soft_wrap=True)
    if plan is not None:
        todo = [spec for spec in specs if not is_done(runs / spec.key)]
        path = write_plan(resolved, todo, plan, where.work)
        _planned(path, len(todo), len(specs) - len(todo), json)
        _end_with_damaged(resolved)
        return
    measured = _measure(drafts, resolved, runs, where)
    if not specs and not measured:
        raise EmbinitError("nothing can be run here; --dry-run says what is missing")
    if not json:
        _say_measured(measured)
    if not specs:
        _end_with_damaged(resolved)
        return
    jobs = write_plan(resolved, specs, where.work, where.work)
    if keep_weights:
        _say_without_weights([runs / spec.key for spec in specs])
    if engine == "ray":
        summary = _on_ray(jobs, runs, device, members, workers, address, keep_weights)
    else:
        summary = executed(jobs, runs, device, members, workers, keep_weights)
    if not json:
        _results(resolved, runs)
    report(summary, runs, json, f"embinit {shlex.join(sys.argv[1:])}")
    _end_with_damaged(resolved)


def _check_engine(engine: str, address: str | None, workers: int | None, device: str) -> None:
    """Raise where the engine is unknown, is not installed or does not answer, before anything is prepared for it."""
    from embinit.errors import EmbinitError, closest

    if engine not in ("local", "ray"):
        raise EmbinitError(f"unknown engine {engine!r}{closest(engine, ('local', 'ray'))}")
    if engine == "local":
        if address is not None:
            raise EmbinitError("--address is a Ray cluster's; add --engine ray")
        return
    if address is not None and workers is not None:
        raise EmbinitError(
            "--workers is for this machine; the nodes of a cluster say what they give (ray start --num-cpus)"
        )
    from embinit.experiments.execution.ray.cluster import check

    check(address, device)


def _on_ray(
    jobs: Path, runs: Path, device: str, members: int | None, workers: int | None, address: str | None,
    keep_weights: bool,
) -> ExecutionSummary:  # fmt: skip
    """Return what became of the jobs on a Ray cluster, showing how far they are; Ctrl-C keeps what is done."""
    from embinit.cli.progress import Progress
    from embinit.experiments.execution.interruption import Interruption
    from embinit.experiments.execution.ray.engine import execute_on_ray

    with Progress() as watch:
        text = "stopping: what is done is kept, what is in training is given up"
        with Interruption(lambda _: watch.said(text)) as stopping:
            return execute_on_ray(
                jobs, runs, address=address, device=device, members=members, workers=workers, watch=watch,
                stopping=stopping, keep_weights=keep_weights,
            )  # fmt: skip


def _say_without_weights(folders: list[Path]) -> None:
    """Say which runs will not get weights, because they are finished already."""
    from embinit.cli.console import console
    from embinit.experiments.runs.store import is_done
    from embinit.experiments.runs.weights import NAME
    from embinit.format import plural

    lacking = [folder for folder in folders if is_done(folder) and not (folder / NAME).is_file()]
    if lacking:
        text = f"{plural(len(lacking), 'run')} finished without weights: remove {lacking[0]}"
        text += " and the others to train them again" if len(lacking) > 1 else " to train it again"
        console(err=True).print(text, markup=False, soft_wrap=True)


def _dry(resolved: Resolved, runs: Path, device: str, members: int | None, json: bool) -> None:
    """Print what would run."""
    from embinit.cli.console import console, print_json
    from embinit.cli.listing import lines_table, not_run
    from embinit.cli.progress import clock
    from embinit.experiments.execution.cost import likely_device
    from embinit.experiments.plan import specs_of
    from embinit.experiments.status import estimate_resolved, lines_of, state_of
    from embinit.format import plural

    state = state_of(runs)
    lines = [line for experiment in resolved.experiments for line in lines_of(experiment, runs, state)]
    specs = specs_of(resolved)
    chosen = likely_device(device)
    guess = estimate_resolved(resolved, runs, members, chosen)
    if json:
        content = [{**vars(line), "axes": dict(line.axes)} for line in lines]
        print_json({"lines": content, "runs": len(specs), "estimate": {"device": chosen, **vars(guess)}})
        return
    screen = console()
    screen.print(lines_table(lines))
    for text in not_run(lines):
        screen.print(text, markup=False, soft_wrap=True)
    screen.print(
        f"{plural(len(specs), 'run')}, {len(specs) - guess.runs:,} done, {guess.runs:,} to be made", markup=False
    )
    if guess.runs:
        room = f"{guess.memory / 1e9:.1f} GB"
        screen.print(
            f"estimated on {chosen}: {clock(guess.seconds)} in {plural(guess.groups, 'group')}, up to {room}"
            f"{'' if guess.prepared else ' (estimate, not prepared)'}",
            markup=False,
        )
    for note in _notes(resolved):
        screen.print(note, markup=False, soft_wrap=True)


def _notes(resolved: Resolved) -> list[str]:
    """Return notes about the data: rows that were left out, sentences that were cut, sizes that are not official."""
    tasks = [*(ready.prepared for ready in resolved.tasks.values()), *resolved.estimates.values()]
    notes = [f"note: {prepared.path.name}: {note}" for prepared in tasks for note in prepared.manifest["notes"]]
    return list(dict.fromkeys(notes))


def _record(drafts: list[Draft], resolved: Resolved, runs: Path, whole: bool) -> None:
    """Record the runs that each file plans, so that `status` and `clean` know the experiments of runs."""
    from embinit.experiments.runs.registry import record

    for draft, experiment in zip(drafts, resolved.experiments, strict=True):
        planned = [run.spec.key for block in experiment.blocks if not block.missing for run in block.runs]
        if experiment.kind == "training" and planned:
            record(runs, draft.file, experiment.name, planned, whole and not any(b.missing for b in experiment.blocks))


def _say_missing(resolved: Resolved) -> None:
    from embinit.cli.console import console

    for experiment in resolved.experiments:
        for block in experiment.blocks:
            if block.missing:
                text = f"not run: {experiment.name}: {block.name}: {block.missing}"
                console(err=True).print(text, markup=False, soft_wrap=True)


def _end_with_damaged(resolved: Resolved) -> None:
    """Say again, after all else, which blocks have files that cannot be used, and leave with exit code 1 for them."""
    from embinit.cli.console import console

    for (experiment, block), why in resolved.damaged.items():
        console(err=True).print(f"failed: {experiment}: {block}: {why}", markup=False, soft_wrap=True)
    if resolved.damaged:
        raise typer.Exit(1)


def _planned(path: Path, todo: int, done: int, json: bool) -> None:
    from embinit.cli.console import console, print_json
    from embinit.format import plural

    size = sum(file.stat().st_size for file in path.parent.rglob("*") if file.is_file())
    if json:
        print_json({"jobs": str(path), "runs": todo, "already": done, "bytes": size})
        return
    screen = console()
    screen.print(
        f"{plural(todo, 'run')} planned ({done:,} are done), {size / 1e6:.1f} MB: {path}", markup=False, soft_wrap=True
    )
    screen.print(f"there: embinit execute {path.name} --out runs; back here: embinit collect FOLDER", markup=False)


def _measure(drafts: list[Draft], resolved: Resolved, runs: Path, where: Places) -> list[Path]:
    """Write the measures of experiments that train nothing."""
    from embinit.cli.console import working

    written = []
    for draft, experiment in zip(drafts, resolved.experiments, strict=True):
        if experiment.kind != "training" and not all(block.missing for block in experiment.blocks):
            from embinit.experiments.measurements import measure

            with working(f"measuring {experiment.name}"):
                written.append(measure(draft, experiment, resolved, runs, where))
    return written


def _say_measured(written: list[Path]) -> None:
    from embinit.cli.console import console
    from embinit.cli.listing import measured_table
    from embinit.experiments.measured import read_measured

    screen = console()
    for path in written:
        content = read_measured(path.parent.parent, path.stem)
        if content is not None:
            screen.print(measured_table(content))
        screen.print(f"measured: {path}", markup=False, soft_wrap=True)


def _results(resolved: Resolved, runs: Path) -> None:
    """Print the mean score of each line of each block."""
    from embinit.cli.console import console
    from embinit.cli.listing import results_table
    from embinit.experiments.runs.store import results_of

    screen = console()
    for experiment in resolved.experiments:
        if experiment.kind == "training":
            screen.print(results_table(experiment, results_of(experiment, runs)))
