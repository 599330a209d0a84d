"""The result of initializing a model: which rows were replaced and kept, how large they were and are, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from embinit.diagnosis.distribution import Distribution
from embinit.diagnosis.missing import MissingTokens
from embinit.diagnosis.verdict import Verdict
from embinit.display import HistogramChart, Panel, PanelTable
from embinit.export.outputs import OUTPUTS, Output
from embinit.format import number, percent, plural
from embinit.recipes.recipe import Recipe
from embinit.types import Kind

#: Why a row of the model is kept: its token is special, it is the padding row of an ordinary token, the source lacks its
#: token, or it has none.
Reason = Literal["special", "padding row", "not found", "no token"]
#: The rows that were replaced, as they were in the model, as they are in the source, and as they are in the model now.
Stage = Literal["before", "source", "now"]

_REASONS: Mapping[Reason, str] = {
    "special": "special",
    "padding row": "padding row",
    "not found": "not found",
    "no token": "without a token",
}
_STAGES: Mapping[Stage, str] = {"before": "before", "source": "in the source", "now": "now"}
#: A summary shows this many tokens.
_SHOWN = 6


@dataclass(frozen=True, eq=False)
class Initialization:
    """The result of `initialize` and `apply`: a model has new rows, and this tells which, how and how large."""

    #: the class of the model, or its folder
    model: str
    source: str
    #: the rows that were replaced, in ascending order
    ids: npt.NDArray[np.int64]
    #: those of them whose rows come from the source: `ids` without the filled and the random rows
    found_ids: npt.NDArray[np.int64]
    rows: int
    dim: int
    recipe: Recipe
    #: whether the recipe was the advised one
    advised: bool
    #: whether the rows are those of a matrix that `embinit make` wrote, bit for bit
    from_make: bool
    #: the verdict: on the vectors of the source if the recipe is the advised one, otherwise on the new rows; None if nothing
    #: is known about the model
    verdict: Verdict | None
    #: the shares of the model's tokens, and of its running tokens, that the source has
    coverage: tuple[float, float | None]
    matches: Mapping[Kind, int]
    missing_tokens: MissingTokens
    #: the tokens whose rows are kept, by reason; rows without a token have an empty name. `padding row` is there only if the
    #: padding row belongs to an ordinary token
    kept: Mapping[Reason, tuple[str, ...]]
    output: Output
    #: the rows before, as the source has them, and now
    sizes: Mapping[Stage, Distribution]
    #: whether the model's rows looked trained, not drawn
    was_trained: bool
    #: messages that a person should read first
    warnings: tuple[str, ...]
    histogram: HistogramChart | None = None
    #: tokens of a matrix of `embinit make` that the model lacks
    unused: int = 0
    resized: bool = False
    #: whether a tokenizer was saved with a resized model
    tokenizer_saved: bool = False
    #: tensors that the model's folder lacks; transformers initialized them at random
    missing_tensors: int = 0
    #: whether the verdict assumes the default model, because a bare layer does not tell its model
    host_assumed: bool = False

    @property
    def replaced(self) -> int:
        """Return the number of rows that were replaced."""
        return len(self.ids)

    @property
    def tied(self) -> bool:
        """Return whether the output layer shares the embedding's weight."""
        return self.output == "tied"

    @property
    def rate(self) -> float:
        """Return the advised factor on the learning rate of `found_ids`; 1 is the rate of the other weights.

        Random and shuffled rows have no advice on their rate.
        """
        return self.verdict.rate if self.verdict is not None and self.recipe.keeps_meaning else 1.0

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON."""
        counts = {reason: len(tokens) for reason, tokens in self.kept.items()}
        return {
            "rows": self.rows,
            "dim": self.dim,
            "replaced": self.replaced,
            "found": len(self.found_ids),
            "specials_kept": counts.get("special", 0) + counts.get("padding row", 0),
            "others_kept": counts.get("not found", 0) + counts.get("no token", 0),
            "unused": self.unused,
            "tied": self.tied,
            "resized": self.resized,
            "missing": self.missing_tensors,
            "source": self.source,
            "from_make": self.from_make,
            "recipe": {"name": self.recipe.name, "steps": str(self.recipe), "fill": self.recipe.fill},
            "advised": self.advised,
            "rate": self.rate,
            "host_assumed": self.host_assumed,
            "verdict": None if self.verdict is None else self.verdict.as_dict(),
            "coverage": {"types": self.coverage[0], "tokens": self.coverage[1], "matches": dict(self.matches)},
            "missing_tokens": self.missing_tokens.as_dict(),
            "kept": counts,
            "output": self.output,
            "sizes": {name: asdict(size) for name, size in self.sizes.items()},
            "was_trained": self.was_trained,
            "tokenizer_saved": self.tokenizer_saved,
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        return f"Initialization({self.replaced:,} of {self.rows:,} rows, {self.recipe.name!r}, {self.source!r})"

    def __str__(self) -> str:
        return self.panel(numbers=False).text()

    def _repr_html_(self) -> str:
        return self.panel().html()

    def lines(self) -> list[tuple[str, str]]:
        """Return labels and texts for a terminal: what happened, and the size of the rows before and now."""
        sizes = [f"{number(size.std)} {_STAGES[name]}" for name, size in self.sizes.items()]
        return [*self._facts(), ("σ", ", ".join(sizes)), *self._advice()]

    def panel(self, *, numbers: bool = True) -> Panel:
        """Return the summary, with the sizes as a table and a histogram or as a line."""
        notes = [("harm", warning) for warning in self.warnings]
        if self.verdict is not None and not self.advised:
            notes += [(finding.severity, finding.text) for finding in self.verdict.findings]
        return Panel(
            f"{plural(self.replaced, 'new row')} in {self.model}",
            [*self._facts(), *self._advice()] if numbers else self.lines(),
            notes=notes,
            tables=[self._size_table()] if numbers else (),
            histogram=self.histogram if numbers else None,
            code=self._code(),
        )

    def _facts(self) -> list[tuple[str, str]]:
        types, running = self.coverage
        matches = ", ".join(f"{count:,} {kind}" for kind, count in self.matches.items() if count)
        tokens = "" if running is None else f", {percent(running)} of running tokens"
        size = " (the new size of the model)" if self.resized else ""
        facts = [
            ("source", self.source),
            ("replaced", f"{self.replaced:,} of {self.rows:,} rows of {self.dim} dimensions{size}"),
            *((f"kept, {_REASONS[reason]}", _shown(reason, names)) for reason, names in self.kept.items() if names),
            ("found", f"{percent(types)} of the model's tokens{tokens} ({matches})"),
            *self.missing_tokens.facts(),
        ]
        if self.unused:
            facts.append(("not used", f"{plural(self.unused, 'token')} of the matrix that the model lacks"))
        facts.append(("output layer", OUTPUTS[self.output]))
        if self.missing_tensors:
            lacks = (
                f"the folder lacks {plural(self.missing_tensors, 'tensor')}, which transformers initialized at random"
            )
            facts.append(("note", lacks))
        return facts

    def _advice(self) -> list[tuple[str, str]]:
        """Return the recipe, the verdict and its learning rate."""
        facts = [("recipe", self._recipe_text())]
        if self.verdict is None:
            return facts
        if self.host_assumed and self.verdict.host is not None:
            name = self.verdict.host.name
            facts.append(
                ("model", f"{name} is assumed for a bare layer; name yours with host=, for example host='bert'")
            )
        on_source = self.advised and not self.from_make
        facts.append((f"verdict on the {'source' if on_source else 'new rows'}", self.verdict.headline))
        if self.rate != 1:
            facts.append(
                ("rate", f"train the found rows at {self.rate:g} times the learning rate of the other weights")
            )
        elif self.verdict.rate != 1:
            facts.append(("rate", f"that of the other weights; the verdict's is for rows of {self.verdict.recipe!r}"))
        return facts

    def _recipe_text(self) -> str:
        if self.from_make:
            return "none: the rows of the matrix, bit for bit"
        return f"{self.recipe}{' (advised)' if self.advised else ''}"

    def _size_table(self) -> PanelTable:
        rows = [
            (name, f"{size.rows:,}", *map(number, (size.std, size.mean, size.kurtosis, size.norm_mean)))
            for name, size in self.sizes.items()
        ]
        return PanelTable(("", "rows", "σ", "mean", "kurtosis", "row length"), tuple(rows))

    def _code(self) -> list[tuple[str, str]]:
        """Return the line that gives the found rows their learning rate, if they should have one of their own."""
        if self.rate == 1:
            return []
        call = f"embinit.row_rates(optimizer, layer, {self.rate:g}, ids=report.found_ids)"
        return [("Train the found rows at the advised rate; `layer` is the embedding:", call)]


def _shown(reason: Reason, tokens: tuple[str, ...]) -> str:
    if reason == "no token":
        return f"{len(tokens):,}"
    return f"{len(tokens):,}: {' '.join(tokens[:_SHOWN])}{' …' if len(tokens) > _SHOWN else ''}"
