"""The steps that recipes are made of. Each takes the found rows and gives new ones; none changes what it was given."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from embinit.errors import EmbinitError, closest
from embinit.types import Aligned, Host, Matrix, as_matrix, xavier_std

Axes = Literal["rows", "columns", "rows+columns", "elements"]
Moments = Literal["global", "dimension"]


@dataclass(frozen=True)
class Context:
    """What a step may know beside the rows: the alignment, the model, and its own generator."""

    aligned: Aligned
    host: Host
    rng: np.random.Generator

    @property
    def size(self) -> tuple[int, int]:
        """Return rows and dimensions of the whole matrix, missing rows included: Xavier's N and D."""
        return len(self.aligned), self.aligned.dim


StepFunction = Callable[..., Matrix]


@dataclass(frozen=True)
class StepKind:
    """A registered step."""

    name: str
    function: StepFunction
    #: it makes rows of its own and so stands first
    base: bool
    #: columns of zeros stay zeros, so it may follow `free`
    keeps_zeros: bool
    about: str
    parameters: dict[str, inspect.Parameter]


STEPS: dict[str, StepKind] = {}
#: Parameters that count dimensions: step -> parameter, the fewest, and how many of all dimensions it must leave.
COUNTS = {"all_but_the_top": ("top", 0, 1), "pca": ("keep", 1, 0), "free": ("dims", 0, 1)}


def step(*, base: bool = False, keeps_zeros: bool = False) -> Callable[[StepFunction], StepFunction]:
    """Register a step under its function's name; the docstring's first line is its description."""

    def register(function: StepFunction) -> StepFunction:
        about = (function.__doc__ or "").partition("\n")[0].rstrip(".")
        signature = inspect.signature(function, eval_str=True).parameters
        parameters = {name: parameter for name, parameter in signature.items() if name not in ("rows", "context")}
        STEPS[function.__name__] = StepKind(function.__name__, function, base, keeps_zeros, about, parameters)
        return function

    return register


# ---------------------------------------------------------------- first steps: where rows come from


@step(base=True)
def pretrained(context: Context) -> Matrix:
    """The source's rows as they are (Sec. 3.2, 3.3)."""
    if not context.aligned.found.any():
        raise EmbinitError(f"no token of the vocabulary was found in {context.aligned.origin.source}")
    return context.aligned.rows.copy()


@step(base=True)
def xavier(context: Context) -> Matrix:
    """Uniform between ±√(6/(N+D)) (Sec. 3.1)."""
    return _uniform(context, math.sqrt(3) * xavier_std(*context.size))


@step(base=True)
def normal(context: Context, std: float = 0.02) -> Matrix:
    """Normal with the given σ."""
    return _normal(context, std)


@step(base=True)
def uniform(context: Context, bound: float = 0.1) -> Matrix:
    """Uniform between ±bound."""
    return _uniform(context, bound)


@step(base=True)
def inverse_sqrt_d(context: Context) -> Matrix:
    """Normal with σ = 1/√D (fairseq, Marian)."""
    return _normal(context, 1 / math.sqrt(context.size[1]))


@step(base=True)
def bert(context: Context) -> Matrix:
    """Normal with σ = 0.02 (BERT, GPT-2, Llama)."""
    return _normal(context, 0.02)


@step(base=True)
def torch(context: Context) -> Matrix:
    """Normal with σ = 1, as nn.Embedding draws it."""
    return _normal(context, 1.0)


def _uniform(context: Context, bound: float) -> Matrix:
    return context.rng.uniform(-bound, bound, context.size).astype(np.float32)


def _normal(context: Context, std: float) -> Matrix:
    return as_matrix(std * context.rng.standard_normal(context.size))


# ---------------------------------------------------------------- later steps: what becomes of them


@step()
def center(rows: Matrix, context: Context, mean: Moments = "global") -> Matrix:
    """Subtract the mean: one number (Eq. 1), or one for each dimension."""
    return as_matrix(rows - _mean(rows, mean))


