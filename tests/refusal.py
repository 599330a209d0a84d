"""Errors as a user meets them: one line that names the values in question."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from embinit.errors import EmbinitError


@contextmanager
def refused(*values: object, error: type[EmbinitError] = EmbinitError) -> Iterator[None]:
    """Expect an error whose message is one line and contains these values: names, numbers, a suggestion, a command."""
    with pytest.raises(error) as caught:
        yield
    message = str(caught.value)
    assert "\n" not in message
    missing = [str(value) for value in values if str(value) not in message]
    assert not missing, f"{missing} not in: {message}"
