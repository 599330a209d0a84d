"""`embinit report`: the results of an experiment as a page, tables, or data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from embinit.cli import inputs as planning
from embinit.cli import options as shared

if TYPE_CHECKING:
    from embinit.experiments.definition.draft import Draft
    from embinit.experiments.experiment import Experiment
    from embinit.experiments.runs.store import Results
    from embinit.experiments.spec import Spec
    from embinit.reports.model import Summary

#: Writes the results file of a report.
Writer: TypeAlias = Callable[[Path], None]
NEEDS_ARGUMENTS = True

#: format -> the ending of its file
_ENDINGS = {
    "html": ".html",
    "md": ".md",
    "csv": ".csv",
    "tex": ".tex",
    "json": ".json",
    "results": ".results.json",
    "svg": ".svg",
    "png": ".png",
}
_PICTURES = ("svg", "png")
#: The endings of tables of scores.
_TABLES = (".csv", ".tsv")


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="An experiment's TOML, a results file (--format results), or a CSV with the scores of your own "
            "training: columns start, seed, score, and perhaps block.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="PATH", help="The file to write, or a folder. By default the folder reports."
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="LIST",
            help="html (default), md, csv, tex, json, svg, png, or results (a small file for version control). Separate "
            "several formats with commas.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="START", help="With a CSV: the start that the others are compared with."),
    ] = None,
    lower_is_better: Annotated[
        bool, typer.Option("--lower-is-better", help="With a CSV: lower scores are better, as for a loss.")
    ] = False,
    runs: planning.MadeRuns = planning.RUNS,
    work: planning.Work = None,
    data: planning.Data = None,
    vectors: planning.Vectors = None,
    json: shared.Json = False,
) -> None:
    """Report on an experiment: the answer, tables, curves, and the commands that run it again.

    The command prints the tables and writes one HTML page that needs no network. Runs that are not finished are marked. A
    CSV with the scores of your own training gets the same statistics and the same page.

    embinit report my.toml

    embinit report my.toml --format md,csv,tex -o tables/

    embinit report scores.csv --baseline xavier
    """
    from embinit.cli.console import console, print_json, working
    from embinit.cli.report_tables import print_report

    planning.check_there([file])
    with working(f"reading {file.name}"):
        if file.suffix.lower() in _TABLES:
            summary, keep = _read_table(file, baseline, lower_is_better)
            inputs: Sequence[str | Path] = [file]
        else:
            _refuse_table_options(file, baseline, lower_is_better)
            if file.suffix not in (".toml", ".json"):
                _check_toml(file)
            if file.suffix == ".json":
                (summary, keep), inputs = _read_results(file), [file]
            else:
                summary, keep, inputs = _read_experiment(file, runs, work, data, vectors)
    formats = _formats(form, out)
    formats = _without_pictures(formats, summary, file)
    targets = _targets(formats, out, summary.name)
    run_folders = [path.parent for path in targets.values() if (path.parent / "run.json").is_file()]
    shared.keep_inputs(targets.values(), *inputs, *run_folders)
    written = _write(summary, keep, targets)
    if json:
        print_json(summary.as_json())
        return
    screen = console()
    print_report(summary, screen)
    for path in written:
        screen.print(f"written: {path}", markup=False, soft_wrap=True)


def _check_toml(file: Path) -> None:
    """Raise EmbinitError if a file whose name has another ending is no TOML."""
    from embinit.errors import EmbinitError
    from embinit.files import read_toml

    try:
        read_toml(file)
    except EmbinitError:
        raise EmbinitError(
            f"{file} is no experiment (.toml), no table of scores (.csv or .tsv) and no file of results (.json)"
        ) from None


def _options(folders: dict[str, Path | None]) -> list[str]:
    """Return the options that name the user's folders, for a command."""
    return [
        word for name, folder in folders.items() if folder not in (None, planning.RUNS) for word in (name, str(folder))
    ]


def _read_results(file: Path) -> tuple[Summary, Writer]:
    """Return the report on a results file, and a function that refuses to write another one."""
    from embinit.errors import EmbinitError
    from embinit.reports.results_reader import read_compact

    results = read_compact(file)
    _warn(results.damaged)

    def refuse(path: Path) -> None:
        raise EmbinitError(f"{file} is a results file already; give the experiment's TOML for --format results")

    return results.summary(), refuse


