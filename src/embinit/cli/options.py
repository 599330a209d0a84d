"""Options that several commands share."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embinit.errors import EmbinitError

if TYPE_CHECKING:
    from embinit.types import Aligned, Vocabulary

_VOCABULARY, _MATCHING = "Vocabulary", "Matching"

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="Vectors: a file (GloVe, word2vec, fastText; text or binary; gz, bz2, xz, zip), a zip's member "
        "(FILE::MEMBER), a Hugging Face or model2vec folder or hub id, .npy, .safetensors, or a fetched name (glove:840B).",
        show_default=False,
    ),
]
Vocab = Annotated[
    Path | None,
    typer.Option(
        "--vocab",
        metavar="FILE",
        rich_help_panel=_VOCABULARY,
        help="The model's tokens in row order: one token per line, JSON, tokenizer.json, vocab.txt, SentencePiece, or a "
        "folder.",
    ),
]
Text = Annotated[
    list[Path] | None,
    typer.Option(
        "--text",
        metavar="FILE",
        rich_help_panel=_VOCABULARY,
        help="Build the vocabulary from this text file, plain or as gz, bz2 or xz. Repeat the option for more files.",
    ),
]
TokenizerName = Annotated[
    str,
    typer.Option(
        "--tokenizer",
        metavar="NAME",
        rich_help_panel=_VOCABULARY,
        help="With --text: whitespace, spacy:en (any language), or a tokenizer's file, folder or hub id.",
    ),
]
Lower = Annotated[bool, typer.Option("--lower", rich_help_panel=_VOCABULARY, help="With --text: lower-case it first.")]
MinCount = Annotated[
    int,
    typer.Option(
        "--min-count", min=1, rich_help_panel=_VOCABULARY, help="With --text: keep tokens that occur at least N times."
    ),
]
NoCase = Annotated[
    bool,
    typer.Option("--no-case", rich_help_panel=_MATCHING, help="Do not match `The` with `the`, nor `the` with `The`."),
]
NoMarkers = Annotated[
    bool, typer.Option("--no-markers", rich_help_panel=_MATCHING, help="Do not match `the` with `▁the` or `Ġthe`.")
]
NoCompose = Annotated[
    bool,
    typer.Option(
        "--no-compose", rich_help_panel=_MATCHING, help="Do not make a missing token's vector from sub-words."
    ),
]
Specials = Annotated[
    bool,
    typer.Option(
        "--specials", rich_help_panel=_MATCHING, help="Take the source's rows for special tokens ([CLS]) too."
    ),
]
Dim = Annotated[
    int | None,
    typer.Option(
        "--dim", min=1, rich_help_panel=_MATCHING, help="The model's dimension, if it differs from the source's."
    ),
]
Project = Annotated[
    str | None,
    typer.Option(
        "--project",
        metavar="HOW",
        rich_help_panel=_MATCHING,
        help="How to change the dimension of the rows, if the model has another one: pca, orthogonal or pad.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="The model that the rows are for: tutorial (the default, the paper's model), bert, gpt2, llama, gemma, t5, "
        "marian, fairseq, a folder with a config.json, or a hub id.",
        show_default=False,
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        "--task",
        metavar="KIND",
        help="The task of the model: translation (the default), classification, language_model or "
        "masked_language_model. It changes the advice for models with sinusoidal positions. The advice for language models "
        "has not been tested yet.",
        show_default=False,
    ),
]
_RECIPE_FORMS = "a name (see `embinit recipes`), steps ('pretrained | center | scale ratio=0.4'), or FILE.toml::NAME."
RecipeName = Annotated[str, typer.Option("--recipe", metavar="RECIPE", help=f"The recipe to inspect: {_RECIPE_FORMS}")]
RecipeOrAdvised = Annotated[
    str,
    typer.Option(
        "--recipe",
        metavar="RECIPE",
        help="advised: the recipe that `embinit inspect` advises for the same model and task. Or " + _RECIPE_FORMS,
    ),
]
Fill = Annotated[
    str | None,
    typer.Option("--fill", metavar="HOW", help="Missing rows: target (default), mean, normal, subword, zeros, xavier."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The seed of everything random.")]
Missing = Annotated[
    Path | None,
    typer.Option(
        "--missing",
        metavar="FILE",
        help="Write all tokens that the source lacks, the most frequent first, with their counts if --text is given.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of text.")]


def vocabulary_of(
    vocab: Path | None, text: list[Path] | None, tokenizer: str, lower: bool, min_count: int
) -> Vocabulary | None:
    """Return the vocabulary of --vocab or --text; None if neither is given."""
    from embinit.text.tokenizers import tokenizer as tokenizer_of
    from embinit.text.vocabulary import from_file, from_text, read_lines

    if vocab is not None and text:
        raise EmbinitError("give --vocab or --text, not both")
    if not text:
        for name, given in (("tokenizer", tokenizer != "whitespace"), ("lower", lower), ("min-count", min_count > 1)):
            if given:
                raise EmbinitError(f"--{name} needs --text")
    if vocab is not None:
        return from_file(vocab)
    if text:
        names = ", ".join(path.name for path in text)
        return from_text(read_lines(text), tokenizer_of(tokenizer), lower=lower, min_count=min_count, origin=names)
    return None


def aligned_of(
    source: str,
    vocabulary: Vocabulary | None,
    *,
    no_case: bool,
    no_markers: bool,
    no_compose: bool,
    specials: bool,
    dim: int | None,
    project: str | None,
    seed: int,
) -> Aligned:
    """Return the source's rows in vocabulary order, with a spinner during reading."""
    from embinit.alignment import Matching, align
    from embinit.cli.console import working

    matching = Matching(case=not no_case, markers=not no_markers, compose=not no_compose, specials=specials)
    with working(f"reading {source}"):
        return align(source, vocabulary, matching=matching, dim=dim, project=project, seed=seed)  # type: ignore[arg-type]


def keep_inputs(outputs: Iterable[Path | None], *inputs: str | Path | None) -> None:
    """Raise EmbinitError if an output would replace another output or an input.

    An input is a file, a source, or a folder that is read. Files are compared by identity, so that links count too.
    """
    targets: dict[str, Path] = {}
    for target in outputs:
        if target is not None and targets.setdefault(os.path.realpath(target), target) is not target:
            raise EmbinitError(f"two files of this command would be {target}; give them different names")
    existing = [target for target in targets.values() if target.exists()]
    if not existing:
        return
    files = [path for given in inputs for path in _files_of(given)]
    for out in existing:
        for path in files:
            if path.is_dir() and any(inner.is_file() and inner.samefile(out) for inner in path.iterdir()):
                raise EmbinitError(f"{out} is a file of {path}, which this command reads; write to another folder")
            if path.is_file() and path.samefile(out):
                raise EmbinitError(f"{out} is an input of this command; give another name")


def _files_of(given: str | Path | None) -> list[Path]:
    """Return the files and folders of an input: a path, or the text of a source."""
    if given is None:
        return []
    if isinstance(given, Path) and given.is_file() and given.suffix not in (".npy", ".safetensors"):
        return [given]
    from embinit.sources.load import input_files

    return input_files(given)


def command_line(command: str, source: str, options: dict[str, Any]) -> str:
    """Return a command for a shell; options that are unset or off are left out."""
    words = ["embinit", command, shlex.quote(source)]
    for name, value in options.items():
        for given in value if isinstance(value, list) else [value]:
            if given is True:
                words.append(f"--{name}")
            elif given is not None and given is not False:
                words.append(f"--{name} {shlex.quote(str(given))}")
    return " ".join(words)
