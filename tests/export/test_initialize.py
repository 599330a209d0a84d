"""`initialize`: any model in memory gets good rows, and the report tells which, how large and how well they fit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embinit
from embinit import EmbinitError, Initialization, initialize
from embinit.export.changes import looks_trained
from embinit.export.initialize import embedding_layer
from embinit.types import Embeddings, Origin

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

SPECIALS = ["[PAD]", "[UNK]", "[CLS]"]
WORDS = [f"word{place}" for place in range(80)]
TOKENS = [*SPECIALS, *WORDS]
FOUND = WORDS[:60]
DIM, ROWS = 16, len(TOKENS) + 1  # the last row has no token

SIZES = {
    "bert": ("BertForMaskedLM", {"hidden_size": DIM, "num_hidden_layers": 1, "num_attention_heads": 2,
                                 "intermediate_size": 16, "max_position_embeddings": 16, "pad_token_id": 0}),
    "gpt2": ("GPT2LMHeadModel", {"n_embd": DIM, "n_layer": 1, "n_head": 2, "n_positions": 16, "bos_token_id": 1,
                                 "eos_token_id": 1}),
    "t5": ("T5ForConditionalGeneration", {"d_model": DIM, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2,
                                          "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}),
    "llama": ("LlamaForCausalLM", {"hidden_size": DIM, "intermediate_size": 16, "num_hidden_layers": 1,
                                   "num_attention_heads": 2, "tie_word_embeddings": False, "pad_token_id": 0,
                                   "bos_token_id": 1, "eos_token_id": 1}),
    "marian": ("MarianMTModel", {"decoder_vocab_size": ROWS, "d_model": DIM, "encoder_layers": 1, "decoder_layers": 1,
                                 "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 16,
                                 "decoder_ffn_dim": 16, "max_position_embeddings": 16, "pad_token_id": 0,
                                 "eos_token_id": 1, "bos_token_id": 1, "decoder_start_token_id": 0,
                                 "forced_eos_token_id": 1}),
    "classifier": ("BertForSequenceClassification", {"hidden_size": DIM, "num_hidden_layers": 1,
                                                     "num_attention_heads": 2, "intermediate_size": 16,
                                                     "pad_token_id": 0}),
}  # fmt: skip
OUTPUTS = {"bert": "tied", "gpt2": "tied", "t5": "tied", "llama": "kept", "marian": "tied", "classifier": "none"}


def model_of(family: str) -> Any:
    torch.manual_seed(0)
    name, options = SIZES[family]
    kind = getattr(transformers, name)
    return kind(kind.config_class(vocab_size=ROWS, **options))


def tokenizer(tokens: list[str] = TOKENS) -> Any:
    ids = {token: place for place, token in enumerate(tokens)}
    own = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token="[UNK]"))
    own.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    own.add_special_tokens([token for token in tokens if token in SPECIALS])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=own, unk_token="[UNK]", pad_token="[PAD]")


def vectors(tokens: list[str] = FOUND, dim: int = DIM, std: float = 3.0) -> Embeddings:
    rows = np.random.default_rng(1).normal(0.5, std, (len(tokens), dim)).astype(np.float32)
    return Embeddings(tokens, rows, Origin("vectors", "array"))


def weight(model: Any) -> Any:
    return model.get_input_embeddings().weight.detach().clone().numpy()


@pytest.mark.parametrize("family", SIZES)
def test_found_tokens_get_the_advised_rows_and_all_others_keep_theirs(family: str) -> None:
    model, source = model_of(family), vectors()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    parameter = model.get_input_embeddings().weight
    report = initialize(model, tokenizer(), source)
    aligned = embinit.align(source, tokenizer())
    fresh = model_of(family)
    expected = embinit.diagnose(aligned, host=fresh).verdict.matrix(aligned)
    new, old = weight(model), weight(fresh)
    ids = [TOKENS.index(word) for word in FOUND]
    others = [row for row in range(ROWS) if row not in ids]
    assert model.get_input_embeddings().weight is parameter
    assert new[ids].tobytes() == expected[ids].tobytes()
    assert new[others].tobytes() == old[others].tobytes()
    assert report.ids.tolist() == ids
    assert report.output == OUTPUTS[family]
    if OUTPUTS[family] == "tied":
        assert model.get_output_embeddings().weight is parameter
    shared = {name for name, value in model.state_dict().items() if value.shape == parameter.shape}
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert changed <= shared
    assert report.kept == {"special": tuple(SPECIALS), "not found": tuple(WORDS[60:]), "no token": ("",)}
    assert report.coverage == (0.75, None)
    assert report.missing_tokens.tokens == tuple(WORDS[60:])


def test_the_report_has_the_sizes_before_and_after() -> None:
    report = initialize(model_of("bert"), tokenizer(), vectors())
    assert report.sizes["before"].std == pytest.approx(0.02, rel=0.1)
    assert report.sizes["source"].std == pytest.approx(3, rel=0.1)
    assert report.sizes["now"].std == pytest.approx(0.02, rel=0.1)
    assert report.verdict is not None
    assert report.advised
    assert report.verdict.advice == "standardize"


def test_a_layer_of_ones_own_takes_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    layer = torch.nn.Embedding(len(TOKENS), DIM, padding_idx=5)
    layer.weight.requires_grad_(False)
    old = layer.weight.detach().clone()
    report = initialize(layer, TOKENS, vectors(), recipe="pretrained")
    ids = [TOKENS.index(word) for word in FOUND if TOKENS.index(word) != 5]
    assert report.ids.tolist() == ids
    assert torch.equal(layer.weight[5], old[5])  # the padding row
    assert layer.weight[ids].numpy().tobytes() == vectors().vectors[[i - 3 for i in ids]].tobytes()
    assert not layer.weight.requires_grad  # frozen before, frozen now
    assert report.output == "outside"
    assert report.kept["special"] == ("[PAD]", "[UNK]", "[CLS]")
    assert report.kept["padding row"] == (TOKENS[5],)
    assert f"kept, padding row 1: {TOKENS[5]}" in " ".join(str(report).split())
    assert report.as_dict()["specials_kept"] == 4
    assert capsys.readouterr() == ("", "")


def test_the_output_layer_gets_the_rows_on_request() -> None:
    model = model_of("llama")
    head = model.lm_head.weight.detach().clone()
    report = initialize(model, tokenizer(), vectors(), output_rows=True)
    others = [row for row in range(ROWS) if row not in report.ids]
    assert torch.equal(model.lm_head.weight[report.ids], model.get_input_embeddings().weight[report.ids])
    assert torch.equal(model.lm_head.weight[others], head[others])
    assert model.lm_head.weight is not model.get_input_embeddings().weight
    assert initialize(model_of("gpt2"), tokenizer(), vectors(), output_rows=True).output == "tied"
    for wrong in (model_of("classifier"), torch.nn.Embedding(len(TOKENS), DIM), torch.nn.Linear(DIM, len(TOKENS))):
        with pytest.raises(EmbinitError, match="has no output layer"):
            initialize(wrong, tokenizer(), vectors(), output_rows=True)


def two_vocabularies(tied: bool) -> Any:
    torch.manual_seed(0)
    name, options = SIZES["marian"]
    config = transformers.MarianConfig(
        vocab_size=ROWS, share_encoder_decoder_embeddings=False, tie_word_embeddings=tied, **options
    )
    return getattr(transformers, name)(config)


@pytest.mark.parametrize("tied", [True, False])
def test_a_decoders_own_embedding_is_kept_and_named(tied: bool) -> None:
    model = two_vocabularies(tied)
    decoder, head = model.get_decoder().get_input_embeddings(), model.get_output_embeddings()
    kept = decoder.weight.detach().clone(), head.weight.detach().clone()
    with pytest.raises(EmbinitError, match=r"belongs to the decoder.*initialize\(model\.get_decoder\(\)") as error:
        initialize(model, tokenizer(), vectors(), output_rows=True)
    assert ("model.get_output_embeddings()" in str(error.value)) == (not tied)
    report = initialize(model, tokenizer(), vectors())
    assert any("model.get_decoder()" in warning for warning in report.warnings)
    assert report.output == ("tied to the decoder" if tied else "kept")
    assert ("tied to the decoder's embedding" in str(report)) == tied
    assert torch.equal(decoder.weight, kept[0])
    assert torch.equal(head.weight, kept[1])
    report = initialize(model.get_decoder(), tokenizer(), vectors())
    assert not any("model.get_decoder()" in warning for warning in report.warnings)
    assert not torch.equal(decoder.weight, kept[0])
    assert torch.equal(head.weight, kept[1]) != tied
    assert report.output == "outside"
    assert "if it is tied to this embedding" in " ".join(str(report).split())


def test_the_output_layer_of_a_decoder_gets_rows_of_its_own() -> None:
    model = two_vocabularies(tied=False)
    decoder, head = model.get_decoder(), model.get_output_embeddings()
    embedding = initialize(decoder, tokenizer(), vectors())
    report = initialize(head, tokenizer(), vectors(), host=decoder)
    assert report.recipe == embedding.recipe
    assert report.ids.tolist() == embedding.ids.tolist()
    assert torch.equal(head.weight[report.ids], decoder.get_input_embeddings().weight[report.ids])
    assert not torch.equal(model.get_input_embeddings().weight[report.ids], head.weight[report.ids])
    assert (report.output, report.host_assumed) == ("this layer", False)


def test_project_fill_seed_and_task_are_those_of_make() -> None:
    source = vectors(dim=10)
    with pytest.raises(EmbinitError, match="choose a projection: project='orthogonal' or 'pad'"):
        initialize(model_of("bert"), tokenizer(), source)
    models = {}
    for seed in (0, 1):
        models[seed] = model_of("bert")
        report = initialize(models[seed], tokenizer(), source, project="orthogonal", fill="target", seed=seed)
        aligned = embinit.align(source, tokenizer(), dim=DIM, project="orthogonal", seed=seed)
        verdict = embinit.diagnose(aligned, host=model_of("bert"), seed=seed).verdict
        expected = verdict.matrix(aligned, seed=seed)
        assert weight(models[seed])[3:-1].tobytes() == expected[3:].tobytes()
        assert report.kept == {"special": tuple(SPECIALS), "not found": (), "no token": ("",)}
    assert weight(models[0]).tobytes() != weight(models[1]).tobytes()
    with pytest.raises(EmbinitError, match="unknown kind of task 'clasification'; did you mean 'classification'"):
        initialize(model_of("bert"), tokenizer(), vectors(), task="clasification")


def test_a_classifier_with_sinusoids_gets_the_rate_of_the_verdict() -> None:
    layer = torch.nn.Embedding(len(TOKENS), DIM)
    report = initialize(layer, TOKENS, vectors(), task="classification")
    assert report.rate == report.verdict.rate == 0.1  # type: ignore[union-attr]
    assert "row_rates(optimizer" in str(report)
    assert initialize(torch.nn.Embedding(len(TOKENS), DIM), TOKENS, vectors()).rate == 1


@pytest.mark.parametrize(
    ("recipe", "rate"),
    [("pretrained", 0.1), ("pretrained_xavier", 0.1), ("pretrained_shuffled", 1), ("xavier", 1), ("torch", 1)],
)
def test_the_rate_of_a_named_recipe_is_that_of_its_verdict(recipe: str, rate: float) -> None:
    layer = torch.nn.Embedding(len(TOKENS), DIM)
    report = initialize(layer, TOKENS, vectors(std=9), recipe=recipe, task="classification")
    text = " ".join(str(report).split())
    assert report.rate == report.as_dict()["rate"] == rate
    assert report.verdict is not None
    assert ("train the found rows at 0.1 times" in text) == (rate != 1)
    assert ("that of the other weights; the verdict's is for rows of" in text) == (rate != report.verdict.rate)
    assert "verdict on the new rows" in text
    assert "verdict on the source" not in text
    assert f"the advised recipe is '{recipe}'" not in text


def test_the_advised_rate_is_that_of_found_rows_and_not_of_filled_ones() -> None:
    report = initialize(torch.nn.Embedding(ROWS, DIM), TOKENS, vectors(), task="classification", fill="target")
    assert report.found_ids.tolist() == [TOKENS.index(word) for word in FOUND]
    assert report.ids.tolist() == [TOKENS.index(word) for word in WORDS]
    assert report.as_dict()["found"] == len(FOUND)
    assert "row_rates(optimizer, layer, 0.1, ids=report.found_ids)" in str(report)
    assert "verdict on the source" in str(report)
    drawn = initialize(torch.nn.Embedding(ROWS, DIM), TOKENS, vectors(), recipe="xavier")
    assert (len(drawn.found_ids), len(drawn.ids)) == (0, len(WORDS))


def test_random_rows_go_to_all_ordinary_tokens() -> None:
    model = model_of("bert")
    report = initialize(model, tokenizer(), vectors(), recipe="xavier")
    assert report.ids.tolist() == list(range(len(SPECIALS), len(TOKENS)))


def test_half_precision_holds_the_rounded_rows() -> None:
    model, exact = model_of("llama").to(torch.bfloat16), model_of("llama")
    initialize(model, tokenizer(), vectors(), host=exact)
    initialize(exact, tokenizer(), vectors())
    report_rows = [TOKENS.index(word) for word in FOUND]
    new = model.get_input_embeddings().weight[report_rows]
    assert new.dtype == torch.bfloat16
    assert torch.equal(new, exact.get_input_embeddings().weight[report_rows].to(torch.bfloat16))


def test_numbers_that_the_models_format_does_not_hold_are_an_error() -> None:
    model = model_of("llama").half()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    large = vectors(std=1e5)
    with pytest.raises(EmbinitError, match=r"numbers up to \d+,\d+.*number format float16 holds numbers up to 65,504"):
        initialize(model, tokenizer(), large, recipe="pretrained", output_rows=True)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    model.model.float()  # the output layer alone stays in half precision
    with pytest.raises(EmbinitError, match="float16"):
        initialize(model, tokenizer(), large, recipe="pretrained", output_rows=True)
    assert torch.equal(model.get_input_embeddings().weight.half(), before["model.embed_tokens.weight"])
    assert initialize(model.float(), tokenizer(), large, recipe="pretrained").replaced == len(FOUND)


def _train(**options: Any) -> Callable[[Any], None]:
    """Return a function that trains a model for one step of AdamW."""

    def take_step(model: Any) -> None:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, **options)
        model(input_ids=torch.arange(8)[None], labels=torch.arange(8)[None]).loss.backward()
        optimizer.step()

    return take_step


def _add_to_data(model: Any) -> None:
    model.get_input_embeddings().weight.data.add_(1e-6)


def _replace_data(model: Any) -> None:
    weight = model.get_input_embeddings().weight
    weight.data = weight.data + 1e-6


@pytest.mark.parametrize(
    "change",
    [_train(foreach=False), _train(fused=True), _add_to_data, _replace_data],
    ids=["AdamW", "AdamW, fused", "data.add_", "new data"],
)
def test_rows_that_embinit_wrote_are_not_called_trained(change: Callable[[Any], None]) -> None:
    model, raw = model_of("bert"), vectors(std=0.1)  # their mean is not zero
    assert not initialize(model, tokenizer(), raw, recipe="pretrained").was_trained
    again = initialize(model, tokenizer(), raw, recipe="pretrained")
    assert not again.was_trained
    assert not any("look trained" in warning for warning in again.warnings)
    change(model)
    assert initialize(model, tokenizer(), raw, recipe="pretrained").was_trained


def test_rows_that_a_model_learned_are_told() -> None:
    model = model_of("bert")
    assert not initialize(model, tokenizer(), vectors()).was_trained
    again = initialize(model, tokenizer(), vectors(std=1))
    assert not again.was_trained  # normal rows around zero look drawn
    with torch.no_grad():
        model.get_input_embeddings().weight[5:20] *= 9
    trained = initialize(model, tokenizer(), vectors())
    assert trained.was_trained
    assert any("look trained" in warning for warning in trained.warnings)
    assert trained.kept["special"] == tuple(SPECIALS)


def test_drawn_rows_look_drawn_and_trained_rows_do_not() -> None:
    draw = np.random.default_rng(0)
    for rows in (draw.normal(0, 0.02, (3000, 64)), draw.uniform(-1, 1, (3000, 64)), np.zeros((5, 4))):
        assert not looks_trained(rows.astype(np.float32))
    for rows in (draw.normal(0.01, 0.02, (3000, 64)), draw.laplace(0, 1, (3000, 64))):
        assert looks_trained(rows.astype(np.float32))


def test_sizes_that_are_off_are_warnings() -> None:
    larger = tokenizer([*TOKENS, "one", "two", "three"])
    report = initialize(model_of("bert"), larger, vectors([*FOUND, "two"]))
    assert any("the tokenizer has 86 tokens, but the model has 84 rows" in warning for warning in report.warnings)
    assert report.ids.max() < ROWS
    smaller = initialize(model_of("bert"), tokenizer(TOKENS[:40]), vectors())
    assert any(
        "has 40 tokens, but the model has 84 rows, so the last 44 rows keep" in warning for warning in smaller.warnings
    )
    assert len(smaller.kept["no token"]) == 44
    assert not any("rows" in warning for warning in initialize(model_of("bert"), tokenizer(), vectors()).warnings)


@pytest.mark.parametrize("recipe", ["advised", "pretrained"])
def test_aligned_vectors_of_more_tokens_than_rows_are_like_their_source(recipe: str) -> None:
    larger = tokenizer([*TOKENS, "one", "two", "three"])
    source = vectors([*FOUND, "two"])
    model, expected = model_of("bert"), model_of("bert")
    report = initialize(model, larger, embinit.align(source, larger), recipe=recipe)
    other = initialize(expected, larger, source, recipe=recipe)
    assert weight(model).tobytes() == weight(expected).tobytes()
    assert (report.warnings, report.matches, report.coverage) == (other.warnings, other.matches, other.coverage)
    assert any("the tokenizer has 86 tokens, but the model has 84 rows" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("rows", "tokens", "warned"),
    [(9, 5, False), (9, 4, True), (32_128, 32_100, False), (51_200, 50_295, False), (32_100, 30_522, True)],
)
def test_rows_without_a_token_are_a_warning_if_rounding_up_does_not_explain_them(
    rows: int, tokens: int, warned: bool
) -> None:
    words = [f"w{row}" for row in range(tokens)]
    report = initialize(torch.nn.Embedding(rows, 2), words, vectors(words, dim=2), recipe="pretrained")
    assert any("check that the tokenizer" in warning for warning in report.warnings) == warned


def test_a_layer_with_too_few_rows_is_told_what_a_layer_can_do() -> None:
    layer = torch.nn.Embedding(len(TOKENS) - 1, DIM)
    (warning,) = [each for each in initialize(layer, TOKENS, vectors()).warnings if "tokenizer has" in each]
    assert warning.endswith(f"so the last token has no row; make a layer of {len(TOKENS)} rows first")
    (warning,) = initialize(model_of("bert"), tokenizer([*TOKENS, "one", "two"]), vectors()).warnings
    assert warning.endswith("so the last token has no row; call model.resize_token_embeddings(85) first")


def test_kept_rows_of_another_size_are_a_warning_that_names_the_fill() -> None:
    layer = torch.nn.Embedding(len(TOKENS), DIM)
    with torch.no_grad():
        layer.weight *= 0.01
    report = initialize(layer, TOKENS, vectors(), recipe="pretrained")
    assert any("fill='target'" in warning for warning in report.warnings)
    filled = initialize(layer, TOKENS, vectors(), recipe="pretrained", fill="target")
    assert not any("fill=" in warning for warning in filled.warnings)


class _Page(HTMLParser):
    """The texts of table cells, and whether every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def test_the_report_prints_as_lines_and_as_html() -> None:
    source = Embeddings(FOUND, vectors().vectors, Origin("<b>vectors</b>", "array"))
    report = initialize(model_of("bert"), tokenizer(), source)
    text = str(report)
    assert max(map(len, text.splitlines())) <= 100
    for fact in ("60 of 84 rows", "75 %", "word60", "before", "[PAD] [UNK] [CLS]", "advised"):
        assert fact in text
    shown = _Page(report._repr_html_())
    assert shown.open == []
    assert {"before", "source", "now", "60 of 84 rows of 16 dimensions", "<b>vectors</b>"} <= set(shown.cells)
    assert "<svg" in report._repr_html_()
    assert re.fullmatch(r"Initialization\(60 of 84 rows, .*\)", repr(report))
    assert json.loads(json.dumps(report.as_dict()))["kept"] == {"special": 3, "not found": 20, "no token": 1}


