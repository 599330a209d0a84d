"""Rates for single rows of an embedding, in any torch optimizer."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embinit.display import Panel
from embinit.errors import EmbinitError, require

if TYPE_CHECKING:
    import torch

#: Rows that are scaled at once: few enough to stay in a processor's cache.
_CHUNK = 1024

#: A summary shows this many different rates.
_SHOWN = 4

#: One rate for each row, float64.
Rates = npt.NDArray[np.float64]


def row_rates(optimizer: torch.optim.Optimizer, layer: Any, rates: Any, *, ids: Any = None) -> RowRates:
    """Return a handle that gives rows of a layer their own rate: each update of a row is multiplied by its rate.

    A row at rate 0 is frozen, bit for bit. A row at rate 1 gets the optimizer's own step, bit for bit. The rate multiplies
    the whole update of `optimizer.step()`, weight decay included. So it works with every torch optimizer and schedule, with
    gradient accumulation, `GradScaler` and `optimizer.load_state_dict`. Parameter groups cannot do this, because a group
    holds whole tensors. Scaled gradients cannot either: Adam divides the scale out, and AdamW's decay ignores gradients.

    Parameters
    ----------
    optimizer
        A torch optimizer that trains the layer's weight, or a wrapper that has it as `.optimizer` (accelerate).
    layer
        An `nn.Embedding`, a `Linear` output layer, or an `nn.Parameter` with one row for each token. An output layer that
        is tied to an embedding shares its rows, and so their rates.
    rates
        A number, or one number for each row (for each of `ids`, if they are given), 0 or more.
    ids
        The rows that get these rates, as row numbers or as a mask (`Aligned.found`). All other rows stay at rate 1.

    Returns
    -------
    RowRates
        Call its `remove()`, or use it in a `with` statement, to give all rows the optimizer's own step again. It also
        ends with the optimizer; `state_dict` does not hold it. A second call for the same layer multiplies the rates, and
        then each handle prints the products.

    Raises
    ------
    EmbinitError
        If the optimizer does not train the layer's weight, or the rates and ids do not fit its rows.

    Notes
    -----
    The handle keeps a copy of the rows whose rate is not 1, and of no other row. With 50,000 x 768 numbers in float32, a
    step of AdamW took 190 ms on one CPU core (fused: 18 ms). 500 slow rows add less than 1 ms, 50,000 slow rows 40 ms and
    50,000 frozen rows 25 ms. Gradients of frozen rows still count in `clip_grad_norm_`. FSDP and DeepSpeed, which split
    weights, are not supported.

    Examples
    --------
    >>> import torch
    >>> embedding = torch.nn.Embedding(5, 2)
    >>> optimizer = torch.optim.AdamW(embedding.parameters(), lr=0.1)
    >>> handle = row_rates(optimizer, embedding, [0, 0, 0.1, 1, 1])
    >>> handle
    RowRates(5 rows: 2 frozen, 1 at 0.1, 2 at 1)
    >>> handle.remove()

    New tokens learn, old ones stay; the rows that a source had learn at a tenth of the rate:

    >>> handle = row_rates(optimizer, embedding, 0, ids=range(4))
    >>> handle.remove()
    >>> found = np.array([True, True, False, True, False])
    >>> with row_rates(optimizer, embedding, 0.1, ids=found) as handle:
    ...     print(handle)
    RowRates(5 rows: 3 at 0.1, 2 at 1)
    """
    torch = require("torch", "train", "rates for rows")
    weight = _weight(layer, torch)
    inner = _innermost(optimizer, torch)
    if not any(weight is trained for group in inner.param_groups for trained in group["params"]):
        raise EmbinitError(
            f"the optimizer does not train the weight of this {type(layer).__name__}; make the optimizer after the layer is "
            "in its model, resized and tied"
        )
    return RowRates(inner, weight, _rates(rates, ids, len(weight)))


class RowRates:
    """Rates of rows, attached to an optimizer until `remove()`."""

    def __init__(self, optimizer: torch.optim.Optimizer, weight: torch.nn.Parameter, rates: Rates) -> None:
        import torch

        #: the rate of each row, by this call alone
        self.rates = rates
        self._weight = weight
        self._optimizer = weakref.ref(optimizer)
        frozen, scaled = np.flatnonzero(rates == 0), np.flatnonzero((rates != 0) & (rates != 1))
        self._frozen = len(frozen)
        #: rows whose rate is not 1, the frozen ones first
        self._ids = torch.from_numpy(np.concatenate((frozen, scaled)))
        #: the rates of these rows, and their values before the step; made at the first step
        self._factors = self._before = torch.empty(0)
        self._handles = [
            optimizer.register_step_pre_hook(lambda *_: self._keep()),
            optimizer.register_step_post_hook(lambda *_: self._scale()),
        ]
        _ATTACHED.add(self)

    def remove(self) -> None:
        """Detach the rates: from now on every row gets the optimizer's own step."""
        for handle in self._handles:
            handle.remove()
        _ATTACHED.discard(self)

    def __enter__(self) -> RowRates:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        parts = [f"{count:,} {name}" for name, count in self._counts()]
        calls = len(self._calls())
        product = f"; the product of {calls} calls" if calls > 1 else ""
        shown = f"{', '.join(parts[:_SHOWN])}{', ...' if len(parts) > _SHOWN else ''}{product}"
        return f"RowRates({len(self.rates):,} rows: {shown if calls else 'removed'})"

    def _repr_html_(self) -> str:
        return self.panel().html()

    def panel(self) -> Panel:
        """Return the summary: the number of rows at each rate."""
        calls = len(self._calls())
        counts = self._counts()
        facts = [("rows", f"{len(self.rates):,}"), *((name, f"{count:,}") for name, count in counts[:_SHOWN])]
        if len(counts) > _SHOWN:
            facts.append(("at other rates", f"{sum(count for _, count in counts[_SHOWN:]):,}"))
        if calls > 1:
            facts.append(("calls", f"{calls}; their rates are multiplied"))
        return Panel(f"Rates of rows{'' if calls else ' (removed)'}", facts)

    def _calls(self) -> list[RowRates]:
        """Return the handles that act on the same rows in the same optimizer, this one among them.

        A handle that is removed, or whose optimizer is gone, has none.
        """
        optimizer = self._optimizer()
        if optimizer is None or self not in _ATTACHED:
            return []
        return [other for other in _ATTACHED if other._weight is self._weight and other._optimizer() is optimizer]

    def _counts(self) -> list[tuple[str, int]]:
        """Return the number of rows at each rate: the product of all calls for these rows."""
        calls = self._calls()
        if not calls:
            return []
        products = np.prod([other.rates for other in calls], axis=0)
        rates = zip(*np.unique(products, return_counts=True), strict=True)
        return [("frozen" if rate == 0 else f"at {rate:g}", int(count)) for rate, count in rates]

    def _keep(self) -> None:
        """Copy the rows whose update will be changed."""
        import torch

        weight = self._weight.detach()
        if len(weight) != len(self.rates):
            raise EmbinitError(f"the layer has {len(weight):,} rows now, and row_rates got {len(self.rates):,} rates")
        if self._before.dtype != weight.dtype or self._before.device != weight.device or not len(self._before):
            # The first step, or the first after the model went to another device or number format.
            # Half precision is scaled in float32, so that a rate is not rounded to eight bits.
            precise = torch.promote_types(weight.dtype, torch.float32)
            factors = torch.from_numpy(self.rates)[self._ids.cpu()].to(weight.device, precise)
            self._factors = factors.reshape(-1, *[1] * (weight.dim() - 1))
            self._ids = self._ids.to(weight.device)
            self._before = weight.new_empty((len(self._ids), *weight.shape[1:]))
        torch.index_select(weight, 0, self._ids, out=self._before)

    def _scale(self) -> None:
        """Multiply the update of each kept row by its rate."""
        import torch

        weight, frozen = self._weight.detach(), self._frozen
        # Copied and not scaled by 0: that would leave NaN after a step that diverged.
        weight.index_copy_(0, self._ids[:frozen], self._before[:frozen])
        for begin in range(frozen, len(self._ids), _CHUNK):
            chunk = slice(begin, begin + _CHUNK)
            ids, factors = self._ids[chunk], self._factors[chunk]
            before, after = self._before[chunk].to(factors.dtype), weight.index_select(0, ids).to(factors.dtype)
            weight.index_copy_(0, ids, torch.lerp(before, after, factors).to(weight.dtype))


