"""`embinit run --seeds N`: the first seeds of each block alone, as a first answer."""

from __future__ import annotations

import json
from pathlib import Path

from embinit.experiments.inputs.resolve import Resolved
from embinit.experiments.plan import jobs_of, specs_of, with_first_seeds
from tests.experiments.made import HEAD, command, data, places, resolved, vectors, written

#: Seeds in another order than by size; one seed; seeds as the grid's first axis.
BLOCKS = """
[[block]]
name = "three"
grid.recipe = ["xavier", "pretrained"]
grid.seed = [7, 2, 5]

[[block]]
name = "one"
recipe = "pretrained"
seed = 4

[[block]]
name = "seeds first"
grid.seed = [1, 2]
grid.recipe = ["xavier", "pretrained"]
"""
MISSING = '[[block]]\nname = "far"\nsource = "other"\nrecipe = "pretrained"\ngrid.seed = [8, 9]\n'
FAR = HEAD.replace('path = "other.txt"', 'path = "far.txt"\ndim = 16')


def seeds(made: Resolved) -> list[list[int]]:
    """Return the seeds of every block's runs, in the runs' order."""
    return [[run.spec.seed for run in block.runs] for one in made.experiments for block in one.blocks]


def test_each_block_keeps_its_own_first_seeds_with_all_of_its_starts(tmp_path: Path) -> None:
    whole = resolved(written(tmp_path, BLOCKS), places(tmp_path))
    before = seeds(whole)
    assert seeds(with_first_seeds(whole, 1)) == [[7, 7], [4], [1, 1]]
    assert sorted(seeds(with_first_seeds(whole, 2))[0]) == [2, 2, 7, 7]
    assert seeds(with_first_seeds(whole, 2))[1] == [4]
    for many in (3, 100):
        assert seeds(with_first_seeds(whole, many)) == before
    assert seeds(whole) == before  # what was given is as it was


def test_the_first_seeds_runs_are_the_same_runs(tmp_path: Path) -> None:
    whole = resolved(written(tmp_path, BLOCKS), places(tmp_path))
    first = with_first_seeds(whole, 1)
    keys = [spec.key for spec in specs_of(first)]
    assert keys == [spec.key for spec in specs_of(whole) if spec.key in keys]
    assert len(keys) == 5
    assert [job.key for job in jobs_of(first, specs_of(first))] == keys
    for block, own in zip(whole.experiments[0].blocks, first.experiments[0].blocks, strict=True):
        assert {run.axes for run in own.runs} == {run.axes for run in block.runs}


def test_a_block_that_cannot_be_run_here_still_says_so(tmp_path: Path) -> None:
    made = with_first_seeds(resolved(written(tmp_path, BLOCKS + MISSING, FAR), places(tmp_path)), 1)
    far = made.experiments[0].blocks[-1]
    assert far.missing == "needs far.txt"
    assert [run.spec.seed for run in far.runs] == [8]
    assert len(specs_of(made)) == 5


def test_the_command_lists_only_first_seeds(tmp_path: Path) -> None:
    data(tmp_path / "data")
    vectors(tmp_path / "vectors")
    file = written(tmp_path, BLOCKS + MISSING, FAR)
    where = ["--runs", tmp_path / "runs", "--data", tmp_path / "data", "--vectors", tmp_path / "vectors"]
    done = command("run", file, "--dry-run", "--json", "--seeds", 1, *where)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["runs"] == content["estimate"]["runs"] == 5
    assert [line["runs"] for line in content["lines"]] == [1] * 6
    assert "needs far.txt" in content["lines"][-1]["missing"]
    # of eleven runs two stand in two blocks
    assert json.loads(command("run", file, "--dry-run", "--json", *where).stdout)["runs"] == 9
    wrong = command("run", file, "--dry-run", "--seeds", 0, *where)
    assert wrong.returncode == 2
    assert "--seeds" in wrong.stderr