def test_nothing_changes_if_something_is_wrong() -> None:
    model = model_of("bert")
    old = weight(model)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"source": vectors(["lacking"])}, "has none of the tokens of"),
        ({"recipe": "xaviér"}, "unknown recipe"),
        ({"fill": "target "}, "unknown fill"),
        ({"project": "pca", "source": vectors(dim=4)}, "PCA cannot take"),
        ({"task": "clasification"}, "unknown kind of task"),
    ]
    for options, message in wrong:
        arguments = {"source": vectors(), **options}
        with pytest.raises(EmbinitError, match=message):
            initialize(model, tokenizer(), **arguments)
    assert weight(model).tobytes() == old.tobytes()


def test_a_model_that_cannot_be_filled_is_one_sentence() -> None:
    with torch.device("meta"):
        meta = torch.nn.Embedding(4, 2)
    quantized = torch.nn.Embedding(4, 2, _weight=torch.zeros(4, 2, dtype=torch.int8), _freeze=True)
    for model, message in (
        (torch.nn.Bilinear(2, 2, 2), r"not Bilinear; give its embedding layer, for example model\.embedding"),
        (np.zeros((3, 2)), "not ndarray"),
        (meta, "device meta"),
        (quantized, "is quantized"),
    ):
        with pytest.raises(EmbinitError, match=message):
            embedding_layer(model)


