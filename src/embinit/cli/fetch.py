"""`embinit fetch`: well-known vector files, downloaded once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embinit.cli import options as shared

NEEDS_ARGUMENTS = False


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="glove:840B, glove:6B.300d, fasttext:de ...; none lists them.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="DIR", help="Where to; default $EMBINIT_CACHE or the user's cache folder."),
    ] = None,
    json: shared.Json = False,
) -> None:
    """Download a well-known vector file, with its checksum; an interrupted download goes on where it stopped.

    Nothing else in embinit downloads whole files. Afterwards the name is a source: embinit inspect glove:6B.300d.
    $EMBINIT_MIRROR names another server that has the files.
    """
    from embinit.cli.console import Bar, console, print_json, table
    from embinit.sources.catalogue import cache_folder, entries, find_entry
    from embinit.sources.fetch import fetch

    screen = console()
    if name is None:
        if json:
            print_json([{**vars(entry)} for entry in entries()])
            return
        made = table("name", "size", "what it is", right_from=9)
        for entry in entries():
            names = ", ".join(entry.members) or entry.name
            made.add_row(names, f"{entry.size / 1e9:.1f} GB" if entry.size else "", entry.about)
        screen.print(made)
        return
    entry, _ = find_entry(name)
    try:
        with Bar(entry.file, "bytes") as bar:
            done = fetch(entry, folder or cache_folder(), bar.update)
    except KeyboardInterrupt:
        console(err=True).print("stopped; the same command goes on from here", markup=False)
        raise typer.Exit(130) from None
    said = {
        "published": f"sha256 as published ({entry.published})",
        "recorded": "sha256 as recorded at the first download; none is published",
        "first": "sha256 recorded now: none is published, so this download cannot be checked against another",
    }[done.checked]
    if json:
        print_json(
            {"name": name, "path": str(done.path), "sha256": done.sha256, "checked": done.checked, "new": done.new}
        )
        return
    screen.print(f"{'fetched' if done.new else 'already here'}: {done.path}", markup=False, soft_wrap=True)
    screen.print(f"{said}: {done.sha256}", markup=False, soft_wrap=True)
