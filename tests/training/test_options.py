"""How members are trained: rates over time, and settings that mean nothing are refused."""

from __future__ import annotations

import pytest

from embinit.errors import EmbinitError
from embinit.training.options import Training


def test_rates() -> None:
    warm = Training(rate=1.0, warmup=4)
    assert [warm.rate_at(step, 100) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    linear = Training(rate=1.0, schedule="linear")
    assert [linear.rate_at(step, 4) for step in range(4)] == [1.0, 0.75, 0.5, 0.25]
    root = Training(rate=1.0, warmup=4, schedule="inverse_sqrt")
    assert root.rate_at(15, 100) == pytest.approx(0.5)
    cosine = Training(rate=2.0, warmup=2, schedule="cosine", final_rate=0.1)
    assert [cosine.rate_at(step, 12) for step in range(3)] == [1.0, 2.0, 2.0]
    assert cosine.rate_at(7, 12) == pytest.approx(0.2 + 1.8 / 2)
    assert cosine.rate_at(12, 12) == pytest.approx(0.2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"rate": 0.0},
        {"rate": float("nan")},
        {"smoothing": 1.0},
        {"batch": 0},
        {"warmup": -5},
        {"patience": -1},
        {"embedding_rate": -1.0},
        {"embedding_rate": float("nan")},
        {"found_rate": -0.1},
        {"found_rate": float("nan")},
        {"found_rate": float("inf")},
        {"frozen_epochs": -2},
        {"schedule": "cosinus"},
        {"final_rate": 1.5},
        {"final_rate": -0.1},
        {"weight_decay": -0.1},
        {"weight_decay": float("inf")},
        {"stride": -1},
        {"mask_rate": 0.0},
        {"mask_rate": 1.0},
        {"precision": "float16"},
        {"order": "sorted"},
    ],
)
def test_what_means_nothing_is_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(EmbinitError, match=next(iter(wrong))):
        Training(**wrong)  # type: ignore[arg-type]
