"""Every kind of position does what it says, and searching gives what a plain step-by-step reference gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.models.t5.modeling_t5 import T5Attention

from embinit.errors import EmbinitError
from embinit.models import decoding
from embinit.models.architecture import Architecture
from embinit.models.decoding import beam, greedy
from embinit.models.model import Member, Stack
from embinit.models.packing import layout
from embinit.models.positions import added_table, attention_positions, relative_buckets
from embinit.positions import sinusoidal
from tests.models.made import SOURCE, TARGET, architecture, batch, member, stack

KINDS = ["sinusoidal", "learned", "gained", "shuffled", "rotary", "alibi", "relative", "none"]
BEGIN, END = 2, 3


def logits(model: Stack, words: list[int]) -> Tensor:
    ids = torch.zeros(1, 64, dtype=torch.int64)
    ids[0, : len(words)] = torch.tensor(words)
    place = layout(np.array([[len(words)]]), 64, 14, "cpu")
    return model.output(model.classify(ids, place))[0, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_order_matters_unless_there_are_no_positions(kind: str) -> None:
    model = stack(architecture(task="classification", positions=kind), 1)
    one, two = logits(model, [5, 6, 7, 8]), logits(model, [8, 6, 5, 7])
    assert torch.allclose(one, two, atol=1e-5) == (kind == "none")


@pytest.mark.parametrize("kind", ["rotary", "alibi", "relative"])
def test_positions_of_attention_know_only_distances(kind: str) -> None:
    """A sentence twice in a row, far enough apart not to matter, is read as once: only ALiBi's pull is tested exactly."""
    a = architecture(task="classification", positions=kind)
    positions = attention_positions(a, "cpu")
    rows = torch.randn(1, 6, a.dim)
    near, far = torch.arange(6)[None], torch.arange(6)[None] + 11

    def scores(place: Tensor) -> Tensor:
        turned = positions.turned(rows, place)
        return turned @ turned.transpose(1, 2)

    torch.testing.assert_close(scores(near), scores(far), rtol=1e-4, atol=1e-4)
    assert (kind == "rotary") == (not torch.allclose(scores(near), rows @ rows.transpose(1, 2), atol=1e-3))


def test_relative_buckets_are_t5s() -> None:
    distance = torch.arange(-200, 201)
    for both in (True, False):
        expected = T5Attention._relative_position_bucket(distance, bidirectional=both, num_buckets=32, max_distance=128)
        assert torch.equal(relative_buckets(distance, both), expected)


def test_alibi_pulls_linearly_with_distance() -> None:
    a = architecture(positions="alibi")
    biased = attention_positions(a, "cpu").biased(torch.zeros(1, 4, 5, 5), "encoder", {}, 1)
    slopes = [2.0 ** (-8 * (i + 1) / 4) for i in range(4)]
    for head, slope in enumerate(slopes):
        assert biased[0, head, 1].tolist() == pytest.approx([-slope * abs(k - 1) for k in range(5)])


def test_alibi_for_ten_heads_interleaves_as_its_authors_do() -> None:
    bias = attention_positions(architecture(positions="alibi", dim=20, heads=10), "cpu").biased(
        torch.zeros(1, 10, 1, 2), "encoder", {}, 1
    )
    expected = [2.0**-i for i in range(1, 9)] + [2.0**-0.5, 2.0**-1.5]
    assert (-bias[0, :, 0, 1]).tolist() == pytest.approx(expected)


def test_a_learned_gain_starts_as_plain_sinusoids() -> None:
    plain, gained = (stack(architecture(task="classification", positions=kind), 1) for kind in ("sinusoidal", "gained"))
    assert torch.equal(logits(plain, [5, 6, 7]), logits(gained, [5, 6, 7]))


@pytest.mark.parametrize("kind", ["sinusoidal", "gained", "shuffled"])
def test_positions_in_dimensions_of_their_own_touch_no_other(kind: str) -> None:
    a = architecture(task="classification", positions=kind, position_dims=6)
    table = added_table(a)
    assert table is not None
    assert not table[:, :10].any()
    six = architecture(task="classification", positions=kind, dim=6, heads=2)
    assert torch.equal(table[:, 10:], added_table(six))  # type: ignore[arg-type]
    assert not torch.allclose(logits(stack(a, 1), [5, 6, 7, 8]), logits(stack(a, 1), [8, 6, 5, 7]), atol=1e-5)


