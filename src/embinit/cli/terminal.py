"""A terminal that text from files cannot control."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from embinit.format import printable


class Terminal(Console):
    """A console that shows � instead of control characters, except those that it writes itself."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable without control characters."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else printable(segment.text, kept="\t\n")
            yield segment if text == segment.text else Segment(text, segment.style)
