"""The settings of a source, a task and a run, each declared once with its type. The reader and the JSON Schema use them.

The comment above a field is its explanation in the reference and in editors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationInfo,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass
from pydantic.json_schema import SkipJsonSchema

from embinit.corpora.data_sets import data_sets as known_tasks
from embinit.corpora.data_sets import task_data
from embinit.errors import closest
from embinit.types import TEXT_TASKS, TaskKind

#: Data sets that are generated, and so need no folder, with the kinds of their tasks.
GENERATED = {
    "captions": "translation", "captions-labelled": "classification", "captions-text": "language_model",
}  # fmt: skip
#: Keys that no table declares are mistakes.
_FORBID = ConfigDict(extra="forbid", allow_inf_nan=False)


def _as_written(value: Any, check: Callable[[Any], Any]) -> Any:
    """Return a number as the file writes it: the names of trained vectors depend on `10` and `10.0`."""
    check(value)
    return value


def _file_or_data_set(text: str) -> str:
    name, colon, _ = text.partition(":")
    accepted = (*known_tasks(), "captions")
    if colon and name not in accepted:  # without a colon it is a file
        raise ValueError(f"{text!r} is no DATA SET:LANGUAGE{closest(name, accepted)}")
    return text


def _data_set_and_split(text: str) -> str:
    name, colon, _ = text.partition(":")
    if not colon or name not in known_tasks():
        raise ValueError(f"{text!r} is no DATA SET:SPLIT{closest(name, known_tasks())}")
    return text


def _usual_tokenizer(task: dict[str, Any]) -> str:
    """Return the tokenizer of a data set, if a file names none."""
    known = known_tasks().get(task.get("name", ""))
    return "spacy" if known is None else known.tokenizer


Number = Annotated[StrictFloat, WrapValidator(_as_written)]
AtLeastOne = Annotated[StrictInt, Field(ge=1)]


@dataclass(frozen=True, config=_FORBID)
class GloveSettings:
    """`glove = {...}` of a source: the settings of `embinit glove`, and the texts to learn from."""

    #: texts to learn from: files, `captions:LANGUAGE`, or `DATA SET:LANGUAGE` for the training rows of a data set
    texts: tuple[Annotated[StrictStr, AfterValidator(_file_or_data_set)], ...]
    #: how the texts are split into words: `whitespace`, or `spacy:LANGUAGE`
    tokenizer: StrictStr = "whitespace"
    #: whether words are lower-cased
    lower: StrictBool = True
    #: rarer words get no vector
    min_count: StrictInt = 5
    #: number of words on each side that count as context
    window: StrictInt = 10
    #: dimension of the vectors
    dim: StrictInt = 100
    #: passes over the counts
    epochs: StrictInt = 15
    #: pairs that occur more often weigh no more
    x_max: Number = 100.0
    #: exponent of the weights of pairs
    alpha: Number = 0.75
    #: learning rate
    lr: Number = 0.05
    #: seed of the first values and of the order
    seed: StrictInt = 0
    #: number of sentences to generate, for `captions`
    sentences: StrictInt = 100_000


@dataclass(frozen=True, config=_FORBID)
class SourceSettings:
    """`[sources.NAME]`: vectors in a file, or vectors to train with GloVe."""

    #: the table's own name
    name: SkipJsonSchema[StrictStr]
    #: a file or folder beside the TOML or below the folder of vectors, a hub id, or a fetched name (`glove:840B`)
    path: StrictStr | None = None
    #: train the vectors with GloVe, with these settings
    glove: GloveSettings | None = None
    #: one line that describes the vectors in reports
    about: StrictStr = ""
    #: the vectors of the paper that these vectors replace
    stands_in_for: StrictStr = ""
    #: name of the official file, shown if the file is missing
    official: StrictStr = ""
    #: dimension, if it should be known before the vectors are read; it is checked against them
    dim: StrictInt | None = None
    #: whether a missing word is composed from its pieces
    compose: StrictBool = True
    #: whether a missing piece inside a word is composed too
    continuations: StrictBool = False

    @field_validator("dim")
    @classmethod
    def _like_glove(cls, dim: int | None, info: ValidationInfo) -> int | None:
        glove = info.data.get("glove")
        if glove is not None and dim not in (None, glove.dim):
            raise ValueError(f"{dim}, but glove.dim is {glove.dim}")
        return dim

    @model_validator(mode="after")
    def _path_or_glove(self) -> Self:
        if (self.path is None) == (self.glove is None):
            raise ValueError("needs either path or glove = {...}")
        return self


def kind_of_data(name: str) -> str:
    """Return the kind of task of a data set; the user's own files are a translation unless they say otherwise."""
    if name in GENERATED:
        return GENERATED[name]
    return "translation" if name == "files" else task_data(name).task


