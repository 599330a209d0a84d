"""Steps that count dimensions, in an experiment's file: what cannot be is said before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from embinit.errors import EmbinitError
from embinit.experiments.definition.reader import read_draft
from tests.experiments.made import places, resolved, written

BLOCK = '[[block]]\nname = "x"\n'


def test_more_dimensions_than_the_source_has_are_an_error_of_the_file(tmp_path: Path) -> None:
    """One wrong start would else fail the sound ones that train beside it."""
    file = written(tmp_path, f'{BLOCK}recipe = "pretrained | free dims={{k}}"\ngrid.k = [4, 16, -2]\n')
    with pytest.raises(EmbinitError) as raised:
        read_draft(file)
    for k in (16, -2):
        assert f"made.toml, block 1 (x): free dims={k}: expected 0 to 15 of the 16 dimensions" in str(raised.value)
    assert "dims=4" not in str(raised.value)


def test_a_dimension_that_is_known_only_with_the_vectors_is_checked_then(tmp_path: Path) -> None:
    where = places(tmp_path)
    file = written(tmp_path, f'{BLOCK}source = "other"\nrecipe = "xavier | free dims=12"\n')
    read_draft(file)
    with pytest.raises(EmbinitError, match=r"made.toml, block x: free dims=12: expected 0 to 11 of the 12 dimensions"):
        resolved(file, where)
    with pytest.raises(EmbinitError, match=r"made.toml, block 1 \(x\): free dims=-2: expected 0 or more"):
        read_draft(written(tmp_path, f'{BLOCK}source = "other"\nrecipe = "xavier | free dims=-2"\n'))
