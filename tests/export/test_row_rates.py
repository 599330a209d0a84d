"""Rates of single rows, in torch's optimizers."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embinit
from embinit import EmbinitError, row_rates
from tests.training.made import architecture, copying_task, member, settings

torch = pytest.importorskip("torch")

ROWS, DIM = 9, 4
RATES = np.array([0, 0, 0.1, 0.1, 0.5, 1, 1, 3, 1])
FROZEN, FREE = RATES == 0, RATES == 1

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD with momentum and decay": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW, one tensor after the other": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
    "AdamW, foreach": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
    "AdamW, fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    "AdamW, amsgrad": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "Adafactor": lambda p: torch.optim.Adafactor(p, lr=0.01),
    "transformers' Adafactor": lambda p: _adafactor(p),
}


def _adafactor(parameters: Any) -> Any:
    return pytest.importorskip("transformers.optimization").Adafactor(parameters)


def layer(seed: int = 0, **options: Any) -> Any:
    torch.manual_seed(seed)
    return torch.nn.Embedding(ROWS, DIM, **options)


def gradients(steps: int) -> Any:
    return torch.randn(steps, ROWS, DIM, generator=torch.Generator().manual_seed(1))


def take_steps(optimizer: Any, weight: Any, steps: Any) -> None:
    for gradient in steps:
        weight.grad = gradient.to(weight.dtype, copy=True)
        optimizer.step()


def rows_of(module: Any) -> Any:
    return module.weight.detach().clone()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_rows_update_is_the_optimizers_own_times_its_rate(name: str) -> None:
    plain, slowed = layer(), layer()
    before = rows_of(plain)
    take_steps(OPTIMIZERS[name](plain.parameters()), plain.weight, gradients(1))
    optimizer = OPTIMIZERS[name](slowed.parameters())
    row_rates(optimizer, slowed, RATES)
    take_steps(optimizer, slowed.weight, gradients(1))
    own, found = rows_of(plain) - before, rows_of(slowed)
    assert own.abs().min() > 0
    torch.testing.assert_close(found - before, own * torch.from_numpy(RATES)[:, None].float(), rtol=1e-3, atol=1e-7)
    assert torch.equal(found[FROZEN], before[FROZEN])
    assert torch.equal(found[FREE], rows_of(plain)[FREE])


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if "Adafactor" not in name])
def test_over_many_steps_the_rows_at_rates_0_and_1_keep_their_bits(name: str) -> None:
    # Adafactor is left out: it scales each step by the root mean square of all rows.
    plain, slowed = layer(), layer()
    before = rows_of(plain)
    take_steps(OPTIMIZERS[name](plain.parameters()), plain.weight, gradients(20))
    optimizer = OPTIMIZERS[name](slowed.parameters())
    row_rates(optimizer, slowed, RATES)
    take_steps(optimizer, slowed.weight, gradients(20))
    assert torch.equal(rows_of(slowed)[FROZEN], before[FROZEN])
    assert torch.equal(rows_of(slowed)[FREE], rows_of(plain)[FREE])
    assert not torch.equal(rows_of(slowed)[2], rows_of(plain)[2])


def test_many_rows_are_scaled_as_few_are() -> None:
    rows = 2 * 1024 + 7
    weight = torch.nn.Parameter(torch.zeros(rows, 2))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    rates = np.linspace(0, 2, rows)
    row_rates(optimizer, weight, rates)
    weight.grad = torch.full((rows, 2), -1.0)
    optimizer.step()
    torch.testing.assert_close(weight.detach(), torch.from_numpy(rates).float()[:, None].expand(rows, 2))


def test_zeroed_gradients_decay_and_frozen_rows_do_not() -> None:
    zeroed, frozen = layer(), layer()
    before = rows_of(zeroed)
    take_steps(torch.optim.AdamW(zeroed.parameters(), weight_decay=0.1), zeroed.weight, [torch.zeros(ROWS, DIM)] * 3)
    assert (rows_of(zeroed) != before).all()
    optimizer = torch.optim.AdamW(frozen.parameters(), weight_decay=0.1)
    row_rates(optimizer, frozen, 0)
    take_steps(optimizer, frozen.weight, gradients(3))
    assert torch.equal(rows_of(frozen), before)


def test_scaled_gradients_do_not_slow_adam_and_rates_do() -> None:
    moved = {}
    for way in ("gradients", "rates"):
        module = layer()
        before = rows_of(module)
        optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
        if way == "rates":
            row_rates(optimizer, module, 0.1)
        take_steps(optimizer, module.weight, gradients(1) * (0.1 if way == "gradients" else 1))
        moved[way] = float((rows_of(module) - before).abs().max())
    assert moved == {"gradients": pytest.approx(0.01, rel=1e-3), "rates": pytest.approx(0.001, rel=1e-3)}


class Tied(torch.nn.Module):  # type: ignore[misc, name-defined]
    """An embedding, and an output layer that shares its weight."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.layer = torch.nn.Embedding(ROWS, DIM), torch.nn.Linear(DIM, DIM)
        self.output = torch.nn.Linear(DIM, ROWS)
        self.output.weight = self.embedding.weight

    def forward(self, ids: Any) -> Any:
        return self.output(self.layer(self.embedding(ids)))


