"""What members make of a split: each sentence on its own gives the same, and scores are those of its translations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from embinit.models.decoding import beam, greedy
from embinit.models.model import Stack
from embinit.models.packing import Layout, layout
from embinit.prepared.folder import Prepared
from embinit.training.batches import BEGIN, END, Batches
from embinit.training.evaluation import Validation, answers, evaluate, translations
from embinit.training.loop import Outcome
from embinit.training.scoring import bleu

from .made import run, settings


@pytest.fixture(scope="module")
def translating(copying: Prepared) -> Outcome:
    outcome = run(copying, [(1, 0.2), (2, 0.2)], epochs=4, rate=1e-2, bleu_every=2)
    assert [one.best_epoch for one in outcome.members] == [4, 4]
    return outcome


@pytest.fixture(scope="module")
def classifying(sorting: Prepared) -> Outcome:
    return run(sorting, [(3, 0.2), (4, 0.2)], epochs=4)


def sentence(ids: list[int], members: int = 2) -> tuple[torch.Tensor, Layout]:
    """Return one sentence for every member, alone in its batch."""
    return torch.tensor([ids] * members), layout(np.full((members, 1), len(ids)), len(ids), len(ids), "cpu")


# ---------------------------------------------------------------- translation


def test_the_loss_is_the_mean_over_all_tokens_of_the_split(copying: Prepared, translating: Outcome) -> None:
    total, count = torch.zeros(2, dtype=torch.float64), 0
    for i in range(40):
        source, target = (copying.packed("valid", side)[i].tolist() for side in ("source", "target"))
        read, asked = [BEGIN, *target], [*target, END]
        with torch.no_grad():
            values = translating.stack.translate(*sentence([BEGIN, *source, END]), *sentence(read))
            logits = translating.stack.output(values)
        total += torch.stack([F.cross_entropy(one, torch.tensor(asked), reduction="sum") for one in logits])
        count += len(asked)
    found = evaluate(translating.stack, Batches(copying, "valid", 16))
    assert found[1].tolist() == [count, count]
    assert torch.allclose(found[0], total, rtol=1e-5)
    recorded = [one.history[-1]["valid loss"] for one in translating.members]
    assert recorded == pytest.approx((total / count).tolist(), rel=1e-5)


def test_bleu_of_an_epoch_is_that_of_its_translations(copying: Prepared, translating: Outcome) -> None:
    references = [" ".join(tokens) for tokens in copying.reference_tokens("valid")]
    assert any("RARE" in text for text in references)
    assert "RARE" not in copying.vocabularies["target"].tokens
    for one, found in zip(translating.members, translations(translating.stack, copying, "valid"), strict=True):
        value = bleu([" ".join(tokens) for tokens in found], references, "none").value
        assert one.history[-1]["bleu"] == pytest.approx(value, abs=1e-9)
        assert 1 < value < 99


@pytest.mark.parametrize(("every", "epochs"), [(0, []), (1, [1, 2, 3]), (2, [2])])
def test_bleu_is_measured_after_every_so_many_epochs(every: int, epochs: list[int], copying: Prepared) -> None:
    history = run(copying, [(1, 0.2)], bleu_every=every).members[0].history
    assert [i + 1 for i, record in enumerate(history) if "bleu" in record] == epochs


def alone(stack: Stack, source: list[int], width: int) -> list[list[int]]:
    """Return each member's translation of one sentence, computed on its own."""
    ids, place = sentence([BEGIN, *source, END])
    limits = torch.full((2, 1), 2 * (len(source) + 2) + 10)
    search = (
        greedy(stack, ids, place, limits, BEGIN, END)
        if width == 1
        else beam(stack, ids, place, limits, BEGIN, END, width)
    )
    return [own[: own.index(END)] if END in own else own for own in search[:, 0].tolist()]


@pytest.mark.parametrize("width", [1, 3])
def test_translations_are_those_of_each_sentence_alone(width: int, copying: Prepared, translating: Outcome) -> None:
    found = translations(translating.stack, copying, "test", width=width)
    vocabulary = copying.vocabularies["target"].tokens
    for i in range(30):
        each = alone(translating.stack, copying.packed("test", "source")[i].tolist(), width)
        assert [own[i] for own in found] == [[vocabulary[word] for word in words] for words in each]


def test_a_wider_beam_finds_something_else(copying: Prepared, translating: Outcome) -> None:
    one, three = (translations(translating.stack, copying, "test", width=width) for width in (1, 3))
    assert one == translations(translating.stack, copying, "test")
    assert one != three


def test_a_translation_has_at_most_twice_its_sources_tokens_and_ten(copying: Prepared) -> None:
    # Weights that never say <eos>.
    outcome = run(copying, [(1, 0.2)], epochs=1)
    with torch.no_grad():
        outcome.stack.weights["output.bias"][:, END] = -1e6
    found = translations(outcome.stack, copying, "test")[0]
    lengths = copying.packed("test", "source").lengths
    assert [len(words) for words in found] == (2 * (lengths + 2) + 10).tolist()


# ---------------------------------------------------------------- classification


def test_answers_are_the_likeliest_labels_of_each_sentence_alone(sorting: Prepared, classifying: Outcome) -> None:
    found = answers(classifying.stack, sorting, "valid")
    assert found.shape == (2, 60)
    for i in range(60):
        ids, place = sentence([BEGIN, *sorting.packed("valid", "text")[i].tolist(), END])
        with torch.no_grad():
            logits = classifying.stack.output(classifying.stack.classify(ids, place))
        assert found[:, i].tolist() == logits[:, 0].argmax(dim=1).tolist()
    assert {0, 1} == set(found.ravel().tolist())


def test_accuracy_is_the_share_of_right_answers(sorting: Prepared, classifying: Outcome) -> None:
    measured = Validation(sorting, classifying.stack.architecture, settings(), 2, "cpu")(
        classifying.stack, with_bleu=True
    )
    right = (answers(classifying.stack, sorting, "valid") == sorting.labels("valid")).mean(axis=1)
    assert measured["accuracy"] == right.tolist()
    assert "bleu" not in measured
    best = [one.history[one.best_epoch - 1]["accuracy"] for one in classifying.members]
    assert best == right.tolist()


def test_what_is_measured_does_not_depend_on_the_size_of_batches(sorting: Prepared, classifying: Outcome) -> None:
    one, other = (evaluate(classifying.stack, Batches(sorting, "valid", size)) for size in (7, 128))
    assert torch.equal(one[1:], other[1:])
    assert torch.allclose(one[0], other[0], rtol=1e-5)
