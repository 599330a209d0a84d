"""A block on the page: its answer, table, charts and examples."""

from __future__ import annotations

from embinit.format import NONE, ended, fixed, interval, probability, signed
from embinit.html import Html, element, joined
from embinit.reports.analysis.lengths import length_tables
from embinit.reports.analysis.size_costs import size_table
from embinit.reports.model import Part, Summary, Table, TableCell
from embinit.reports.scores import Difference, Metric, TableRow
from embinit.reports.writers import tables
from embinit.reports.writers.html.forest import Forest


def part_section(part: Part, place: int, summary: Summary) -> Html:
    """Return one block as a section."""
    name = f"part-{place}"
    if part.missing:
        content = [element("p", ended(f"Not run: {part.missing}"), class_="missing")]
    else:
        results, charts = _results(part, summary), _charts(part, place)
        alone = len(summary.parts) == 1
        answer = [] if alone else [element("p", str(part.answer), class_="part-answer")]
        content = [*answer, *(charts + results if part.sweep else results + charts), *_behind(part, place, alone)]
    return element("section", element("h2", part.name), *content, id=name, class_="part")


def _results(part: Part, summary: Summary) -> list[Html]:
    content = [scores(part, summary) if part.measured is None else plain_table(part.measured)]
    content += [_listed(part.notes, "notes")] if part.notes else []
    content += [_sources(part)] if part.sources else []
    return content


def _listed(texts: tuple[str, ...], kind: str) -> Html:
    return element("ul", *(element("li", text) for text in texts), class_=kind)


def _sources(part: Part) -> Html:
    facts = [joined(element("dt", f"vectors: {name}"), element("dd", about)) for name, about in part.sources]
    return element("dl", *facts, class_="facts sources")


def scores(part: Part, summary: Summary) -> Html:
    """Return the block's table: aligned on the point, the best in bold, differences drawn."""
    metric = part.metric
    differences = [difference for row in part.rows for difference in row.differences]
    names = tables.against_header(part)
    printed = any(row.paper for row in part.rows)
    forest = Forest(differences, metric) if differences else None
    head = [element("th", "start", scope="col"), element("th", metric.label, scope="col", colspan=2)]
    head.append(element("th", "95 % interval", scope="col"))
    if forest is not None:
        head += [element("th", name, scope="col") for name in names[:-1]]
        head += [
            element("th", names[-1], scope="col", colspan=2),
            element("th", forest.axis(), scope="col", class_="drawn", aria_label="the difference, drawn"),
            element("th", "p (Holm)", scope="col"),
        ]
    if printed:
        head += [element("th", "paper", scope="col"), element("th", "ours − paper", scope="col", colspan=2)]
    body: list[Html] = []
    setting = None
    for row in part.rows:
        if row.setting != setting and row.setting:
            body.append(element("tr", element("th", row.setting, colspan=12, scope="colgroup"), class_="setting"))
        setting = row.setting
        body.append(_row(row, metric, _color(row, part, summary), forest, printed, len(names) > 1))
        if forest is not None:
            after = [element("td", colspan=3)] if printed else []
            body += [
                element("tr", element("td", colspan=4), *_against(row, more, metric, forest, True), *after)
                for more in row.differences[1:]
            ]
    table = element(
        "table",
        element("caption", f"{tables.caption(part)}."),
        element("thead", element("tr", *head)),
        element("tbody", *body),
        class_="scores",
    )
    return _scrolling(table, f"Scores of {part.name}")


