"""A first experiment file for a user's own text and vectors: three starts and three seeds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from embinit.corpora.running_text import read_text
from embinit.corpora.user import read_files
from embinit.corpora.user_files import find_user_files, is_table
from embinit.diagnosis.missing import missing_tokens
from embinit.errors import EmbinitError
from embinit.experiments.definition.draft import canonical
from embinit.experiments.inputs.lookup import nearest
from embinit.experiments.spec import SIDES
from embinit.experiments.starter_file import TEXT_START, SideVectors, Starter
from embinit.format import percent
from embinit.hub import is_id
from embinit.recipes.recipe import recipe as recipe_of
from embinit.sources.catalogue import is_name
from embinit.text.tokenizers import tokenizer as tokenizer_of
from embinit.text.vocabulary import from_text
from embinit.training.fit import one_label
from embinit.types import TEXT_TASKS

if TYPE_CHECKING:
    from embinit.corpora.examples import Corpus
    from embinit.types import Aligned, Vocabulary

#: Vectors are used for a side of a translation if they have at least this share of its running tokens ...
_ENOUGH = 0.8
#: ... and at most this much less than of the other side: English vectors have many tokens of a German text.
_NEAR = 0.1
#: Vectors with a smaller share of the running tokens of every side are refused.
_FEWEST = 0.5
#: Vocabularies are estimated from the first lines of the training rows.
_LINES = 20_000
#: The dimension of vectors that are trained on the user's text.
_OWN_DIM = 128
#: A language in --pair: a code as in ISO 639, or xx for any language.
_LANGUAGE = re.compile("[a-z]{2,3}")


def starter(
    file: Path,
    data: Sequence[Path],
    vectors: Sequence[str] = (),
    pair: str | None = None,
    tokenizer: str | None = None,
    text: bool = False,
) -> Starter:
    """Return a first experiment on a user's files: the text is read, and the vectors are aligned with it.

    Parameters
    ----------
    file
        The experiment file that will be written.
    data
        Two text files, the source's and the target's, a table with labels, or a running text.
    vectors
        Vectors: files, hub ids or fetched names. Each side takes those that have most of its tokens. Without vectors, GloVe
        is trained on the user's own text.
    pair
        The languages, for example `de-en`, or `en` for a table; by default those that the files' names end in.
    tokenizer
        A name as in `embinit prepare`; by default spaCy's rules if spaCy is installed, else white space.
    text
        Whether the data is a running text, for a language model.

    Raises
    ------
    EmbinitError
        If a file does not exist or cannot be used, or no vectors fit any side.
    """
    for path in data:
        if not path.exists():
            raise EmbinitError(f"no such file: {path}{nearest([path])}")
        if "," in path.name:
            raise EmbinitError(f"{path} has a comma in its name, and a comma separates two files in a TOML; rename it")
    if len(data) == 2 and data[0].samefile(data[1]):
        raise EmbinitError(f"{data[0]} is given as the source and as the target; give two files")
    languages = [] if pair is None else pair.split("-")
    if not all(map(_LANGUAGE.fullmatch, languages)) or len(languages) > len(data):
        expected = "two languages, as in de-en" if len(data) > 1 else "one language, as in en"
        raise EmbinitError(f"the pair {pair!r} is not {expected}; a language is a code of two or three letters")
    if text and is_table(data[0]):
        raise EmbinitError(f"{data[0]} is a table, not running text; a table with labels is --labelled {data[0]}")
    paths = list(data)
    if text:
        corpus = read_text(data[0])
    else:
        paths, known_pair = _with_splits(data, pair)
        corpus = read_files(paths, known_pair)
        if "valid" not in corpus.splits:
            raise EmbinitError(f"{data[0]}: {corpus.notes[-1]}; give more rows, or a file of validation rows beside it")
        if len(corpus.labels) == 1:
            raise EmbinitError(f"{data[0]}: {one_label(corpus.labels[0])}")
    specs = _tokenizers(corpus, tokenizer, pair)
    vocabularies = _vocabularies(corpus, specs)
    unused: list[tuple[str, str, float]] = []
    notes = list(corpus.notes)
    if vectors:
        chosen = _chosen([_existing(path) for path in vectors], vocabularies, corpus.task, unused, notes)
    else:
        chosen = [SideVectors(side, None, _OWN_DIM, None, "pretrained_xavier") for side in vocabularies]
    known = None if set(corpus.languages) == {"xx"} else "-".join(corpus.languages)
    rows = {name: len(split) for name, split in corpus.splits.items()}
    spec = specs[0] if len(set(specs)) == 1 else ", ".join(specs)
    words = sum(len(line.split()) for line in corpus.splits["train"].texts[0]) if text else 0
    return Starter(
        file, corpus.task, tuple(paths), known, spec, specs, rows, words, tuple(notes), tuple(chosen), tuple(unused)
    )


def _with_splits(data: Sequence[Path], pair: str | None) -> tuple[list[Path], str | None]:
    """Return the files with their languages, or their folder if it has validation or test rows: train.de and valid.de."""
    folder, pair = data[0].parent, find_user_files(data, pair).pair
    try:
        in_folder = find_user_files([folder], pair)
    except EmbinitError:
        return list(data), pair
    has_splits = len(in_folder.splits) > 1 and in_folder.splits.get("train") == tuple(data)
    return [folder] if has_splits else list(data), pair


def _existing(path: str) -> str:
    name = path.partition("::")[0]
    if Path(name).expanduser().exists() or is_name(name) or is_id(name):
        return path
    raise EmbinitError(f"no such vectors: {name}{nearest([Path(name)])}")


def _tokenizers(corpus: Corpus, asked: str | None, pair: str | None) -> tuple[str, ...]:
    """Return a tokenizer for each side: the one that was asked for, spaCy's rules, or white space."""
    languages = (pair or "xx",) if corpus.task in TEXT_TASKS else corpus.languages
    if asked is not None:
        specs = [f"spacy:{language}" if asked == "spacy" else asked for language in languages]
    elif find_spec("spacy") is None:
        specs = ["whitespace" for _ in languages]
    else:
        specs = [_spacy(language) for language in languages]
    for spec in specs:
        tokenizer_of(spec)
    return tuple(specs)


