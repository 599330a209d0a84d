"""`embinit fetch`: download well-known vector files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embinit.cli import options as shared

NEEDS_ARGUMENTS = False


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="For example glove:840B, glove:6B.300d or fasttext:de. Without a name, all names are listed.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="The folder to download to. By default $EMBINIT_CACHE, or embinit in the user's cache folder.",
        ),
    ] = None,
    json: shared.Json = False,
) -> None:
    """Download a well-known vector file and check it. An interrupted download continues where it stopped.

    After that, the name is a source: embinit inspect glove:6B.300d. No other command downloads complete vector files.
    $EMBINIT_MIRROR is the address of another server that has the files.
    """
    from embinit.cli.console import Bar, console, print_json, table
    from embinit.sources.catalogue import cache_folder, entries, find_entry
    from embinit.sources.fetch import fetch

    screen = console()
    if name is None:
        if json:
            print_json([{**vars(entry)} for entry in entries()])
            return
        files = table("name", "size", "contents", right_from=9)
        for entry in entries():
            names = ", ".join(entry.members) or entry.name
            files.add_row(names, f"{entry.size / 1e9:.1f} GB" if entry.size else "", entry.about)
        screen.print(files)
        return
    entry, _ = find_entry(name)
    try:
        with Bar(entry.file, "bytes") as bar:
            fetched = fetch(entry, folder or cache_folder(), bar.update)
    except KeyboardInterrupt:
        console(err=True).print("stopped; run the same command again to continue", markup=False)
        raise typer.Exit(130) from None
    check = {
        "published": f"sha256, equal to the published one ({entry.published})",
        "recorded": "sha256, equal to that of the first download (none is published)",
        "first": "sha256, recorded for later downloads (none is published, so this download could not be checked)",
    }[fetched.checked]
    if json:
        print_json(
            {
                "name": name,
                "path": str(fetched.path),
                "sha256": fetched.sha256,
                "checked": fetched.checked,
                "new": fetched.new,
            }
        )
        return
    screen.print(
        f"{'downloaded' if fetched.new else 'already downloaded'}: {fetched.path}", markup=False, soft_wrap=True
    )
    screen.print(f"{check}: {fetched.sha256}", markup=False, soft_wrap=True)
