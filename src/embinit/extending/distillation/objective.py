"""The numbers of a frozen model that new rows are to reproduce: a pooled vector, or states and next-token distributions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from embinit.errors import EmbinitError, closest
from embinit.export.resize import is_tied
from embinit.extending.distillation.contexts import PairedSentence
from embinit.text.token_files import read_json_object

if TYPE_CHECKING:
    from torch import Tensor

#: `states`: the last hidden states, and next-token distributions of causal models; all others: the pooled vector
Match = Literal["states", "mean", "cls", "last"]
#: Next-token distributions are compared at this many positions of a batch.
_POSITIONS = 256
_POOLINGS: tuple[tuple[str, Match], ...] = (
    ("pooling_mode_mean_tokens", "mean"),
    ("pooling_mode_cls_token", "cls"),
    ("pooling_mode_lasttoken", "last"),
)


def checked_match(name: str) -> Match:
    """Return the name of a match, or raise EmbinitError."""
    for known in get_args(Match):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise EmbinitError(f"unknown match {name!r}{closest(name, get_args(Match))}")


def folder_match(folder: Path) -> Match:
    """Return the usual output of a model's folder: a pooled vector if sentence-transformers wrote it, otherwise states."""
    modules = folder / "modules.json"
    if not modules.is_file() or "Pooling" not in modules.read_text("utf-8", "replace"):
        return "states"
    for path in sorted(folder.glob("*/config.json")):
        settings = read_json_object(path)
        for key, name in _POOLINGS:
            if settings.get(key) or settings.get("pooling_mode") in (name, f"{name}token"):
                return name
    return "mean"


def trunk_of(model: Any) -> Any:
    """Return the part of a model that makes hidden states: an encoder, or the model without its head."""
    if getattr(model.config, "is_encoder_decoder", False):
        return model.get_encoder()
    return getattr(model, model.base_model_prefix, model)


def causal_head(model: Any) -> Any:
    """Return the output layer of a causal model, None for other models."""
    if getattr(model.config, "is_encoder_decoder", False) or not model.can_generate():
        return None
    return model.get_output_embeddings()


def padded(lists: Sequence[Sequence[int]], fill: int, device: Any) -> tuple[Tensor, Tensor]:
    """Return lists of ids as a tensor, and the mask of its real entries."""
    import torch

    longest = max(map(len, lists))
    ids = torch.full((len(lists), longest), fill, dtype=torch.long)
    mask = torch.zeros((len(lists), longest), dtype=torch.long)
    for place, row in enumerate(lists):
        ids[place, : len(row)] = torch.tensor(row)
        mask[place, : len(row)] = 1
    return ids.to(device), mask.to(device)


@contextmanager
def _weight(layer: Any, rows: Tensor) -> Iterator[None]:
    """Give a layer other rows for a while: those of the old tokenizer's ids."""
    own = layer.weight.data
    layer.weight.data = rows
    try:
        yield
    finally:
        layer.weight.data = own


class Objective:
    """Compares what a model makes of contexts by their new tokens with what it makes of their old pieces."""

    def __init__(
        self, model: Any, match: Match, old_rows: Tensor, *, ids: Sequence[int] = (), same_ids: bool = True
    ) -> None:
        self._trunk, self._match, self._old_rows = trunk_of(model), match, old_rows
        self._head = causal_head(model) if match == "states" and same_ids else None
        self._ids, self._tied = set(ids), is_tied(model)
        self._fill = int(getattr(model.config, "pad_token_id", None) or 0)
        self._device = model.get_input_embeddings().weight.device

    def targets(self, contexts: Sequence[PairedSentence]) -> list[Tensor]:
        """Return what the model makes of the old pieces: a vector for each context, or a state for each pair."""
        import torch

        layer = self._trunk.get_input_embeddings()
        with torch.no_grad(), _weight(layer, self._old_rows):
            states, mask = self._states([context.old_ids for context in contexts])
            if self._match != "states":
                return list(self._pooled(states, mask))
            return [states[i, [old for _, old in context.pairs]] for i, context in enumerate(contexts)]

    def loss(self, contexts: Sequence[PairedSentence], targets: Sequence[Tensor], rows: Tensor | None = None) -> Tensor:
        """Return the mean difference from the targets; `rows` are the new rows, which are output rows of tied models."""
        import torch

        states, mask = self._states([context.new_ids for context in contexts])
        if self._match != "states":
            vectors = self._pooled(states, mask).float()
            return (1 - torch.nn.functional.cosine_similarity(vectors, torch.stack(list(targets)).float())).mean()
        # (pairs, dim)
        own = torch.cat([states[i, [new for new, _ in context.pairs]] for i, context in enumerate(contexts)]).float()
        wanted = torch.cat(list(targets)).float()
        differing = (own - wanted).square().mean() / wanted.var(dim=0).mean().clamp(min=1e-12)
        if self._head is None:
            return differing
        # Before a new token, the old distribution names its first piece.
        usual = [not self._ids & set(c.new_ids[place + 1 : place + 2]) for c in contexts for place, _ in c.pairs]
        return differing + self._divergence(self._head, own[usual], wanted[usual], rows if self._tied else None)

    def _divergence(self, head: Any, own: Tensor, wanted: Tensor, rows: Tensor | None) -> Tensor:
        """Return the Kullback-Leibler divergence of next-token distributions, at positions that differ most.

        With `rows`, new tokens compete with the old ones, so that rows that take their probability are not fitted.
        """
        import torch

        if len(own) > _POSITIONS:
            places = (own - wanted).detach().square().sum(dim=1).topk(_POSITIONS).indices
            own, wanted = own[places], wanted[places]
        weight = head.weight[: len(self._old_rows)].detach().float()
        bias = getattr(head, "bias", None)
        old = None if bias is None else bias[: len(self._old_rows)].detach().float()
        before = torch.nn.functional.linear(wanted, weight, old).log_softmax(dim=1)  # (positions, old tokens)
        logits = torch.nn.functional.linear(own, weight, old)
        if rows is not None:
            logits = torch.cat([logits, own @ rows.T], dim=1)
        after = logits.log_softmax(dim=1)[:, : before.shape[1]]
        return torch.nn.functional.kl_div(after, before, reduction="batchmean", log_target=True)

    def _states(self, lists: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        ids, mask = padded(lists, self._fill, self._device)
        return self._trunk(input_ids=ids, attention_mask=mask)[0], mask  # (contexts, length, dim)

    def _pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        import torch

        if self._match == "cls":
            return states[:, 0]
        if self._match == "last":
            return states[torch.arange(len(states)), mask.sum(dim=1) - 1]
        kept = mask.unsqueeze(2).to(states.dtype)
        return (states * kept).sum(dim=1) / kept.sum(dim=1)