def _spacy(language: str) -> str:
    """Return spaCy's tokenizer of a language; `spacy:xx`, which suits any, if spaCy lacks the language."""
    try:
        tokenizer_of(f"spacy:{language}")
    except EmbinitError:
        return "spacy:xx"
    return f"spacy:{language}"


def _vocabularies(corpus: Corpus, specs: Sequence[str]) -> dict[str, Vocabulary]:
    """Return the vocabulary of each side, as files name it, from the first training rows."""
    train = corpus.splits["train"]
    if corpus.task == "translation":
        texts = {SIDES_OF_FILES[side]: column for side, column in zip(("source", "target"), train.texts, strict=True)}
    else:
        texts = {"text": [text for column in train.texts for text in column]}
    vocabularies = {}
    for place, (side, lines) in enumerate(texts.items()):
        spec = specs[place % len(specs)]
        words = (spec == "whitespace" or spec.startswith("spacy")) and corpus.task not in TEXT_TASKS
        vocabularies[side] = from_text(islice(lines, _LINES), tokenizer_of(spec), lower=words, min_count=2)
    return vocabularies


#: The names of the sides of a prepared task in experiment files.
SIDES_OF_FILES = {side: name for name, side in SIDES.items()}


def _chosen(
    vectors: Sequence[str],
    vocabularies: dict[str, Vocabulary],
    kind: str,
    unused: list[tuple[str, str, float]],
    notes: list[str],
) -> list[SideVectors]:
    """Return for each side the vectors that have most of its tokens.

    A side of a translation whose vectors have too few of its tokens starts random, and is added to `unused`. The vectors of
    the best side are always taken; a note tells that they have few tokens.
    """
    from embinit.alignment import align

    best: list[tuple[str, str, float, Aligned]] = []
    for side, vocabulary in vocabularies.items():
        aligned_with = [(path, align(path, vocabulary)) for path in vectors]
        shares = [(aligned.coverage()[1] or 0.0, place) for place, (_, aligned) in enumerate(aligned_with)]
        share, place = max(shares, key=lambda pair: (pair[0], -pair[1]))
        path, aligned = aligned_with[place]
        best.append((side, path, share, aligned))
    most = {path: max(share for _, other, share, _ in best if other == path) for _, path, _, _ in best}
    chosen = [entry for entry in best if entry[2] >= max(_ENOUGH, most[entry[1]] - _NEAR)]
    if not chosen:
        side, path, share, aligned = max(best, key=lambda entry: entry[2])
        lacking = missing_tokens(aligned)
        reasons = "".join(f"; likely reason: {reason.text}" for reason in lacking.reasons)
        part = f"{path} has only {percent(share)} of the running tokens of the {side} side"
        message = f"{part}; missing: {lacking.first()}{reasons}"
        if share < _FEWEST:
            raise EmbinitError(
                f"{message}. At least {percent(_FEWEST)} are needed: give other vectors or another --tokenizer, or leave "
                "out --vectors to train GloVe on your text"
            )
        notes.append(message)
        chosen = [entry for entry in best if entry[0] == side]
    unused += [(path, side, share) for side, path, share, _ in best if side not in [entry[0] for entry in chosen]]
    named = {entry[1] for entry in chosen} | {path for path, _, _ in unused}
    notes += [f"{path} is not used: the other vectors have more of the tokens" for path in vectors if path not in named]
    dims = {path: aligned.dim for _, path, _, aligned in chosen}
    if len(set(dims.values())) > 1:
        listed = ", ".join(f"{path} has {dim}" for path, dim in dims.items())
        raise EmbinitError(
            f"the vectors have different dimensions ({listed}), but a model has one; give vectors of the same dimension"
        )
    return [
        SideVectors(side, path, aligned.dim, share, _advised(aligned, kind)) for side, path, share, aligned in chosen
    ]


def _advised(aligned: Aligned, kind: str) -> str:
    """Return the advised recipe for a single learning rate, by its shortest name."""
    from embinit.diagnosis.diagnose import diagnose
    from embinit.hosts import host

    if kind in TEXT_TASKS:
        return TEXT_START
    verdict = diagnose(aligned, host=host("tutorial"), recipe=recipe_of("pretrained"), task=kind, seed=0).verdict
    return canonical(recipe_of(verdict.at_full_rate or verdict.recipe, verdict.fill))
