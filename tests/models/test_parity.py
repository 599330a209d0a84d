"""With one member and the same weights, outputs and gradients are those of torch.nn.Transformer."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from embinit.models.architecture import Architecture
from embinit.models.model import Stack
from embinit.models.parameters import count
from tests.models.made import SOURCE, TARGET, architecture, batch, stack

lengths = st.lists(st.integers(1, 10), min_size=1, max_size=5)


#: Our names within a layer, and nn.Transformer's; `+` joins what it keeps in one matrix.
LAYER = {
    "self.qkv.weight": "self_attn.in_proj_weight",
    "self.qkv.bias": "self_attn.in_proj_bias",
    "self.out.weight": "self_attn.out_proj.weight",
    "self.out.bias": "self_attn.out_proj.bias",
    "self.norm.weight": "norm1.weight",
    "self.norm.bias": "norm1.bias",
    "up.weight": "linear1.weight",
    "up.bias": "linear1.bias",
    "down.weight": "linear2.weight",
    "down.bias": "linear2.bias",
}
ENCODER = {"feedforward.norm.weight": "norm2.weight", "feedforward.norm.bias": "norm2.bias"}
CROSS = {
    "cross.q.weight+cross.kv.weight": "multihead_attn.in_proj_weight",
    "cross.q.bias+cross.kv.bias": "multihead_attn.in_proj_bias",
    "cross.out.weight": "multihead_attn.out_proj.weight",
    "cross.out.bias": "multihead_attn.out_proj.bias",
    "cross.norm.weight": "norm2.weight",
    "cross.norm.bias": "norm2.bias",
    "feedforward.norm.weight": "norm3.weight",
    "feedforward.norm.bias": "norm3.bias",
}


class Peer:
    """nn.Transformer with the weights of the first member, and its gradients under our names."""

    def __init__(self, ours: Stack) -> None:
        a = ours.architecture
        pre = a.norm == "pre"
        self.ours, self.weights = ours, {n: w[0].detach().clone().requires_grad_() for n, w in ours.weights.items()}
        encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(
                a.dim, a.heads, a.feedforward, 0.0, a.activation, batch_first=True, norm_first=pre
            ),
            a.layers, nn.LayerNorm(a.dim), enable_nested_tensor=False,
        )  # fmt: skip
        decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(
                a.dim, a.heads, a.feedforward, 0.0, a.activation, batch_first=True, norm_first=pre
            ),
            a.layers, nn.LayerNorm(a.dim),
        )  # fmt: skip
        self.model = nn.Transformer(a.dim, a.heads, batch_first=True, custom_encoder=encoder, custom_decoder=decoder)

    def named(self) -> dict[str, Tensor]:
        """Return nn.Transformer's parameters by the names they have there, made of ours."""
        own: dict[str, Tensor] = {}
        for stack_name in ("encoder", "decoder"):
            for i in range(self.ours.architecture.layers):
                ours, theirs = f"{stack_name}.{i}.", f"{stack_name}.layers.{i}."
                renamed = {**LAYER, **(CROSS if stack_name == "decoder" else ENCODER)}
                for mine, name in renamed.items():
                    value = torch.cat([self.weights[ours + part] for part in mine.split("+")], dim=-1)
                    own[theirs + name] = value.T if value.dim() == 2 else value
            own |= {
                f"{stack_name}.norm.{kind}": self.weights[f"{stack_name}.norm.{kind}"] for kind in ("weight", "bias")
            }
        assert own.keys() == dict(self.model.named_parameters()).keys()
        return own

    def translate(self, source: list[Tensor], target: list[Tensor]) -> Tensor:
        a = self.ours.architecture
        x, y = (nn.utils.rnn.pad_sequence(rows, batch_first=True) for rows in (source, target))
        absent_x = torch.arange(x.shape[1]) >= torch.tensor([len(row) for row in source])[:, None]
        absent_y = torch.arange(y.shape[1]) >= torch.tensor([len(row) for row in target])[:, None]
        table = self.ours.table
        assert table is not None
        scale = math.sqrt(a.dim) if a.scaled else 1.0
        embedded = [
            nn.functional.embedding(ids, self.weights[f"{side}.embedding"]) * scale + table[: ids.shape[1]]
            for side, ids in (("source", x), ("target", y))
        ]
        masks = {
            "tgt_mask": torch.ones(y.shape[1], y.shape[1], dtype=torch.bool).triu(1),
            "src_key_padding_mask": absent_x,
            "memory_key_padding_mask": absent_x,
            "tgt_key_padding_mask": absent_y,
        }
        out = torch.func.functional_call(self.model, self.named(), tuple(embedded), masks)
        return (out @ self.weights["output.weight"] + self.weights["output.bias"])[~absent_y]


