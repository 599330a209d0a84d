"""Options of the commands on experiments, and functions that read the files of experiments and look up their runs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embinit.errors import EmbinitError

if TYPE_CHECKING:
    from embinit.experiments.definition.draft import Draft
    from embinit.experiments.experiment import Experiment
    from embinit.experiments.inputs.locations import Places
    from embinit.experiments.inputs.resolve import Resolved

_PLACES = "Places"

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE", help="Experiment files (TOML).", show_default=False),
]


def _folder(value: Path) -> Path:
    """Return the folder of runs, which need not exist; an error if it is a file."""
    if value.exists() and not value.is_dir():
        raise EmbinitError(f"--runs {value} is a file, not a folder")
    return value


def _folder_there(context: typer.Context, parameter: typer.CallbackParam, value: Path) -> Path:
    """Return the folder of runs; a folder that the user named must exist."""
    source = context.get_parameter_source(parameter.name or "")
    if source is not None and source.name != "DEFAULT" and not value.exists():
        raise EmbinitError(f"--runs {value}: no such folder")
    return _folder(value)


_RUNS: dict[str, Any] = {
    "metavar": "DIR", "rich_help_panel": _PLACES, "help": "The folder of finished runs."
}  # fmt: skip
Runs = Annotated[Path, typer.Option("--runs", callback=_folder, **_RUNS)]
#: The option of commands that train nothing.
MadeRuns = Annotated[Path, typer.Option("--runs", callback=_folder_there, **_RUNS)]
Work = Annotated[
    Path | None,
    typer.Option(
        "--work",
        metavar="DIR",
        rich_help_panel=_PLACES,
        help="The folder of prepared data and aligned rows. By default .work in the folder of runs.",
        show_default=False,
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        rich_help_panel=_PLACES,
        help="The folder of data sets, each in a folder of its name. By default $EMBINIT_DATA.",
        show_default=False,
    ),
]
Vectors = Annotated[
    Path | None,
    typer.Option(
        "--vectors",
        metavar="DIR",
        rich_help_panel=_PLACES,
        help="The folder of vectors and tokenizers. By default $EMBINIT_VECTORS.",
        show_default=False,
    ),
]
Device = Annotated[
    str, typer.Option("--device", metavar="NAME", help="auto (a GPU if there is one), cpu, cuda, cuda:1 ...")
]
Members = Annotated[
    int | None,
    typer.Option("--members", min=1, metavar="N", help="Train at most N runs side by side. By default as many as fit."),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        metavar="N",
        help="The number of processes. By default one for each core, or two with a GPU if the memory has room.",
        show_default=False,
    ),
]
KeepWeights = Annotated[
    bool,
    typer.Option("--keep-weights", help="Keep the weights of each run's best epoch in its folder (embinit convert)."),
]

RUNS = Path("runs")


def places_of(runs: Path, work: Path | None, data: Path | None, vectors: Path | None) -> Places:
    """Return the folders of data, vectors and work; a folder that the user named must exist."""
    from embinit.experiments.inputs.locations import places

    for name, folder in (("data", data), ("vectors", vectors)):
        if folder is not None and not folder.is_dir():
            raise EmbinitError(f"--{name} {folder}: no such folder")
    return places(data, vectors, work if work is not None else runs / ".work")


def check_there(files: list[Path]) -> None:
    """Raise EmbinitError if a file does not exist; the message names the closest file beside it."""
    for file in files:
        if not file.exists():
            from embinit.experiments.inputs.lookup import nearest

            raise EmbinitError(f"no such file: {file}{nearest([file])}")


def drafts_of(files: list[Path], blocks: list[str] | None = None) -> list[Draft]:
    """Return the experiments of files, checked, with the blocks whose name contains one of the texts.

    An experiment that trains nothing keeps all blocks, because its measurements are one file.
    """
    from dataclasses import replace

    from embinit.errors import closest
    from embinit.experiments.definition.reader import read_draft

    check_there(files)
    drafts = [read_draft(file) for file in dict.fromkeys(files)]
    if not blocks:
        return drafts
    names = [block.name for draft in drafts for block in draft.blocks]
    for text in blocks:
        if not any(text in name for name in names):
            raise EmbinitError(f"no block has {text!r} in its name{closest(text, names)}")
    return [
        replace(draft, blocks=tuple(block for block in draft.blocks if any(text in block.name for text in blocks)))
        if draft.kind == "training"
        else draft
        for draft in drafts
    ]


def resolved_of(drafts: list[Draft], where: Places) -> Resolved:
    """Prepare everything that experiments need, with a progress bar, and return them with complete specs."""
    from embinit.cli.console import Bar, console
    from embinit.experiments.inputs.resolve import resolve

    try:
        with Bar("preparing", "done") as bar:
            return resolve(drafts, where, bar.update)
    except KeyboardInterrupt:
        console(err=True).print("stopped; the same command continues with the prepared files", markup=False)
        raise typer.Exit(130) from None


def looked_up(drafts: list[Draft], where: Places) -> Resolved:
    """Return experiments with the specs that are known so far: nothing is prepared, trained or written."""
    from dataclasses import replace

    from embinit.cli.console import working
    from embinit.experiments.inputs.resolve import resolve

    with working("reading data"):
        return resolve(drafts, replace(where, read_only=True))


def looked_up_plans(files: list[Path], where: Places) -> dict[Path, Experiment]:
    """Return the experiment of each file with the specs that are known so far."""
    return dict(zip(dict.fromkeys(files), looked_up(drafts_of(files), where).experiments, strict=True))


def experiment_of(draft: Draft, where: Places) -> Experiment:
    """Return the experiment of a draft for its report.

    It is known from the file alone, except for tasks on the user's own files: their content identifies runs, so that the
    files are looked up if they are here.
    """
    from dataclasses import replace

    from embinit.experiments.inputs.outline import outline

    if draft.kind == "training" and any(task.name == "files" for task in draft.tasks.values()):
        from embinit.experiments.inputs.resolve import resolve

        with suppress(EmbinitError):
            return resolve([draft], replace(where, read_only=True)).experiments[0]
    return outline(draft, where)