@step(keeps_zeros=True)
def scale(
    rows: Matrix,
    context: Context,
    to: Literal["xavier", "inverse_sqrt_d", "host"] | None = None,
    std: float | None = None,
    ratio: float | None = None,
) -> Matrix:
    """Multiply to a σ: `to=xavier` (Eq. 1), `to=inverse_sqrt_d`, `to=host`, `std=`, or `ratio=` of the positions' rms."""
    if sum(value is not None for value in (to, std, ratio)) != 1:
        raise EmbinitError("scale needs exactly one of to=, std=, ratio=")
    for name, value in (("std", std), ("ratio", ratio)):
        if value is not None and not value > 0:
            raise EmbinitError(f"scale {name}={value}; a positive number is needed")
    count, dim = context.size
    if ratio is not None:
        if not context.host.adds_positions:
            raise EmbinitError(
                f"scale ratio= needs a model that adds positions to its rows; {context.host.name} does not "
                f"({context.host.positions}); use std= or to="
            )
        std = ratio * context.host.position_rms / context.host.multiplier(dim)
    elif to == "xavier":
        std = xavier_std(count, dim)
    elif to == "inverse_sqrt_d":
        std = 1 / math.sqrt(dim)
    elif to == "host":
        std = context.host.initial_std(count, dim)
    assert std is not None
    if not std > 0:
        raise EmbinitError(f"scale to σ = {std}; a positive number is needed")
    have = float(rows.std(dtype=np.float64))
    if have == 0:
        raise EmbinitError("scale: all numbers are equal, so there is no σ to scale")
    return as_matrix(rows * (std / have))


@step()
def shuffle(rows: Matrix, context: Context, axes: Axes = "rows+columns") -> Matrix:
    """Permute rows, columns, both (Sec. 3.4), or every element: the distribution stays, the meaning goes."""
    if axes == "elements":
        return context.rng.permutation(rows.ravel()).reshape(rows.shape)
    if "rows" in axes:
        rows = rows[context.rng.permutation(len(rows))]
    if "columns" in axes:
        rows = rows[:, context.rng.permutation(rows.shape[1])]
    return np.ascontiguousarray(rows)


@step()
def match(rows: Matrix, context: Context, moments: Moments = "global") -> Matrix:
    """Take on mean and σ of the source's rows (Eq. 4), over all numbers or dimension by dimension."""
    source = context.aligned.rows
    if not len(source):
        raise EmbinitError(f"no token of the vocabulary was found in {context.aligned.origin.source}")
    if moments == "dimension" and rows.shape[1] != source.shape[1]:
        raise EmbinitError(f"match moments=dimension: {rows.shape[1]} dimensions, the source has {source.shape[1]}")
    axis = None if moments == "global" else 0
    std = rows.std(axis=axis, dtype=np.float64)
    factor = source.std(axis=axis, dtype=np.float64) / np.where(std == 0, 1, std)
    return as_matrix((rows - _mean(rows, moments)) * factor + _mean(source, moments))


@step(keeps_zeros=True)
def row_norm(rows: Matrix, context: Context, norm: float = 1.0) -> Matrix:
    """Give every row the same length; zero rows stay zero."""
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return as_matrix(rows * (norm / np.where(lengths == 0, 1, lengths)))


@step()
def whiten(rows: Matrix, context: Context, epsilon: float = 1e-5) -> Matrix:
    """Center, and make all directions equally wide and uncorrelated (ZCA, so dimensions keep their place)."""
    centered = rows.astype(np.float64) - _mean(rows, "dimension")
    widths, directions = np.linalg.eigh(centered.T @ centered / max(1, len(rows) - 1))
    widths = np.maximum(widths, 0)
    factors = 1 / np.sqrt(widths + epsilon * max(float(widths.max()), 1e-30))
    return as_matrix(centered @ (directions * factors) @ directions.T)


@step()
def all_but_the_top(rows: Matrix, context: Context, top: int | None = None) -> Matrix:
    """Center by dimension and remove the `top` widest directions, D/100 by default (Mu and Viswanath, 2018)."""
    centered = rows.astype(np.float64) - _mean(rows, "dimension")
    count = max(1, round(rows.shape[1] / 100)) if top is None else top
    check_count("all_but_the_top", count, rows.shape[1])
    directions = np.linalg.eigh(centered.T @ centered)[1][:, rows.shape[1] - count :]
    return as_matrix(centered - (centered @ directions) @ directions.T)


