"""The steps of recipes. A step takes the found rows and returns new rows; it never changes its input."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from embinit.errors import EmbinitError, closest
from embinit.types import Aligned, Host, Matrix, as_matrix, standard_deviation, xavier_std

ShuffledAxes = Literal["rows", "columns", "rows+columns", "elements"]
Moments = Literal["global", "dimension"]


@dataclass(frozen=True)
class Context:
    """The inputs of a step besides the rows: the alignment, the host, and a generator of its own."""

    aligned: Aligned
    #: the model that the matrix is made for; None if it is not known
    host: Host | None
    rng: np.random.Generator

    @property
    def size(self) -> tuple[int, int]:
        """Return the rows and dimensions of the complete matrix, with missing rows: Xavier's N and D."""
        return len(self.aligned), self.aligned.dim

    def host_for(self, setting: str) -> Host:
        """Return the host; raise EmbinitError if a setting of a step needs it and it is not known."""
        if self.host is None:
            raise EmbinitError(
                f"{setting} depends on the model; name it (recipe(aligned, rng, host='bert')), "
                "or let a verdict make its matrix (verdict.matrix(aligned))"
            )
        return self.host


StepFunction = Callable[..., Matrix]


@dataclass(frozen=True)
class StepKind:
    """A registered step."""

    name: str
    function: StepFunction
    #: the step takes no rows, so it comes first in a recipe
    first: bool
    #: columns of zeros stay zeros, so the step may follow `free`
    keeps_zeros: bool
    about: str
    parameters: dict[str, inspect.Parameter]


STEPS: dict[str, StepKind] = {}
#: The largest σ or bound of random rows; their numbers then fit float32.
_LARGEST_SIZE = 1e30
#: Parameters that count dimensions: step -> parameter, its smallest value, and the dimensions that must remain.
DIMENSION_COUNTS = {"all_but_the_top": ("top", 0, 1), "pca": ("keep", 1, 0), "free": ("dims", 0, 1)}


def step(*, first: bool = False, keeps_zeros: bool = False) -> Callable[[StepFunction], StepFunction]:
    """Register a step under its function's name; the docstring's first line is its description."""

    def register(function: StepFunction) -> StepFunction:
        about = (function.__doc__ or "").partition("\n")[0].rstrip(".")
        signature = inspect.signature(function, eval_str=True).parameters
        parameters = {name: parameter for name, parameter in signature.items() if name not in ("rows", "context")}
        STEPS[function.__name__] = StepKind(function.__name__, function, first, keeps_zeros, about, parameters)
        return function

    return register


# ---------------------------------------------------------------- first steps


@step(first=True)
def pretrained(context: Context) -> Matrix:
    """The source's rows as they are (Sec. 3.2, 3.3)."""
    check_found(context.aligned)
    return context.aligned.rows.copy()


@step(first=True)
def xavier(context: Context) -> Matrix:
    """Uniform between ±√(6/(N+D)) (Sec. 3.1)."""
    return _uniform(context, math.sqrt(3) * xavier_std(*context.size))


@step(first=True)
def normal(context: Context, std: float = 0.02) -> Matrix:
    """Normal with the given σ."""
    return _normal(context, std)


@step(first=True)
def uniform(context: Context, bound: float = 0.1) -> Matrix:
    """Uniform between ±bound."""
    return _uniform(context, bound)


@step(first=True)
def inverse_sqrt_d(context: Context) -> Matrix:
    """Normal with σ = 1/√D (fairseq, Marian)."""
    return _normal(context, 1 / math.sqrt(context.size[1]))


@step(first=True)
def bert(context: Context) -> Matrix:
    """Normal with σ = 0.02 (BERT, GPT-2, Llama)."""
    return _normal(context, 0.02)


@step(first=True)
def torch(context: Context) -> Matrix:
    """Normal with σ = 1, as in nn.Embedding."""
    return _normal(context, 1.0)


def check_found(aligned: Aligned) -> None:
    """Raise EmbinitError if the source has no token of the vocabulary."""
    if not aligned.found.any():
        raise EmbinitError(f"no token of the vocabulary was found in {aligned.origin.source}")


def _uniform(context: Context, bound: float) -> Matrix:
    _check_size("uniform bound", bound)
    return context.rng.uniform(-bound, bound, context.size).astype(np.float32)


def _normal(context: Context, std: float) -> Matrix:
    _check_size("normal std", std)
    return as_matrix(std * context.rng.standard_normal(context.size))


def _check_size(setting: str, value: float) -> None:
    """Raise EmbinitError if the size of random numbers is negative, or too large for float32."""
    if not 0 <= value <= _LARGEST_SIZE:
        raise EmbinitError(f"{setting}={value:g}: expected 0 to {_LARGEST_SIZE:g}")


