"""Fit new input rows on contexts: only these rows are trained, and the model is frozen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from embinit.errors import EmbinitError
from embinit.extending.distillation.contexts import Contexts, PairedSentence
from embinit.extending.distillation.objective import Match, Objective, trunk_of
from embinit.files import replacing
from embinit.records import Damaged, read_arrays
from embinit.seeds import stream
from embinit.types import Matrix, as_matrix

#: Called with a description of the work, the amount done, and the whole amount.
Progress = Callable[[str, int, int | None], None]

_BATCH = 16
#: A step of Adam, relative to the root mean square of the old rows' numbers.
_RATE = 0.08
_SAVED_EVERY = 20
#: Numbers of targets that are kept for the next pass; others are computed again.
_HELD = 50_000_000
_FIELDS = ("rows", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class Fitted:
    """New rows after the fit."""

    rows: Matrix
    #: the mean difference from the model with the old pieces, before and in each pass
    losses: tuple[float, ...]
    #: batches that an earlier, stopped run had done
    resumed: int
    #: the checkpoint of a stopped run was damaged, so the fit began again
    damaged: bool = False


def fit(
    model: Any,
    ids: Sequence[int],
    contexts: Contexts,
    *,
    match: Match,
    old_rows: Any,
    same_ids: bool,
    epochs: int,
    seed: int,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Fitted:
    """Return input rows of tokens, fitted so that the frozen model reads the contexts as with the old pieces.

    Parameters
    ----------
    model
        The model, whose embedding has rows for the tokens already. It is not changed.
    ids
        The tokens.
    contexts
        The sentences.
    match
        The outputs that must stay alike.
    old_rows
        The embedding's weight of the original model.
    same_ids
        Whether old tokens have the same ids in both tokenizers.
    epochs
        The passes over the contexts.
    seed
        The seed of the order of the contexts.
    progress
        Called with the number of finished batches.
    checkpoint
        The file from which a stopped fit continues. It is removed at the end.

    Returns
    -------
    Fitted
        The rows and the mean losses.
    """
    import torch

    layer = trunk_of(model).get_input_embeddings()
    start = layer.weight.detach()[list(ids)].float().clone()
    rate = _RATE * float(old_rows.float().square().mean().sqrt())
    order = sorted(range(len(contexts.contexts)), key=lambda i: (len(contexts.contexts[i].old_ids), i))
    batches = [[contexts.contexts[i] for i in order[place : place + _BATCH]] for place in range(0, len(order), _BATCH)]
    rows = start.clone().requires_grad_(True)
    optimizer = torch.optim.Adam([rows], lr=rate)
    identity = _identity(contexts.contexts, start.cpu().numpy(), match, epochs, seed)
    damaged = False
    try:
        done, losses = _load(checkpoint, identity, rows, optimizer)
    except Damaged:
        done, losses, damaged = 0, [], True
    resumed, total = done, epochs * len(batches)
    tell = progress or _silent
    with frozen(model):
        objective = Objective(model, match, old_rows, ids=ids, same_ids=same_ids)
        targets: dict[int, list[Any]] = {}
        held = 0
        for step in range(done, total):
            epoch, place = divmod(step, len(batches))
            batch = int(stream(seed, f"order of contexts, pass {epoch}").permutation(len(batches))[place])
            wanted = targets.get(batch) or objective.targets(batches[batch])
            if epochs > 1 and batch not in targets and held < _HELD:
                targets[batch] = wanted
                held += sum(tensor.numel() for tensor in wanted)
            with new_rows(layer, ids, rows):
                loss = objective.loss(batches[batch], wanted, rows)
            rows.grad = None
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.param_groups[0]["lr"] = rate * (1 - step / total)
            optimizer.step()
            losses.append(float(loss.detach()))
            if not np.isfinite(losses[-1]):
                raise EmbinitError("the fit of the new rows diverged; give another method or more text")
            if checkpoint is not None and (step + 1) % _SAVED_EVERY == 0:
                _save(checkpoint, identity, rows, optimizer, step + 1, losses)
            tell("fitting new rows", step + 1, total)
    if checkpoint is not None:
        with suppress(OSError):
            checkpoint.unlink(missing_ok=True)
    means = tuple(float(np.mean(losses[i : i + len(batches)])) for i in range(0, total, len(batches)))
    return Fitted(as_matrix(rows.detach().cpu().numpy()), means, resumed, damaged)


@contextmanager
def frozen(model: Any) -> Iterator[None]:
    """Freeze a model without dropout, and give it back as it was."""
    training = model.training
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    model.eval()
    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)
        model.train(training)


@contextmanager
def new_rows(layer: Any, ids: Sequence[int], rows: Any) -> Iterator[None]:
    """Let an embedding layer return other rows for some ids."""
    import torch

    place_of = torch.full((len(layer.weight),), -1, dtype=torch.long, device=layer.weight.device)
    place_of[list(ids)] = torch.arange(len(ids), device=layer.weight.device)

    def replace(module: Any, arguments: tuple[Any, ...], output: Any) -> Any:
        places = place_of[arguments[0]]
        is_new = places >= 0
        if not is_new.any():
            return output
        # Some layers multiply their rows (Gemma, BART).
        scaled = rows[places[is_new]] * getattr(module, "embed_scale", 1)
        output = output.clone()
        output[is_new] = scaled.to(output.dtype)
        return output

    handle = layer.register_forward_hook(replace)
    try:
        yield
    finally:
        handle.remove()


def _silent(what: str, done: int, total: int | None) -> None:
    pass


# ---------------------------------------------------------------- stopped fits


class _FitHead(TypedDict):
    identity: str
    done: int
    losses: list[float]


def _identity(contexts: Sequence[PairedSentence], start: Matrix, match: Match, epochs: int, seed: int) -> str:
    facts = [[list(context.new_ids) for context in contexts], match, epochs, seed, _BATCH, _RATE]
    return hashlib.sha256(json.dumps(facts).encode() + start.tobytes()).hexdigest()


def _save(path: Path, identity: str, rows: Any, optimizer: Any, done: int, losses: Sequence[float]) -> None:
    state = optimizer.state[rows]
    values = (rows.detach(), state["exp_avg"], state["exp_avg_sq"])
    head = np.array(json.dumps({"identity": identity, "done": done, "losses": list(losses)}))
    with replacing(path) as file:
        np.savez(file, head=head, **{name: value.cpu().numpy() for name, value in zip(_FIELDS, values, strict=True)})


def _load(path: Path | None, identity: str, rows: Any, optimizer: Any) -> tuple[int, list[float]]:
    """Put a stopped fit's values in place, and return its batches and losses; a checkpoint of another fit is left out."""
    import torch

    if path is None or not path.is_file():
        return 0, []
    head: _FitHead
    with read_arrays(path, _FitHead, "write to another folder") as (head, stored):
        if head["identity"] != identity:
            return 0, []
        values = [torch.from_numpy(stored[name]).to(rows) for name in _FIELDS]
    done, losses = head["done"], head["losses"]
    if done != len(losses) or any(value.shape != rows.shape for value in values):
        raise Damaged(f"{path} is damaged: its arrays have other shapes")
    with torch.no_grad():
        rows.copy_(values[0])
    # The same tensors that Adam makes at its first step.
    optimizer.state[rows] = {"step": torch.tensor(float(done)), "exp_avg": values[1], "exp_avg_sq": values[2]}
    return done, losses