def test_rows_and_positions_apart_are_both_read_exactly_from_their_sum() -> None:
    """Rows that leave the last dimensions free stand in the sum as they were, and so do the positions."""
    a = architecture(task="classification", position_dims=6)
    rows = member(a, 1).matrices[0].copy()
    rows[:, 10:] = 0
    model = Stack(a, [Member(1, (rows,))])
    ids, place = batch([[5, 4]], SOURCE)
    summed = model.embed("text", ids, place, model.reader(None))[0, :9]
    assert torch.equal(summed[:, :10], torch.from_numpy(rows)[ids[0, :9], :10] * 4)
    assert torch.equal(summed[:, 10:], model.table[[0, 1, 2, 3, 4, 0, 1, 2, 3], 10:])


def test_positions_in_all_dimensions_are_the_default() -> None:
    for kind in ("sinusoidal", "shuffled"):
        plain, all_of_them = (added_table(architecture(positions=kind, position_dims=dims)) for dims in (0, 16))
        assert torch.equal(plain, all_of_them)  # type: ignore[arg-type]
    assert torch.equal(added_table(architecture()), torch.from_numpy(sinusoidal(40, 16)))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("sinusoidal", "gained", "shuffled")])
def test_other_positions_have_no_dimensions_of_their_own(kind: str) -> None:
    with pytest.raises(EmbinitError, match=f"for sinusoidal, gained and shuffled positions, not for {kind}"):
        architecture(positions=kind, position_dims=6)
    assert architecture(positions=kind, position_dims=0).positions == kind


@pytest.mark.parametrize("dims", [-2, 1, 7, 18])
def test_dimensions_of_positions_are_an_even_number_that_fits(dims: int) -> None:
    with pytest.raises(EmbinitError, match=f"position_dims is {dims}; 0 or an even number from 2 to 16 is needed"):
        architecture(position_dims=dims)


@pytest.mark.parametrize("kind", ["sinusoidal", "gained", "shuffled"])
def test_positions_can_be_as_large_as_rows_are(kind: str) -> None:
    plain, large = (added_table(architecture(positions=kind, position_gain=gain)) for gain in (1.0, 24.0))
    assert plain is not None and large is not None
    assert torch.equal(large, plain * 24)
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(EmbinitError, match=r"position_gain is .*; a number above 0 is needed"):
            architecture(positions=kind, position_gain=wrong)
    with pytest.raises(
        EmbinitError, match="position_gain is for sinusoidal, gained and shuffled positions, not for rotary"
    ):
        architecture(positions="rotary", position_gain=2.0)


def test_tied_and_normed_embeddings() -> None:
    tied = stack(architecture(tied=True, embedding_norm=True), 1)
    assert "output.weight" not in tied.weights
    (source, source_place), (target, place) = batch([[4, 2]], SOURCE), batch([[3, 3]], TARGET)
    assert tied.output(tied.translate(source, source_place, target, place)).shape == (1, 64, TARGET)


# ---------------------------------------------------------------- decoding

LENGTHS = [[5, 3, 8], [2, 9, 4]]


def sharp(a: Architecture) -> Stack:
    """Return two members whose output is far from uniform, so that ties do not decide."""
    model = Stack(a, [member(a, 1, std=0.5), member(a, 2, std=0.5)])
    with torch.no_grad():
        model.weights["output.bias"].mul_(3)
        if not a.tied:
            model.weights["output.weight"].mul_(4)
    return model