# ---------------------------------------------------------------- later steps


@step()
def center(rows: Matrix, context: Context, mean: Moments = "global") -> Matrix:
    """Subtract the mean: of all numbers (Eq. 1), or of each dimension."""
    return as_matrix(rows - _mean(rows, mean))


@step(keeps_zeros=True)
def scale(
    rows: Matrix,
    context: Context,
    to: Literal["xavier", "inverse_sqrt_d", "host"] | None = None,
    std: float | None = None,
    ratio: float | None = None,
) -> Matrix:
    """Scale to a σ: `to=xavier` (Eq. 1), `to=inverse_sqrt_d`, `to=host`, `std=`, or `ratio=` of the positions' rms."""
    if sum(value is not None for value in (to, std, ratio)) != 1:
        raise EmbinitError("scale needs exactly one of to=, std= and ratio=")
    for name, value in (("std", std), ("ratio", ratio)):
        if value is not None and not value > 0:
            raise EmbinitError(f"scale {name}={value}: the value must be positive")
    count, dim = context.size
    if ratio is not None:
        host = context.host_for(f"scale ratio={ratio:g}")
        if not host.adds_positions:
            raise EmbinitError(
                f"scale ratio= needs a model that adds positions to its rows, but {host.name} does not "
                f"({host.positions} positions); use std= or to="
            )
        std = ratio * host.position_rms / host.multiplier(dim)
    elif to == "xavier":
        std = xavier_std(count, dim)
    elif to == "inverse_sqrt_d":
        std = 1 / math.sqrt(dim)
    elif to == "host":
        std = context.host_for("scale to=host").initial_std(count, dim)
    assert std is not None
    if not std > 0:
        raise EmbinitError(f"scale to σ = {std}: the value must be positive")
    current = standard_deviation(rows)
    if current == 0:
        raise EmbinitError("scale: all numbers are equal, so their σ is 0")
    return as_matrix(rows * (std / current))


@step()
def shuffle(rows: Matrix, context: Context, axes: ShuffledAxes = "rows+columns") -> Matrix:
    """Permute rows, columns, both (Sec. 3.4) or all elements: keeps the distribution and removes the meaning."""
    if axes == "elements":
        return context.rng.permutation(rows.ravel()).reshape(rows.shape)
    if "rows" in axes:
        rows = rows[context.rng.permutation(len(rows))]
    if "columns" in axes:
        rows = rows[:, context.rng.permutation(rows.shape[1])]
    return np.ascontiguousarray(rows)


@step()
def match(rows: Matrix, context: Context, moments: Moments = "global") -> Matrix:
    """Shift and scale to the mean and σ of the source's rows (Eq. 4), of all numbers or of each dimension."""
    check_found(context.aligned)
    source = context.aligned.rows
    if moments == "dimension" and rows.shape[1] != source.shape[1]:
        raise EmbinitError(
            f"match moments=dimension: the rows have {rows.shape[1]} dimensions, the source has {source.shape[1]}"
        )
    axis = None if moments == "global" else 0
    std = rows.std(axis=axis, dtype=np.float64)
    factor = source.std(axis=axis, dtype=np.float64) / np.where(std == 0, 1, std)
    return as_matrix((rows - _mean(rows, moments)) * factor + _mean(source, moments))


@step(keeps_zeros=True)
def row_norm(rows: Matrix, context: Context, norm: float = 1.0) -> Matrix:
    """Scale every row to the same length; zero rows stay zero."""
    if norm < 0:
        raise EmbinitError(f"row_norm norm={norm:g}: the value must not be negative")
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return as_matrix(rows * (norm / np.where(lengths == 0, 1, lengths)))


@step()
def whiten(rows: Matrix, context: Context, epsilon: float = 1e-5) -> Matrix:
    """Center, and give all directions the same variance (ZCA: each dimension stays close to itself)."""
    if epsilon < 0:
        raise EmbinitError(f"whiten epsilon={epsilon:g}: the value must not be negative")
    centered = rows.astype(np.float64) - _mean(rows, "dimension")
    variances, directions = np.linalg.eigh(centered.T @ centered / max(1, len(rows) - 1))
    variances = np.maximum(variances, 0)
    factors = 1 / np.sqrt(variances + epsilon * max(float(variances.max()), 1e-30))
    return as_matrix(centered @ (directions * factors) @ directions.T)


