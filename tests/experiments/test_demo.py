"""The demo shows what it is there to show."""

from __future__ import annotations

from pathlib import Path

from embinit.experiments.definition.reader import read_draft
from embinit.experiments.execution.engine import execute
from embinit.experiments.inputs.locations import Places
from embinit.experiments.inputs.outline import read_experiment
from embinit.experiments.inputs.resolve import resolve
from embinit.experiments.plan import specs_of, write_plan
from embinit.experiments.runs.store import results_of

DEMO = Path(__file__).parents[2] / "experiments" / "demo.toml"


def test_the_demo_needs_nothing_and_is_frozen_at_eight_seeds() -> None:
    (block,) = read_experiment(DEMO, Places()).blocks
    assert not block.missing
    assert {run.spec.seed for run in block.runs} == set(range(1, 9))
    recipes = {dict(run.axes)["recipe"] for run in block.runs}
    assert recipes == {"xavier", "pretrained", "pretrained_xavier", "pretrained_shuffled"}
    assert len(block.runs) == 32


def test_raw_vectors_do_worse_than_standardized_ones(tmp_path: Path) -> None:
    # Half of its epochs: the distance is there by then.
    text = DEMO.read_text("utf-8").replace("training.epochs = 8", "training.epochs = 4")
    assert "training.epochs = 4" in text
    lines = [line for line in text.splitlines() if not line.startswith("grid.")]
    chosen = 'grid.recipe = ["pretrained", "pretrained_xavier"]\ngrid.seed = [1]\n'
    (tmp_path / "demo.toml").write_text("\n".join(lines) + "\n" + chosen)
    where = Places(work=tmp_path / "work")
    made = resolve([read_draft(tmp_path / "demo.toml")], where)
    execute(write_plan(made, specs_of(made), where.work, where.work), tmp_path / "runs")
    results = results_of(made.experiments[0], tmp_path / "runs")
    raw, standardized = (result.scores["test"]["bleu"] for result in results.values())
    assert raw < standardized