@torch.no_grad()
def next_log_probabilities(model: Stack, source: Tensor, i: int, j: int, words: list[int]) -> Tensor:
    """Return what follows `words` for one sentence of one member, computed from scratch by the training path."""
    size, start = LENGTHS[i][j], sum(LENGTHS[i][:j])
    own = torch.zeros(2, 64, dtype=torch.int64)
    own[i, :size] = source[i, start : start + size]
    target = torch.zeros(2, 64, dtype=torch.int64)
    target[i, : len(words)] = torch.tensor(words)
    sizes, grown = np.ones((2, 1), dtype=np.int64), np.ones((2, 1), dtype=np.int64)
    sizes[i], grown[i] = size, len(words)
    out = model.output(model.translate(own, layout(sizes, 64, 14, "cpu"), target, layout(grown, 64, 30, "cpu")))
    return out[i, len(words) - 1].log_softmax(dim=-1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("asked", [2, 8])
def test_greedy_search_is_the_step_by_step_reference(
    kind: str, norm: str, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Asked often enough, the search goes on with the one sentence that has not ended.
    monkeypatch.setattr(decoding, "_ASKED", asked)
    model = sharp(architecture(positions=kind, norm=norm))
    source, place = batch(LENGTHS, SOURCE)
    limits = torch.tensor([[7, 3, 10], [0, 9, 5]])
    found = greedy(model, source, place, limits, BEGIN, END)
    for i in range(2):
        for j in range(3):
            words = [BEGIN]
            while len(words) <= limits[i, j]:
                words.append(int(next_log_probabilities(model, source, i, j, words).argmax()))
                if words[-1] == END:
                    break
            expected = [word for word in words[1:] if word != END]
            got = found[i, j].tolist()
            assert got[: len(expected)] == expected
            assert set(got[len(expected) :]) == {END}


def reference_beam(model: Stack, source: Tensor, i: int, j: int, limit: int, width: int, penalty: float) -> list[int]:
    beams: list[tuple[float, list[int], bool]] = [(0.0, [BEGIN], False)]
    for _ in range(limit + 1):
        grown = []
        for score, words, done in beams:
            if done:
                grown.append((score, words, True))
                continue
            following = next_log_probabilities(model, source, i, j, words)
            only_end = len(words) > limit
            for word in [END] if only_end else range(len(following)):
                grown.append((score + float(following[word]), [*words, word], word == END))
        grown.sort(key=lambda one: -one[0] / (len(one[1]) - 1) ** penalty)
        beams = grown[:width]
        if all(done for _, _, done in beams):
            break
    best = max(beams, key=lambda one: one[0] / (len(one[1]) - 1) ** penalty)
    return [word for word in best[1][1:] if word != END]


@pytest.mark.parametrize("kind", ["sinusoidal", "relative"])
@pytest.mark.parametrize(("width", "penalty"), [(1, 1.0), (3, 1.0), (4, 0.6)])
def test_beam_search_is_the_step_by_step_reference(kind: str, width: int, penalty: float) -> None:
    model = sharp(architecture(positions=kind))
    source, place = batch(LENGTHS, SOURCE)
    limits = torch.tensor([[6, 3, 5], [2, 6, 4]])
    found = beam(model, source, place, limits, BEGIN, END, width, penalty)
    for i in range(2):
        for j in range(3):
            expected = reference_beam(model, source, i, j, int(limits[i, j]), width, penalty)
            got = found[i, j].tolist()
            assert got[: len(expected)] == expected
            assert set(got[len(expected) :]) <= {END}
    if width == 1:
        assert torch.equal(found, greedy(model, source, place, limits, BEGIN, END)[:, :, : found.shape[2]])


class _Launched(TorchDispatchMode):
    """The operations that were sent to the device."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_decoding_step_launches_only_what_its_positions_need() -> None:
    counts = {}
    for kind in ("sinusoidal", "rotary", "alibi"):
        model = stack(architecture(positions=kind), 1, 2)
        source, place = batch([[5, 3, 9], [1, 10, 2]], SOURCE)
        with torch.no_grad():
            search = decoding._Search(model, source, place, 5)
            with _Launched() as launched:
                search.step(torch.full((2, 3), 2), 0)
        # A sentence's mask is inverted once, not in each layer of each step.
        assert "aten.bitwise_not.default" not in launched.names
        counts[kind] = len(launched.names)
    # Places and members are numbered only for positions that ask for them.
    assert counts["sinusoidal"] < min(counts["rotary"], counts["alibi"]) - 4