@pytest.mark.parametrize("given", ["embedding", "output"])
def test_a_tied_weight_is_updated_once(given: str) -> None:
    plain, slowed = Tied(), Tied()
    before = rows_of(plain.embedding)
    for model in (plain, slowed):
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        if model is slowed:
            row_rates(optimizer, getattr(model, given), RATES)
        model(torch.arange(ROWS)).square().sum().backward()
        optimizer.step()
    own = rows_of(plain.embedding) - before
    expected = own * torch.from_numpy(RATES)[:, None].float()
    torch.testing.assert_close(rows_of(slowed.embedding) - before, expected, rtol=1e-3, atol=1e-7)
    assert torch.equal(slowed.layer.weight, plain.layer.weight)
    assert torch.equal(slowed.output.bias, plain.output.bias)


def test_each_embedding_has_rates_of_its_own_and_two_calls_multiply() -> None:
    first, second = layer(1), layer(2)
    before = rows_of(first), rows_of(second)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=1.0)
    row_rates(optimizer, first, 0.5)
    row_rates(optimizer, second, 0.5)
    row_rates(optimizer, second, 0.1, ids=[3])
    for module in (first, second):
        module.weight.grad = torch.ones(ROWS, DIM)
    optimizer.step()
    moved = [start - rows_of(module) for start, module in zip(before, (first, second), strict=True)]
    torch.testing.assert_close(moved[0], torch.full((ROWS, DIM), 0.5))
    torch.testing.assert_close(moved[1][3], torch.full((DIM,), 0.05), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(moved[1][[2, 4]], torch.full((2, DIM), 0.5))


def test_an_output_layers_bias_can_have_them_too() -> None:
    bias = torch.nn.Linear(DIM, ROWS).bias
    before = bias.detach().clone()
    optimizer = torch.optim.SGD([bias], lr=1.0)
    row_rates(optimizer, bias, RATES)
    bias.grad = torch.ones(ROWS)
    optimizer.step()
    torch.testing.assert_close(before - bias.detach(), torch.from_numpy(RATES).float())


@pytest.mark.parametrize(
    ("rates", "ids", "expected"),
    [
        (RATES.tolist(), None, RATES),
        (torch.from_numpy(RATES), None, RATES),
        (RATES[::-1].copy(), range(ROWS - 1, -1, -1), RATES),
        (RATES[[4, 2]], torch.tensor([4, 2]), [1, 1, 0.1, 1, 0.5, 1, 1, 1, 1]),
        (0.1, RATES == 0.1, [1, 1, 0.1, 0.1, 1, 1, 1, 1, 1]),
        (0.1, {2, 3}, [1, 1, 0.1, 0.1, 1, 1, 1, 1, 1]),
        (torch.tensor(0.1), np.array([2, 3, 3]), [1, 1, 0.1, 0.1, 1, 1, 1, 1, 1]),
        (0, torch.from_numpy(FROZEN), [0, 0, 1, 1, 1, 1, 1, 1, 1]),
        (0.1, [], np.ones(ROWS)),
        (0.1, np.zeros(ROWS, bool), np.ones(ROWS)),
        (2, None, np.full(ROWS, 2)),
    ],
)
def test_rows_may_be_named_in_many_ways(rates: Any, ids: Any, expected: Any) -> None:
    module = layer()
    handle = row_rates(torch.optim.SGD(module.parameters(), lr=1.0), module, rates, ids=ids)
    np.testing.assert_allclose(handle.rates, expected, rtol=1e-6)


def test_found_rows_learn_slowly_and_filled_ones_at_the_full_rate(aligned: embinit.Aligned) -> None:
    matrix = embinit.recipe("pretrained_xavier")(aligned, embinit.stream(0, "matrix"))
    module = torch.nn.Embedding.from_pretrained(torch.tensor(matrix), freeze=False)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    row_rates(optimizer, module, 0.1, ids=aligned.found)
    module.weight.grad = torch.ones_like(module.weight)
    optimizer.step()
    moved = np.abs(module.weight.detach().numpy() - matrix).max(axis=1)
    assert moved[aligned.found] == pytest.approx(1e-4, rel=1e-2)
    assert moved[~aligned.found] == pytest.approx(1e-3, rel=1e-2)
    assert 0 < aligned.found.sum() < len(matrix)


def test_new_tokens_of_a_hugging_face_model_learn_and_old_ones_stay() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 16}
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=11, bos_token_id=0, eos_token_id=0, **sizes)
    )
    model.resize_token_embeddings(14)
    before = rows_of(model.get_input_embeddings())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    row_rates(optimizer, model.get_input_embeddings(), 0, ids=range(11))
    ids = torch.arange(14)[None]
    for _ in range(3):
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
    found = rows_of(model.get_output_embeddings())
    assert torch.equal(found[:11], before[:11])
    assert (found[11:] != before[11:]).all()


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_that_grad_scaler_skips_moves_no_row(fused: bool) -> None:
    module = layer()
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01, fused=fused)
    row_rates(optimizer, module, RATES)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    before = rows_of(module)
    scaler.scale(module(torch.arange(ROWS)).sum()).backward()
    module.weight.grad[5, 1] = float("inf")
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(rows_of(module), before)
    optimizer.zero_grad()
    scaler.scale(module(torch.arange(ROWS)).sum()).backward()
    scaler.step(optimizer)
    moved = (rows_of(module) - before).abs().amax(dim=1).numpy()
    assert (moved > 0).tolist() == (RATES > 0).tolist()
    assert moved[2] / moved[4] == pytest.approx(0.2, rel=0.05)


