"""The verdict on new rows for a model that was resized elsewhere: its last tokens are the new ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embinit.display import Panel, PanelTable
from embinit.errors import EmbinitError
from embinit.extending.verdict import NewRows, measure
from embinit.format import fixed, plural
from embinit.sources.checkpoint import weights_of
from embinit.sources.load import load
from embinit.sources.repositories import Folder
from embinit.types import Matrix

_SHOWN = 6


@dataclass(frozen=True, eq=False)
class ResizedModel:
    """The last tokens of a model, and measures of their rows."""

    source: str
    tokens: tuple[str, ...]
    rows: int
    measures: NewRows

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        findings = [{"severity": severity, "text": text} for severity, text in self.measures.findings()]
        return {
            "source": self.source,
            "tokens": list(self.tokens),
            "rows": self.rows,
            "new_rows": asdict(self.measures),
            "findings": findings,
        }

    def __str__(self) -> str:
        return self.panel().text()

    def _repr_html_(self) -> str:
        return self.panel().html()

    def panel(self) -> Panel:
        """Return the summary."""
        measures = self.measures
        facts = [
            ("new tokens", f"{len(self.tokens):,} of {self.rows:,}: {' '.join(self.tokens[:_SHOWN])}"
             + (" …" if len(self.tokens) > _SHOWN else "")),
            ("mean cosine", f"{fixed(measures.mean_cosine, 3)} (old rows {fixed(measures.old_mean_cosine, 3)})"),
            ("length", f"{measures.length_ratio:,.2f} times that of old rows"),
            ("duplicates", f"{measures.duplicates:,}"),
        ]  # fmt: skip
        if measures.bias_difference is not None:
            facts.append(("output bias", f"{measures.bias_difference:+.2f} against old tokens"))
        facts += [(f"near {token}", ", ".join(near)) for token, near in measures.neighbours]
        rows = (
            ("old rows", fixed(measures.old_mean_cosine, 3), "1.00", ""),
            ("new rows", fixed(measures.mean_cosine, 3), fixed(measures.length_ratio, 2), f"{measures.duplicates:,}"),
        )
        return Panel(
            f"{self.source}: the last {plural(len(self.tokens), 'token')}",
            facts,
            notes=measures.findings(),
            tables=(PanelTable(("rows", "mean cosine", "length", "duplicates"), rows),),
        )


def inspect_new_tokens(source: str | Path, count: int, *, seed: int = 0) -> ResizedModel:
    """Return measures of the rows of a model's last tokens.

    Parameters
    ----------
    source
        A model's folder or hub id with its tokenizer.
    count
        The number of tokens that were added.
    seed
        The seed of the samples.

    Returns
    -------
    ResizedModel
        The tokens and the measures.

    Raises
    ------
    EmbinitError
        If the source cannot be read, or the model has too few tokens.
    """
    embeddings = load(source)
    if not 1 <= count < len(embeddings):
        raise EmbinitError(
            f"{source} has {len(embeddings):,} tokens, so {count:,} cannot be new; give 1 to {len(embeddings) - 1:,}"
        )
    ids = range(len(embeddings) - count, len(embeddings))
    bias = _output_bias(Path(source), len(embeddings)) if Path(source).is_dir() else None
    measures = measure(np.asarray(embeddings.vectors), ids, list(embeddings.tokens), bias=bias, seed=seed)
    return ResizedModel(str(source), tuple(embeddings.tokens[-count:]), len(embeddings), measures)


def _output_bias(folder: Path, tokens: int) -> Matrix | None:
    """Return the output bias of a model's folder, None if it has none."""
    weights = weights_of(Folder(folder))
    for name in weights.file_of:
        if name.endswith("bias") and len(shape := weights.shape(name)) == 1 and shape[0] >= tokens:
            return weights.rows(name)[:tokens, 0]
    return None
