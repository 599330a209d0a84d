"""`embinit prepare`: tokenize a data set and write packed token ids."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embinit.cli import options as shared

if TYPE_CHECKING:
    from embinit.corpora.examples import Corpus
    from embinit.prepared.folder import Prepared
    from embinit.prepared.prepare import Settings

NEEDS_ARGUMENTS = False


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="multi30k, sst2, mnli ..., captions (generated) or files (yours). Without a name, all are listed.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="The data set's folder, or its id on the Hugging Face hub. `hub` stands for the id of a known data set.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder of prepared tasks.")] = Path(
        "prepared"
    ),
    pair: Annotated[
        str | None,
        typer.Option("--pair", metavar="SRC-TGT", help="The languages of a translation: de-en, en-de, cs-en ..."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            metavar="KIND",
            help="With files: language_model or masked_language_model, for running text. With a known text: "
            "masked_language_model adds `<mask>`.",
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            metavar="NAME",
            help="spacy (rules of each language), whitespace, characters, bytes, or a tokenizer's path or hub id. By "
            "default spacy, and whitespace for wikitext2.",
            show_default=False,
        ),
    ] = None,
    lower: Annotated[
        bool | None,
        typer.Option(
            "--lower/--no-lower",
            help="Lower-case the text first. By default for word tokenizers, unless the text is running text.",
        ),
    ] = None,
    min_count: Annotated[
        int | None,
        typer.Option(
            "--min-count",
            min=1,
            metavar="N",
            help="Keep tokens that occur at least N times in the training rows. By default 2; 5 for iwslt2017, and 1 for "
            "running text in sub-words, characters or bytes.",
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            min=1,
            metavar="N",
            help="Keep N training rows. The sample is fixed: 1,000 rows are a part of the 3,000.",
        ),
    ] = None,
    longest: Annotated[
        int | None,
        typer.Option("--longest", min=1, metavar="N", help="Cut sentences after N tokens. Cut sentences are counted."),
    ] = None,
    boundary: Annotated[
        str | None,
        typer.Option(
            "--boundary",
            metavar="line|blank",
            help="With running text: line (the default) ends every line with `<eos>`; blank ends every document with it, "
            "and blank lines separate documents.",
            show_default=False,
        ),
    ] = None,
    seed: shared.Seed = 0,
    size: Annotated[
        int, typer.Option("--size", min=100, metavar="N", help="With captions: the number of training rows.")
    ] = 20_000,
    json: shared.Json = False,
) -> None:
    """Tokenize a data set, build its vocabulary from the training side, and write packed token ids.

    Each data set with its tokenizer and settings gets its own folder. A folder that exists is not written again. The output
    counts rejected rows, shows the first ones, and notes sizes that differ from the official release.

    embinit prepare multi30k --data multi30k/ --pair de-en -o prepared
    """
    from dataclasses import replace

    from embinit.cli.console import print_json
    from embinit.errors import EmbinitError

    if name is None:
        _list(json)
        return
    if not name.startswith("captions") and (size != 20_000 or seed != 0):
        raise EmbinitError("--size and --seed need captions, which are generated")
    if name.startswith("captions") and data is not None:
        raise EmbinitError(f"{name} is generated; leave --data out")
    corpus = _corpus(name, data, pair, seed, size, task)
    settings = _settings(corpus, name, tokenizer, lower, min_count, boundary)
    settings = replace(settings, rows=rows, longest=longest)
    prepared, new = _prepare(corpus, settings, out)
    if json:
        print_json({"path": str(prepared.path), "new": new, **prepared.manifest})
    else:
        _print(prepared, new)


def _list(json: bool) -> None:
    from embinit.cli.console import console, print_json, table
    from embinit.corpora.data_sets import data_sets

    about = {name: data.about for name, data in data_sets().items()}
    about["captions"] = "generated picture captions in German and English; needs no data and no network"
    about["captions-labelled"] = "generated English captions with a label"
    about["captions-text"] = "generated English captions as running text, for language models"
    about["files"] = (
        "your own files: train.de + train.en, train.source.txt + train.target.txt, or train.tsv, .csv, .jsonl; with "
        "--task language_model, a text file or train.txt"
    )
    if json:
        print_json(about)
        return
    listing = table("name", "content", right_from=9)
    for name, text in about.items():
        listing.add_row(name, text)
    console().print(listing)


def _corpus(name: str, data: str | None, pair: str | None, seed: int, size: int, task: str | None) -> Corpus:
    """Return a corpus, with the kind of task that `--task` names."""
    from dataclasses import replace

    from embinit.errors import EmbinitError
    from embinit.types import TEXT_TASKS, task_kind

    kind = None if task is None else task_kind(task)
    text = kind in TEXT_TASKS
    corpus = _read(name, data, pair, seed, size, text)
    if kind is None or kind == corpus.task:
        return corpus
    if not text or corpus.task not in TEXT_TASKS:
        raise EmbinitError(f"{name} is a {corpus.task}; leave --task out")
    return replace(corpus, task=kind)


def _read(name: str, data: str | None, pair: str | None, seed: int, size: int, text: bool) -> Corpus:
    from embinit import hub
    from embinit.cli.console import working
    from embinit.corpora import generated
    from embinit.corpora.data_sets import data_sets
    from embinit.corpora.running_text import read_text
    from embinit.corpora.tasks import read_corpus, read_hub
    from embinit.corpora.user import read_files
    from embinit.corpora.user_files import named_paths
    from embinit.errors import EmbinitError, closest

    if name in ("captions-labelled", "captions-text") and pair is not None:
        raise EmbinitError(f"{name} is no translation; leave --pair out")
    if name == "captions-text":
        with working("generating captions"):
            return generated.caption_text(size, seed)
    if name in ("captions", "captions-labelled"):
        with working("generating captions"):
            return (
                generated.captions(size, seed, pair) if name == "captions" else generated.labelled_captions(size, seed)
            )
    if name != "files" and name not in data_sets():
        known = [*data_sets(), "captions", "captions-labelled", "captions-text", "files"]
        raise EmbinitError(f"unknown data set {name!r}{closest(name, known)}")
    if data is None:
        raise EmbinitError(f"{name} needs --data DIR{'' if name == 'files' else ' (or --data hub)'}")
    with working(f"reading {name}"):
        if name == "files" and text:
            return read_text(Path(data))
        if name == "files":
            return read_files(named_paths(data), pair)
        if data == "hub" or (data == data_sets()[name].hub.get("id") and not Path(data).exists()):
            return read_hub(name, hub.download, pair)
        return read_corpus(name, Path(data), pair)


def _settings(
    corpus: Corpus, name: str, tokenizer: str | None, lower: bool | None, min_count: int | None, boundary: str | None
) -> Settings:
    from embinit.corpora.data_sets import data_sets
    from embinit.prepared.prepare import Settings, default_preparation

    known = data_sets().get(name)
    tokenizer = tokenizer or (known.tokenizer if known is not None else "spacy")
    usually_lower, least = default_preparation(corpus, name, [tokenizer])
    languages = corpus.languages
    specs = tuple(f"spacy:{language}" if tokenizer == "spacy" else tokenizer for language in languages)
    return Settings(
        corpus.name, specs, usually_lower if lower is None else lower, min_count or least, languages,
        boundary=boundary,  # type: ignore[arg-type]
    )  # fmt: skip


def _prepare(corpus: Corpus, settings: Settings, out: Path) -> tuple[Prepared, bool]:
    from embinit.cli.console import Bar
    from embinit.prepared.prepare import prepare

    with Bar(settings.name, "sentences") as bar:
        return prepare(corpus, settings, out, bar.update)


def _print(prepared: Prepared, new: bool) -> None:
    from embinit.cli.console import console, table

    screen, manifest = console(), prepared.manifest
    listing = table("split", "rows", "rejected", *(f"{side} tokens" for side in prepared.sides), "unknown %")
    for split, counts in manifest["splits"].items():
        sides = list(counts["sides"].values())
        unknown = 100 * sum(side["unknown"] for side in sides) / max(1, sum(side["tokens"] for side in sides))
        rejected = sum(counts["rejected"].values())
        listing.add_row(
            split, f"{counts['rows']:,}", str(rejected), *(f"{s['tokens']:,}" for s in sides), f"{unknown:.2f}"
        )
    screen.print(listing)
    sizes = ", ".join(f"{side} {size:,}" for side, size in manifest["vocabularies"].items())
    screen.print(f"vocabulary: {sizes}")
    for note in manifest["notes"]:
        screen.print(f"note: {note}", markup=False)
    for counts in manifest["splits"].values():
        for example in counts["examples"]:
            screen.print(f"rejected: {example}", markup=False)
    screen.print(f"{'prepared' if new else 'already prepared'}: {prepared.path}", markup=False, soft_wrap=True)
