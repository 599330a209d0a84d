"""A griffe extension for the site: examples become code blocks, and comments of fields become descriptions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import griffe

#: An example with its output, up to the next empty line.
_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
_EXAMPLES = re.compile(r"^Examples\n-+$", re.MULTILINE)
_FIELDS = re.compile(r"^(?:Parameters|Attributes)\n-+$", re.MULTILINE)
_COMMENT = "#: "


class Docstrings(griffe.Extension):
    """Fence examples outside an Examples section, and list the commented fields of a class as attributes."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Fence the examples in a docstring, because Markdown reads a bare `>>>` as three nested quotations."""
        docstring = obj.docstring
        if docstring is None or _EXAMPLES.search(docstring.value):
            return
        text = re.sub(r"[ ]*# doctest: \+[A-Z_]+", "", docstring.value)
        docstring.value = _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Add the `#:` comments of public fields to the docstring of their class."""
        docstring = cls.docstring
        if docstring is None or _FIELDS.search(docstring.value) or not isinstance(cls.filepath, Path):
            return
        lines = cls.filepath.read_text("utf-8").splitlines()
        fields = [(name, _comment_before(lines, member.lineno)) for name, member in cls.attributes.items()]
        listed = [f"{name}\n    {comment}" for name, comment in fields if comment and not name.startswith("_")]
        if listed:
            docstring.value = "\n".join([docstring.value, "", "Attributes", "----------", *listed])


def _comment_before(lines: Sequence[str], line: int | None) -> str:
    """Return the `#:` comment right before a line (numbered from 1) as one text."""
    place, texts = (line or 1) - 2, []
    while place >= 0 and lines[place].strip().startswith(_COMMENT):
        texts.append(lines[place].strip().removeprefix(_COMMENT))
        place -= 1
    return " ".join(reversed(texts))
