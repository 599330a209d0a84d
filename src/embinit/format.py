"""Numbers, counts and lists as text: one place, so that every command and report writes them alike."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

#: Differences of scores below this are rounding errors.
_ZERO = 1e-9
#: Larger numbers are written with a power of ten.
_LARGE = 1e6
#: Stands for a value that does not exist.
NONE = "–"


def fixed(value: float | None, digits: int) -> str:
    """Return a number with this many digits after the point and a real minus sign; – for None.

    A number from a million has three significant digits, because the scores of runs that did not learn have no limit.

    >>> fixed(-0.25, 1), fixed(634_408_902.89, 2)
    ('−0.2', '6.34e+08')
    """
    if value is None:
        return NONE
    text = f"{value:.{digits}f}" if abs(value) < _LARGE else f"{value:.3g}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


def signed(value: float | None, digits: int) -> str:
    """Return a difference with its sign; zero has none."""
    text = fixed(value, digits)
    return text if value is None or text.startswith("−") or float(text) == 0 else f"+{text}"


def interval(low: float | None, high: float | None, digits: int, sign: bool = False) -> str:
    """Return `[0.9, 1.9]`, or – if there is none. A bound near zero gets more digits, because its sign decides.

    >>> interval(0.04, 1.2, 1, sign=True), interval(-0.003, 1.2, 1)
    ('[+0.04, +1.2]', '[−0.003, 1.2]')
    """
    if low is None or high is None:
        return NONE
    form = signed if sign else fixed
    return f"[{form(low, _telling(low, digits))}, {form(high, _telling(high, digits))}]"


def _telling(value: float, digits: int) -> int:
    """Return the digits after the point that show a value's sign; values below rounding errors count as zero."""
    if abs(value) < _ZERO:
        return digits
    return next(more for more in itertools.count(digits) if float(f"{value:.{more}f}") != 0)


def probability(value: float | None) -> str:
    """Return a p value in three digits or fewer."""
    if value is None:
        return NONE
    return "< 0.001" if value < 0.001 else f"{value:.2g}" if value < 0.995 else "1"


def compact(value: float | None) -> str:
    """Return a number in three significant digits: 0.0157, −792, 1.2e−05."""
    if value is None:
        return NONE
    return "0" if abs(value) < 1e-12 else f"{value:.3g}".replace("-", "−")


def number(value: float) -> str:
    """Return a number in at most six characters or so: 0.0157, 9.25, −792, 1,250."""
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace("-", "−")
    return "0" if abs(value) < 5e-7 else f"{value:.3g}".replace("-", "−")


def printable(text: str, kept: str = "\t\n\r") -> str:
    """Return text with � for control characters other than those kept, and for halves of surrogate pairs.

    >>> printable("a\\x1b[2J b")
    'a�[2J b'
    """
    return "".join(char if char in kept or _is_printable(ord(char)) else "\ufffd" for char in text)


def _is_printable(code: int) -> bool:
    return code >= 0x20 and not 0x7F <= code < 0xA0 and not 0xD800 <= code < 0xE000


def duration(seconds: float) -> str:
    """Return a duration as text: 48 s, 12 min, 3.4 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def plural(count: int, one: str, many: str = "") -> str:
    """Return `1 seed`, `3 seeds`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def ended(text: str) -> str:
    """Return a user's text with a full stop, unless it ends with a mark."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def listed(texts: Sequence[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}" if texts else ""


def percent(share: float) -> str:
    """Return a share in whole percent, with one significant digit below 1 % and enough digits to stay below 100 %."""
    if 0.995 <= share < 1:
        return f"{100 - float(f'{100 * (1 - share):.1g}'):.10g} %"
    return f"{100 * share:.0f} %" if share >= 0.01 or share == 0 else f"{100 * share:.1g} %"


def share(value: float | None) -> str:
    """Return a share in per cent with one digit; – for None."""
    return NONE if value is None else f"{100 * value:.1f} %"


def reading_notes(counts: Mapping[str, int], examples: Sequence[str]) -> list[str]:
    """Return the counts of rejected rows and the other counts of reading, and messages about the first rejected rows."""
    notes = []
    for name, count in counts.items():
        label, _, reason = name.partition(": ")
        if count and label == "rejected" and reason:
            notes.append(f"{plural(count, 'row')} rejected ({reason})")
        elif count and name not in ("rows", "rejected"):
            notes.append(f"{name}: {count:,}")
    return [*notes, *(f"  {example}" for example in examples)]
