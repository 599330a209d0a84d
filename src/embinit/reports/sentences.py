"""Put verdicts into words. Only this module does so, and no code reads its sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch

from embinit.experiments.experiment import SAME, Baseline
from embinit.format import compact, fixed, interval, listed, plural, signed
from embinit.reports import metrics
from embinit.reports import verdicts as kinds
from embinit.reports.scores import Choice, Difference, Metric
from embinit.reports.verdicts import Answer, ReportVerdict
from embinit.statistics import MeanInterval

#: The number of starts, lines or settings that a sentence names; of blocks; and of lines of a sweep over scale.
NAMED, _BLOCKS, _CHANGES = 3, 4, 12


def answer(verdicts: Iterable[ReportVerdict]) -> Answer:
    """Return verdicts with the sentences that state them."""
    listed_verdicts = tuple(verdicts)
    return Answer(listed_verdicts, tuple(text for verdict in listed_verdicts for text in sentences(verdict)))


def difference_text(difference: MeanInterval, metric: Metric) -> str:
    """Return `−11.7 BLEU [−12.3, −11.0]`, without an interval if there is none."""
    spread = "" if difference.low is None else f" {interval(difference.low, difference.high, metric.digits, sign=True)}"
    return f"{signed(difference.mean, metric.digits)} {metric.unit}{spread}"


def over_baselines(differences: Sequence[Difference], metric: Metric) -> str:
    """Return `+1.2 BLEU [+0.8, +1.6] over xavier and +0.9 BLEU [+0.4, +1.3] over pretrained_xavier`."""
    return listed([f"{difference_text(difference, metric)} over {difference.baseline}" for difference in differences])


def baselines_text(baselines: Sequence[Baseline]) -> str:
    """Return the baselines in words: `xavier`, `both xavier and pretrained_xavier (also with sinusoidal positions)`."""
    named = [baseline for baseline in baselines if baseline.recipe != SAME]
    recipes = list(dict.fromkeys(baseline.recipe for baseline in named))
    text = f"{'both ' if len(recipes) == 2 else 'each of ' if len(recipes) > 2 else ''}{listed(recipes)}"
    pins = _pins(named)
    if pins:
        text = f"{text} with {pins}" if all(baseline.at for baseline in named) else f"{text} (also with {pins})"
    same = _pins([baseline for baseline in baselines if baseline.recipe == SAME])
    return f"{text} and itself with {same}" if same else text


def _pins(baselines: Sequence[Baseline]) -> str:
    return ", or ".join(
        dict.fromkeys(metrics.setting(axis, value) for baseline in baselines for axis, value in baseline.at)
    )


@singledispatch
def sentences(verdict: object) -> list[str]:
    """Return the sentences that state a verdict; a name at the beginning of a sentence keeps its spelling."""
    raise TypeError(f"there is no sentence for a verdict of type {type(verdict).__name__}")


# ---------------------------------------------------------------- nothing to compare


@sentences.register
def _(verdict: kinds.NotRun) -> list[str]:
    return [f"Not run: {verdict.reason}."]


@sentences.register
def _(verdict: kinds.NothingYet) -> list[str]:
    if verdict.lacking == "blocks":
        return ["There is nothing in this experiment."]
    return ["No run is finished yet." if verdict.lacking == "runs" else "Nothing has been measured yet."]


@sentences.register
def _(verdict: kinds.NothingLearned) -> list[str]:
    metric = verdict.metric
    best = f"{fixed(verdict.best, metric.digits)} {metric.unit}"
    if verdict.by == "bleu":
        return [f"Nothing was learned: the highest mean is {best}. Train longer, or check the data."]
    if verdict.by == "uniform":
        mean = f"{'highest' if metric.higher else 'lowest'} mean is {best}"
        return [
            f"Nothing was learned: the {mean}, and no run has a perplexity below that of a uniform guess "
            f"({verdict.chance:,.0f}). Train longer, change the rate, or check the data."
        ]
    why = {
        "matthews": "the predictions of the best start have no correlation with the labels beyond noise",
        "majority": f"the largest class alone gives {fixed(verdict.chance, metric.digits)}",
    }[verdict.by]
    return [
        f"Nothing was learned: the highest mean is {best}, and {why}. Train longer, change the rate, or check the data."
    ]


@sentences.register
def _(verdict: kinds.RunsNotLearned) -> list[str]:
    runs = [f"{start.runs} of {plural(start.total, 'run')} of {start.start}" for start in verdict.starts[:NAMED]]
    more = len(verdict.starts) - NAMED
    runs += [f"runs of {plural(more, 'more start')}"] if more > 0 else []
    sizes = {start.vocabulary for start in verdict.starts}
    guess = f" ({sizes.pop():,})" if len(sizes) == 1 else ""
    whose = "its" if len(verdict.starts) == 1 and verdict.starts[0].runs == 1 else "their"
    return [f"{listed(runs)} did not learn: {whose} perplexity is above that of a uniform guess{guess}."]


@sentences.register
def _(verdict: kinds.HighestMean) -> list[str]:
    mean = f"{fixed(verdict.mean, verdict.metric.digits)} {verdict.metric.unit}"
    missing = baselines_text(verdict.baselines)
    return [f"Highest mean: {verdict.start}, {mean}. There is no {missing} among the starts to compare with."]


@sentences.register
def _(verdict: kinds.OnlyBaselines) -> list[str]:
    means = [f"{name} ({fixed(mean, verdict.metric.digits)} {verdict.metric.unit})" for name, mean in verdict.means]
    return [f"Only {listed(means)} {'has' if len(means) == 1 else 'have'} been run, so there is nothing to compare."]


@sentences.register
def _(verdict: kinds.NoComparison) -> list[str]:
    name = baselines_text(verdict.baselines)
    if verdict.reason == "one seed":
        return [f"One seed cannot be told from chance: run more seeds to compare with {name}."]
    if verdict.reason == "no shared seed":
        return [f"There is nothing yet to compare with {name}: no start shares a seed with it."]
    return [f"There is nothing yet to compare with: {name} has not been run."]


@sentences.register
def _(verdict: kinds.BlocksNotComparable) -> list[str]:
    return [f"None of {plural(verdict.blocks, 'block')} has anything to compare with."]


# ---------------------------------------------------------------- starts against baselines


@sentences.register
def _(verdict: kinds.UseStart) -> list[str]:
    best = verdict.best
    alone = ", significant only in the t test" if verdict.by_t_test_alone else ""
    gain = over_baselines(best.differences, best.metric)
    first = f"Use {best.start}: {gain}, {plural(verdict.seeds, 'seed')}{alone}."
    if not verdict.equal:
        return [first]
    return [first, f"Within noise, {listed(verdict.equal)} {'is' if len(verdict.equal) == 1 else 'are'} as good."]


@sentences.register
def _(verdict: kinds.NoneBetter) -> list[str]:
    name = baselines_text(verdict.baselines)
    if verdict.all_worse:
        return [f"Stay with {name}: every other start is worse beyond noise.", *_diverged(verdict)]
    first = f"No start is better than {name} beyond noise"
    if verdict.worse:
        worse = [
            f"{start.start} ({difference_text(start.differences[0], start.metric)})" for start in verdict.worse[:NAMED]
        ]
        left = [f"{len(verdict.worse) - NAMED} more"] if len(verdict.worse) > NAMED else []
        first += f", and {listed([*worse, *left])} {'is' if len(verdict.worse) == 1 else 'are'} worse"
    texts = [f"{first}.", *_diverged(verdict)]
    if verdict.nearest is not None:
        gain = over_baselines(verdict.nearest.differences, verdict.nearest.metric)
        texts.append(f"The nearest is {verdict.nearest.start}: {gain}.")
    if verdict.detectable is not None:
        limit = f"{_two_digits(verdict.detectable)} {verdict.metric.unit}"
        seeds = plural(verdict.seeds, "seed")
        texts.append(
            f"For {verdict.limited}, {seeds} cannot show a difference under {limit}."
            if verdict.limited
            else f"With {seeds} a difference under {limit} cannot be seen."
        )
    if verdict.lacking:
        texts.append(f"Without a run yet: {listed(verdict.lacking)}.")
    return texts


def _diverged(verdict: kinds.NoneBetter) -> list[str]:
    if not verdict.diverged:
        return []
    return [f"Better by their finished runs, but with diverged runs that have no score: {listed(verdict.diverged)}."]


def _two_digits(value: float) -> str:
    """Return a number in two digits or whole: 0.62, 1.0, 12, 123, 2.1e+09."""
    return f"{value:.0f}" if 10 <= value < 1e6 else f"{value:#.2g}".removesuffix(".")


@sentences.register
def _(verdict: kinds.SettingDifferences) -> list[str]:
    texts = [f"{start.start} {over_baselines(start.differences, start.metric)}." for start in verdict.starts]
    return [*texts, f"There are {plural(verdict.more, 'more setting')}."] if verdict.more else texts


@sentences.register
def _(verdict: kinds.StartTallies) -> list[str]:
    name, several = baselines_text(verdict.baselines), verdict.unit == "block"
    better = [tally for tally in verdict.tallies if tally.better]
    if several and better:
        counts = [f"{tally.start} in {tally.better} of {plural(tally.total, 'block')}" for tally in better[:NAMED]]
        return [f"Better than {name}: {', '.join(counts)}."]
    if better:
        return [f"{_tally(tally, name, verdict.unit)}." for tally in verdict.tallies[:NAMED]]
    where = f"any {verdict.unit}"
    if several:
        where = "the block that was run" if verdict.blocks == 1 else f"any of {verdict.blocks} blocks"
    texts = [f"No start is better than {name} beyond noise in {where}."]
    worse = (
        []
        if several
        else [f"{tally.start} is worse in {tally.worse} of {tally.total}" for tally in verdict.tallies if tally.worse]
    )
    return [*texts, f"{listed(worse)}."] if worse else texts


def _tally(tally: kinds.StartTally, baseline: str, unit: str) -> str:
    where = plural(tally.total, unit)
    if tally.better and tally.worse:
        return f"{tally.start} is better than {baseline} in {tally.better} and worse in {tally.worse} of {where}"
    count = tally.better or tally.worse
    if not count:
        return f"{tally.start} cannot be told from {baseline} in any of {where}"
    often = f"{count} of {where}"
    if count == tally.total > 1:
        often = f"both {unit}s" if tally.total == 2 else f"all {where}"
    return f"{tally.start} is {'better' if tally.better else 'worse'} than {baseline} in {often}"


# ---------------------------------------------------------------- sweeps


@sentences.register
def _(verdict: kinds.SweepOptima) -> list[str]:
    texts = [_optimum(best) for best in verdict.optima]
    texts += [f"and {plural(verdict.more, 'more line')}"] if verdict.more else []
    noise = (
        "; the noise is one σ, estimated from all places"
        if any(best.low < best.high for best in verdict.optima)
        else ""
    )
    return [f"Best: {', '.join(texts)}{noise}."]


def _optimum(best: kinds.SweepOptimum) -> str:
    equal = f", {compact(best.low)} to {compact(best.high)} as good within noise" if best.low < best.high else ""
    return f"{best.line} at {compact(best.x)} ({fixed(best.mean, best.metric.digits)} {best.metric.unit}{equal})"


@sentences.register
def _(verdict: kinds.SweepDifference) -> list[str]:
    places = listed([compact(x) for x in verdict.places])
    return [f"{verdict.line} is {verdict.direction} than {verdict.baseline} at {places}."]


@sentences.register
def _(verdict: kinds.BestPlaces) -> list[str]:
    places = {best.x for best in verdict.optima}
    count = len(verdict.optima)
    if len(places) == 1:
        return [f"Best at {compact(places.pop())} in {'both sweeps' if count == 2 else f'all {count} sweeps'}."]
    texts = [
        f"{compact(best.x)} in {best.block} ({best.line}, {fixed(best.mean, best.metric.digits)} {best.metric.unit})"
        for best in verdict.optima[:_BLOCKS]
    ]
    texts += [f"and {plural(count - _BLOCKS, 'more sweep')}"] if count > _BLOCKS else []
    return [f"Best at {', '.join(texts)}."]


@sentences.register
def _(verdict: kinds.SizeChanges) -> list[str]:
    changes = [
        f"{difference_text(change.change, change.metric)} ({change.name})" for change in verdict.changes[:_CHANGES]
    ]
    span = f"{compact(verdict.low)} to {compact(verdict.high)}"
    pooled = any(change.change.method == "pooled" for change in verdict.changes)
    note = "; the intervals use one σ, estimated from all lines of a block" if pooled else ""
    return [f"Change for {verdict.recipe} from {span}: {listed(changes)}{note}."]


# ---------------------------------------------------------------- starts that were chosen or named


@sentences.register
def _(verdict: kinds.JudgedChoices) -> list[str]:
    choices = verdict.choices
    how = "named beforehand" if choices[0].named else "chosen on other seeds"
    baselines = "these baselines" if verdict.second else baselines_text(verdict.baselines)
    if len(choices) == 1:
        (choice,) = choices
        gain = over_baselines(choice.differences, choice.metric)
        return [f"{choice.label}, {how} for {choice.block}, {_direction(choice)} {baselines}: {gain}."]
    where: dict[str, list[str]] = {}
    for choice in choices:
        if choice.verdict == "better":
            where.setdefault(choice.label, []).append(choice.block)
    count = sum(map(len, where.values()))
    named = ", ".join(f"{label} in {listed(blocks)}" for label, blocks in where.items())
    better = f": {named}" if named else ""
    first = f"Of {plural(len(choices), 'start')} {how}, {count or 'none'} {'is' if count < 2 else 'are'}"
    return [f"{first} better than {baselines} beyond noise{better}."]


def _direction(choice: Choice) -> str:
    """Return `is better than`, `is worse than`, or that noise explains the difference."""
    return f"is {choice.verdict} than" if choice.verdict else "is not better beyond noise than"


@sentences.register
def _(verdict: kinds.AwaitedChoices) -> list[str]:
    waiting = [f"{choice.label} for {choice.block}" for choice in verdict.choices]
    return [f"Not judged on other seeds yet: {listed(waiting)}."]


@sentences.register
def _(verdict: kinds.NamedStart) -> list[str]:
    first = f"{verdict.choice.label}, named beforehand, {_direction(verdict.choice)} all of its baselines."
    return [first, "What follows is corrected for all runs of this report."]


# ---------------------------------------------------------------- measurements


@sentences.register
def _(verdict: kinds.MatrixAgreement) -> list[str]:
    if not verdict.printed:
        return [f"{plural(verdict.measured, 'matrix', 'matrices')} measured."]
    among = plural(verdict.printed, "matrix", "matrices")
    return [f"In {verdict.agreeing} of {among}, σ agrees with the paper's to 3 % or as printed."]


@sentences.register
def _(verdict: kinds.AnalogiesKept) -> list[str]:
    shares = [f"{name} {fixed(100 * accuracy, 1)} %" for name, accuracy in verdict.accuracies]
    return [f"Analogies that stay right once positions are added: {', '.join(shares)}."]


@sentences.register
def _(verdict: kinds.MatrixAdvice) -> list[str]:
    return [f"{source} ({side}): {advice}." for source, side, advice in verdict.matrices]


@sentences.register
def _(verdict: kinds.AdviceCounts) -> list[str]:
    total = sum(count for _, count in verdict.counts)
    advised = listed([f"{advice!r} for {count}" for advice, count in verdict.counts])
    return [f"Of {plural(total, 'matrix', 'matrices')} it advises {advised}."]


@sentences.register
def _(verdict: kinds.InBlock) -> list[str]:
    first, *others = sentences(verdict.verdict)
    return [f"{verdict.block}: {first}", *others]
