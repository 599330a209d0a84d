"""A first experiment file for a user's own text and vectors: three starts and three seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from embinit.corpora.user import read_files
from embinit.corpora.user_files import find_user_files
from embinit.errors import EmbinitError
from embinit.experiments.definition.draft import canonical
from embinit.experiments.definition.settings import SIDES
from embinit.experiments.inputs.lookup import nearest
from embinit.hub import is_id
from embinit.models.architecture import default_heads
from embinit.recipes.recipe import recipe as recipe_of
from embinit.sources.catalogue import is_name
from embinit.text.tokenizers import tokenizer as tokenizer_of
from embinit.text.vocabulary import from_text

if TYPE_CHECKING:
    from embinit.corpora.examples import Corpus
    from embinit.types import Aligned, Vocabulary

#: Vectors serve a side if they have at least this share of its running tokens.
ENOUGH = 0.8
#: Vocabularies are estimated from the first lines of the training rows.
_LINES = 20_000
#: Smaller data gets a smaller model and a smaller batch.
_SMALL = 20_000
#: Epochs are chosen so that training takes about this many steps.
_STEPS, _FEWEST_EPOCHS, _MOST_EPOCHS = 2_000, 10, 30
#: Of vectors that are trained on the user's text.
_OWN_DIM = 128
_LONGEST = 100
_SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class SideVectors:
    """The vectors of one side of the task."""

    #: the name of the side in experiment files: `encoder`, `decoder` or `text`
    side: str
    #: the path, hub id or name of the vectors; None: they are trained on the side's text
    path: str | None
    dim: int
    #: the share of running tokens that the vectors have; None for vectors that are not trained yet
    covered: float | None
    #: the recipe that the diagnosis advises, for one learning rate
    advised: str


@dataclass(frozen=True)
class Starter:
    """What a first experiment file says."""

    file: Path
    kind: str
    #: the corpus's files: one table, one folder, or two text files
    paths: tuple[Path, ...]
    pair: str | None
    tokenizer: str
    tokenizers: tuple[str, ...]
    #: split -> number of rows
    rows: dict[str, int]
    notes: tuple[str, ...]
    #: sides with vectors; the others start random
    vectors: tuple[SideVectors, ...]
    #: (vectors, side, share of running tokens) that do not serve the side
    unused: tuple[tuple[str, str, float], ...]

    @property
    def dim(self) -> int:
        """Return the dimension of the model."""
        return self.vectors[0].dim

    @property
    def starts(self) -> tuple[str, ...]:
        """Return the recipes that are compared."""
        advised = {one.advised for one in self.vectors}
        third = next(iter(advised)) if len(advised) == 1 else "pretrained_xavier"
        return "xavier", "pretrained", third if third not in ("xavier", "pretrained") else "pretrained_xavier"

    @property
    def sides(self) -> tuple[str, ...]:
        """Return the sides of the task as files name them."""
        return ("encoder", "decoder") if self.kind == "translation" else ("text",)

    def toml(self) -> str:
        """Return the experiment file."""
        return "\n".join([*self._head(), *self._sources(), *self._task(), *self._block()]) + "\n"

    def _question(self) -> str:
        """Return what the task is, in a few words."""
        return " to ".join(path.resolve().name for path in self.paths)

    def _head(self) -> list[str]:
        name = self._question()
        return [
            f"# Which start is best for {name}? Written by `embinit new`; every line may be changed.",
            f"#   embinit run {self.file.name} --dry-run     what it takes",
            f"#   embinit run {self.file.name}               train every start with every seed",
            f"#   embinit report {self.file.name}            the answer",
            f"title = {_text(f'Which start is best for {name}?')}",
            "",
        ]

    def _sources(self) -> list[str]:
        lines = []
        for name, one in self._named_sources().items():
            lines.append(f"[sources.{name}]")
            if one.path is None:
                at = self.sides.index(one.side)
                text = json.dumps([_shown(self.paths[at if len(self.paths) > 1 else 0], self.file)], ensure_ascii=False)
                own = self.tokenizers[at if len(self.tokenizers) > 1 else 0]
                lines.append("# GloVe vectors that are trained on your own text, once")
                glove = f"texts = {text}, tokenizer = {_text(own)}, dim = {one.dim}, min_count = 2, x_max = 10"
                lines.append(f"glove = {{ {glove} }}")
            else:
                lines.append(f"path = {_text(_shown_source(one.path, self.file))}")
            lines.append("")
        return lines

    def _named_sources(self) -> dict[str, SideVectors]:
        """Return the sources by their names in the file; sides that share vectors share a source."""
        names: dict[str, SideVectors] = {}
        for one in self.vectors:
            if one.path is None:
                names[f"own-{one.side}"] = one
            elif one.path not in [other.path for other in names.values()]:
                names["vectors" if "vectors" not in names else "more-vectors"] = one
        return names

    def _source_of(self, side: str) -> str | None:
        one = next((one for one in self.vectors if one.side == side), None)
        if one is None:
            return None
        named = self._named_sources()
        return next(name for name, other in named.items() if other == one or (one.path and other.path == one.path))

    def _task(self) -> list[str]:
        path = ", ".join(_shown(path, self.file) for path in self.paths)
        comment = "  # the source's file, then the target's" if len(self.paths) > 1 else ""
        sizes = ", ".join(f"{count:,} {name}" for name, count in self.rows.items())
        return [
            f"[tasks.{self.name}]  # {sizes}",
            'name = "files"',
            f"kind = {_text(self.kind)}",
            f"path = {_text(path)}{comment}",
            *([f"pair = {_text(self.pair)}"] if self.pair else []),
            f"tokenizer = {_text(self.tokenizer)}",
            f"longest = {_LONGEST}  # longer sentences are cut, and counted",
            "",
        ]

    @property
    def name(self) -> str:
        """Return the name of the task in the file."""
        plain = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in self.file.stem)
        return plain.strip("-") or "own"

    def _block(self) -> list[str]:
        small = self.rows["train"] < _SMALL
        batch = 32 if small else 64
        steps = max(1, self.rows["train"] // batch)
        epochs = min(_MOST_EPOCHS, max(_FEWEST_EPOCHS, -(-_STEPS // steps)))
        starts = json.dumps(list(self.starts))
        random = [side for side in self.sides if self._source_of(side) is None]
        shared = {self._source_of(side) for side in self.sides}
        lines = ["[[block]]", f"name = {_text(self._question())}", f"task = {_text(self.name)}"]
        if len(shared) == 1:
            lines.append(f"source = {_text(str(next(iter(shared))))}")
        else:
            lines += [
                f"{side}.source = {_text(str(self._source_of(side)))}" for side in self.sides if side not in random
            ]
        lines += [f'{side}.recipe = "xavier"  # no vectors for this side: random rows' for side in random]
        axis = "grid.recipe" if not random else f"grid.{next(side for side in self.sides if side not in random)}.recipe"
        return [
            *lines,
            f"model.heads = {default_heads(self.dim)}  # divides the {self.dim} dimensions of the vectors",
            f"model.layers = {2 if small else 3}",
            f"training.epochs = {epochs}  # the best epoch on the validation rows counts",
            f"training.batch = {batch}",
            f"training.rate = {'1e-3' if small else '5e-4'}",
            f"{axis} = {starts}  # random, the vectors as they are, and rescaled",
            f"grid.seed = {json.dumps(list(_SEEDS))}",
        ]


def starter(
    file: Path,
    data: Sequence[Path],
    vectors: Sequence[str] = (),
    pair: str | None = None,
    tokenizer: str | None = None,
) -> Starter:
    """Return a first experiment on a user's files: the text is read, and the vectors are aligned with it.

    Parameters
    ----------
    file
        The experiment file that will be written.
    data
        Two text files, the source's and the target's, or a table with labels.
    vectors
        Vectors: files, hub ids or fetched names. Each side takes those that have most of its tokens. Without vectors, GloVe
        is trained on the user's own text.
    pair
        The languages, for example `de-en`, or `en` for a table; by default those that the files' names end in.
    tokenizer
        A name as in `embinit prepare`; by default spaCy's rules if spaCy is installed, else white space.

    Raises
    ------
    EmbinitError
        If a file does not exist or cannot be used, or no vectors serve any side.
    """
    for path in data:
        if not path.exists():
            raise EmbinitError(f"no such file: {path}{nearest([path])}")
        if "," in path.name:
            raise EmbinitError(f"{path}: a comma separates two files in an experiment file; rename the file")
    paths = _with_splits(data, pair)
    corpus = read_files(paths, pair)
    specs = _tokenizers(corpus, tokenizer)
    vocabularies = _vocabularies(corpus, specs)
    unused: list[tuple[str, str, float]] = []
    if vectors:
        chosen = _chosen([_existing(path) for path in vectors], vocabularies, corpus.task, unused)
    else:
        chosen = [SideVectors(side, None, _OWN_DIM, None, "pretrained_xavier") for side in vocabularies]
    known = None if set(corpus.languages) == {"xx"} else "-".join(corpus.languages)
    rows = {name: len(split) for name, split in corpus.splits.items()}
    spec = specs[0] if len(set(specs)) == 1 else ", ".join(specs)
    return Starter(
        file, corpus.task, tuple(paths), known, spec, specs, rows, corpus.notes, tuple(chosen), tuple(unused)
    )


def _with_splits(data: Sequence[Path], pair: str | None) -> list[Path]:
    """Return the files, or their folder if it has validation or test rows beside them: train.de and valid.de."""
    folder = data[0].parent
    try:
        beside = find_user_files([folder], pair or find_user_files(list(data)).pair)
    except EmbinitError:
        return list(data)
    return [folder] if len(beside.splits) > 1 and beside.splits.get("train") == tuple(data) else list(data)


def _existing(path: str) -> str:
    name = path.partition("::")[0]
    if Path(name).expanduser().exists() or is_name(name) or is_id(name):
        return path
    raise EmbinitError(f"no such vectors: {name}{nearest([Path(name)])}")


def _tokenizers(corpus: Corpus, asked: str | None) -> tuple[str, ...]:
    """Return a tokenizer for each side: the one that was asked for, spaCy's rules, or white space."""
    if asked is not None:
        specs = [f"spacy:{language}" if asked == "spacy" else asked for language in corpus.languages]
    elif find_spec("spacy") is None:
        specs = ["whitespace" for _ in corpus.languages]
    else:
        specs = [_spacy(language) for language in corpus.languages]
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
    made = {}
    for place, (side, lines) in enumerate(texts.items()):
        spec = specs[place % len(specs)]
        words = spec == "whitespace" or spec.startswith("spacy")
        made[side] = from_text(islice(lines, _LINES), tokenizer_of(spec), lower=words, min_count=2)
    return made


