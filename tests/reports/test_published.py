"""The paper's tables as data: what is printed is what is there, and where a report finds it."""

from __future__ import annotations

import tomllib
from importlib import resources

import pytest

from embinit.reports.analysis import published
from embinit.statistics import MeanInterval
from research.overview import paper_hours
from tests.reports import made

RECIPE = "recipe"


def test_every_table_is_there_in_full() -> None:
    counts = {name: len(rows) for name, rows in published.tables().items() if name.startswith("table")}
    assert counts == {
        "table1": 15,  # 12 experiments, MNLI's twice
        "table2": 12,
        "table3": 12,
        "table4": 7,
        "table5": 12,
        "table6": 7,
        "table7": 10,
        "table8": 8,
    }
    assert sum(len(block["rows"]) for block in published.tables()["table1"]) == 5 * 11
    assert sum(len(block["rows"]) for block in published.tables()["table2"]) == 4 * 9


@pytest.mark.parametrize(
    ("block", "recipe", "split", "mean", "std", "epoch"),
    [
        (("1", "sst2", "glove"), "xavier", "valid", 82.7, 0.5, 1.3),
        (("1", "sst2", "t5"), "pretrained_shuffled", "valid", 77.6, 1.0, 4.2),
        (("1", "mnli", "bert"), "pretrained", "valid", 66.3, 0.6, 4.3),
        (("1", "mnli", "bert"), "pretrained", "valid_mismatched", 66.8, 0.6, 5.0),
        (("1", "mnli", "glove"), "pretrained_xavier", "valid_mismatched", 61.1, 0.1, 3.0),
        (("1", "multi30k", "glove"), "pretrained_xavier", "test", 38.7, 0.3, 12.3),
        (("Table 1", "Multi30k", "mT5"), "pretrained", "test", 35.9, 0.3, 13.0),
        (("table 1", "IWSLT-2017", "mBERT"), "pretrained", "test", 32.7, 0.3, 9.0),
        (("1", "iwslt2017", "t5"), "pretrained_shuffled", "test", 11.5, 0.6, 18.9),
        (("7", "iwslt2017", "t5"), "xavier_pretrained", "test", 12.0, 0.7, 19.5),
        (("1", "sst2", "bert"), "xavier_pretrained", "valid", 82.0, 1.0, 1.8),
    ],
)
def test_a_row_is_found_by_whatever_spelling(
    block: tuple[str, ...], recipe: str, split: str, mean: float, std: float, epoch: float
) -> None:
    found = published.value(block, [(RECIPE, recipe)], split)
    assert found is not None
    assert (found["mean"], found["std"], found["epoch"]) == (mean, std, epoch)


@pytest.mark.parametrize(
    ("recipe", "frozen", "positions", "mean", "loss", "epoch"),
    [
        ("xavier", "-1", "none", 28.3, 1.98, 18.67),
        ("xavier", "0", "none", 29.6, 1.93, 9.33),
        ("pretrained", "-1", "sinusoidal", 33.9, 1.64, 19.67),
        ("pretrained_xavier", "0", "sinusoidal", 38.7, 1.55, 12.33),
    ],
)
def test_table_3_is_found_by_axes_and_by_the_spec(
    recipe: str, frozen: str, positions: str, mean: float, loss: float, epoch: float
) -> None:
    axes = [(RECIPE, recipe), ("training.frozen_epochs", frozen), ("model.positions", positions)]
    by_axes = published.value(("3", "multi30k", "glove"), axes)
    spec = made.spec(recipe, frozen_epochs=int(frozen), positions=positions)
    by_spec = published.value(("3", "multi30k", "glove"), [(RECIPE, recipe)], spec=spec)
    assert by_axes is not None
    assert (by_axes["mean"], by_axes["loss"], by_axes["epoch"]) == (mean, loss, epoch)
    assert by_axes == by_spec


def test_what_the_paper_did_not_run_has_no_number() -> None:
    assert published.value((), [(RECIPE, "xavier")]) is None
    assert published.value(("1", "multi30k", "glove"), [(RECIPE, "pretrained_shuffled")]) is None
    assert published.value(("1", "multi30k", "glove"), [(RECIPE, "xavier"), ("model.norm", "pre")]) is None
    assert (
        published.value(("1", "multi30k", "glove"), [("encoder.recipe", "xavier"), ("decoder.recipe", "bert")]) is None
    )
    assert published.value(("3", "multi30k", "glove"), [(RECIPE, "xavier"), ("model.positions", "rotary")]) is None


def test_distributions_are_those_of_tables_2_6_and_8() -> None:
    assert published.spread(("1", "multi30k", "mT5"), "pretrained") == 11.5
    assert published.spread(("1", "multi30k", "mT5"), "pretrained_shuffled") == 11.5
    assert published.spread(("7", "mnli", "t5"), "xavier_pretrained") == 23.0
    assert published.distribution(("6", "multi30k", "glove"), "pretrained") == {
        "name": "pretrained", "scaled": False, "min": -3.93, "max": 4.82, "mean": 0.053, "std": 0.37,
    }  # fmt: skip


def test_table_4_is_the_one_that_the_analogy_command_shows() -> None:
    shown = tomllib.loads(resources.files("embinit.diagnosis").joinpath("table4.toml").read_text("utf-8"))["row"]
    assert [row["percent"] for row in published.tables()["table4"]] == [row["percent"] for row in shown]
    for row in published.tables()["table4"]:
        assert round(100 * row["right"] / row["asked"], 1) == row["percent"]


def test_the_papers_table_1_took_about_160_hours() -> None:
    assert paper_hours() == pytest.approx(162, abs=0.5)


@pytest.mark.parametrize(
    ("low", "high", "within"),
    [(37.8, 38.39, False), (37.8, 38.41, True), (38.5, 38.9, True), (38.99, 40.0, True), (39.01, 40.0, False)],
)
def test_within_noise_is_where_our_interval_reaches_the_papers_mean_and_sigma(
    low: float, high: float, within: bool
) -> None:
    printed = published.value(("1", "multi30k", "glove"), [(RECIPE, "pretrained_xavier")])  # 38.7 ± 0.3
    ours = MeanInterval(mean=(low + high) / 2, std=0.3, n=5, low=low, high=high, method="t")
    found = published.beside(printed, ours)
    assert found is not None
    assert found.within is within
    assert found.difference == pytest.approx((low + high) / 2 - 38.7)


def test_one_seed_has_no_interval_and_so_no_verdict_on_the_paper() -> None:
    printed = published.value(("1", "multi30k", "glove"), [(RECIPE, "xavier")])
    found = published.beside(printed, MeanInterval(mean=37.0, std=None, n=1, low=None, high=None, method=""))
    assert found is not None
    assert found.within is None
    assert published.beside(printed, None) is not None
    assert published.beside(None, None) is None
