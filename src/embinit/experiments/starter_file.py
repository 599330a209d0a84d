"""The text of a first experiment file: sources, task, and a block of three starts and three seeds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from embinit.models.architecture import default_heads
from embinit.types import TEXT_TASKS

#: Smaller data gets a smaller model and a smaller batch.
_SMALL = 20_000
#: Epochs are chosen so that training takes about this many steps.
_STEPS, _FEWEST_EPOCHS, _MOST_EPOCHS = 2_000, 10, 30
_LONGEST = 100
_SEEDS = (1, 2, 3)
#: For a running text: the tokens of a block, the blocks of a batch, and the rescaled start with GPT-2's σ.
_BLOCK, _BLOCKS = 128, 16
TEXT_START = "pretrained | center | scale std=0.02"
#: The random start, if it is not Xavier's.
_RANDOM = {"language_model": "normal"}


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
    """The content of a first experiment file."""

    file: Path
    kind: str
    #: the corpus's files: one table, one folder, or two text files
    paths: tuple[Path, ...]
    pair: str | None
    tokenizer: str
    tokenizers: tuple[str, ...]
    #: split -> number of rows
    rows: dict[str, int]
    #: the number of words of a running text, for the number of epochs
    words: int
    notes: tuple[str, ...]
    #: sides with vectors; the others start random
    vectors: tuple[SideVectors, ...]
    #: (vectors, side, share of running tokens) of vectors that are not used, because the share is too small
    unused: tuple[tuple[str, str, float], ...]

    @property
    def dim(self) -> int:
        """Return the dimension of the model."""
        return self.vectors[0].dim

    @property
    def starts(self) -> tuple[str, ...]:
        """Return the recipes that are compared."""
        advised = {vectors.advised for vectors in self.vectors}
        if self.kind == "language_model":
            return _RANDOM[self.kind], "pretrained", TEXT_START
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
        """Return the name of the block: the task in a few words."""
        return " to ".join(path.resolve().name for path in self.paths)

    def _head(self) -> list[str]:
        name = self._question()
        return [
            f"# Which start is best for {name}? Written by `embinit new`; every line may be changed.",
            f"#   embinit run {self.file.name} --dry-run     what it takes",
            f"#   embinit run {self.file.name}               train every start with every seed",
            f"#   embinit report {self.file.name}            the answer",
            f"title = {_text(f'Which start is best for {name}?')}",
            *([f"baseline = {_text(_RANDOM[self.kind])}"] if self.kind in _RANDOM else []),
            "",
        ]

    def _sources(self) -> list[str]:
        lines = []
        for name, vectors in self._named_sources().items():
            lines.append(f"[sources.{name}]")
            if vectors.path is None:
                at = self.sides.index(vectors.side)
                text = json.dumps([_shown(self.paths[at if len(self.paths) > 1 else 0], self.file)], ensure_ascii=False)
                own = self.tokenizers[at if len(self.tokenizers) > 1 else 0]
                lines.append("# GloVe vectors, trained once on all lines of your text, the held-out ones too")
                glove = f"texts = {text}, tokenizer = {_text(own)}, dim = {vectors.dim}, min_count = 2, x_max = 10"
                lines.append(f"glove = {{ {glove} }}")
            else:
                lines += [f"path = {_text(_shown_source(vectors.path, self.file))}", f"dim = {vectors.dim}"]
            lines.append("")
        return lines

    def _named_sources(self) -> dict[str, SideVectors]:
        """Return the sources by their names in the file; sides that share vectors share a source."""
        names: dict[str, SideVectors] = {}
        for vectors in self.vectors:
            if vectors.path is None:
                names[f"own-{vectors.side}"] = vectors
            elif vectors.path not in [other.path for other in names.values()]:
                names["vectors" if "vectors" not in names else "more-vectors"] = vectors
        return names

    def _source_of(self, side: str) -> str | None:
        vectors = next((vectors for vectors in self.vectors if vectors.side == side), None)
        if vectors is None:
            return None
        named = self._named_sources()
        return next(
            name for name, other in named.items() if other == vectors or (vectors.path and other.path == vectors.path)
        )

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
            *([] if self.kind in TEXT_TASKS else [f"longest = {_LONGEST}  # longer sentences are cut, and counted"]),
            "",
        ]

    @property
    def name(self) -> str:
        """Return the name of the task in the file."""
        plain = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in self.file.stem)
        return plain.strip("-") or "own"

    def _block(self) -> list[str]:
        text = self.kind in TEXT_TASKS
        small = self.rows["train"] < _SMALL
        batch = _BLOCKS if text else 32 if small else 64
        length = min(_BLOCK, self.words + self.rows["train"])  # no tokenizer makes fewer tokens: each line has an end
        steps = max(1, (self.words // length if text else self.rows["train"]) // batch)
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
            *(['model.preset = "gpt2"', f"model.length = {length}  # tokens of a block"] if text else []),
            f"model.heads = {default_heads(self.dim)}  # divides the {self.dim} dimensions of the vectors",
            f"model.layers = {2 if small else 3}",
            *([f"model.feedforward = {4 * self.dim}"] if text else []),
            f"training.epochs = {epochs}  # the best epoch on the validation rows counts",
            f"training.batch = {batch}",
            f"training.rate = {'1e-3' if small else '5e-4'}",
            f"{axis} = {starts}  # random, the vectors as they are, and rescaled",
            f"grid.seed = {json.dumps(list(_SEEDS))}",
        ]


def _shown(path: Path, file: Path) -> str:
    """Return a path as the experiment file names it: from its own folder on, or absolute. A linked file stays a link."""
    place = path.parent.resolve() / path.name
    try:
        return place.relative_to(file.parent.resolve()).as_posix()
    except ValueError:
        return place.as_posix()


def _shown_source(path: str, file: Path) -> str:
    name, mark, detail = path.partition("::")
    place = Path(name).expanduser()
    return f"{_shown(place, file)}{mark}{detail}" if place.exists() else path


def _text(value: str) -> str:
    """Return a text as TOML writes it."""
    return json.dumps(value, ensure_ascii=False)