def _read_experiment(
    file: Path, runs: Path, work: Path | None, data: Path | None, vectors: Path | None
) -> tuple[Summary, Writer, Sequence[str | Path]]:
    """Return the report on an experiment's TOML, the function that writes its results file, and the files that it read."""
    from dataclasses import replace

    from embinit.experiments.inputs.locations import files_of

    where = planning.places_of(runs, work, data, vectors)
    options = _options({"--runs": runs, "--work": work, "--data": data, "--vectors": vectors})
    (draft,) = planning.drafts_of([file])
    experiment, inputs = planning.experiment_of(draft, where), files_of(draft, where)
    if experiment.kind != "training":
        from embinit.experiments.measured import measured_path, read_measured
        from embinit.reports.analysis.measurements import summarize_measured

        measured = read_measured(runs, experiment.name)

        def keep_measured(path: Path) -> None:
            from embinit.reports.results_file import write_measured

            write_measured(experiment, measured, path, _public_name(file))

        summary = summarize_measured(experiment, measured, str(file), options)
        return summary, keep_measured, [*inputs, measured_path(runs, experiment.name)]
    from embinit.experiments.runs.registry import quick_looks
    from embinit.experiments.runs.store import results_of
    from embinit.reports.analysis.samples import data_notes, texts_in
    from embinit.reports.summarize import summarize

    results = results_of(experiment, runs)
    _warn(results.damaged)
    quick = [] if _is_complete(experiment, results) else quick_looks(file, experiment, runs)
    prepared = where.work / "prepared"
    summary = summarize(experiment, results, texts=texts_in(prepared), file=str(file), options=options)
    names = {planned.spec.key: planned.spec.task.name for block in experiment.blocks for planned in block.runs}
    notes = data_notes({result.spec.task.data: names[key] for key, result in results.items()}, prepared)
    caveats = [*_quick_look_caveats(quick), *_changed_data_caveats(draft, experiment, results)]
    summary = replace(summary, notes=(*summary.notes, *notes), caveats=(*summary.caveats, *caveats))

    def keep(path: Path) -> None:
        from embinit.reports.results_file import write_compact

        write_compact(experiment, results, path, _public_name(file))

    return summary, keep, inputs


def _is_complete(experiment: Experiment, results: Results) -> bool:
    """Return whether all runs of an experiment are finished."""
    return all(planned.spec.key in results for block in experiment.blocks for planned in block.runs)


def _changed_data_caveats(draft: Draft, experiment: Experiment, results: Results) -> list[str]:
    """Return a sentence on runs on the user's own files if these are not prepared as they are now."""
    from embinit.cli.listing import by_settings

    own = {name for name, task in draft.tasks.items() if task.name == "files"}
    planned = (planned.spec for block in experiment.blocks if not block.missing for planned in block.runs)
    count = sum(spec.key in results and not spec.task.data and spec.task.name in own for spec in planned)
    return [by_settings(count)] if count else []


def _quick_look_caveats(quick: Sequence[Spec]) -> list[str]:
    """Return a sentence on the runs of quick looks, which the report leaves out."""
    from embinit.format import listed, plural

    if not quick:
        return []
    epochs = sorted({int(dict(spec.training)["epochs"]) for spec in quick})
    numbers = f"{listed([f'{number:,}' for number in epochs])} {'epoch' if epochs == [1] else 'epochs'}"
    return [f"{plural(len(quick), 'run')} of a quick look ({numbers}) {'is' if len(quick) == 1 else 'are'} left out."]


def _read_table(file: Path, baseline: str | None, lower: bool) -> tuple[Summary, Writer]:
    """Return the report on a CSV of scores, and a function that refuses to write a results file."""
    from embinit.errors import EmbinitError
    from embinit.reports.scores_file import read_scores

    def refuse(path: Path) -> None:
        raise EmbinitError(
            f"--format results needs an experiment's TOML, but {file} is a CSV, which has all scores already"
        )

    options = [*(["--baseline", baseline] if baseline else []), *(["--lower-is-better"] if lower else [])]
    return read_scores(file, baseline=baseline, lower_is_better=lower).summary(str(file), options), refuse