def test_a_step_that_diverges_leaves_frozen_rows_alone() -> None:
    module = layer()
    before = rows_of(module)
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    row_rates(optimizer, module, RATES)
    take_steps(optimizer, module.weight, [torch.full((ROWS, DIM), float("nan"))])
    assert torch.equal(rows_of(module)[FROZEN], before[FROZEN])
    assert rows_of(module)[~FROZEN].isnan().all()


def test_gradients_add_up_between_steps() -> None:
    module, apart = layer(), layer()
    for parts, one in ((2, module), (1, apart)):
        optimizer = torch.optim.AdamW(one.parameters(), lr=0.01)
        row_rates(optimizer, one, RATES)
        for _ in range(parts):
            (one(torch.arange(ROWS)).square().sum() / parts).backward()
        optimizer.step()
    torch.testing.assert_close(rows_of(module), rows_of(apart))


def test_schedules_and_loaded_states_keep_the_rates() -> None:
    straight, resumed = layer(), layer()
    for module, resume in ((straight, False), (resumed, True)):
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
        row_rates(optimizer, module, RATES)
        for number, gradient in enumerate(gradients(4)):
            if resume and number == 2:
                saved = optimizer.state_dict(), schedule.state_dict()
                optimizer = torch.optim.AdamW(module.parameters(), lr=1.0)
                schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
                row_rates(optimizer, module, RATES)
                optimizer.load_state_dict(saved[0])
                schedule.load_state_dict(saved[1])
            before = rows_of(module)
            take_steps(optimizer, module.weight, [gradient])
            schedule.step()
        moved = (rows_of(module) - before).abs().amax(dim=1)
        assert moved[5] < 0.01 / 4  # the last step's rate is an eighth of the first
        assert torch.equal(moved == 0, torch.from_numpy(FROZEN))
    assert torch.equal(rows_of(straight), rows_of(resumed))


def test_a_closure_and_a_weight_without_a_gradient_will_do() -> None:
    module = layer()
    before = rows_of(module)
    optimizer = torch.optim.LBFGS(module.parameters(), lr=0.1, max_iter=2)
    row_rates(optimizer, module, RATES)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (module.weight - 1).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert torch.equal((rows_of(module) == before).all(dim=1), torch.from_numpy(FROZEN))
    unused = layer()
    other = torch.optim.AdamW(unused.parameters())
    row_rates(other, unused, RATES)
    other.step()
    assert torch.equal(rows_of(unused), before)