@dataclass(frozen=True, config=_FORBID)
class TaskSettings:
    """`[tasks.NAME]`: a data set and how it is prepared."""

    #: the data set; by default the table's own name
    name: StrictStr
    #: languages of a translation, `de-en`; by default the data set's own
    pair: StrictStr | None = None
    #: `spacy`, `whitespace`, or a sub-word tokenizer's file, folder or hub id; two, with a comma, for two sides; by
    #: default `spacy`, and `whitespace` for texts that are split already
    tokenizer: StrictStr = Field(default_factory=_usual_tokenizer)
    #: whether texts are lower-cased; by default words are and sub-words are not
    lower: StrictBool | None = None
    #: rarer words become `<unk>`; by default the data set's own, and 1 for running text that is not split into words
    min_count: AtLeastOne | None = None
    #: number of training rows to keep, the same ones for all seeds; by default all
    rows: AtLeastOne | None = None
    #: number of tokens after which a sentence is cut; by default never
    longest: AtLeastOne | None = None
    #: number of training rows to generate, for generated data only
    size: AtLeastOne | None = None
    #: test splits of other data sets that are scored as well: `iwslt2017:test`
    also: tuple[Annotated[StrictStr, AfterValidator(_data_set_and_split)], ...] = ()
    #: folder, table, or two text files with a comma, beside the TOML or below the folder of data; or `hub`
    path: StrictStr | None = None
    #: the kind of task, for `files`, the user's own data; a known text may be read as a `masked_language_model`
    kind: TaskKind | None = None
    #: running text: `line` ends every line with `<eos>`, `blank` joins the lines of a document
    boundary: Literal["line", "blank"] | None = None
    #: a file that the folder must hold (`train.tsv`, also compressed; * stands for any text)
    needs: StrictStr | None = None
    #: name of the official file, shown if the file is missing
    official: StrictStr = ""
    #: one line that describes the task
    about: StrictStr = ""

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        accepted = [*known_tasks(), *GENERATED, "files"]
        if name not in accepted:
            raise ValueError(f"unknown data set {name!r}{closest(name, accepted)}")
        return name

    @field_validator("size")
    @classmethod
    def _generated(cls, size: int | None, info: ValidationInfo) -> int | None:
        name = info.data.get("name", "captions")
        if size is not None and name not in GENERATED:
            raise ValueError(f"{name} is not generated; use rows = {size} to keep {size} training rows")
        return size

    @field_validator("kind")
    @classmethod
    def _own_files(cls, kind: str | None, info: ValidationInfo) -> str | None:
        name = info.data.get("name", "files")
        if kind is not None and name != "files" and not {kind, kind_of_data(name)} <= set(TEXT_TASKS):
            raise ValueError(f"{name} is known to be a {kind_of_data(name)}; leave kind out")
        return kind

    @field_validator("boundary")
    @classmethod
    def _of_text(cls, boundary: str | None, info: ValidationInfo) -> str | None:
        kind = info.data.get("kind") or kind_of_data(info.data.get("name", "captions-text"))
        if boundary is not None and kind not in TEXT_TASKS:
            raise ValueError(f"boundary is for running text, and this is a {kind}")
        return boundary
