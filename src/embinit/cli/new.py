"""`embinit new`: write a first experiment file for your own text and vectors."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embinit.cli import options as shared
from embinit.errors import EmbinitError
from embinit.format import listed, percent, plural

if TYPE_CHECKING:
    from embinit.experiments.starter_file import Starter

NEEDS_ARGUMENTS = True


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The experiment file to write: NAME.toml.")],
    source_text: Annotated[
        Path | None,
        typer.Option("--source-text", metavar="FILE", help="For a translation: the source, one sentence per line."),
    ] = None,
    target_text: Annotated[
        Path | None,
        typer.Option("--target-text", metavar="FILE", help="For a translation: the target, in the same order."),
    ] = None,
    labelled: Annotated[
        Path | None,
        typer.Option(
            "--labelled",
            metavar="FILE",
            help="For a classification: a table (.tsv, .csv, .jsonl, .parquet) with the columns text and label.",
        ),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option("--text", metavar="FILE", help="For a language model: running text, a file or a folder."),
    ] = None,
    vectors: Annotated[
        list[str] | None,
        typer.Option(
            "--vectors",
            metavar="SOURCE",
            help="Vectors, as for `embinit inspect`. Give it again for vectors of the other language. Without it, GloVe "
            "vectors are trained on your own text.",
        ),
    ] = None,
    pair: Annotated[
        str | None,
        typer.Option(
            "--pair",
            metavar="LANGUAGES",
            help="The languages: de-en for a translation, otherwise en. By default the endings of the files (train.de).",
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            metavar="NAME",
            help="spacy, whitespace, or a tokenizer's file, folder or hub id. By default spaCy if it is installed.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    json: shared.Json = False,
) -> None:
    """Write a first experiment file for your own text and vectors: three starts and three seeds.

    The text is read and the vectors are matched with it, so that the file runs as it is: the tokenizer, the validation and
    test rows, the dimension and the heads are filled in. Nothing is trained. The output ends with the commands to run next.

    embinit new my.toml --source-text train.de --target-text train.en --vectors glove.txt

    embinit new my.toml --labelled reviews.tsv --vectors glove.txt

    embinit new my.toml --text corpus.txt --vectors glove.txt
    """
    from embinit.cli.console import console, facts_table, print_json, working
    from embinit.experiments.definition.reader import read_draft
    from embinit.experiments.starter import starter
    from embinit.files import replacing

    data = _data(source_text, target_text, labelled, text)
    if file.suffix != ".toml":
        raise EmbinitError(f"{file} does not end in .toml; name the experiment file to write, for example my.toml")
    if file.exists() and not force:
        raise EmbinitError(f"{file} exists; give another name, or --force to replace it")
    # A folder of text may hold the experiment file; no .toml in a folder is read.
    given = [path for path in (*data, *(vectors or ()), tokenizer) if path is not None and not Path(path).is_dir()]
    shared.keep_inputs((file,), *given)
    with working("reading the text and the vectors"):
        first = starter(file, data, vectors or (), pair, tokenizer, text=text is not None)
    with replacing(file) as out:
        out.write(first.toml().encode())
    read_draft(file)
    commands = next_commands(first)
    if json:
        facts = {
            "file": str(file),
            "kind": first.kind,
            "rows": first.rows,
            "tokenizer": first.tokenizer,
            "dim": first.dim,
        }
        unused = [list(entry) for entry in first.unused]
        print_json(
            {**facts, "starts": first.starts, "unused": unused, "notes": first.notes, "commands": list(commands)}
        )
        return
    screen = console()
    screen.print(facts_table(_facts(first)))
    screen.print(f"wrote {file}; next:", markup=False, soft_wrap=True)
    width = max(map(len, commands))
    for line, purpose in commands.items():
        screen.print(f"  {line:{width}}  {purpose}", markup=False, soft_wrap=True)


def _data(source: Path | None, target: Path | None, labelled: Path | None, text: Path | None) -> list[Path]:
    """Return the files of the task; an error unless they are two texts, one table or one running text."""
    from embinit.corpora.user_files import TABLES, is_table

    given = [name for name, path in (("--labelled", labelled), ("--text", text)) if path is not None]
    if len(given) > 1 or (given and (source is not None or target is not None)):
        raise EmbinitError(
            "give one task: --source-text and --target-text for a translation, --labelled for a classification, or --text "
            "for a language model"
        )
    if labelled is not None:
        if labelled.is_file() and not is_table(labelled):
            raise EmbinitError(
                f"--labelled {labelled} is no table ({', '.join(TABLES)}); two texts are --source-text and --target-text"
            )
        return [labelled]
    if text is not None:
        return [text]
    if source is None or target is None:
        lacking = "--target-text" if source is not None else "--source-text" if target is not None else ""
        raise EmbinitError(
            f"a translation needs {lacking} too"
            if lacking
            else "name your text: --source-text FILE --target-text FILE, --labelled FILE, or --text FILE"
        )
    return [source, target]


def next_commands(first: Starter) -> dict[str, str]:
    """Return the commands to run next, with the purpose of each."""
    file = shlex.quote(str(first.file))
    return {
        f"embinit run {file} --dry-run": "the estimated time and memory",
        f"embinit run {file} --epochs 1": "a quick look, if the time is long",
        f"embinit run {file}": f"{len(first.starts)} starts x 3 seeds",
        f"embinit report {file}": "the answer, as a page and a table",
    }


def _facts(first: Starter) -> list[tuple[str, str]]:
    unit = "lines" if first.words else "rows"
    sizes = ", ".join(f"{count:,} {name}" for name, count in first.rows.items())
    facts = [("task", f"{first.kind.replace('_', ' ')}: {sizes} {unit}")]
    facts += [("note", note) for note in first.notes]
    facts.append(("tokenizer", first.tokenizer + _tokenizer_hint(first)))
    texts = {}
    for entry in first.vectors:
        share = None if entry.covered is None else f"{entry.path}: {percent(entry.covered)} of running tokens"
        texts[entry.side] = f"{share or 'GloVe vectors, to be trained on your text'}, {entry.dim} dimensions"
    for path, side, part in first.unused:
        texts[side] = f"random rows, because {path} has only {percent(part)} of the running tokens; "
        texts[side] += "give vectors of this language with a second --vectors"
    facts += [(side, texts[side]) for side in first.sides]
    return [*facts, ("starts", f"{', '.join(first.starts)}: {plural(3, 'seed')} each")]


def _tokenizer_hint(first: Starter) -> str:
    if first.tokenizer == "whitespace":
        return " (spaCy's rules split punctuation off: pip install 'embinit[spacy]')"
    if "spacy:xx" not in first.tokenizers:
        return ""
    if first.pair is None:
        return " (rules for any language; --pair names yours)"
    languages = zip(first.pair.split("-"), first.tokenizers, strict=False)
    unknown = [language for language, name in languages if name == "spacy:xx" and language != "xx"]
    return f" (spaCy has no rules for {listed(unknown)}; spacy:xx fits any language)" if unknown else ""
