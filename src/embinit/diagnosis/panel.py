"""The summary of a diagnosis: its facts, its tables and its histogram."""

from __future__ import annotations

from pathlib import Path

from embinit.diagnosis.absorption import Absorption, position_table
from embinit.diagnosis.diagnose import Diagnosis
from embinit.diagnosis.distribution import Distribution
from embinit.diagnosis.verdict import Verdict
from embinit.display import HistogramChart, Panel, PanelTable, histogram, sampled
from embinit.format import NONE, fixed, listed, number, percent, plural, reading_notes
from embinit.seeds import stream

_XAVIER_NUMBERS = 100_000


def verdict_panel(verdict: Verdict) -> Panel:
    """Return the summary of a verdict."""
    findings = [(finding.severity, finding.text) for finding in verdict.findings]
    return Panel(f"Verdict: {verdict.summary}", _advice_facts(verdict), verdict.headline, findings)


def diagnosis_panel(diagnosis: Diagnosis, *, numbers: bool = True) -> Panel:
    """Return the summary of a diagnosis, with or without its tables and its histogram."""
    verdict = diagnosis.verdict
    types, running = diagnosis.coverage
    shares = [f"{percent(types)} of types", *([] if running is None else [f"{percent(running)} of running tokens"])]
    matches = ", ".join(f"{count:,} {kind}" for kind, count in diagnosis.matches.items() if count)
    facts = [
        ("source", f"{diagnosis.source} ({diagnosis.format})"),
        ("vocabulary", f"{plural(diagnosis.rows, 'token')}: {matches}"),
        ("found", listed(shares)),
        *(("reading", note) for note in reading_notes(diagnosis.counts, diagnosis.examples)),
        *diagnosis.missing_tokens.facts(),
        ("model", f"{diagnosis.host.name}: {diagnosis.host.about}"),
        *([] if diagnosis.basis.task is None else [("task", diagnosis.basis.task)]),
        ("diagnosed recipe", f"{diagnosis.recipe} (fill {diagnosis.recipe.fill})"),
        *_advice_facts(verdict),
        ("numbers", f"σ {number(diagnosis.found.std)}, mean {number(diagnosis.found.mean)}"),
        ("shape", shape_text(diagnosis)),
    ]
    notes: list[tuple[str, str]] = [("harm", warning) for warning in diagnosis.warnings]
    notes += [(finding.severity, finding.text) for finding in verdict.findings]
    tables = [distribution_table(diagnosis), *absorption_tables(diagnosis)] if numbers else []
    chart = histogram_of(diagnosis) if numbers else None
    title = f"{Path(diagnosis.source).name} in {diagnosis.host.name}: {verdict.summary}"
    return Panel(title, facts, verdict.headline, notes, tables, chart)


def shape_text(diagnosis: Diagnosis) -> str:
    """Return the geometry of the rows in one line. Findings tell of outlier dimensions, zero rows and duplicates."""
    shape = diagnosis.geometry
    return (
        f"mean cosine {fixed(shape.mean_cosine, 2)}, {shape.effective_dim:.0f} of {diagnosis.dim} dimensions used, "
        f"{percent(shape.top_share)} of the variance in the widest direction"
    )


def _advice_facts(verdict: Verdict) -> list[tuple[str, str]]:
    facts = [("advised recipe", verdict.recipe)]
    if verdict.rate != 1:
        facts.append(("learning rate of the rows", f"{verdict.rate:g} times that of the other weights"))
    if verdict.at_full_rate not in (None, verdict.recipe):
        facts.append(("recipe for one rate", str(verdict.at_full_rate)))
    return facts


def _named_distributions(diagnosis: Diagnosis) -> list[tuple[str, Distribution]]:
    """Return the distributions of the rows, as they are and as the model scales them, of Xavier's rows and of positions."""
    parts: list[tuple[str, Distribution | None, bool]] = [
        ("rows", diagnosis.found, True),
        ("missing rows, filled", diagnosis.missing, True),
        (f"Xavier, {diagnosis.rows:,} x {diagnosis.dim}", diagnosis.xavier, True),
        (f"positions ({diagnosis.host.positions})", diagnosis.positions, False),
    ]
    named = []
    for name, spread, is_multiplied in parts:
        if spread is None:
            continue
        named.append((name, spread))
        if is_multiplied and diagnosis.multiplier != 1:
            named.append(("  × √D", spread.scaled(diagnosis.multiplier)))
    return named


def distribution_table(diagnosis: Diagnosis) -> PanelTable:
    """Return the range, the mean, σ, the kurtosis and the row length of each distribution."""
    rows = []
    for name, spread in _named_distributions(diagnosis):
        values = (spread.min, spread.max, spread.mean, spread.std, spread.kurtosis, spread.norm_mean)
        rows.append((name, *map(number, values)))
    return PanelTable(("", "min", "max", "mean", "σ", "kurtosis", "row norm"), tuple(rows))


def _absorption_rows(columns: list[Absorption]) -> list[tuple[str, ...]]:
    """Return the measurements of rows and positions in one sum: a label, and a text for each column."""

    def share(value: float | None) -> str:
        return NONE if value is None else "0 %" if value < 1e-4 else percent(value)

    return [
        ("scaled σ over the rms of the positions", *(number(column.ratio) for column in columns)),
        ("positions found in the sum (chance 5 %)", *(share(column.position_readout) for column in columns)),
        ("nearest neighbours that stay", *(share(column.neighbours_kept) for column in columns)),
        *(
            (f"position signal lost in {name}", *(share(column.rounding_loss[name]) for column in columns))
            for name in columns[0].rounding_loss
        ),
    ]


def absorption_tables(diagnosis: Diagnosis) -> list[PanelTable]:
    """Return the table of rows and positions in one sum; nothing if the model does not add positions."""
    columns = [column for column in (diagnosis.absorption, diagnosis.after) if column is not None]
    if not columns:
        return []
    headers = ("rows and positions in one sum", "as given", "advised")[: 1 + len(columns)]
    return [PanelTable(headers, tuple(_absorption_rows(columns)))]


def histogram_of(diagnosis: Diagnosis) -> HistogramChart | None:
    """Return the histograms of the numbers that the model adds: scaled rows, Xavier's rows of this size, and positions."""
    factor, bound = diagnosis.multiplier, diagnosis.xavier.max
    samples = {
        f"rows, {diagnosis.recipe.name} (σ {number(diagnosis.found.std * factor)})": sampled(diagnosis.matrix) * factor,
        f"Xavier (σ {number(diagnosis.xavier.std * factor)})": (
            stream(0, "plot").uniform(-bound, bound, _XAVIER_NUMBERS) * factor
        ),
    }
    if diagnosis.host.adds_positions:
        table = position_table(diagnosis.host, diagnosis.dim)
        samples[f"{diagnosis.host.positions} positions (rms {number(diagnosis.host.position_rms)})"] = table.ravel()
    return histogram(samples)