def _row(row: TableRow, metric: Metric, color: int, forest: Forest | None, printed: bool, named: bool) -> Html:
    stated, theirs = row.statistic, row.paper
    lacks = tables.seeds(row)
    swatch = element("span", class_=f"swatch c{color}", aria_hidden="true")
    name = joined(swatch, row.series, element("small", lacks, class_="lacks") if lacks else None)
    cells = [element("th", name, scope="row")]
    if stated is None:
        cells += [element("td", NONE, class_="number"), element("td"), element("td")]
    else:
        mean = fixed(stated.mean, metric.digits)
        spread = "" if stated.std is None else f"± {fixed(stated.std, metric.digits)}"
        mean_text = element("strong", mean) if row.best else mean
        cells += [
            element("td", mean_text, class_="number"),
            element("td", spread, class_="spread"),
            element("td", interval(stated.low, stated.high, metric.digits), class_="number soft"),
        ]
    if forest is not None:
        cells += _against(row, row.difference, metric, forest, named)
    if printed:
        if theirs is None:
            cells += [element("td", NONE, class_="number soft")] * 3
        else:
            word = "" if theirs.within is None else "within noise" if theirs.within else "beyond noise"
            kind = "" if theirs.within is None else "within" if theirs.within else "beyond"
            cells += [
                element(
                    "td",
                    f"{fixed(theirs.mean, metric.digits)} ± {fixed(theirs.std, metric.digits)}",
                    class_="number soft",
                ),
                element("td", signed(theirs.difference, metric.digits), class_="number"),
                element("td", word, class_=f"spread noise {kind}"),
            ]
    return element("tr", *cells, class_="baseline" if row.baseline else None)


def _against(row: TableRow, difference: Difference | None, metric: Metric, forest: Forest, named: bool) -> list[Html]:
    """Return the cells of a row's difference; with `named`, its baseline comes first."""
    name = [element("td", NONE if difference is None else difference.baseline, class_="soft")] if named else []
    if difference is None:
        word = "baseline" if row.baseline else NONE
        return [
            *name,
            element("td", word, colspan=2, class_="soft centered"),
            element("td", forest.line(None), class_="drawn"),
            element("td", class_="number"),
        ]
    bounds = interval(difference.low, difference.high, metric.digits, sign=True)
    mark = element("sup", difference.mark) if difference.mark else None
    return [
        *name,
        element(
            "td",
            element("span", signed(difference.mean, metric.digits), class_=difference.verdict or None),
            class_="number",
        ),
        element("td", bounds, mark, class_="spread"),
        element("td", forest.line(difference), class_="drawn"),
        element("td", probability(difference.holm_p), class_="number soft"),
    ]


def _color(row: TableRow, part: Part, summary: Summary) -> int:
    """Return the number of a row's colour, as in the script: by its line in a sweep, otherwise by its series."""
    if part.sweep is not None:
        lines = [name for name, line in part.sweep.lines.items() if any(point.label == row.label for point in line)]
        return part.sweep.looks[lines[0]][0] if lines else 0
    return summary.colors[row.series] % 8


def _scrolling(table: Html, label: str) -> Html:
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=label)


def plain_table(content: Table, kind: str = "") -> Html:
    """Return a table of plain cells; marks after numbers have a column of their own, so that numbers stay aligned."""
    behind = [any(row[place].after for row in content.rows) for place in range(len(content.header))]
    rows = [
        element(
            "tr",
            element("th", element("a", row[0].text, href=row[0].link) if row[0].link else row[0].text, scope="row"),
            *(cell for place in range(1, len(row)) for cell in _cells(row[place], behind[place])),
        )
        for row in content.rows
    ]
    head = [
        element("th", name, scope="col", colspan=2 if after else None)
        for name, after in zip(content.header, behind, strict=True)
    ]
    body = element("table", element("thead", element("tr", *head)), element("tbody", *rows), class_=kind or None)
    return _scrolling(body, content.caption)


def _cells(cell: TableCell, behind: bool) -> list[Html]:
    content = element("td", element("strong", cell.text) if cell.strong else cell.text, class_="number")
    return [content, element("td", cell.after, class_="after")] if behind else [content]