def test_sparse_gradients_will_do() -> None:
    module = layer(sparse=True)
    before = rows_of(module)
    optimizer = torch.optim.SparseAdam(list(module.parameters()), lr=0.01)
    row_rates(optimizer, module, RATES)
    module(torch.tensor([0, 2, 5])).sum().backward()
    optimizer.step()
    moved = (rows_of(module) - before).abs().amax(dim=1)
    assert moved[[0, 2, 5]].tolist() == pytest.approx([0, 0.001, 0.01], rel=1e-3)
    assert moved[[1, 3, 4, 6, 7, 8]].max() == 0


@pytest.mark.parametrize(("kind", "tolerance"), [("float64", 1e-9), ("bfloat16", 0.02), ("float16", 0.01)])
def test_the_model_may_change_its_number_format_after_the_call(kind: str, tolerance: float) -> None:
    module = layer()
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    row_rates(optimizer, module, RATES)
    take_steps(optimizer, module.weight, gradients(1))
    module.to(getattr(torch, kind))
    with torch.no_grad():
        module.weight.zero_()
    take_steps(optimizer, module.weight, [torch.full((ROWS, DIM), -1.0)])
    expected = torch.from_numpy(RATES)[:, None].expand(ROWS, DIM)
    torch.testing.assert_close(rows_of(module).double(), expected, rtol=tolerance, atol=0)


def test_removed_rates_leave_the_optimizers_own_step() -> None:
    plain, slowed = layer(), layer()
    before = rows_of(plain)
    take_steps(torch.optim.SGD(plain.parameters(), lr=0.1), plain.weight, gradients(1))
    optimizer = torch.optim.SGD(slowed.parameters(), lr=0.1)
    with row_rates(optimizer, slowed, 0) as handle:
        take_steps(optimizer, slowed.weight, gradients(1))
        assert torch.equal(rows_of(slowed), before)
    handle.remove()  # once more does no harm
    take_steps(optimizer, slowed.weight, gradients(1))
    assert torch.equal(rows_of(slowed), rows_of(plain))


def test_a_wrapped_optimizer_is_seen_through() -> None:
    class Wrapper(torch.optim.Optimizer):  # type: ignore[misc, name-defined]
        """As accelerate's: an optimizer that holds one and makes no hooks of its own."""

        def __init__(self, optimizer: Any) -> None:
            self.optimizer = optimizer

        def step(self, closure: Any = None) -> None:
            self.optimizer.step(closure)

    module = layer()
    before = rows_of(module)
    wrapped = Wrapper(torch.optim.SGD(module.parameters(), lr=0.1))
    row_rates(wrapped, module, 0)
    take_steps(wrapped, module.weight, gradients(1))
    assert torch.equal(rows_of(module), before)


def test_only_the_rows_that_are_changed_are_copied() -> None:
    module = layer()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    handle = row_rates(optimizer, module, RATES)
    take_steps(optimizer, module.weight, gradients(1))
    assert handle._before.shape == ((RATES != 1).sum(), DIM)


def test_the_handle_says_how_many_rows_have_which_rate() -> None:
    module = layer()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    handle = row_rates(optimizer, module, RATES)
    assert repr(handle) == ("RowRates(9 rows: 2 frozen, 2 at 0.1, 1 at 0.5, 3 at 1, ...)")
    cells = re.findall(r"<t[hd][^>]*>([^<]*)", handle._repr_html_())
    assert cells == ["rows", "9", "frozen", "2", "at 0.1", "2", "at 0.5", "1", "at 1", "3", "at other rates", "1"]


def test_the_handles_of_two_calls_say_the_product_and_a_removed_one_says_so() -> None:
    module, other = layer(), layer()
    optimizer = torch.optim.SGD([*module.parameters(), *other.parameters()], lr=0.1)
    first = row_rates(optimizer, module, 0.5)
    elsewhere = row_rates(optimizer, other, 0.3)
    second = row_rates(optimizer, module, 0.1, ids=[3])
    rerun = torch.optim.SGD(module.parameters(), lr=0.1)
    alone = row_rates(rerun, module, 0.1)  # another optimizer takes steps of its own
    for handle in (first, second):
        assert repr(handle) == "RowRates(9 rows: 1 at 0.05, 8 at 0.5; the product of 2 calls)"
    assert "2; their rates are multiplied" in second._repr_html_()
    assert (repr(elsewhere), repr(alone)) == ("RowRates(9 rows: 9 at 0.3)", "RowRates(9 rows: 9 at 0.1)")
    first.remove()
    assert repr(first) == "RowRates(9 rows: removed)"
    assert "(removed)" in first._repr_html_()
    assert repr(second) == "RowRates(9 rows: 1 at 0.1, 8 at 1)"


