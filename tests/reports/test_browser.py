"""The page in a browser: curves draw, toggles work, the console is clean, hostile text does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from embinit.reports.summarize import summarize
from embinit.reports.verdicts import Answer
from embinit.reports.writers.html import page
from tests.reports import browser, made
from tests.reports.test_writers import hostile

pytestmark = pytest.mark.long

LINES = "[...document.querySelectorAll('figure.curves .curve')].filter((one) => !one.closest('button'))"


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    path = browser.found()
    if path is None:
        pytest.skip(f"there is no Chromium here ({', '.join(browser.NAMES)})")
    with browser.Browser(path) as opened:
        yield opened


@pytest.fixture(autouse=True)
def quiet(chromium: browser.Browser) -> Iterator[None]:
    """Every test leaves the console clean: no error, no warning, no dialog, no request."""
    chromium.said.clear()
    yield
    chromium.value("1")
    assert chromium.said == []


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    block, other = made.block(), made.sweep_of("ratio", {"0.1": 36, "9": 29, "0.4": 38})
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(summarize(made.experiment(block, other[0]), made.results(block) | other[1])), "utf-8")
    return path


def test_curves_draw_with_bands_and_names(chromium: browser.Browser, report: Path) -> None:
    chromium.open(report)
    assert chromium.value(f"{LINES}.map((one) => one.dataset.name)")[:4] == list(made.RECIPES)
    lengths = chromium.value(f"{LINES}.slice(0, 4).map((one) => one.getTotalLength())")
    assert min(lengths) > 300
    assert chromium.value("document.querySelectorAll('figure.curves .band').length") >= 4
    box = chromium.value(
        "(({width, height}) => [width, height])(document.querySelector('.curves svg').getBoundingClientRect())"
    )
    assert box[0] > 600
    assert box[1] >= 240


def test_one_epoch_is_a_point_with_a_tick(chromium: browser.Browser, tmp_path: Path) -> None:
    block = made.block(seeds=range(3))
    found = {key: replace(one, history=one.history[:1]) for key, one in made.results(block).items()}
    path = tmp_path / "report.html"
    path.write_text(page(summarize(made.experiment(block), found)), "utf-8")
    chromium.open(path)
    assert chromium.value("document.querySelectorAll('figure.curves .chart circle.point').length") == len(made.RECIPES)
    assert "1" in chromium.value(
        "[...document.querySelectorAll('figure.curves .chart text')].map((one) => one.textContent)"
    )


def test_a_toggle_hides_a_line_and_shows_it_again(chromium: browser.Browser, report: Path) -> None:
    chromium.open(report)
    named = "document.querySelector('figure.curves .legend button:nth-child(2)')"
    seen = f"{LINES}.slice(0, 4).map((one) => one.dataset.name)"
    assert chromium.value(f"{named}.textContent") == "pretrained"
    chromium.value(f"{named}.click()")
    assert chromium.value(f"{named}.getAttribute('aria-pressed')") == "false"
    assert "pretrained" not in chromium.value(
        "[...document.querySelectorAll('#part-0 .chart .curve')].map((one) => one.dataset.name)"
    )
    chromium.value(f"{named}.click()")
    assert chromium.value(seen) == list(made.RECIPES)


def test_another_history_is_drawn_on_demand(chromium: browser.Browser, report: Path) -> None:
    chromium.open(report)
    before = chromium.value(f"{LINES}[0].getAttribute('d')")
    chromium.click("figure.curves .choice button:nth-child(2)")
    assert chromium.value(f"{LINES}[0].getAttribute('d')") != before
    assert "validation loss" in chromium.value("document.querySelector('.curves svg').getAttribute('aria-label')")


def test_pointing_and_arrow_keys_read_the_values(chromium: browser.Browser, report: Path) -> None:
    chromium.open(report)
    chromium.value("document.querySelector('figure.curves').scrollIntoView({block: 'center', behavior: 'instant'})")
    box = chromium.value(
        "(({x, y, width, height}) => [x, y, width, height])(document.querySelector('.curves svg').getBoundingClientRect())"
    )
    chromium.point(box[0] + box[2] * 0.4, box[1] + box[3] / 2)
    tip = "document.querySelector('figure.curves .tip')"
    assert chromium.value(f"{tip}.hidden") is False
    assert chromium.value(f"{tip}.textContent").startswith("epoch ")
    assert chromium.value(f"{tip}.querySelectorAll('div').length") == 4
    chromium.point(5, 5)
    assert chromium.value(f"{tip}.hidden") is True
    chromium.value("document.querySelector('figure.curves svg').focus()")
    chromium.press("Home")
    chromium.press("ArrowRight")
    said = chromium.value("document.querySelector('figure.curves [aria-live]').textContent")
    assert said.startswith("epoch 2: ")
    assert "pretrained_xavier" in said
    chromium.press("Escape")
    assert chromium.value(f"{tip}.hidden") is True


def test_sweeps_and_histograms_draw(chromium: browser.Browser, report: Path) -> None:
    chromium.open(report)
    assert chromium.value("document.querySelectorAll('figure.sweep .point').length") == 3
    assert chromium.value("document.querySelectorAll('figure.shapes .bars').length") == 8


def test_the_page_fits_a_telephone_and_both_themes(chromium: browser.Browser, report: Path) -> None:
    grounds = set()
    for dark in (False, True):
        chromium.open(report, width=390, height=800, dark=dark)
        assert chromium.value("document.documentElement.scrollWidth") <= 390
        grounds.add(chromium.value("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2
    chromium.click("#theme")
    assert chromium.value("document.documentElement.dataset.theme") == "light"
    assert chromium.value("getComputedStyle(document.body).backgroundColor") in grounds


def test_the_page_prints(chromium: browser.Browser, report: Path, tmp_path: Path) -> None:
    chromium.open(report)
    chromium.paper(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_hostile_text_does_nothing(chromium: browser.Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    summary = hostile()
    attack = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>"
    answer = Answer((), (attack,))
    part = replace(
        summary.parts[0], name=attack, answer=answer, curves={attack: next(iter(summary.parts[0].curves.values()))}
    )
    path.write_text(page(replace(summary, answer=answer, parts=(part,))), "utf-8")
    chromium.open(path)
    assert chromium.value("window.broken === undefined")
    assert chromium.value("document.querySelectorAll('script').length") == 2
    assert chromium.value("document.querySelectorAll('img').length") == 0
    assert chromium.value("document.querySelector('.answer').textContent").startswith("</script><script>")
    assert len(chromium.value(f"{LINES}.map((one) => one.dataset.name)")) == 4
    chromium.value("document.querySelector('figure.curves svg').focus()")
    chromium.press("End")
    assert "<script>" in chromium.value("document.querySelector('figure.curves .tip').textContent")
    assert chromium.value("window.broken === undefined")