def _charts(part: Part, place: int) -> list[Html]:
    figures = []
    if part.sweep is not None and part.sweep.lines:
        figures.append(
            _figure(
                "sweep",
                place,
                f"{part.metric.label} against {part.sweep.name}",
                "Points are means. Bars are 95 % intervals from one σ, estimated from all points.",
            )
        )
    if any(part.curves.values()) and part.sweep is None:
        about = "Mean over seeds, with a band of one σ to each side. Point at the chart, or use the arrow keys."
        figures.append(_figure("curves", place, "Training, epoch by epoch", about))
    if any(shape.counts for shape in part.shapes) and part.sweep is None:
        about = "Each matrix has its own axis. σ and range show how much they differ."
        figures.append(_figure("shapes", place, "The matrices before training", about))
    return figures


def _figure(kind: str, place: int, title: str, about: str) -> Html:
    return element(
        "figure",
        element("h3", title) if title else None,
        element("div", class_="tools"),
        element(
            "div",
            element("noscript", "The charts need JavaScript; their numbers are in the tables."),
            class_="chart",
        ),
        element("figcaption", about),
        class_=kind,
        data_kind=kind,
        data_part=place,
        aria_label=title or "Training, epoch by epoch",
    )


def _behind(part: Part, place: int, alone: bool) -> list[Html]:
    sections = []
    fell = size_table(part)
    if fell is not None:
        sections.append(
            element("section", element("h3", "The cost of size"), plain_table(fell), element("p", fell.caption))
        )
    if part.sweep is not None and any(part.curves.values()):
        about = "Mean over seeds, with a band of one σ to each side."
        sections.append(_details("Training, epoch by epoch", _figure("curves", place, "", about)))
    by_length = [joined(plain_table(captioned), element("p", captioned.caption)) for captioned in length_tables(part)]
    sections += [_details("By length", *by_length)] if by_length else []
    tests, matrices, more = tables.tests(part), tables.shapes(part), tables.others(part)
    epochs = tables.epoch_choices(part)
    if part.examples:
        title = "The same sentences, decoded by each model"
        samples = _examples(part)
        sections.append(element("section", element("h3", title), *samples) if alone else _details(title, *samples))
    if tests is not None:
        sections.append(_details("Tests in full", plain_table(tests)))
    if matrices is not None:
        sections.append(_details("Embedding matrices and coverage", plain_table(matrices), _kinds(part)))
    if more is not None:
        sections.append(_details("Other scores", plain_table(more)))
    if epochs is not None:
        sections.append(
            _details("Both criteria for the epoch", plain_table(epochs), element("p", f"{epochs.caption}."))
        )
    if part.settings:
        facts = [joined(element("dt", name), element("dd", value)) for name, value in part.settings.items()]
        sections.append(
            _details("Settings that all of these runs share", element("dl", *facts, class_="facts settings"))
        )
    return sections


def _details(title: str, *content: Html | None) -> Html:
    return element("details", element("summary", title), *content)


def _kinds(part: Part) -> Html | None:
    lines = [
        f"{shape.label}, {shape.side}: {', '.join(f'{count:,} {kind}' for kind, count in shape.kinds.items())}"
        for shape in part.shapes
        if shape.kinds
    ]
    if not lines:
        return None
    return element("ul", *(element("li", line) for line in lines), class_="notes")


def _examples(part: Part) -> list[Html]:
    setting = part.rows[0].setting
    about = (
        "These sentences are evenly spaced among those on which the models differ, and not picked by hand. Each output is "
        f"from the start’s run with the lowest seed{f' ({setting})' if setting else ''}."
    )
    return [
        element("p", about, class_="soft"),
        *(
            element(
                "article",
                element("h4", f"Sentence {example.number}"),
                element(
                    "dl",
                    *_line("source", example.source, "given"),
                    *_line("reference", example.reference, "given"),
                    *(line for label, output in example.outputs.items() for line in _line(label, output)),
                ),
                class_="example",
            )
            for example in part.examples
        ),
    ]


def _line(name: str, text: str, kind: str | None = None) -> list[Html]:
    if kind == "given" and not text:
        return []
    return [element("dt", name, class_=kind), element("dd", text or NONE, class_=kind)]