def test_a_handle_whose_optimizer_is_gone_says_so() -> None:
    module = layer()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    handle, other = row_rates(optimizer, module, 0.5), row_rates(optimizer, module, 0.1)
    del optimizer
    gc.collect()
    for each in (handle, other):
        assert repr(each) == "RowRates(9 rows: removed)"
        assert "(removed)" in each._repr_html_()


class OneMember:
    """Torch's Adam over an nn.Embedding and plain weights, behind the face of the engine's stacked optimizer."""

    def __init__(self, stack: Any, options: Any, found: dict[str, Any]) -> None:
        self.pairs: list[tuple[Any, Any]] = []
        self.embeddings: dict[str, Any] = {}
        for name, weight in stack.weights.items():
            own = torch.nn.Parameter(weight[0].detach().clone())
            if name in found:
                self.embeddings[name] = torch.nn.Embedding.from_pretrained(own.detach(), freeze=False)
                own = self.embeddings[name].weight
            self.pairs.append((weight, own))
        own_weights = [own for _, own in self.pairs]
        # Fused, as the engine's: a bias of the keys has gradients of pure rounding, whose sign decides where Adam goes.
        self.adam = torch.optim.Adam(own_weights, lr=options.rate, betas=options.betas, eps=options.epsilon, fused=True)
        for name, mask in found.items():
            row_rates(self.adam, self.embeddings[name], options.found_rate, ids=mask)
        self.param_groups = [{"params": list(stack.weights.values()), "factor": 1.0, "lr": options.rate}]
        self.state: dict[Any, Any] = {}

    def zero_grad(self, set_to_none: bool) -> None:
        for weight, _ in self.pairs:
            weight.grad = None

    def step(self) -> None:
        self.adam.param_groups[0]["lr"] = self.param_groups[0]["lr"]
        with torch.no_grad():
            for weight, own in self.pairs:
                own.grad = None if weight.grad is None else weight.grad[0].clone()
            self.adam.step()
            for weight, own in self.pairs:
                weight[0] = own


@pytest.mark.parametrize("rate", [0.0, 0.1, 3.0])
def test_the_engines_found_rate_and_row_rates_give_the_same_weights(rate: float, tmp_path: Path) -> None:
    from embinit.models.model import Stack
    from embinit.training.batches import Batches
    from embinit.training.step import Trainer

    prepared = copying_task(tmp_path)
    a = architecture(prepared)
    found = tuple(np.arange(n) % 2 == 0 for n in a.vocabularies)
    own = replace(member(a, 1), found=found)
    weights = {}
    for way in ("engine", "row_rates"):
        options = settings(found_rate=rate, warmup=4)
        stack = Stack(a, [own])
        batches = Batches(prepared, "train", options.batch)
        trainer = Trainer(stack, options if way == "engine" else replace(options, found_rate=1.0), batches, 10, [own])
        if way == "row_rates":
            masks = {f"{side}.embedding": mask for side, mask in zip(stack.sides, found, strict=True)}
            trainer.adam = OneMember(stack, options, masks)  # type: ignore[assignment]
        orders = batches.orders([own.seed], 0)
        for number in range(8):
            trainer.step(torch.from_numpy(orders[:, number]), batches.rooms(orders)[number], number, 0)
        weights[way] = {name: weight.detach().clone() for name, weight in stack.weights.items()}
    start = Stack(a, [own])
    for name, weight in weights["engine"].items():
        torch.testing.assert_close(weights["row_rates"][name], weight, rtol=1e-4, atol=1e-6, msg=name)
        assert not torch.equal(weight, start.weights[name]), name


