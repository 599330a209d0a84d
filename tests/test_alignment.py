"""Which token gets which row, and by what way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from embinit.alignment import Matching, align, spellings
from embinit.text.vocabulary import from_tokens
from embinit.types import Embeddings, Flags, Matrix, Origin, Vocabulary
from tests.refusal import refused


def source(tokens: Sequence[str], **more: object) -> Embeddings:
    vectors = np.arange(len(tokens) * 3, dtype=np.float32).reshape(-1, 3) + 1
    return Embeddings(list(tokens), vectors, Origin("made", "made"), **more)  # type: ignore[arg-type]


#: Enough marked pieces to show the scheme.
PIECES = {
    "sentencepiece": ["▁the", "▁Dog", "ing", "▁für", "."],
    "byte-level": ["Ġthe", "ĠDog", "ing", "ĠfÃ¼r", "."],
    "wordpiece": ["the", "Dog", "##ing", "für", ".", "##s", "##ed"],
    "end-of-word": ["the</w>", "Dog</w>", "ing", "für</w>", "."],
    "subword-nmt": ["the", "Dog", "ing@@", "für", ".", "x@@", "y@@"],
}


def row_of(token: str, embeddings: Embeddings) -> list[float]:
    return embeddings.vectors[embeddings.index[token]].tolist()


@pytest.mark.parametrize("scheme", PIECES)
def test_words_meet_their_pieces_in_every_scheme(scheme: str) -> None:
    tokens = PIECES[scheme]
    embeddings = source(tokens)
    aligned = align(embeddings, ["the", "dog", "für", "ing", "."], matching=Matching(compose=False))
    assert aligned.vectors[0].tolist() == row_of(tokens[0], embeddings)
    assert aligned.vectors[1].tolist() == row_of(tokens[1], embeddings)
    assert aligned.vectors[2].tolist() == row_of(tokens[3], embeddings)
    assert aligned.vectors[4].tolist() == row_of(".", embeddings)
    # `ing` is a piece that goes on there, never the word `ing`.
    assert not aligned.found[3]
    assert aligned.kinds[1] == "case"
    assert aligned.kinds[3] == "missing"
    assert aligned.kinds[0] == ("exact" if tokens[0] == "the" else "marker")


@pytest.mark.parametrize("own", PIECES)
@pytest.mark.parametrize("theirs", PIECES)
def test_pieces_meet_across_schemes(own: str, theirs: str) -> None:
    aligned = align(source(PIECES[theirs]), PIECES[own], matching=Matching(compose=False))
    embeddings = source(PIECES[theirs])
    assert aligned.found[:5].all()
    assert aligned.vectors[:5].tolist() == embeddings.vectors[:5].tolist()


def test_exact_comes_before_lower_case_and_case_can_be_switched_off() -> None:
    embeddings = source(["The", "the", "PARIS"])
    aligned = align(embeddings, ["The", "THE", "paris"])
    assert aligned.kinds == ("exact", "case", "case")
    assert aligned.vectors[0].tolist() == row_of("The", embeddings)
    assert aligned.vectors[1].tolist() == row_of("the", embeddings)
    assert align(embeddings, ["THE", "paris"], matching=Matching(case=False)).kinds == ("missing", "missing")


def test_markers_can_be_switched_off() -> None:
    embeddings = source(PIECES["sentencepiece"])
    assert align(embeddings, ["the", "ing"], matching=Matching(markers=False, compose=False)).kinds == (
        "missing",
        "exact",
    )


def test_special_tokens_are_never_matched_by_accident() -> None:
    embeddings = source(["<unk>", "<pad>", "[cls]", "word"], specials=frozenset({"<unk>"}))
    aligned = align(embeddings, ["<unk>", "<pad>", "[CLS]", "word"])
    assert aligned.kinds == ("special", "special", "special", "exact")
    assert aligned.found.tolist() == [False, False, False, True]
    asked = align(embeddings, ["<unk>", "[CLS]"], matching=Matching(specials=True))
    assert asked.kinds == ("exact", "special")


def test_a_source_special_is_no_word() -> None:
    embeddings = source(["odd", "word"], specials=frozenset({"odd"}))
    assert align(embeddings, ["odd", "word"]).kinds == ("missing", "exact")


def test_missing_words_are_composed_where_the_source_can() -> None:
    def compose(tokens: Sequence[str]) -> tuple[Matrix, Flags]:
        made = np.array([token.startswith("can") for token in tokens])
        return np.full((len(tokens), 3), 7, dtype=np.float32), made

    made = source(["word"], compose=compose)
    aligned = align(made, ["word", "cannot", "other"])
    assert aligned.kinds == ("exact", "composed", "missing")
    assert aligned.vectors[1].tolist() == [7, 7, 7]
    assert aligned.vectors[2].tolist() == [0, 0, 0]
    assert align(made, ["cannot"], matching=Matching(compose=False)).kinds == ("missing",)


def test_continuation_pieces_are_composed_inside_of_words_alone() -> None:
    def filled(value: float) -> Callable[[Sequence[str]], tuple[Matrix, Flags]]:
        return lambda tokens: (np.full((len(tokens), 3), value, dtype=np.float32), np.ones(len(tokens), dtype=bool))

    made = source(["dog", "##ed", "##x"], compose=filled(7), compose_inside=filled(8))
    tokens = ["cats", "dog", "##ing", "##ed", "##ed2"]
    aligned = align(made, tokens)
    assert aligned.kinds == ("composed", "exact", "composed", "exact", "composed")
    assert [row[0] for row in aligned.vectors.tolist()] == [7, 1, 8, 4, 8]
    without = align(made, tokens, matching=Matching(continuations=False))
    assert without.kinds == ("composed", "exact", "missing", "exact", "missing")
    assert (without.vectors[without.found] == aligned.vectors[without.found]).all()


def test_pieces_are_composed_from_the_words_that_hold_them() -> None:
    words = {"walking": ["walk", "##ing"], "talking": ["talk", "##ing"], "walk": ["walk"]}
    vocabulary = Vocabulary(("walk", "##ing", "##x", "##y"), split=lambda word: words.get(word, ["[UNK]"]))
    embeddings = source(["walking", "talking", "walk"])
    aligned = align(embeddings, vocabulary)
    assert aligned.kinds == ("exact", "composed", "missing", "missing")
    assert aligned.vectors[1].tolist() == embeddings.vectors[:2].mean(axis=0).tolist()


def test_coverage_counts_types_and_running_tokens_without_specials() -> None:
    vocabulary = Vocabulary(("<pad>", "a", "b"), np.array([0, 9, 1]), frozenset({"<pad>"}))
    assert align(source(["a"]), vocabulary).coverage() == (0.5, 0.9)
    assert align(source(["a"]), ["a", "b"]).coverage() == (0.5, None)


def test_without_a_vocabulary_the_source_is_its_own() -> None:
    embeddings = source(["a", "b"])
    aligned = align(embeddings)
    assert aligned.vocabulary.tokens == ("a", "b")
    assert (aligned.vectors == embeddings.vectors).all()


def test_repeated_tokens_are_an_error() -> None:
    with refused("'a'"):
        align(source(["a"]), ["a", "b", "a"])


@pytest.mark.parametrize("tokens", [{"a", "b"}, frozenset("ab"), {"a": 1, "b": 0}], ids=["set", "frozenset", "mapping"])
def test_a_vocabulary_without_the_order_of_rows_is_an_error(tokens: object) -> None:
    with refused("row order"):
        align(source(["a", "b"]), tokens)


def test_the_keys_of_a_dictionary_are_a_vocabulary_in_their_order() -> None:
    ids = {"b": 0, "a": 1}
    assert align(source(["a", "b"]), ids.keys()).vocabulary.tokens == ("b", "a")


def test_another_dimension_is_an_error_unless_asked_for() -> None:
    embeddings = source([f"w{i}" for i in range(40)])
    with refused("made has 3 dimensions", "the model has 2", "pca", "--project"):
        align(embeddings, dim=2)
    with refused("'pac'; did you mean 'pca'?"):
        align(embeddings, dim=2, project="pac")  # type: ignore[arg-type]


@pytest.mark.parametrize(("project", "dim"), [("pca", 2), ("orthogonal", 2), ("orthogonal", 5), ("pad", 5)])
def test_projections(project: str, dim: int) -> None:
    rng = np.random.default_rng(0)
    embeddings = Embeddings(
        [f"w{i}" for i in range(60)], rng.standard_normal((60, 3), np.float32), Origin("made", "made")
    )
    aligned = align(embeddings, [*embeddings.tokens, "missing"], dim=dim, project=project)  # type: ignore[arg-type]
    assert aligned.vectors.shape == (61, dim)
    assert not aligned.vectors[60].any()
    again = align(embeddings, [*embeddings.tokens, "missing"], dim=dim, project=project)  # type: ignore[arg-type]
    assert (aligned.vectors == again.vectors).all()
    if dim > 3:  # growing keeps every angle and length
        assert aligned.rows @ aligned.rows.T == pytest.approx(embeddings.vectors @ embeddings.vectors.T, abs=1e-5)
    if project == "pca":  # no other two directions keep as much
        widths = np.linalg.eigvalsh(np.cov(embeddings.vectors.T))
        assert aligned.rows.var(axis=0, ddof=1).sum() == pytest.approx(widths[1:].sum(), rel=1e-5)


@pytest.mark.parametrize(("project", "dim"), [("pad", 2), ("pca", 5)])
def test_impossible_projections(project: str, dim: int) -> None:
    with refused(3, dim, "projection"):
        align(source([f"w{i}" for i in range(40)]), dim=dim, project=project)  # type: ignore[arg-type]


def test_spellings_hold_every_form() -> None:
    forms = spellings(from_tokens(["Für", "<pad>"]), Matching())
    assert {"Für", "für", "FÜR", "▁für", "ĠfÃ¼r", "für</w>", "<pad>"} <= forms
    assert "▁<pad>" not in forms
