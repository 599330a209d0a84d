"""Batches: every sentence once, in an order of the seed's own, in no more room than is needed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from embinit.prepared.folder import Prepared
from embinit.training.batches import BEGIN, END, Batches, Numbers


def test_an_epoch_holds_every_sentence_once_in_an_order_of_the_seeds_own(copying: Prepared) -> None:
    batches = Batches(copying, "train", 16)
    seen = batches.orders([1, 1, 2], 0).reshape(3, -1)
    assert len(batches) == 13
    assert (seen[:, 203:] == -1).all()
    seen = seen[:, :203]
    assert (np.sort(seen, axis=1) == np.arange(203)).all()
    assert (seen[0] == seen[1]).all()
    assert (seen[0] != seen[2]).any()
    assert (batches.orders([1], 1).ravel()[:203] != seen[0]).any()


def test_a_target_is_read_from_bos_and_asked_up_to_eos(copying: Prepared) -> None:
    batches = Batches(copying, "train", 16)
    orders = batches.orders([1, 2], 0)
    for number, batch in enumerate(batches.each(orders)):
        source, target = batch.sides
        for i in range(2):
            at = [0, 0]
            for row in orders[i, number][orders[i, number] >= 0]:
                words = [copying.packed("train", side)[int(row)].tolist() for side in ("source", "target")]
                size = len(words[0]) + 2
                assert source.ids[i, at[0] : at[0] + size].tolist() == [BEGIN, *words[0], END]
                size = len(words[1]) + 1
                assert target.ids[i, at[1] : at[1] + size].tolist() == [BEGIN, *words[1]]
                assert target.following[i, at[1] : at[1] + size].tolist() == [*words[1], END]
                at = [at[0] + len(words[0]) + 2, at[1] + size]
            assert at == [int(side.place.real[i].sum()) for side in (source, target)]


def test_the_splits_own_order_is_that_of_its_rows(copying: Prepared) -> None:
    batches = Batches(copying, "valid", 16)
    assert batches.straight(2).reshape(2, -1).tolist() == [[*range(40), *[-1] * 8]] * 2


def test_labels_go_with_their_sentences(sorting: Prepared) -> None:
    batches = Batches(sorting, "train", 16)
    orders, labels = batches.orders([1, 2], 0), sorting.labels("train")
    for number, batch in enumerate(batches.each(orders)):
        assert batch.labels is not None
        there = orders[:, number] >= 0
        assert (batch.present.numpy() == there).all()
        assert (batch.labels.numpy()[there] == labels[orders[:, number][there]]).all()


# ---------------------------------------------------------------- sentences of like length together


def lengths_of(batches: Batches, orders: Numbers) -> list[Numbers]:
    """Return the tokens of both sides of each batch's sentences, for one member."""
    total = np.sum(batches.lengths, axis=0)
    return [np.asarray(total[batch[batch >= 0]]) for batch in orders[0]]


def test_bucketed_batches_hold_every_sentence_once_in_an_order_of_the_seeds_own(copying: Prepared) -> None:
    batches = Batches(copying, "train", 16, order="bucketed")
    orders = batches.orders([1, 1, 2], 0)
    assert orders.shape == (3, 13, 16)
    for own in orders:
        assert sorted(own[own >= 0]) == list(range(203))
        assert sorted((own >= 0).sum(axis=1)) == [11, *[16] * 12]
    assert (orders[0] == orders[1]).all()
    assert (orders[0] != orders[2]).any()
    assert (orders[0] != batches.orders([1], 1)[0]).any()