def test_a_model_of_an_unknown_type_is_judged_like_the_one_that_is_named() -> None:
    torch.manual_seed(0)
    config = transformers.MambaConfig(vocab_size=ROWS, hidden_size=DIM, num_hidden_layers=1, state_size=4)
    model = transformers.MambaForCausalLM(config)
    with pytest.raises(
        EmbinitError, match=r"'mamba'; name .*\(tutorial, marian,.*host=.*recipe='pretrained_xavier'"
    ) as error:
        initialize(model, tokenizer(), vectors())
    assert "mbart" not in str(error.value)
    report = initialize(model, tokenizer(), vectors(), host="llama")
    assert report.verdict is not None
    plain = initialize(model, tokenizer(), vectors(), recipe="pretrained")
    assert plain.verdict is None
    assert isinstance(plain, Initialization)
    assert plain.replaced == 60
    assert initialize(model, tokenizer(), vectors(), recipe="pretrained_xavier").replaced == 60


def test_a_model_of_two_models_is_told_to_give_one() -> None:
    config = transformers.BertConfig(vocab_size=ROWS, **SIZES["bert"][1])
    pair = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(config, config)
    model = transformers.EncoderDecoderModel(pair)
    with pytest.raises(EmbinitError, match=r"holds two models; give one of them: model\.encoder or model\.decoder"):
        initialize(model, tokenizer(), vectors())
    assert initialize(model.encoder, tokenizer(), vectors()).advised
    assert initialize(model.decoder, tokenizer(), vectors()).output == "tied"


