"""The result of extending a model: ids, measures of the new rows, and the lines that train them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from embinit.display import Panel, PanelTable
from embinit.errors import EmbinitError
from embinit.export.row_rates import RowRates, row_rates
from embinit.extending.verdict import NewRows
from embinit.format import fixed, plural

if TYPE_CHECKING:
    import torch

_OUTPUTS = {"tied": "a tied output layer", "own": "an output layer of its own", "none": "no output layer"}
#: A list of ids in a summary is cut after this many.
_SHOWN = 6


@dataclass(frozen=True, eq=False)
class Extension:
    """The result of `extend`: the new tokenizer, the ids of the new tokens, and measures of their rows."""

    #: the tokenizer with the new tokens; the one that was given is not changed
    tokenizer: Any
    #: the new words, as the tokenizer stores them, and their ids
    words: tuple[str, ...]
    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    #: the method that made the rows
    method: str
    #: the number of rows before and after
    rows_before: int
    rows: int
    #: the output layer: `tied` to the embedding, with a weight of its `own`, or `none`
    output: Literal["tied", "own", "none"]
    #: measures of the new rows by stage: `transformers' default`, the method's start, `distilled`
    stages: Mapping[str, NewRows]
    #: the mean change of length by length matching, as a factor; 1 if lengths were not matched
    length_factor: float = 1.0
    #: tokens that existed already and were skipped
    known: tuple[str, ...] = ()
    #: other words whose segmentation was compared, and those that changed
    checked: int = 0
    changed: tuple[str, ...] = ()
    #: what else happened: counts and settings of distillation
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def trainable_token_indices(self) -> list[int]:
        """Return the ids for PEFT's `LoraConfig(trainable_token_indices=…)`."""
        return list(self.ids)

    @property
    def new_rows(self) -> NewRows:
        """Return the measures of the new rows as they are now."""
        return list(self.stages.values())[-1]

    def keep_old_rows(self, optimizer: torch.optim.Optimizer, model: Any) -> list[RowRates]:
        """Freeze all rows but the new ones in a torch optimizer, weight decay included.

        Parameters
        ----------
        optimizer
            The optimizer that trains the model.
        model
            The extended model. An output layer with a weight of its own is treated like the embedding.

        Returns
        -------
        list of RowRates
            Handles; call `remove()` on each to train all rows again.

        Raises
        ------
        EmbinitError
            If the optimizer does not train the embedding.
        """
        layers = [model.get_input_embeddings()]
        if self.output == "own":
            layers.append(model.get_output_embeddings())
        is_new = set(self.ids)
        old = [row for row in range(self.rows) if row not in is_new]
        handles: list[RowRates] = []
        for place, layer in enumerate(layers):
            try:
                handles.append(row_rates(optimizer, layer, 0, ids=old))
            except EmbinitError:
                if place == 0:
                    raise  # a head that is not trained needs no rates
        return handles

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "method": self.method,
            "tokens": list(self.tokens),
            "trainable_token_indices": list(self.ids),
            "rows_before": self.rows_before,
            "rows": self.rows,
            "output": self.output,
            "length_factor": self.length_factor,
            "known": list(self.known),
            "segmentation": {"checked": self.checked, "changed": list(self.changed)},
            "new_rows": {name: asdict(measures) for name, measures in self.stages.items()},
            **self.details,
        }

    def __repr__(self) -> str:
        return f"Extension({plural(len(self.ids), 'new token')}, {self.method!r}, {self.rows:,} rows)"

    def __str__(self) -> str:
        return self.panel().text()

    def _repr_html_(self) -> str:
        return self.panel().html()

    def panel(self) -> Panel:
        """Return the summary."""
        facts = [
            ("new tokens", f"{len(self.ids):,}: {_shown(self.tokens)}"),
            ("ids", ids_text(self.ids)),
            ("method", self.method + (f", lengths times {self.length_factor:.2f}" if self.length_factor != 1 else "")),
            ("rows", f"{self.rows_before:,} before, {self.rows:,} now; {_OUTPUTS[self.output]}"),
            ("other words", f"{self.checked:,} compared, {len(self.changed):,} segmented differently"),
        ]
        if self.known:
            facts.append(("skipped", f"{plural(len(self.known), 'token')} that existed already: {_shown(self.known)}"))
        facts += [(name.replace("_", " "), str(value)) for name, value in self.details.items()]
        facts += [(f"near {token}", ", ".join(near)) for token, near in self.new_rows.neighbours]
        rows = tuple((name, *_measured(measures)) for name, measures in self.stages.items())
        old = ("old rows", fixed(self.new_rows.old_mean_cosine, 3), "1.00", "")
        headers = ("rows", "mean cosine", "length", "duplicates")
        return Panel(
            f"{plural(len(self.ids), 'new token')}",
            facts,
            notes=self.new_rows.findings(),
            tables=(PanelTable(headers, (old, *rows)),),
            code=[("Train only the new rows:", "extension.keep_old_rows(optimizer, model)")],
        )


def _measured(measures: NewRows) -> tuple[str, str, str]:
    return fixed(measures.mean_cosine, 3), fixed(measures.length_ratio, 2), f"{measures.duplicates:,}"


def _shown(tokens: tuple[str, ...]) -> str:
    return " ".join(tokens[:_SHOWN]) + (" …" if len(tokens) > _SHOWN else "")


def ids_text(ids: tuple[int, ...]) -> str:
    """Return ids as a range if they have no gap."""
    if len(ids) > 2 and ids == tuple(range(ids[0], ids[0] + len(ids))):
        return f"{ids[0]}–{ids[-1]}"
    return " ".join(map(str, ids[:_SHOWN])) + (" …" if len(ids) > _SHOWN else "")