@step()
def pca(rows: Matrix, context: Context, keep: int) -> Matrix:
    """Keep the `keep` widest directions and drop the others; the number of dimensions stays."""
    check_count("pca", keep, rows.shape[1])
    mean = _mean(rows, "dimension")
    centered = rows.astype(np.float64) - mean
    directions = np.linalg.eigh(centered.T @ centered)[1][:, rows.shape[1] - keep :]
    return as_matrix((centered @ directions) @ directions.T + mean)


@step()
def free(rows: Matrix, context: Context, dims: int) -> Matrix:
    """Turn rows into their principal axes, widest first, and leave the last `dims` columns to positions: zeros.

    The mean turns with the rows; what of it falls on the last columns, the same for all rows, is dropped with them.
    """
    check_count("free", dims, rows.shape[1])
    mean = _mean(rows, "dimension")
    centered = rows.astype(np.float64) - mean
    widths, axes = np.linalg.eigh(centered.T @ centered)
    axes = axes[:, ::-1]
    wide = int((widths > widths[-1] * len(widths) * np.finfo(np.float64).eps).sum())
    if wide < len(widths):
        # Rows do not differ along the other axes, which are then any: the first of them is laid along what the mean has
        # there, so that the others meet nothing.
        axes[:, wide:] = 0
        rest = mean - axes @ (axes.T @ mean)
        length = float(np.linalg.norm(rest))
        axes[:, wide] = rest / length if length > 1e-7 * float(np.linalg.norm(mean)) else 0
    # An axis has no sign of its own: its largest number is made positive, so that libraries agree.
    axes = axes * np.where(np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None], axis=0) < 0, -1, 1)
    axes[:, rows.shape[1] - dims :] = 0
    return as_matrix(rows @ axes)


@step()
def noise(rows: Matrix, context: Context, ratio: float = 0.1) -> Matrix:
    """Add normal noise of `ratio` times the rows' σ."""
    if ratio < 0:
        raise EmbinitError(f"noise ratio={ratio}; zero or more is needed")
    std = ratio * float(rows.std(dtype=np.float64))
    return as_matrix(rows + std * context.rng.standard_normal(rows.shape))


def _mean(rows: Matrix, moments: Moments) -> Any:
    return rows.mean(axis=None if moments == "global" else 0, dtype=np.float64)


def check_count(name: str, count: int, dim: int | None) -> None:
    """Raise where a step counts more dimensions than there are, or fewer than it needs; None: how many is not known."""
    parameter, fewest, left = COUNTS[name]
    if count < fewest or (dim is not None and count > dim - left):
        most = "" if dim is None else f" to {dim - left} of the {dim} dimensions"
        raise EmbinitError(f"{name} {parameter}={count}: from {fewest}{most or ' on'}")


def checked(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return a step's parameters in their own types; unknown names and wrong values are errors."""
    if name not in STEPS:
        raise EmbinitError(f"unknown step {name!r}{closest(name, STEPS)}")
    parameters = STEPS[name].parameters
    result = {}
    for key, value in values.items():
        if key not in parameters:
            raise EmbinitError(f"{name}: unknown parameter {key!r}{closest(key, parameters) if parameters else ''}")
        result[key] = _typed(f"{name} {key}", value, parameters[key].annotation)
    for key, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and key not in result:
            raise EmbinitError(f"{name} needs {key}=")
    return result


def _typed(what: str, value: Any, annotation: Any) -> Any:
    options = [option for option in get_args(annotation) if option is not type(None)] or [annotation]
    choices = [c for option in options for c in (get_args(option) or ([option] if isinstance(option, str) else []))]
    if choices:
        if value not in choices:
            raise EmbinitError(f"{what}={value}: unknown{closest(str(value), choices)}")
        return value
    number = options[0]
    try:
        if number is int and float(value) != int(float(value)):
            raise ValueError
        converted = number(float(value)) if not isinstance(value, bool) else None
    except (TypeError, ValueError, OverflowError):
        converted = None
    if converted is None or not math.isfinite(converted):
        raise EmbinitError(f"{what}={value}: expected {'a whole number' if number is int else 'a number'}")
    return converted