@settings(max_examples=25, deadline=None)
@given(
    lengths.flatmap(
        lambda own: st.tuples(st.just(own), st.lists(st.integers(1, 10), min_size=len(own), max_size=len(own)))
    ),
    st.sampled_from(["post", "pre"]),
    st.sampled_from(["relu", "gelu"]),
    st.booleans(),
    st.integers(1, 3),
)
def test_outputs_and_gradients_are_those_of_nn_transformer(
    sizes: tuple[list[int], list[int]], norm: str, activation: str, scaled: bool, layers: int
) -> None:
    a = architecture(norm=norm, activation=activation, scaled=scaled, layers=layers)
    ours = stack(a, 5)
    peer = Peer(ours)
    (source, source_place), (target, target_place) = batch([sizes[0]], SOURCE), batch([sizes[1]], TARGET)
    mine = ours.output(ours.translate(source, source_place, target, target_place))[0][target_place.real[0]]
    theirs = peer.translate(
        list(source[0, : sum(sizes[0])].split(sizes[0])), list(target[0, : sum(sizes[1])].split(sizes[1]))
    )
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-5)
    weight = torch.linspace(-1, 1, theirs.numel()).view_as(theirs) / theirs.numel()
    (mine * weight).sum().backward()
    (theirs * weight).sum().backward()
    for name, parameter in ours.weights.items():
        expected = peer.weights[name].grad
        assert parameter.grad is not None, name
        assert expected is not None, name
        torch.testing.assert_close(parameter.grad[0], expected, rtol=0, atol=1e-5, msg=name)


#: task, dim, heads, vocabularies, classes -> millions as Table 5 rounds them (PAPER.md 1)
TABLE_5 = [
    ("translation", 300, 10, (7_853, 5_893), 11.0), ("translation", 768, 8, (6_300, 5_500), 39.3),
    ("translation", 768, 8, (6_500, 5_500), 39.5), ("classification", 300, 10, (79_000,), 25.7),
    ("classification", 768, 8, (26_000,), 29.4), ("classification", 512, 8, (23_000,), 16.5),
    ("classification", 300, 10, (13_000,), 5.9), ("classification", 768, 8, (11_000,), 17.9),
    ("classification", 512, 8, (8_800,), 9.2), ("translation", 300, 10, (27_000, 20_000), 25.2),
    ("translation", 768, 8, (15_000, 16_000), 62.1), ("translation", 768, 8, (18_000, 18_000), 67.5),
]  # fmt: skip


@pytest.mark.parametrize(("task", "dim", "heads", "vocabularies", "millions"), TABLE_5)
def test_parameter_counts_of_table_5(
    task: str, dim: int, heads: int, vocabularies: tuple[int, ...], millions: float
) -> None:
    classes = 3 if vocabularies in ((79_000,), (26_000,), (23_000,)) else 2
    a = Architecture(task, dim, vocabularies, heads=heads, classes=classes)  # type: ignore[arg-type]
    assert round(count(a) / 1e6, 1) == pytest.approx(millions, abs=0.051)


def test_the_multi30k_model_with_glove_has_exactly_these_parameters() -> None:
    a = Architecture("translation", 300, (7_853, 5_893), heads=10)
    assert count(a) == 11_006_665
    small = architecture()
    assert count(small) == sum(w[0].numel() for w in stack(small, 1).weights.values())