#: The handles that were not removed. A handle is here as long as its optimizer or a variable holds it.
_ATTACHED: weakref.WeakSet[RowRates] = weakref.WeakSet()


def _innermost(optimizer: Any, torch: Any) -> Any:
    """Return the optimizer whose step moves the weights; accelerate and Lightning wrap it."""
    while isinstance(getattr(optimizer, "optimizer", None), torch.optim.Optimizer):
        optimizer = optimizer.optimizer
    if not isinstance(optimizer, torch.optim.Optimizer):
        advice = ""
        if optimizer is None:
            advice = "; a Trainer has none before training: call trainer.create_optimizer() first"
        raise EmbinitError(
            f"row_rates(optimizer, layer, rates) takes a torch optimizer, not {type(optimizer).__name__}{advice}"
        )
    return optimizer


def _weight(layer: Any, torch: Any) -> Any:
    weight = layer if isinstance(layer, torch.nn.Parameter) else getattr(layer, "weight", None)
    if not isinstance(weight, torch.nn.Parameter) or (weight is not layer and weight.dim() != 2):
        name = layer.__name__ if isinstance(layer, type) else type(layer).__name__
        raise EmbinitError(
            f"{name} has no weight with a row for each token; name the layer, for example model.get_input_embeddings()"
        )
    return weight


