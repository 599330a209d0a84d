"""New rows for the tokens of a model: aligned, judged, made by a recipe, and chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embinit.alignment import Matching, Projection, align
from embinit.diagnosis.diagnose import diagnose
from embinit.diagnosis.missing import missing_tokens
from embinit.diagnosis.verdict import Verdict
from embinit.errors import EmbinitError
from embinit.export.advice import choose_recipe
from embinit.export.card import is_described, read_card
from embinit.format import percent, plural
from embinit.hosts import UnknownModelType
from embinit.hosts import host as find_host
from embinit.recipes.recipe import ADVISED, Recipe
from embinit.recipes.recipe import recipe as recipe_of
from embinit.seeds import stream
from embinit.sources.load import load
from embinit.types import Aligned, Embeddings, Flags, Host, Matrix, Vocabulary, task_kind

#: A smaller share of found tokens is a warning.
_FEW = 0.5


@dataclass(frozen=True, eq=False)
class MadeMatrix:
    """A matrix that `embinit make` wrote, with its card."""

    embeddings: Embeddings
    card: dict[str, Any]

    def is_advised_for(self, host: Host) -> bool:
        """Return whether the recipe was the advised one for a model that treats rows as this one does."""
        model = self.card.get("model")
        alike = isinstance(model, dict) and all(
            model.get(name) == getattr(host, name) for name in ("scaled", "positions", "norm")
        )
        return alike and bool(self.card.get("advice"))


@dataclass(frozen=True, eq=False)
class TokenRows:
    """New rows for the tokens of a model."""

    aligned: Aligned
    recipe: Recipe
    #: the verdict on the vectors; None if nothing is known about the model, or all numbers are equal
    verdict: Verdict | None
    #: whether the recipe is the advised one
    advised: bool
    #: whether the rows are those of a matrix that `embinit make` wrote, bit for bit
    from_make: bool
    #: a row for each token of the vocabulary
    matrix: Matrix
    #: the tokens that get their row, in ascending order
    ids: npt.NDArray[np.int64]
    warnings: tuple[str, ...]

    @property
    def found_ids(self) -> npt.NDArray[np.int64]:
        """Return those of the ids whose rows come from the source; all others are random or filled."""
        return self.ids[self.aligned.found[self.ids]] if self.recipe.uses_source else self.ids[:0]


def read_source(source: Any) -> tuple[Any, tuple[str, ...]]:
    """Return a matrix that `embinit make` wrote as `MadeMatrix` and any other source as it is; and warnings."""
    source = source if isinstance(source, str | Path) else load(source)
    card = read_card(source)
    if card is None:
        return source, ()
    embeddings = load(source)
    if is_described(embeddings, card):
        return MadeMatrix(embeddings, card), ()
    return embeddings, (
        f"{embeddings.origin.source} was changed after `embinit make` wrote it (its card has another checksum), so it is "
        "aligned and gets a recipe like any other source",
    )


def make_rows(
    source: Any,
    vocabulary: Vocabulary,
    *,
    owned: Flags,
    model: Any,
    dim: int,
    recipe: Recipe | str | Path = ADVISED,
    fill: str | None = None,
    task: str | None = None,
    seed: int = 0,
    project: Projection | None = None,
) -> TokenRows:
    """Return new rows for the tokens of a model.

    Parameters
    ----------
    source
        A `MadeMatrix`, vectors that are aligned with the tokens, or anything that `load` takes.
    vocabulary
        The tokens of the model in row order.
    owned
        A flag for each token: whether the model has a row of it. Special tokens keep it. So do all other tokens that the
        source lacks, unless `fill` is given.
    model
        The model: anything that `host` takes.
    dim
        The dimension of the model.
    recipe
        A recipe, or `advised`. A matrix of `embinit make` goes in as it is unless a recipe is named.
    fill
        The fill of missing rows. By default they are filled only if the model has no row of them.
    task
        `translation` (the default) or `classification`.
    seed
        The seed of the recipe and of a projection.
    project
        The projection to the dimension of the model.

    Returns
    -------
    TokenRows
        The rows, with the verdict.

    Raises
    ------
    EmbinitError
        If no token is found, the dimensions differ, or the advice needs a model of a known type.
    """
    card_of_make = source if isinstance(source, MadeMatrix) else None
    from_make = card_of_make is not None and recipe == ADVISED
    source = source.embeddings if isinstance(source, MadeMatrix) else source
    own = isinstance(source, Embeddings) and tuple(source.tokens) == vocabulary.tokens
    if isinstance(source, Embeddings):
        declared = source.specials.intersection(vocabulary.tokens)
        vocabulary = replace(vocabulary, specials=vocabulary.specials | declared)
    if from_make:
        _check_dimension(source, dim)
        matching = Matching(case=False, markers=False, compose=False, specials=own)
    else:
        matching = Matching(specials=own)
    if isinstance(source, Aligned):
        aligned = _checked(source, vocabulary, dim)
    else:
        aligned = align(source, vocabulary, matching=matching, dim=dim, project=project, seed=seed)
    host = _host_of(model, needed=recipe == ADVISED and not from_make)
    if host is not None and recipe == ADVISED and not from_make:
        _check_found(aligned)
        choice = choose_recipe(aligned, ADVISED, host=host, fill=fill, task=task, seed=seed)
        chosen, verdict, advised = choice.recipe, choice.verdict, True
        matrix = chosen(aligned, stream(seed, "matrix"), host)
    else:
        chosen = recipe_of("pretrained" if from_make else recipe, fill)
        if chosen.uses_source:
            _check_found(aligned)
        matrix = chosen(aligned, stream(seed, "matrix"), host)
        verdict = _verdict(aligned, matrix, host, chosen, task, seed)
        advised = from_make and card_of_make is not None and host is not None and card_of_make.is_advised_for(host)
    special = np.array([token in vocabulary.specials for token in vocabulary.tokens], dtype=bool)
    has_row = aligned.found | (fill is not None) | (not chosen.uses_source)
    return TokenRows(
        aligned=aligned,
        recipe=chosen,
        verdict=verdict,
        advised=advised,
        from_make=from_make,
        matrix=matrix,
        ids=np.flatnonzero(~(owned & (special | ~has_row))),
        warnings=(*aligned.warnings, *(_few_matches(aligned) if chosen.uses_source else [])),
    )


def _host_of(model: Any, *, needed: bool) -> Host | None:
    """Return the host of a model; None if its type is unknown and no advice is needed."""
    try:
        return find_host(model)
    except UnknownModelType as error:
        if not needed:
            return None
        raise EmbinitError(
            f"{error}. Or name a recipe, because only the advice needs a known model: recipe='pretrained_xavier' "
            "(--recipe pretrained_xavier)"
        ) from None
    except EmbinitError:
        if needed:
            raise
        return None


def _checked(aligned: Aligned, vocabulary: Vocabulary, dim: int) -> Aligned:
    """Return aligned vectors of the tokens of the model; other tokens or another dimension are an error.

    The aligned tokens may go on after the tokens of the model, because a tokenizer can have more tokens than rows.
    """
    tokens = len(vocabulary)
    if aligned.vocabulary.tokens[:tokens] != vocabulary.tokens:
        raise EmbinitError(
            f"the vectors are aligned with {plural(len(aligned), 'token')} ({aligned.vocabulary.origin}), which are not "
            f"the {plural(len(vocabulary), 'token')} of the model ({vocabulary.origin}); give the source of the vectors, or "
            "align it with these tokens: embinit.align(source, tokenizer)"
        )
    if aligned.dim != dim:
        raise EmbinitError(
            f"the aligned vectors have {aligned.dim} dimensions, but the model has {dim}; align them with "
            f"embinit.align(source, tokenizer, dim={dim}, project='orthogonal')"
        )
    return replace(
        aligned,
        vocabulary=vocabulary,
        vectors=aligned.vectors[:tokens],
        found=aligned.found[:tokens],
        kinds=aligned.kinds[:tokens],
    )


def _check_dimension(embeddings: Embeddings, dim: int) -> None:
    if embeddings.dim != dim:
        raise EmbinitError(
            f"the model has {dim} dimensions, but the matrix has {embeddings.dim}; make the matrix with --dim {dim} and "
            "--project"
        )


def _check_found(aligned: Aligned) -> None:
    if not aligned.found.any():
        lacking = missing_tokens(aligned)
        reasons = "".join(f"; likely reason: {reason.text}" for reason in lacking.reasons)
        raise EmbinitError(
            f"{aligned.origin.source} has none of the tokens of {aligned.vocabulary.origin}, so no row would change "
            f"(special tokens keep their rows): {lacking.first()}{reasons}"
        )


def _verdict(
    aligned: Aligned, matrix: Matrix, host: Host | None, recipe: Recipe, task: str | None, seed: int
) -> Verdict | None:
    """Return the verdict on the rows of a given recipe; None if nothing is known about the model or the rows are equal."""
    if task is not None:
        task_kind(task)
    if host is None or float(matrix.std(dtype=np.float64)) == 0:
        return None
    return diagnose(aligned, host=host, recipe=recipe, task=task, seed=seed).verdict


def _few_matches(aligned: Aligned) -> list[str]:
    types, _ = aligned.coverage()
    if types >= _FEW:
        return []
    lacking = missing_tokens(aligned)
    reasons = "".join(f"; likely reason: {reason.text}" for reason in lacking.reasons)
    return [
        f"{aligned.origin.source} has only {percent(types)} of the tokens; missing: {lacking.first()}{reasons}",
    ]