def test_the_report_on_a_bare_layer_names_the_model_that_it_assumes() -> None:
    layer = torch.nn.Embedding(len(TOKENS), DIM)
    report = initialize(layer, TOKENS, vectors())
    assert report.host_assumed
    assert "tutorial is assumed for a bare layer; name yours with host=" in str(report)
    for named in (
        initialize(layer, TOKENS, vectors(), host="bert"),
        initialize(model_of("bert"), tokenizer(), vectors()),
    ):
        assert not named.host_assumed
        assert "assumed for a bare layer" not in str(named)


def test_a_compiled_model_is_the_model_inside_it() -> None:
    model, plain = model_of("bert"), model_of("bert")
    report = initialize(torch.compile(model), tokenizer(), vectors())
    assert report.model == "BertForMaskedLM"
    initialize(plain, tokenizer(), vectors(), host=torch.compile(plain))
    assert weight(model).tobytes() == weight(plain).tobytes()


def test_aligned_vectors_go_in_if_they_have_the_tokens_of_the_model() -> None:
    model, plain = model_of("bert"), model_of("bert")
    aligned = embinit.align(vectors(dim=10), tokenizer(), dim=DIM, project="orthogonal")
    report = initialize(model, tokenizer(), aligned)
    expected = initialize(plain, tokenizer(), vectors(dim=10), project="orthogonal")
    assert weight(model).tobytes() == weight(plain).tobytes()
    assert report.ids.tolist() == expected.ids.tolist()
    with pytest.raises(EmbinitError, match=r"82 tokens \(.*, which are not the 83 tokens of the model"):
        initialize(model, tokenizer(), embinit.align(vectors(), TOKENS[1:]))
    with pytest.raises(EmbinitError, match=r"10 dimensions, but the model has 16; align them with .*dim=16"):
        initialize(model, tokenizer(), embinit.align(vectors(dim=10), tokenizer()))


