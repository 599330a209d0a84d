"""`embinit run`: train the runs of experiment files."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embinit.cli import inputs as planning
from embinit.cli import options as shared
from embinit.format import plural

if TYPE_CHECKING:
    from embinit.experiments.definition.draft import Draft
    from embinit.experiments.inputs.locations import Places
    from embinit.experiments.inputs.resolve import Resolved

NEEDS_ARGUMENTS = True


def command(
    files: planning.Files,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Train nothing: list the runs, the finished ones, and the estimated cost."),
    ] = False,
    block: Annotated[
        list[str] | None,
        typer.Option(
            "--block",
            metavar="TEXT",
            help="Only blocks whose name contains this text. May be given several times.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            min=1,
            metavar="N",
            help="Only the first N seeds of each block, for a first answer. Run without it later to add the others.",
            show_default=False,
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            "--epochs",
            min=1,
            metavar="N",
            help="Train for N epochs instead of the file's number, for a quick look. These are other runs: the report of "
            "the file leaves them out, and `embinit clean` removes them.",
            show_default=False,
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="DIR",
            help="Train nothing: write a folder (jobs, data, rows) that another machine executes.",
            show_default=False,
        ),
    ] = None,
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            "--tensorboard",
            metavar="DIR",
            help="Also write the curves of each run for TensorBoard (pip install 'embinit[tensorboard]').",
            show_default=False,
        ),
    ] = None,
    device: planning.Device = "auto",
    members: planning.Members = None,
    workers: planning.Workers = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="local|ray", help="Where to train: on this machine, or on a Ray cluster.")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            metavar="HOST:PORT",
            help="The address of a Ray cluster, or `auto`. By default a cluster is started on this machine.",
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
    """Run experiments. Finished runs are not trained again, and stopped ones continue.

    Equal runs of several files are trained once. Ctrl-C finishes the step, writes a checkpoint and prints the command that
    continues; a second Ctrl-C stops at once. A block whose data or vectors are missing is left out with a message. If the
    files of a block exist and cannot be read, the other blocks run and the exit code is 1.

    embinit run my.toml
    """
    from embinit.cli.console import console
    from embinit.cli.dry_run import data_notes, print_dry_run
    from embinit.cli.engines import check_engine, run_on_ray
    from embinit.cli.execute import executed, report
    from embinit.errors import EmbinitError, require
    from embinit.experiments.execution.tensorboard import curves_observer
    from embinit.experiments.inputs.locations import files_of
    from embinit.experiments.plan import specs_of, unfinished, with_epochs, with_first_seeds, write_plan
    from embinit.experiments.runs.store import is_done

    check_engine(engine, address, workers, device)
    if tensorboard is not None:
        require("tensorboard", "tensorboard", "--tensorboard")
    where = planning.places_of(runs, work, data, vectors)
    drafts = planning.drafts_of(files, block)
    inputs = [path for draft in drafts for path in files_of(draft, where)]
    shared.keep_inputs([(plan or where.work) / "jobs.json"], *inputs)
    if epochs is not None:
        drafts = with_epochs(drafts, epochs)
    resolved = planning.looked_up(drafts, where) if dry_run else planning.resolved_of(drafts, where)
    if seeds is not None:
        resolved = with_first_seeds(resolved, seeds)
    if dry_run:
        print_dry_run(resolved, runs, device, members, json)
        return
    specs = specs_of(resolved)
    _record(drafts, resolved, runs, whole=not block and seeds is None, quick=epochs is not None)
    _print_missing(resolved)
    for note in data_notes(resolved):
        console(err=True).print(note, markup=False, soft_wrap=True)
    missing = unfinished(resolved, specs, runs)
    if plan is not None:
        path = write_plan(resolved, missing, plan, where.work)
        _print_plan(path, len(missing), len(specs) - len(missing), json)
        _end_with_damaged(resolved)
        return
    measured = _measure(drafts, resolved, runs, where)
    if not specs and not measured:
        raise EmbinitError("nothing can be run here; see the reasons above")
    if not json:
        _print_measured(measured)
    if not specs:
        _end_with_damaged(resolved)
        return
    # A run on the user's own files may be finished under another key, and the executor looks for its own key only.
    executable = [spec for spec in specs if spec in missing or is_done(runs / spec.key)]
    jobs = write_plan(resolved, executable, where.work, where.work)
    if keep_weights:
        _print_without_weights([runs / spec.key for spec in specs])
    continuing = f"embinit {shlex.join(sys.argv[1:])}"
    with _continuable(continuing), curves_observer(tensorboard, resolved.experiments, runs) as curves:
        if engine == "ray":
            summary = run_on_ray(jobs, runs, device, members, workers, address, curves, keep_weights)
        else:
            summary = executed(jobs, runs, device, members, workers, curves, keep_weights)
    summary.already += len(specs) - len(executable)
    damaged = _results(resolved, runs, json)
    if not json:
        _print_next(files, epochs, tensorboard, runs)
        if keep_weights:
            _print_weights(resolved, runs)
    report(summary, runs, json, continuing)
    _end_with_damaged(resolved)
    if damaged:
        raise typer.Exit(1)


@contextmanager
def _continuable(command: str) -> Iterator[None]:
    """Print the command that continues from the last checkpoint if a second Ctrl-C stops training at once."""
    from embinit.cli.console import console

    try:
        yield
    except KeyboardInterrupt:
        console(err=True).print(
            f"stopped at once; to continue from the last checkpoint: {command}", markup=False, soft_wrap=True
        )
        raise typer.Exit(130) from None


def _print_without_weights(folders: list[Path]) -> None:
    """Print which runs will not get weights, because they were finished without them."""
    from embinit.cli.console import console
    from embinit.experiments.runs.store import is_done
    from embinit.experiments.runs.weights import NAME
    from embinit.format import plural

    lacking = [folder for folder in folders if is_done(folder) and not (folder / NAME).is_file()]
    if lacking:
        text = f"{plural(len(lacking), 'run')} finished without weights: remove {lacking[0]}"
        text += " and the others to train them again" if len(lacking) > 1 else " to train it again"
        console(err=True).print(text, markup=False, soft_wrap=True)


def _print_next(files: list[Path], epochs: int | None, tensorboard: Path | None, runs: Path) -> None:
    """Print the commands that show the results."""
    from embinit.cli.console import console

    screen = console()
    if tensorboard is not None:
        screen.print(f"curves: tensorboard --logdir {shlex.quote(str(tensorboard))}", markup=False, soft_wrap=True)
    if epochs is not None:
        screen.print(
            f"a quick look with {plural(epochs, 'epoch')}: reports leave these runs out", markup=False, soft_wrap=True
        )
        return
    folder = "" if runs == planning.RUNS else f" --runs {shlex.quote(str(runs))}"
    for file in files:
        screen.print(f"report: embinit report {shlex.quote(str(file))}{folder}", markup=False, soft_wrap=True)


def _print_weights(resolved: Resolved, runs: Path) -> None:
    """Print, for each block of language models, the command that converts the weights of the best run."""
    from embinit.cli.console import console
    from embinit.cli.listing import words
    from embinit.experiments.runs.result import with_scored_split
    from embinit.experiments.runs.store import results_of
    from embinit.experiments.runs.weights import NAME
    from embinit.reports.metrics import metric
    from embinit.types import TEXT_TASKS

    for experiment in resolved.experiments:
        results = results_of(experiment, runs)
        for block in (with_scored_split(block, results) for block in experiment.blocks):
            scores = {
                planned: results[key].scores[block.split][block.score]
                for planned in block.runs
                if planned.spec.task.kind in TEXT_TASKS
                and ((key := planned.spec.key) in results and (runs / key / NAME).is_file())
                and block.score in results[key].scores.get(block.split, {})
            }
            if scores:
                best = (max if metric(block.score, block.split).higher else min)(scores, key=lambda run: scores[run])
                folder = shlex.quote(str(runs / best.spec.key))
                text = f"best run of {block.name}: {words(best.axes)}, seed {best.spec.seed}: "
                console().print(f"{text}embinit convert {folder} -o FOLDER", markup=False, soft_wrap=True)


def _record(drafts: list[Draft], resolved: Resolved, runs: Path, whole: bool, quick: bool) -> None:
    """Record the runs that each file plans, so that `status` and `clean` know the experiments of runs."""
    from embinit.experiments.runs.registry import record

    for draft, experiment in zip(drafts, resolved.experiments, strict=True):
        planned = [run.spec.key for block in experiment.blocks if not block.missing for run in block.runs]
        if experiment.kind == "training" and planned:
            whole_file = whole and not any(block.missing for block in experiment.blocks)
            record(runs, draft.file, experiment.name, planned, whole_file, quick)


def _print_missing(resolved: Resolved) -> None:
    from embinit.cli.console import console

    for experiment in resolved.experiments:
        for block in experiment.blocks:
            if block.missing:
                text = f"not run: {experiment.name}: {block.name}: {block.explained}"
                console(err=True).print(text, markup=False, soft_wrap=True)


def _end_with_damaged(resolved: Resolved) -> None:
    """Name, after all other output, the blocks whose files cannot be used; the exit code is then 1."""
    from embinit.cli.console import console

    for (experiment, block), why in resolved.damaged.items():
        console(err=True).print(f"failed: {experiment}: {block}: {why}", markup=False, soft_wrap=True)
    if resolved.damaged:
        raise typer.Exit(1)


def _print_plan(path: Path, missing: int, done: int, json: bool) -> None:
    from embinit.cli.console import console, print_json

    size = sum(file.stat().st_size for file in path.parent.rglob("*") if file.is_file())
    if json:
        print_json({"jobs": str(path), "runs": missing, "already": done, "bytes": size})
        return
    screen = console()
    screen.print(
        f"{plural(missing, 'run')} planned ({done:,} finished before), {size / 1e6:.1f} MB: {path}",
        markup=False,
        soft_wrap=True,
    )
    screen.print(
        f"next, on the other machine: embinit execute {path.name} --out runs; then here: embinit collect FOLDER",
        markup=False,
    )


def _measure(drafts: list[Draft], resolved: Resolved, runs: Path, where: Places) -> list[Path]:
    """Write the measurements of experiments that train nothing."""
    from embinit.cli.console import working

    written = []
    for draft, experiment in zip(drafts, resolved.experiments, strict=True):
        if experiment.kind != "training" and not all(block.missing for block in experiment.blocks):
            from embinit.experiments.measurements import measure

            with working(f"measuring {experiment.name}"):
                written.append(measure(draft, experiment, resolved, runs, where))
    return written


def _print_measured(written: list[Path]) -> None:
    from embinit.cli.console import console
    from embinit.cli.listing import measured_table
    from embinit.experiments.measured import read_measured

    screen = console()
    for path in written:
        content = read_measured(path.parent.parent, path.stem)
        if content is not None:
            screen.print(measured_table(content))
        screen.print(f"measured: {path}", markup=False, soft_wrap=True)


def _results(resolved: Resolved, runs: Path, json: bool) -> bool:
    """Print the mean score of each start of each block, and name damaged runs; return whether there are any."""
    from embinit.cli.console import console
    from embinit.cli.listing import results_table
    from embinit.experiments.runs.store import finished_folders, results_of

    damaged: dict[str, None] = {}
    for experiment in resolved.experiments:
        if experiment.kind == "training":
            results = results_of(experiment, runs)
            if not json:
                console().print(results_table(experiment, results))
            # The folder may also hold damaged runs of other experiments.
            own = [str(path) for key, path in finished_folders(experiment, runs).items() if key not in results]
            damaged |= dict.fromkeys(text for text in results.damaged if any(path in text for path in own))
    for why in damaged:
        console(err=True).print(f"not counted: {why}", markup=False, soft_wrap=True)
    return bool(damaged)
