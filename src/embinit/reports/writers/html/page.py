"""The page of a report: its answer, tables and charts, and the settings and commands behind them."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict
from importlib import resources
from typing import Any

from embinit.format import ended
from embinit.html import Html, data, element, joined, prose
from embinit.reports.legend import explanation, introduction, reproduction
from embinit.reports.model import Part, Summary
from embinit.reports.verdicts import Answer
from embinit.reports.writers import tables
from embinit.reports.writers.html.blocks import part_section, plain_table
from embinit.reports.writers.tables import selection_table

#: Letters up to which an answer is one paragraph.
_LONG = 160


def page(summary: Summary) -> str:
    """Return the report as one HTML document; its policy allows only its own script, by its hash."""
    script = _file("charts.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{summary.title} · embinit"),
        element("style", Html(_file("style.css"))),
    )
    body = element(
        "body",
        element("a", "Skip to the results", href="#results", class_="skip"),
        _header(summary),
        element("main", *_main(summary), id="main"),
        element(
            "footer", element("p", f"Made by embinit from the experiment {summary.name}. This page needs no network.")
        ),
        element("script", data(_data(summary)), type="application/json", id="data"),
        element("script", Html(script)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _file(name: str) -> str:
    return resources.files("embinit.reports.writers.html").joinpath(name).read_text("utf-8")


def _header(summary: Summary) -> Html:
    switch = element("button", "Dark", type="button", id="theme", class_="quiet", aria_pressed="false", hidden=True)
    return element(
        "header",
        element("div", element("span", "embinit", class_="mark"), switch, class_="bar"),
        element("h1", summary.title),
        element("p", summary.question, class_="question"),
        element(
            "section",
            element("h2", "The answer", class_="eyebrow"),
            *_answer(summary.answer),
            element("ul", *(element("li", prose(caveat)) for caveat in summary.caveats)) if summary.caveats else None,
            class_="card",
            aria_label="The answer",
        ),
    )


def _answer(answer: Answer) -> list[Html]:
    """Return the answer: one large paragraph, or a line for each sentence if it is long."""
    if len(str(answer)) <= _LONG:
        return [element("p", str(answer), class_="answer")]
    return [element("p", sentence, class_="answer long") for sentence in answer.sentences]


def _main(summary: Summary) -> list[Html]:
    several = len(summary.parts) > 1
    whole = tables.overview(summary)
    recipes = [joined(element("dt", name), element("dd", prose(about))) for name, about in summary.recipes.items()]
    sections = [
        element(
            "section",
            element("h2", "What is compared"),
            element("p", introduction(summary), class_="lead"),
            element("dl", *recipes, class_="recipes") if recipes else None,
            *(element("p", prose(ended(note))) for note in summary.notes),
        )
    ]
    if several and whole is None:
        sections.append(_contents(summary))
    if whole is not None:
        sections.append(element("section", element("h2", "All blocks at a glance"), plain_table(whole, "overview")))
    chosen = selection_table(summary.choices)
    if chosen is not None:
        about = element("p", f"{chosen.caption}.", class_="soft")
        title = "Chosen, then judged" if any(choice.seeds for choice in summary.choices) else "Named, then judged"
        sections.append(element("section", element("h2", title), about, plain_table(chosen, "choices")))
    sections.append(
        element(
            "div",
            *(part_section(part, place, summary) for place, part in enumerate(summary.parts)),
            id="results",
            tabindex="-1",
        )
    )
    sections.append(
        element("section", element("h2", "How to read this"), _listed(explanation(summary)), class_="prose")
    )
    sections.append(_again(summary))
    return sections


def _contents(summary: Summary) -> Html:
    links = [element("li", element("a", part.name, href=f"#part-{place}")) for place, part in enumerate(summary.parts)]
    return element("nav", element("ul", *links), aria_label="Blocks of this experiment", class_="contents")


def _listed(texts: list[str]) -> Html:
    return element("ul", *(element("li", text) for text in texts))


def _again(summary: Summary) -> Html:
    facts = [joined(element("dt", name), element("dd", value)) for name, value in reproduction(summary)]
    return element(
        "section",
        element("h2", "Run it again"),
        element("pre", element("code", "\n".join(summary.commands)), tabindex="0"),
        element("dl", *facts, class_="facts"),
    )


def _data(summary: Summary) -> dict[str, Any]:
    """Return the data of the charts: curves, sweeps, histograms and the numbers of colours."""
    return {"colors": summary.colors, "parts": [_drawn(part) for part in summary.parts]}


def _drawn(part: Part) -> dict[str, Any]:
    settings = list(dict.fromkeys(row.setting for row in part.rows))
    return {
        "metric": part.metric.label,
        "digits": part.metric.digits,
        "curves": {name: [_rounded(asdict(curve)) for curve in curves] for name, curves in part.curves.items()},
        "settings": settings,
        "setting": {row.label: settings.index(row.setting) for row in part.rows},
        "sweep": None if part.sweep is None else _rounded(asdict(part.sweep)),
        "shapes": [_rounded(asdict(shape)) for shape in part.shapes],
    }


def _rounded(value: Any) -> Any:
    """Return every number in five significant digits, more than a screen shows."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list | tuple) else value
