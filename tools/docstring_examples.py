"""An extension of griffe for the site: examples outside of an Examples section become blocks of code.

Left as they are, Markdown reads `>>>` as three nested quotations.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

#: An example with its output, up to the next empty line; its first line names nothing that is left out of the page.
_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
_SECTION = re.compile(r"^Examples\n-+$", re.MULTILINE)


class DocstringExamples(griffe.Extension):
    """Fence the examples of docstrings that have no Examples section."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of an object that griffe has read."""
        docstring = obj.docstring
        if docstring is None or _SECTION.search(docstring.value):
            return
        text = re.sub(r"[ ]*# doctest: \+[A-Z_]+", "", docstring.value)
        docstring.value = _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)