def test_a_layer_that_does_not_take_the_rows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = torch.nn.Embedding(len(TOKENS), DIM)
    monkeypatch.setattr(torch.nn.Parameter, "copy_", lambda self, values: self, raising=False)
    with pytest.raises(EmbinitError, match="does not hold the rows that were put into it"):
        initialize(layer, TOKENS, vectors())


def test_trainer_takes_the_groups_and_the_rates_of_rows(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    model = model_of("classifier")
    report = initialize(model, tokenizer(), vectors())
    before = weight(model)
    optimizer = torch.optim.AdamW(embinit.parameter_groups(model, lr=1e-2, rate=1.0, weight_decay=0.1))
    embinit.row_rates(optimizer, model.get_input_embeddings(), 0, ids=report.ids)
    ids = torch.arange(len(TOKENS)).repeat(4, 1)[:, :16]
    data = [{"input_ids": row, "labels": place % 2} for place, row in enumerate(torch.cat([ids, ids + 60]))]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), max_steps=3, per_device_train_batch_size=4, report_to=[], use_cpu=True,
        save_strategy="no", disable_tqdm=True, logging_strategy="no",
    )  # fmt: skip
    transformers.Trainer(model, arguments, train_dataset=data, optimizers=(optimizer, None)).train()
    after = weight(model)
    others = [row for row in range(1, ROWS) if row not in report.ids]  # 0 is the padding
    assert after[report.ids].tobytes() == before[report.ids].tobytes()
    assert (after[others] != before[others]).any(axis=1).all()