def _refuse_table_options(file: Path, baseline: str | None, lower: bool) -> None:
    from embinit.errors import EmbinitError

    if baseline is not None or lower:
        name = "--baseline" if baseline is not None else "--lower-is-better"
        raise EmbinitError(
            f"{name} needs a CSV of scores, and {file} is none. An experiment's TOML states its baseline and its score"
        )


def _warn(damaged: Sequence[str]) -> None:
    """Print the damaged runs that the report leaves out."""
    from embinit.cli.console import console

    for message in damaged:
        console(err=True).print(f"left out: {message}", markup=False, soft_wrap=True)


def _public_name(file: Path) -> str:
    """Return the name of a file for other readers: its path below the current folder, or its name alone."""
    try:
        return file.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return file.name


def _formats(form: str | None, out: Path | None) -> list[str]:
    from embinit.errors import EmbinitError, closest

    if form is not None:
        names = [name.strip() for name in form.split(",") if name.strip()]
        for name in names:
            if name not in _ENDINGS:
                raise EmbinitError(f"unknown format {name!r}{closest(name, _ENDINGS)}")
        if not names:
            raise EmbinitError(f"--format is empty; give one of {', '.join(_ENDINGS)}")
        return list(dict.fromkeys(names))
    for name, ending in sorted(_ENDINGS.items(), key=lambda item: -len(item[1])):
        if out is not None and out.name.endswith(ending):
            return [name]
    if out is not None and out.suffix and not out.is_dir():
        raise EmbinitError(
            f"the name {out.name} does not tell a format; choose one with --format: {', '.join(_ENDINGS)}"
        )
    return ["html"]


def _without_pictures(formats: list[str], summary: Summary, file: Path) -> list[str]:
    """Return the formats that the report can have: if there is nothing to draw, no pictures, with a message."""
    others = [form for form in formats if form not in _PICTURES]
    if len(others) == len(formats):
        return formats
    from embinit.cli.console import console
    from embinit.errors import EmbinitError
    from embinit.reports.writers.figures import names

    if names(summary):
        return formats
    pictures = " and ".join(form for form in formats if form in _PICTURES)
    what = "a table of scores" if file.suffix.lower() in _TABLES else f"the report on {file}"
    message = f"{pictures} would have curves and sweeps, and {what} has none to draw"
    if not others:
        choices = ", ".join(form for form in _ENDINGS if form not in _PICTURES)
        raise EmbinitError(f"{message}; choose another format: {choices}")
    console(err=True).print(f"not written: {message}", markup=False, soft_wrap=True)
    return others


def _targets(formats: list[str], out: Path | None, name: str) -> dict[str, Path]:
    """Return the file of each format: the file that the user named, or one for each format in a folder."""
    from embinit.errors import EmbinitError
    from embinit.files import component

    folder = out or Path("reports")
    if out is not None and out.suffix and not out.is_dir():
        if len(formats) > 1:
            raise EmbinitError(f"--out {out} is one file, but --format names {len(formats)} formats; give a folder")
        return {formats[0]: out}
    stem = component(name, "the name of the experiment")
    return {form: folder / f"{stem}{_ENDINGS[form]}" for form in formats}


def _write(summary: Summary, keep: Writer, targets: dict[str, Path]) -> list[Path]:
    """Write the report in each format and return the paths."""
    from embinit.files import replacing

    written = []
    for form, path in targets.items():
        if form in _PICTURES:
            from embinit.reports.writers.figures import figures

            written += figures(summary, path.parent, form)
            continue
        if form == "results":
            keep(path)
        else:
            with replacing(path) as file:
                file.write(_text(summary, form).encode("utf-8", "replace"))
        written.append(path)
    return written


def _text(summary: Summary, form: str) -> str:
    """Return the report in a text format; only the writer of this format is imported."""
    if form == "html":
        from embinit.reports.writers.html import page

        return page(summary)
    if form == "md":
        from embinit.reports.writers.markdown import markdown

        return markdown(summary)
    if form == "csv":
        from embinit.reports.writers.csv_table import spreadsheet

        return spreadsheet(summary)
    if form == "tex":
        from embinit.reports.writers.latex import latex

        return latex(summary)
    import json

    return json.dumps(summary.as_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