def _rates(rates: Any, ids: Any, rows: int) -> Rates:
    """Return one rate for each row of the layer."""
    values = _numbers(rates)
    if values.dtype == bool:
        raise EmbinitError(
            "rates is a mask; to slow the rows that it marks: row_rates(optimizer, layer, 0.1, ids=mask)"
        )
    try:
        if values.dtype.kind in "US":  # numpy would read a text as a number
            raise TypeError
        values = values.astype(np.float64)
    except (TypeError, ValueError):
        raise EmbinitError(f"rates = {rates!r}, but a number or an array of numbers is expected") from None
    chosen = np.arange(rows) if ids is None else row_numbers(ids, rows)
    if values.ndim > 1 or (values.ndim == 1 and len(values) != len(chosen)):
        expected = f"one number for each of the {len(chosen):,} {'rows' if ids is None else 'ids'}, or a single number"
        raise EmbinitError(f"rates has the shape {values.shape}; expected {expected}")
    wrong = values[~(np.isfinite(values) & (values >= 0))]
    if wrong.size:
        raise EmbinitError(f"rates has {wrong.flat[0]}, but a number of 0 or more is expected")
    if values.ndim == 1 and len(np.unique(chosen)) < len(chosen):
        raise EmbinitError("ids names a row twice, and each has a rate of its own; name every row once")
    all_rates = np.ones(rows)
    all_rates[chosen] = values
    return all_rates


def row_numbers(ids: Any, rows: int) -> npt.NDArray[np.int64]:
    """Return the numbers of the rows that ids or a mask name; an id that the layer lacks is an error."""
    chosen = _numbers(ids)
    if chosen.dtype == bool and chosen.shape == (rows,):
        return np.flatnonzero(chosen)
    if chosen.dtype == bool:
        raise EmbinitError(f"the mask ids has the shape {chosen.shape}; the layer has {rows:,} rows")
    if chosen.ndim != 1 or (chosen.size and not np.issubdtype(chosen.dtype, np.integer)):
        raise EmbinitError("ids is no list of row numbers and no mask; give whole numbers, or one boolean for each row")
    wrong = chosen[(chosen < 0) | (chosen >= rows)]
    if wrong.size:
        raise EmbinitError(f"ids has {wrong[0]}, but the layer has the rows 0 to {rows - 1:,}")
    return chosen.astype(np.int64)


def _numbers(given: Any) -> npt.NDArray[Any]:
    """Return a list, range, set, array or tensor as an array."""
    if hasattr(given, "detach"):  # a tensor of torch, on any device
        given = given.detach().cpu().numpy()
    elif isinstance(given, set | frozenset):
        given = sorted(given)
    try:
        return np.asarray(given)
    except ValueError:  # a list of lists of different lengths
        raise EmbinitError(f"a list of numbers is expected, not {given!r}") from None