def test_bucketed_batches_hold_like_lengths_in_no_order(copying: Prepared) -> None:
    shuffled, bucketed = (Batches(copying, "train", 16, order=order) for order in ("shuffled", "bucketed"))  # type: ignore[arg-type]
    mixed = lengths_of(shuffled, shuffled.orders([1], 0))
    alike = lengths_of(bucketed, bucketed.orders([1], 0))
    # Both sides of these sentences together have 5 to 13 tokens, so 13 batches can hold two lengths each, and no more.
    assert max(int(np.ptp(one)) for one in alike) <= 2
    assert min(int(np.ptp(one)) for one in mixed) >= 6
    padding = [sum(int(one.max()) * len(one) - int(one.sum()) for one in some) for some in (mixed, alike)]
    assert padding[1] < 0.2 * padding[0]
    means = [one.mean() for one in alike]
    assert means != sorted(means)


def test_bucketed_batches_need_less_room_in_all_where_sizes_are_few(
    copying: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = {}
    for order in ("shuffled", "bucketed"):
        batches = Batches(copying, "train", 64, order=order)  # type: ignore[arg-type]
        monkeypatch.setattr(batches, "_device", torch.device("cuda"))
        room[order] = np.sum(batches.rooms(batches.orders([1], 0)), axis=0)
    assert (room["bucketed"] < room["shuffled"]).all()


# ---------------------------------------------------------------- room


@pytest.mark.parametrize("order", ["shuffled", "bucketed"])
def test_a_cpu_gives_each_batch_no_more_room_than_its_largest_member_needs(copying: Prepared, order: str) -> None:
    batches = Batches(copying, "train", 16, order=order)  # type: ignore[arg-type]
    orders = batches.orders([1, 2, 3], 0)
    for number, (rooms, batch) in enumerate(zip(batches.rooms(orders), batches.each(orders), strict=True)):
        for room, lengths, side in zip(rooms, batches.lengths, batch.sides, strict=True):
            needed = max(sum(lengths[row] for row in own if row >= 0) for own in orders[:, number])
            assert needed <= room < needed + 32
            assert side.ids.shape == (3, room)


def test_cuda_gives_each_batch_the_smallest_of_a_few_sizes_that_fits(
    copying: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Batches(copying, "train", 16)
    sizes = [(76, 60), (82, 66), (90, 74)]
    monkeypatch.setattr(batches, "_device", torch.device("cuda"))
    monkeypatch.setattr(batches, "_steps", sizes)
    orders = np.concatenate([batches.orders([seed], epoch) for seed in range(8) for epoch in range(8)], axis=1)
    seen = set()
    for rooms, rows in zip(batches.rooms(orders), orders[0], strict=True):
        needed = [sum(lengths[row] for row in rows if row >= 0) for lengths in batches.lengths]
        fitting = [size for size in sizes if needed[0] <= size[0] and needed[1] <= size[1]]
        assert rooms == (fitting[0] if fitting else tuple(-(-count // 64) * 64 for count in needed))
        seen.add(rooms)
    assert seen > set(sizes)  # each was chosen, and some batch fitted none


def test_the_sizes_of_cuda_hold_nearly_every_batch_and_waste_little(
    copying: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Batches(copying, "train", 64)
    monkeypatch.setattr(batches, "_device", torch.device("cuda"))
    rooms = [room for epoch in range(50) for room in batches.rooms(batches.orders([1, 2, 3, 4], epoch))]
    assert len(set(rooms)) <= 4
    for side, lengths in enumerate(batches.lengths):
        assert np.mean([room[side] for room in rooms]) < 1.35 * 64 * lengths.mean()


def test_what_a_batch_holds_does_not_depend_on_its_room(copying: Prepared) -> None:
    batches = Batches(copying, "train", 16)
    orders = batches.orders([1, 2], 0)
    rows = torch.from_numpy(orders[:, 0])
    small, large = batches.made(rows, batches.rooms(orders)[0]), batches.made(rows, (256, 256))
    for one, other in zip(small.sides, large.sides, strict=True):
        count = one.place.room
        assert torch.equal(one.place.real, other.place.real[:, :count])
        assert not other.place.real[:, count:].any()
        for name in ("ids", "following"):
            here, there = getattr(one, name), getattr(other, name)[:, :count]
            assert torch.equal(here[one.place.real], there[one.place.real])
