"""HTML that cannot be wrong by accident: text is escaped unless it is already HTML."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

from embinit.format import printable

_EMPTY = frozenset({"br", "hr", "meta", "line", "circle", "rect", "path"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *children: str | None, **attributes: Any) -> Html:
    """Return an element: children are escaped unless they are `Html`; `class_` is class, `aria_label` aria-label."""
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in _EMPTY:
        return Html(f"<{name}{written}/>" if name not in ("br", "hr", "meta") else f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: str | None) -> Html:
    """Return children in a row, escaped unless they are `Html`; None is nothing."""
    return Html("".join(child if isinstance(child, Html) else text(child) for child in children if child is not None))


def text(content: str) -> Html:
    """Return text as HTML shows it; control characters, which HTML forbids, become �."""
    return Html(escape(printable(content), quote=True))


def prose(content: str) -> Html:
    """Return a sentence whose parts in backticks are code."""
    parts = re.split(r"`([^`\n]+)`", content)
    return joined(*(element("code", part) if place % 2 else part for place, part in enumerate(parts)))


def data(content: Any) -> Html:
    """Return JSON for a script element: ASCII, and with no <, > or & that could end it or begin another."""
    written = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Html(written.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _attribute(name: str, value: Any) -> str:
    if value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(str(value))}"'
