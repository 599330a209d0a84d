"""Histories over epochs: means over seeds, at the epochs that have them."""

from __future__ import annotations

import math

import pytest

from embinit import statistics
from embinit.reports.analysis.curves import ratio
from tests.reports import made
from tests.reports.test_summarize import report


def test_curves_are_means_with_a_sigma_to_each_side() -> None:
    block = made.block(seeds=range(4))
    found = made.results(block)
    (part,) = report(block, results=found).parts
    assert list(part.curves)[:3] == ["validation BLEU", "validation loss", "training loss"]
    curve = part.curves["validation loss"][0]
    values = [found[planned.spec.key].history[4]["valid loss"] for planned in block.runs[:4]]
    cell = statistics.mean_interval([value for value in values if value is not None])
    assert curve.mean[4] == pytest.approx(cell.mean)
    assert curve.high[4] == pytest.approx(cell.mean + cell.std)
    assert (curve.epochs, curve.seeds) == (tuple(range(1, 13)), 4)


def test_a_curve_has_the_epochs_that_were_decoded() -> None:
    block = made.block(seeds=range(2))
    found = made.results(block)
    for result in found.values():
        for epoch, record in enumerate(result.history, 1):
            if epoch % 5:
                record["bleu"] = None
    (part,) = report(block, results=found).parts
    curve = part.curves["validation BLEU"][0]
    assert curve.epochs == (5, 10)
    assert len(curve.mean) == len(curve.low) == len(curve.high) == 2
    assert part.curves["validation loss"][0].epochs == tuple(range(1, 13))


def test_the_ratio_multiplies_by_the_root_of_the_dimension_only_where_the_model_does() -> None:
    rms = math.sqrt(0.5)
    scaled, plain = (made.result(made.spec("pretrained", scaled=scaled), 30.0) for scaled in (True, False))
    assert ratio(scaled, 0.05, 400) == pytest.approx(0.05 * 20 / rms)
    assert ratio(plain, 0.05, 400) == pytest.approx(0.05 / rms)
