"""The page: one file, nothing from outside, nothing in it that data could run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embinit.experiments.experiment import Block, Planned
from embinit.html import Html, data, element, text
from embinit.reports.legend import introduction
from embinit.reports.summarize import summarize
from embinit.reports.writers.html import page
from tests.reports import made
from tests.reports.test_writers import HOSTILE, hostile, summary

#: Elements that have no end tag in what the page uses.
EMPTY = {"meta", "br", "hr"}


class Reader(HTMLParser):
    """Reads a page: its elements, their attributes, its texts; raises where an element is not closed."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def said(self, *, within: str) -> str:
        return " ".join(said for tag, said in self.texts if tag == within)


def test_the_page_is_well_formed_and_has_the_answer_first() -> None:
    content = page(summary())
    read = Reader(content)
    assert content.startswith("<!doctype html>")
    shown = [said for tag, said in read.texts if tag not in ("style", "script", "title") and said.strip()]
    assert shown.index("Which start is best?") < shown.index(next(s for s in shown if "is better than xavier" in s))
    assert next(i for i, s in enumerate(shown) if "is better than xavier" in s) < shown.index("What is compared")


def test_nothing_comes_from_outside() -> None:
    content = page(summary())
    read = Reader(content)
    for tag, attributes in read.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert "src" not in attributes
        assert not (attributes.get("href") or "#").startswith(("http", "//", "javascript"))
    style = read.said(within="style")
    assert "@import" not in style
    assert "url(" not in style
    assert "http" not in re.sub(r"http://www.w3.org/2000/svg|http-equiv", "", content)


