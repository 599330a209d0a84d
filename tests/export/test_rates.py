"""Learning rates of whole embeddings, in torch's optimizers."""

from __future__ import annotations

from typing import Any

import pytest

from embinit import EmbinitError, parameter_groups

torch = pytest.importorskip("torch")


class Tied(torch.nn.Module):  # type: ignore[misc, name-defined]
    """An embedding, a layer, and an output that shares the embedding's weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.layer = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 4)
        self.output = torch.nn.Linear(4, 9, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, ids: Any) -> Any:
        return self.output(self.layer(self.embedding(ids)))


def test_every_weight_is_in_one_group_and_tied_ones_go_with_the_rows() -> None:
    model = Tied()
    others, exempt, rows = parameter_groups(model, model.embedding, lr=1e-3)
    assert [id(weight) for weight in rows["params"]] == [id(model.embedding.weight)]
    assert [id(weight) for weight in others["params"]] == [id(model.layer.weight)]
    assert [id(weight) for weight in exempt["params"]] == [id(model.layer.bias)]
    assert (rows["lr"], others["lr"], exempt["lr"]) == (pytest.approx(1e-4), 1e-3, 1e-3)
    assert [group.get("weight_decay") for group in (others, exempt, rows)] == [None, 0, None]


def test_decay_goes_to_all_weights_but_biases_and_norms() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 4), torch.nn.RMSNorm(4))
    groups = parameter_groups(model, model[0], lr=1e-3, weight_decay=0.1)
    assert [[tuple(weight.shape) for weight in group["params"]] for group in groups] == [
        [(4, 4)],
        [(4,), (4,)],
        [(9, 4)],
    ]
    optimizer = torch.optim.AdamW(groups)
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(1.0)
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    # Without a gradient, AdamW multiplies a weight by 1 - lr · decay.
    assert model[1].weight.unique().tolist() == [pytest.approx(1 - 1e-3 * 0.1, abs=1e-9, rel=1e-7)]
    assert model[0].weight.unique().tolist() == [pytest.approx(1 - 1e-4 * 0.1, abs=1e-9, rel=1e-7)]
    assert model[1].bias.unique().tolist() == model[2].weight.unique().tolist() == [1.0]


def test_a_model_without_biases_and_norms_has_two_groups() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 4, bias=False))
    assert len(parameter_groups(model, model[0], lr=1e-3)) == 2


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "llama", "marian"])
def test_the_weights_without_decay_are_those_of_trainer(family: str) -> None:
    from tests.export.tiny_models import FAMILIES

    transformers = pytest.importorskip("transformers")
    model = FAMILIES[family]()
    decayed = set(transformers.Trainer.get_decay_parameter_names(None, model))
    names = {id(weight): name for name, weight in model.named_parameters()}
    groups = parameter_groups(model, lr=1e-3)
    ours = {names[id(weight)] for group in groups if group.get("weight_decay") != 0 for weight in group["params"]}
    assert ours == decayed & set(names.values())
    assert sum(len(group["params"]) for group in groups) == len(names)


@pytest.mark.parametrize("rate", [0.1, 1.0, 0.0])
def test_one_step_of_adam_moves_rows_by_their_share(rate: float) -> None:
    torch.manual_seed(0)
    model = Tied()
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    optimizer = torch.optim.Adam(parameter_groups(model, model.embedding, lr=1e-3, rate=rate))
    model(torch.arange(9)).square().sum().backward()
    optimizer.step()
    moved = {name: (weight.detach() - before[name]).abs().max().item() for name, weight in model.named_parameters()}
    # Adam's first step is the rate itself, whatever the gradient.
    assert moved["layer.weight"] == pytest.approx(1e-3, rel=1e-3)
    assert moved["embedding.weight"] == pytest.approx(rate * 1e-3, rel=1e-3)


def test_schedulers_that_scale_keep_the_ratio() -> None:
    model = Tied()
    optimizer = torch.optim.AdamW(parameter_groups(model, model.embedding, lr=1e-3))
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    others, _, rows = (group["lr"] for group in optimizer.param_groups)
    assert others == pytest.approx(1e-3 / 8)
    assert rows == pytest.approx(others / 10)


def test_schedulers_that_set_rates_take_one_for_each_group() -> None:
    model = Tied()
    optimizer = torch.optim.AdamW(parameter_groups(model, model.embedding, lr=1e-3))
    rates = [group["lr"] for group in optimizer.param_groups]
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rates, total_steps=9)
    for _ in range(8):
        others, _, rows = (group["lr"] for group in optimizer.param_groups)
        assert rows == pytest.approx(others / 10)
        optimizer.step()
        scheduler.step()


def test_a_weight_and_a_wrapped_model_are_taken() -> None:
    model = Tied()
    *_, rows = parameter_groups(model, model.embedding.weight, lr=torch.tensor(1e-3))  # type: ignore[arg-type]
    assert float(rows["lr"]) == pytest.approx(1e-4)
    model.get_input_embeddings = lambda: model.embedding  # type: ignore[assignment]
    *_, wrapped = parameter_groups(torch.nn.DataParallel(model), lr=1e-3)
    assert [id(weight) for weight in wrapped["params"]] == [id(model.embedding.weight)]


def test_the_rows_of_a_hugging_face_model_are_its_input_embeddings() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    model = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=11, **sizes))
    *others, rows = parameter_groups(model, lr=1e-3)
    assert [tuple(weight.shape) for weight in rows["params"]] == [(11, 8)]
    assert 1 + sum(len(group["params"]) for group in others) == len(list(model.parameters()))


WRONG = {
    "no model": (lambda model: parameter_groups([model], lr=1), "takes a torch.nn.Module, not list"),  # type: ignore[arg-type]
    "no get_input_embeddings": (
        lambda model: parameter_groups(model, lr=1),
        "Tied has no get_input_embeddings() that returns its embedding; name the layer",
    ),
    "a layer of another model": (
        lambda model: parameter_groups(model, Tied().embedding, lr=1),
        "one of the layers is not a part of this Tied",
    ),
    "a layer without weights": (
        lambda model: parameter_groups(model, torch.nn.ReLU(), lr=1),
        "ReLU is no layer with weights",
    ),
    "a list of layers": (
        lambda model: parameter_groups(model, [model.embedding], lr=1),  # type: ignore[arg-type]
        "list is no layer with weights; name embedding layers as separate arguments",
    ),
    "a class": (
        lambda model: parameter_groups(model, torch.nn.Embedding, lr=1),  # type: ignore[arg-type]
        "Embedding is no layer with weights",
    ),
    "a negative rate": (lambda model: parameter_groups(model, model.embedding, lr=1, rate=-1), "rate = -1, but"),
    "a negative decay": (
        lambda model: parameter_groups(model, model.embedding, lr=1, weight_decay=-0.1),
        "weight_decay = -0.1, but a number of 0 or more is expected",
    ),
    "no number for a rate": (
        lambda model: parameter_groups(model, model.embedding, lr=1, rate=float("nan")),
        "rate = nan, but a number of 0 or more is expected",
    ),
    "a text for a rate": (
        lambda model: parameter_groups(model, model.embedding, lr="1e-3"),  # type: ignore[arg-type]
        "lr = '1e-3', but a number",
    ),
    "nothing for a rate": (
        lambda model: parameter_groups(model, model.embedding, lr=None),  # type: ignore[arg-type]
        "lr = None, but a number",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_is_one_sentence(case: str) -> None:
    call, message = WRONG[case]
    with pytest.raises(EmbinitError) as raised:
        call(Tied())
    assert message in str(raised.value)
