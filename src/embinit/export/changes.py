"""What initialization changed: the rows that are kept, by reason, the sizes before and now, and warnings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from embinit.diagnosis.distribution import Distribution, distribution
from embinit.diagnosis.missing import missing_tokens
from embinit.display import histogram, sampled
from embinit.export.report import Initialization, Reason, Stage
from embinit.export.rows import TokenRows
from embinit.format import number, plural
from embinit.recipes.recipe import recipe as recipe_of
from embinit.text.vocabulary import unused_name
from embinit.types import Flags, Matrix, Vocabulary

#: Rows this many times larger or smaller than the model's own are a warning, unless their size was advised.
_FAR = 4.0
#: The mean and the kurtosis of drawn rows lie within this many standard errors of those of their distribution.
_ERRORS = 5.0
#: A uniform distribution has the excess kurtosis -1.2, a normal one 0, a truncated one something between.
_UNIFORM, _MARGIN = -1.2, 0.1
#: The size of fewer kept rows than this is not compared.
_SEVERAL = 10


def report_changes(
    made: TokenRows, old: Matrix, new: Matrix, owned: Flags, *, written: Flags, padding: int | None
) -> Initialization:
    """Return what happened to the rows of an embedding; nothing is known about the output layer yet.

    Parameters
    ----------
    made
        The new rows.
    old, new
        All rows before and now.
    owned
        A flag for each token: whether the model had a row of it.
    written
        A flag for each row: whether embinit wrote the row that was replaced. Such a row is not called trained.
    padding
        The padding row, if it is the row of an ordinary token.

    Returns
    -------
    Initialization
        The report, without the model and its output layer.
    """
    vocabulary = made.aligned.vocabulary
    own = made.ids[owned[made.ids]]
    learned = own[~written[own]]
    samples: dict[Stage, Matrix] = {"before": old[own], "source": made.aligned.rows, "now": new[made.ids]}
    sizes = {name: distribution(rows) for name, rows in samples.items() if rows.size}
    kept = _kept(vocabulary, made, len(new), padding)
    trained = looks_trained(old[learned])
    warnings = [*made.warnings, *_size_warnings(made, sizes), *_kept_warnings(made, sizes, old, kept, vocabulary)]
    if trained:
        warnings.append(
            f"{plural(len(learned), 'row')} of the model that {'looks' if len(learned) == 1 else 'look'} trained, not "
            f"drawn, {'was' if len(learned) == 1 else 'were'} replaced; layers that were trained with them do not fit the "
            "new rows"
        )
    return Initialization(
        model="",
        source=made.aligned.origin.source,
        ids=made.ids,
        found_ids=made.found_ids,
        rows=len(new),
        dim=new.shape[1],
        recipe=made.recipe,
        advised=made.advised,
        from_make=made.from_make,
        verdict=made.verdict,
        coverage=made.aligned.coverage(),
        matches=made.aligned.matches(),
        missing_tokens=missing_tokens(made.aligned),
        kept=kept,
        output="none",
        sizes=sizes,
        was_trained=trained,
        warnings=tuple(warnings),
        histogram=histogram({f"{name} (σ {number(sizes[name].std)})": sampled(samples[name]) for name in sizes}),
    )


def _kept(vocabulary: Vocabulary, made: TokenRows, rows: int, padding: int | None) -> dict[Reason, tuple[str, ...]]:
    """Return the tokens whose rows are kept, by reason."""
    replaced = set(made.ids.tolist())
    kept: dict[Reason, list[str]] = {"special": [], "not found": [], "no token": [""] * (rows - len(vocabulary))}
    if padding is not None and padding not in replaced:
        replaced.add(padding)
        kept["padding row"] = [vocabulary.tokens[padding]]
    for row, token in enumerate(vocabulary.tokens):
        if row in replaced:
            continue
        if token == unused_name(row):
            kept["no token"].append("")
        else:
            kept["special" if token in vocabulary.specials else "not found"].append(token)
    return {reason: tuple(tokens) for reason, tokens in kept.items()}


def _far(one: Distribution, other: Distribution) -> float | None:
    """Return the factor between two sizes; None if they are about the same or one is zero."""
    if not one.std or not other.std:
        return None
    ratio = one.std / other.std
    return None if 1 / _FAR <= ratio <= _FAR else ratio


def _size_warnings(made: TokenRows, sizes: Mapping[Stage, Distribution]) -> list[str]:
    """Return a warning if the new rows have another size than the model's own, and no advice explains it."""
    ratio = None if made.advised or "before" not in sizes else _far(sizes["now"], sizes["before"])
    if ratio is None:
        return []
    remedy = ""
    if made.verdict is not None and str(recipe_of(made.verdict.recipe)) != str(made.recipe):
        remedy = f"; the advised recipe is {made.verdict.recipe!r}"
    return [
        f"the new rows have {_times(ratio)} the σ of the rows that they replace ({number(sizes['now'].std)}, before "
        f"{number(sizes['before'].std)}){remedy}"
    ]


def _kept_warnings(
    made: TokenRows,
    sizes: Mapping[Stage, Distribution],
    old: Matrix,
    kept: Mapping[Reason, Sequence[str]],
    vocabulary: Vocabulary,
) -> list[str]:
    """Return a warning if the rows of tokens that were not found have another size than the new rows."""
    ids = [vocabulary.index[token] for token in kept["not found"]]
    ratio = _far(sizes["now"], distribution(old[ids])) if len(ids) >= _SEVERAL and "now" in sizes else None
    if ratio is None:
        return []
    return [
        f"{plural(len(ids), 'token')} that the source lacks keep the model's rows, and the new rows have {_times(ratio)} "
        "their σ; fill='target' (--fill target) draws rows of the new size for them"
    ]


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if ratio > 1 else f"1/{1 / ratio:,.0f} of"


def looks_trained(rows: Matrix) -> bool:
    """Return whether rows are not as a normal, truncated or uniform distribution around zero draws them."""
    drawn = rows[rows.any(axis=1)]
    if not drawn.size:
        return False
    spread = distribution(drawn)
    far = abs(spread.mean) > _ERRORS * spread.std / math.sqrt(drawn.size)
    margin = _MARGIN + _ERRORS * math.sqrt(24 / drawn.size)
    return far or not _UNIFORM - margin < spread.kurtosis < margin
