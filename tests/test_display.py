"""Objects as people see them: a few lines in a terminal, a small table in a notebook, a page that needs no network."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import embinit
from embinit.display import Panel, PanelTable, histogram, page
from embinit.types import Aligned, Embeddings, Origin, Vocabulary

HOSTILE = "<script>alert(1)</script>&\x1b[31m\udcff"


class Reader(HTMLParser):
    """The tags of some HTML, and whether each of them is closed."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.shown = ""
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "br", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.shown += data


def hostile() -> Aligned:
    rows = np.random.default_rng(0).standard_normal((200, 16)).astype(np.float32)
    tokens = (HOSTILE, *(f"w{i}" for i in range(200)))
    vocabulary = Vocabulary(tokens, np.arange(1, 202), origin=HOSTILE)
    source = Embeddings(tokens[1:], rows, Origin(HOSTILE, "GloVe text", {"rows": 200, "duplicates": 3}))
    return embinit.align(source, vocabulary)


OBJECTS: dict[str, Callable[[Aligned], Any]] = {
    "Aligned": lambda aligned: aligned,
    "Embeddings": lambda aligned: Embeddings(aligned.vocabulary.tokens, aligned.vectors, aligned.origin),
    "Vocabulary": lambda aligned: aligned.vocabulary,
    "Host": lambda aligned: replace(embinit.host("bert"), name=HOSTILE, about=HOSTILE),
    "Recipe": lambda aligned: embinit.recipe("pretrained | center | scale ratio=1.4"),
    "Verdict": lambda aligned: embinit.diagnose(aligned).verdict,
    "Diagnosis": lambda aligned: embinit.diagnose(aligned),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_shown_in_few_lines_without_arrays(name: str) -> None:
    item = OBJECTS[name](hostile())
    assert type(item).__name__ == name
    for text in (repr(item), str(item)):
        assert 0 < len(text.splitlines()) <= 40
        assert len(text) < 4_000
        assert "array(" not in text
        assert "\x1b" not in text
        text.encode()  # no halves of surrogate pairs


@pytest.mark.parametrize("name", OBJECTS)
def test_a_notebook_shows_escaped_tables(name: str) -> None:
    html = OBJECTS[name](hostile())._repr_html_()
    read = Reader(html)
    assert not read.open
    assert "table" in read.tags
    assert "script" not in read.tags
    assert "`" not in read.shown
    assert "\x1b" not in html
    html.encode()
    assert len(html) < 60_000
    assert ("svg" in read.tags) == (name in ("Aligned", "Embeddings", "Diagnosis"))


def test_a_diagnosis_shows_its_advice_and_its_numbers(aligned: Aligned) -> None:
    diagnosis = embinit.diagnose(aligned, task="classification")
    verdict = diagnosis.verdict
    for text in (" ".join(repr(diagnosis).split()), Reader(diagnosis._repr_html_()).shown):
        assert verdict.headline in text
        assert verdict.recipe in text
        assert str(verdict.at_full_rate) in text
        assert "380 exact, 2 special, 22 missing" in text
        assert all(finding.text in text for finding in verdict.findings)
    assert " ".join(repr(verdict).split()).startswith("Verdict: standardize, at a tenth of the rate")


def test_duplicate_rows_are_told_once() -> None:
    rows = np.random.default_rng(0).standard_normal((60, 8)).astype(np.float32)
    rows[1] = rows[0]
    shown = repr(embinit.diagnose(embinit.align(Embeddings([f"w{i}" for i in range(60)], rows, Origin("x", "text")))))
    assert shown.lower().count("duplicate row") == 1


def test_an_object_without_numbers_is_shown_too() -> None:
    empty = Embeddings([], np.zeros((0, 3), dtype=np.float32), Origin("x", "text"))
    assert "0 rows of 3 dimensions" in str(empty)
    assert "<svg" not in empty._repr_html_()
    nothing_found = embinit.align(Embeddings(["a"], np.ones((1, 3), dtype=np.float32), Origin("x", "text")), ["b"])
    assert "0 % of types" in str(nothing_found)
    assert "<svg" not in nothing_found._repr_html_()


def test_a_histogram_counts_every_number_once() -> None:
    rng = np.random.default_rng(0)
    samples = {"small": rng.normal(0, 0.01, 5_000), "large": np.append(rng.normal(0, 300, 5_000), [np.nan, np.inf])}
    chart = histogram(samples)
    assert chart is not None
    assert [name for name, _ in chart.layers] == ["small", "large"]
    for _, shares in chart.layers:
        assert sum(shares) == pytest.approx(1)
        assert len(shares) == len(chart.grid) - 1
    width = [sum(share > 0 for share in shares) for _, shares in chart.layers]
    assert width[1] > 1.2 * width[0]
    labels = [label for _, label in chart.ticks]
    assert "0" in labels
    assert len(labels) == len(set(labels)) <= 11
    assert all(chart.grid[0] <= position <= chart.grid[-1] for position, _ in chart.ticks)


@pytest.mark.parametrize("values", [[], [np.nan], [2.0, 2.0], [0.0, 0.0, 0.0]])
def test_numbers_that_are_all_equal_have_no_histogram(values: list[float]) -> None:
    assert histogram({"x": np.array(values)}) is None


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_a_histogram_of_any_size_is_drawn(scale: float) -> None:
    chart = histogram({"x": scale * np.random.default_rng(0).standard_normal(100)})
    assert chart is not None
    coordinates = re.findall(r"[VH]([-\d.e]+|nan|inf)", chart.html())
    assert len(coordinates) == 2 * 96 + 1
    assert all(0 <= float(number) <= 560 for number in coordinates)


def test_a_page_holds_everything_and_asks_for_nothing() -> None:
    panel = Panel(HOSTILE, [("label", HOSTILE)], HOSTILE, [("harm", HOSTILE)], [PanelTable(("", "a"), (("x", "1"),))])
    content = page(panel, Panel("second", code=[("Run this:", "embinit make 'a b'")]))
    read = Reader(content)
    assert not read.open
    assert not {"script", "link", "img", "iframe", "object"} & set(read.tags)
    assert not re.search(r"url\(|@import|http", content.replace("http-equiv", ""))
    assert read.tags.count("h1") == 1
    assert read.tags.count("style") == 1
    assert "embinit make 'a b'" in read.shown
    content.encode()