def test_only_the_pages_own_script_may_run() -> None:
    read = Reader(page(summary()))
    scripts = [attributes for tag, attributes in read.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    own = [said for tag, said in read.texts if tag == "script"][-1]
    digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
    (policy,) = [a["content"] for tag, a in read.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "innerHTML" not in own
    assert "eval(" not in own
    assert "insertAdjacentHTML" not in own


def test_the_data_of_the_charts_is_whole() -> None:
    read = Reader(page(summary()))
    content = json.loads(next(said for tag, said in read.texts if tag == "script"))
    assert content["colors"]["xavier"] == 0
    (first, _second, third) = content["parts"]
    assert set(first["curves"]) >= {"validation BLEU", "validation loss"}
    assert len(first["curves"]["validation BLEU"]) == 4
    assert third["curves"] == {}


def test_a_hostile_report_makes_the_same_elements_as_a_harmless_one() -> None:
    content = page(hostile())
    read = Reader(content)
    assert content.count("<script") == 2
    assert content.count("</script") == 2
    kinds = {tag for tag, _ in read.elements}
    assert kinds <= {tag for tag, _ in Reader(page(summary())).elements} | {"section", "h4", "article"}
    for _, attributes in read.elements:
        assert not any(name.startswith("on") for name in attributes)
    assert any(HOSTILE.split("\n")[0] in said for tag, said in read.texts if tag == "h1")


def test_every_start_is_listed_and_code_is_code() -> None:
    steps = "pretrained | center | scale std=0.02"
    block = made.block(recipes=("xavier", "normal", steps), seeds=range(3))
    read = Reader(page(summarize(made.experiment(block), made.results(block))))
    listed = [said for tag, said in read.texts if tag == "dt"]
    assert [name for name in ("xavier", "normal", steps) if name in listed] == ["xavier", "normal", steps]
    assert "normal std=..." in [said for tag, said in read.texts if tag == "code"]
    assert "`" not in read.said(within="dd")


def test_the_places_of_a_sweep_are_not_listed_as_starts() -> None:
    block, found = made.sweep_of("recipe", {"scale std=0.1": 36, "scale std=9": 29})
    assert summarize(made.experiment(block), found).recipes == {}


@pytest.mark.parametrize(
    ("positions", "said"),
    [
        ("sinusoidal", "The model adds a position encoding of size one to each row."),
        ("learned", "The model adds a position vector to each row, and training learns these vectors."),
        ("rotary", "Positions act inside attention and are not added to the rows."),
        ("none", "The model gets no positions."),
    ],
)
def test_the_introduction_follows_the_positions_of_the_model(positions: str, said: str) -> None:
    runs = [
        Planned(made.spec(recipe, seed, positions=positions), (("recipe", recipe),))
        for recipe in ("xavier", "pretrained")
        for seed in range(2)
    ]
    content = introduction(summarize(made.experiment(Block("made", tuple(runs), "bleu", "test")), {}))
    assert said in content
    assert ("size one" in content) == (positions == "sinusoidal")


def test_models_with_different_positions_are_told_apart() -> None:
    levels = {("sinusoidal", "xavier"): 37.0, ("rotary", "xavier"): 37.0}
    block, found = made.crossed(levels, ("model.positions", "recipe"))
    content = introduction(summarize(made.experiment(block), found))
    assert "With sinusoidal positions, the model adds a position encoding of size one" in content
    assert "The positions differ between the models" in content


def test_missing_and_diverged_runs_are_on_the_page() -> None:
    block = made.block()
    found = made.results(block)
    first = block.runs[5].spec
    found[first.key] = made.result(first, 0.0, diverged=True)
    del found[block.runs[6].spec.key]
    content = page(summarize(made.experiment(block), found))
    assert "(3/5, 1 diverged)" in content
    assert "1 run of 20 is missing." in content


def test_every_figure_table_and_button_has_a_name() -> None:
    read = Reader(page(summary()))
    figures = [attributes for tag, attributes in read.elements if tag == "figure"]
    assert figures
    assert all(attributes["aria-label"] for attributes in figures)
    regions = [attributes for tag, attributes in read.elements if attributes.get("role") == "region"]
    assert all(attributes["aria-label"] and attributes["tabindex"] == "0" for attributes in regions)
    for tag, attributes in read.elements:
        if tag == "svg":
            assert attributes.get("aria-hidden") == "true" or attributes.get("aria-label")
    heads = [attributes for tag, attributes in read.elements if tag == "th"]
    assert all(attributes.get("scope") in ("col", "row", "colgroup") for attributes in heads)


def test_colours_of_text_and_lines_can_be_seen() -> None:
    style = Reader(page(summary())).said(within="style")
    blocks = re.findall(r":root[^{]*\{([^}]*)\}", style)
    themes = [dict(re.findall(r"--([a-z0-9]+):\s*(#[0-9a-f]{3,6})", block)) for block in blocks]
    themes = [theme for theme in themes if "ink" in theme]
    assert len(themes) >= 3
    for theme in themes:
        for ground in (theme["paper"], theme["card"]):
            for name in ("ink", "soft", "accent", "better", "worse"):
                assert contrast(theme[name], ground) >= 4.5, (name, theme[name], ground)
            for name in (f"c{i}" for i in range(8)):
                assert contrast(theme[name], ground) >= 3, (name, theme[name], ground)


def contrast(one: str, other: str) -> float:
    """Return WCAG's contrast of two colours."""

    def luminance(color: str) -> float:
        digits = color[1:] if len(color) == 7 else "".join(letter * 2 for letter in color[1:])
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@given(st.text())
def test_any_text_is_text(said: str) -> None:
    shown = text(said)
    assert not set(shown) & set("<>\"'")
    read = Reader(element("p", said))
    kept = "".join(letter for letter in "".join(t for _, t in read.texts) if letter != "\ufffd")
    plain = "".join(letter for letter in said if letter.isprintable())
    assert "".join(letter for letter in kept if letter.isprintable()) == plain.replace("\ufffd", "")


@given(st.text())
def test_any_text_is_an_attribute(said: str) -> None:
    (found,) = Reader(element("p", "x", title=said)).elements
    assert set(found[1]) == {"title"}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_data_in_a_script_stays_there(content: object) -> None:
    written = element("script", data(content), type="application/json")
    assert written.count("<") == 2
    assert json.loads(Reader(written).texts[0][1]) == content


def test_html_is_not_escaped_twice() -> None:
    assert element("p", element("b", "a & b"), " < c") == "<p><b>a &amp; b</b> &lt; c</p>"
    assert isinstance(element("p"), Html)


def test_a_block_name_that_is_hostile_does_not_reach_an_id() -> None:
    block = replace(made.block('x" onclick="alert(1)'), sources=())
    read = Reader(page(summarize(made.experiment(block), made.results(block))))
    assert all("onclick" not in attributes for _, attributes in read.elements)