#: How files name the sides of a prepared task.
SIDES_OF_FILES = {side: name for name, side in SIDES.items()}


def _chosen(
    vectors: Sequence[str], vocabularies: dict[str, Vocabulary], kind: str, unused: list[tuple[str, str, float]]
) -> list[SideVectors]:
    """Return for each side the vectors that have most of its tokens; those that have too few are added to `unused`."""
    from embinit.alignment import align

    chosen: list[tuple[str, str, float, Aligned]] = []
    for side, vocabulary in vocabularies.items():
        found = [(path, align(path, vocabulary)) for path in vectors]
        shares = [(aligned.coverage()[1] or 0.0, place) for place, (_, aligned) in enumerate(found)]
        share, place = max(shares, key=lambda one: (one[0], -one[1]))
        if share < ENOUGH:
            unused.append((found[place][0], side, share))
        else:
            chosen.append((side, found[place][0], share, found[place][1]))
    if not chosen:
        path, side, share = max(unused, key=lambda one: one[2])
        raise EmbinitError(
            f"{path} has {100 * share:.0f} % of the running tokens of the {side} side, and at least {100 * ENOUGH:.0f} % "
            f"are needed; check its language, its case and the tokenizer with `embinit inspect {path} --text FILE`"
        )
    dims = {path: aligned.dim for _, path, _, aligned in chosen}
    if len(set(dims.values())) > 1:
        listed = ", ".join(f"{path} has {dim}" for path, dim in dims.items())
        raise EmbinitError(
            f"the vectors have different dimensions ({listed}), and one model has one; give vectors of one"
        )
    return [
        SideVectors(side, path, aligned.dim, share, _advised(aligned, kind)) for side, path, share, aligned in chosen
    ]


def _advised(aligned: Aligned, kind: str) -> str:
    """Return the recipe that is advised for one learning rate, under its shortest name."""
    from embinit.diagnosis.diagnose import diagnose
    from embinit.hosts import host

    verdict = diagnose(aligned, host=host("tutorial"), recipe=recipe_of("pretrained"), task=kind, seed=0).verdict
    return canonical(recipe_of(verdict.at_full_rate or verdict.recipe, verdict.fill))


def _shown(path: Path, file: Path) -> str:
    """Return a path as the experiment file names it: from its own folder on, or absolute."""
    try:
        return path.resolve().relative_to(file.resolve().parent).as_posix()
    except ValueError:
        return path.resolve().as_posix()


def _shown_source(path: str, file: Path) -> str:
    name, mark, detail = path.partition("::")
    place = Path(name).expanduser()
    return f"{_shown(place, file)}{mark}{detail}" if place.exists() else path


def _text(value: str) -> str:
    """Return a text as TOML writes it."""
    return json.dumps(value, ensure_ascii=False)