WRONG: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "no optimizer": (lambda m, o: row_rates(m, m, 0), "row_rates(optimizer, layer, rates) takes a torch optimizer, not Em"),
    "another model's layer": (lambda m, o: row_rates(o, layer(), 0), "the optimizer does not train the weight of this Em"),
    "no layer with rows": (lambda m, o: row_rates(o, torch.nn.ReLU(), 0), "ReLU has no weight with a row for each token"),
    "a norm": (lambda m, o: row_rates(o, torch.nn.LayerNorm(4), 0), "LayerNorm has no weight with a row for each token"),
    "a class": (lambda m, o: row_rates(o, torch.nn.Embedding, 0), "Embedding has no weight with a row for each token"),
    "a mask for rates": (lambda m, o: row_rates(o, m, FROZEN), "rates is a mask; to slow the rows that it marks"),
    "too few rates": (
        lambda m, o: row_rates(o, m, [0, 1]),
        "rates has the shape (2,); expected one number for each of the 9 rows, or a single number",
    ),
    "too few rates for ids": (
        lambda m, o: row_rates(o, m, [0, 1], ids=[1]),
        "rates has the shape (2,); expected one number for each of the 1 ids",
    ),
    "a matrix of rates": (lambda m, o: row_rates(o, m, np.ones((ROWS, 1))), "rates has the shape (9, 1)"),
    "a negative rate": (lambda m, o: row_rates(o, m, -0.1), "rates has -0.1, but a number of 0 or more is expected"),
    "no number": (lambda m, o: row_rates(o, m, [*RATES[:-1], np.nan]), "rates has nan, but a number of 0 or more"),
    "a word": (lambda m, o: row_rates(o, m, "slow"), "rates = 'slow', but a number or an array of numbers is expected"),
    "a number as text": (lambda m, o: row_rates(o, m, "0.1"), "rates = '0.1', but a number or an array of numbers is"),
    "numbers as texts": (lambda m, o: row_rates(o, m, ["0.1"] * ROWS), "but a number or an array of numbers is expected"),
    "a trainer without an optimizer": (lambda m, o: row_rates(None, m, 0), "call trainer.create_optimizer() first"),
    "ragged rates": (lambda m, o: row_rates(o, m, [[1], [1, 2]]), "a list of numbers is expected, not [[1], [1, 2]]"),
    "an id too large": (lambda m, o: row_rates(o, m, 0, ids=[3, 9]), "ids has 9, but the layer has the rows 0 to 8"),
    "a negative id": (lambda m, o: row_rates(o, m, 0, ids=[-1]), "ids has -1, but the layer has the rows 0 to 8"),
    "a mask of another size": (
        lambda m, o: row_rates(o, m, 0, ids=[True, False]),
        "the mask ids has the shape (2,); the layer has 9 rows",
    ),
    "ids that are no numbers": (lambda m, o: row_rates(o, m, 0, ids=["the"]), "ids is no list of row numbers and no mask"),
    "an id twice": (lambda m, o: row_rates(o, m, [0, 1], ids=[3, 3]), "ids names a row twice"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_is_one_sentence(case: str) -> None:
    call, message = WRONG[case]
    module = layer()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    with pytest.raises(EmbinitError) as raised:
        call(module, optimizer)
    assert message in str(raised.value)


def test_a_layer_that_was_resized_in_place_is_an_error() -> None:
    module = layer()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    row_rates(optimizer, module, RATES)
    module.weight.data = torch.zeros(ROWS + 2, DIM)
    with pytest.raises(EmbinitError, match="the layer has 11 rows now, and row_rates got 9 rates"):
        optimizer.step()


def test_a_layer_in_one_of_several_parameter_groups_keeps_that_groups_rate_and_decay() -> None:
    plain, slowed = Tied(), Tied()
    before = rows_of(plain.embedding)
    for model in (plain, slowed):
        optimizer = torch.optim.AdamW([{"params": model.layer.parameters(), "lr": 0.5}], lr=0.01, weight_decay=0.1)
        if model is slowed:
            with pytest.raises(EmbinitError):
                row_rates(optimizer, model.embedding, RATES)
        # `add_param_group` after the optimizer was made, as unfreezing does.
        optimizer.add_param_group({"params": [model.embedding.weight], "lr": 0.02, "weight_decay": 0.3})
        if model is slowed:
            row_rates(optimizer, model.embedding, RATES)

        def closure(model: Any = model, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = model(torch.arange(ROWS)).square().sum()
            loss.backward()
            return loss

        assert optimizer.step(closure) > 0
    own = rows_of(plain.embedding) - before
    expected = own * torch.from_numpy(RATES)[:, None].float()
    torch.testing.assert_close(rows_of(slowed.embedding) - before, expected, rtol=1e-3, atol=1e-7)
    assert torch.equal(slowed.layer.weight, plain.layer.weight)