@step()
def all_but_the_top(rows: Matrix, context: Context, top: int | None = None) -> Matrix:
    """Center each dimension and remove the `top` widest directions, by default D/100 (Mu and Viswanath, 2018)."""
    centered = rows.astype(np.float64) - _mean(rows, "dimension")
    count = max(1, round(rows.shape[1] / 100)) if top is None else top
    check_count("all_but_the_top", count, rows.shape[1])
    directions = np.linalg.eigh(centered.T @ centered)[1][:, rows.shape[1] - count :]
    return as_matrix(centered - (centered @ directions) @ directions.T)


@step()
def pca(rows: Matrix, context: Context, keep: int) -> Matrix:
    """Keep only the `keep` widest directions; the number of dimensions stays the same."""
    check_count("pca", keep, rows.shape[1])
    mean = _mean(rows, "dimension")
    centered = rows.astype(np.float64) - mean
    directions = np.linalg.eigh(centered.T @ centered)[1][:, rows.shape[1] - keep :]
    return as_matrix((centered @ directions) @ directions.T + mean)


@step()
def free(rows: Matrix, context: Context, dims: int) -> Matrix:
    """Rotate rows to their principal axes, widest first, and set the last `dims` columns to zero, for positions.

    The mean is rotated too. Its part in the last columns, which is the same for all rows, is dropped.
    """
    check_count("free", dims, rows.shape[1])
    mean = _mean(rows, "dimension")
    centered = rows.astype(np.float64) - mean
    variances, axes = np.linalg.eigh(centered.T @ centered)
    axes = axes[:, ::-1]
    rank = int((variances > variances[-1] * len(variances) * np.finfo(np.float64).eps).sum())
    if rank < len(variances):
        # Rows do not differ along the other axes, so these are arbitrary. The first of them is set to the rest of the
        # mean, and the others to zero.
        axes[:, rank:] = 0
        rest = mean - axes @ (axes.T @ mean)
        length = float(np.linalg.norm(rest))
        axes[:, rank] = rest / length if length > 1e-7 * float(np.linalg.norm(mean)) else 0
    # The sign of an axis is arbitrary. Its largest number is made positive, so that linear-algebra libraries agree.
    axes = axes * np.where(np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None], axis=0) < 0, -1, 1)
    axes[:, rows.shape[1] - dims :] = 0
    return as_matrix(rows @ axes)


@step()
def noise(rows: Matrix, context: Context, ratio: float = 0.1) -> Matrix:
    """Add normal noise with σ = `ratio` times the σ of the rows."""
    if ratio < 0:
        raise EmbinitError(f"noise ratio={ratio}: the value must not be negative")
    std = ratio * standard_deviation(rows)
    return as_matrix(rows + std * context.rng.standard_normal(rows.shape))


def _mean(rows: Matrix, moments: Moments) -> Any:
    return rows.mean(axis=None if moments == "global" else 0, dtype=np.float64)


def check_count(name: str, count: int, dim: int | None) -> None:
    """Raise EmbinitError if a step counts too few or too many dimensions; `dim` is None if it is not known yet."""
    parameter, smallest, remaining = DIMENSION_COUNTS[name]
    if count < smallest or (dim is not None and count > dim - remaining):
        accepted = f"{smallest} or more" if dim is None else f"{smallest} to {dim - remaining} of the {dim} dimensions"
        raise EmbinitError(f"{name} {parameter}={count}: expected {accepted}")


def parse_parameters(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a step, converted to their types; unknown names and wrong values are errors."""
    if name not in STEPS:
        raise EmbinitError(f"unknown step {name!r}{closest(name, STEPS)}")
    parameters = STEPS[name].parameters
    converted = {}
    for key, value in values.items():
        if key not in parameters:
            raise EmbinitError(f"{name}: unknown parameter {key!r}{closest(key, parameters) if parameters else ''}")
        converted[key] = _convert(f"{name} {key}", value, parameters[key].annotation)
    for key, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and key not in converted:
            raise EmbinitError(f"{name} needs {key}=")
    return converted


def _convert(label: str, value: Any, annotation: Any) -> Any:
    options = [option for option in get_args(annotation) if option is not type(None)] or [annotation]
    choices = [
        choice for option in options for choice in (get_args(option) or ([option] if isinstance(option, str) else []))
    ]
    if choices:
        if value not in choices:
            raise EmbinitError(f"{label}={value}: unknown value{closest(str(value), choices)}")
        return value
    number = options[0]
    try:
        if number is int and float(value) != int(float(value)):
            raise ValueError
        converted = number(float(value)) if not isinstance(value, bool) else None
    except (TypeError, ValueError, OverflowError):
        converted = None
    if converted is None or not math.isfinite(converted):
        raise EmbinitError(f"{label}={value}: expected {'a whole number' if number is int else 'a number'}")
    return converted
