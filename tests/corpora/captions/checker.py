"""What is wrong with a German caption, read from its surface: agreement, government, and where the verb stands."""

from __future__ import annotations

import re

from .chunks import Chunk, Wrong, chunks_of, places, require
from .grammar_tables import AT_END, CASES, DER, FEMALE, PARTICIPLES, PREPOSITIONS, VERBS, ZU, Frame, Reading

RELATIVE = {**{case: dict(forms) for case, forms in DER.items()}}
RELATIVE["dat"]["pl"] = "denen"
PRONOUNS = {form for forms in RELATIVE.values() for form in forms.values()}


def errors(sentence: str) -> list[str]:
    """Return what is wrong; an empty list where nothing is."""
    try:
        _sentence(sentence)
    except Wrong as wrong:
        return [str(wrong)]
    return []


def _sentence(sentence: str) -> None:
    require(sentence.endswith(".") and sentence[0].isupper(), "no capital or no full stop")
    text = sentence[:-1]
    problems = []
    for first in (text, text[0].lower() + text[1:]):
        try:
            _segments([part.split() for part in first.split(", ")], [[]])
            return
        except Wrong as wrong:
            problems.append(str(wrong))
    raise Wrong("; ".join(problems))


def _segments(segments: list[list[str]], opened: list[list[str]]) -> None:
    """Check what is between commas, one after the other; clauses that are not at their end stay open."""
    if not segments:
        require(len(opened) == 1, f"{' '.join(opened[-1])!r} has no verb at its end")
        _main(chunks_of(opened[0]))
        return
    words, rest = segments[0], segments[1:]
    require(words, "nothing between commas")
    head = words[0]
    pronoun = head in PRONOUNS or (head in PREPOSITIONS - {"um"} and len(words) > 1 and words[1] in PRONOUNS)
    ways = []
    if head in ("während", "weil") or (head == "um" and _clause_opens(words, rest)) or (pronoun and opened[-1]):
        ways.append([*opened, words])
    if head not in ("während", "weil"):
        ways.append([*opened[:-1], opened[-1] + words])
    problems = []
    for way in ways:
        try:
            _segments(rest, _closed(way))
            return
        except Wrong as wrong:
            problems.append(str(wrong))
    raise Wrong(problems[-1])


def _clause_opens(words: list[str], rest: list[list[str]]) -> bool:
    return any(_zu(segment) is not None for segment in [words, *rest])


def _closed(opened: list[list[str]]) -> list[list[str]]:
    """Return the open clauses after the last was checked and put into the one around it, if it has come to its end."""
    if len(opened) == 1:
        return opened
    words, outer = opened[-1], opened[-2]
    if words[0] == "um":
        if _zu(words) is None:
            return opened
        _purpose(words)
    elif words[0] in ("während", "weil"):
        if words[0] == "während" and not _final(words[1:]):
            return opened
        _subordinate(words, chunks_of(outer))
    else:
        if not _final(words[1:]):
            return opened
        inner = len(opened) > 2
        before = chunks_of(outer[inner + (inner and outer[0] in PREPOSITIONS - {"um"}) :])
        phrases = [chunk for chunk in before if chunk.kind in ("np", "pp")]
        require(phrases and before[-1] is phrases[-1], "a relative clause without antecedent")
        _relative(words, phrases[-1])
    return [*opened[:-2], [*outer, "<clause>"]]


# Clauses


def _main(chunks: list[Chunk]) -> None:
    require(chunks, "an empty clause")
    verb = next((i for i, chunk in enumerate(chunks) if chunk.kind == "verb"), None)
    if verb is None:
        kinds = [chunk.kind for chunk in chunks]
        require(kinds[0] == "np" and set(kinds) <= {"np", "pp", "clause", "und"}, f"no verb, and no title: {kinds}")
        require(any(r.case == "nom" for r in chunks[0].readings), "a title is not in the nominative")
        for chunk in chunks[1:]:
            require(chunk.kind != "pp" or places(chunk), f"{chunk.text!r} is no place")
        return
    front, rest = chunks[:verb], chunks[verb + 1 :]
    finite = chunks[verb].text
    if [chunk.kind for chunk in front] in (["man"], ["es"]):
        require(finite == ("sieht" if front[0].kind == "man" else "gibt"), "man sieht, es gibt")
        require(rest and rest[0].kind == "np" and any(r.case == "acc" for r in rest[0].readings), "no accusative seen")
        return
    if front and front[0].kind == "np":
        numbers, used = _subject(front)
        require(used == len(front), f"more than one constituent before the verb: {[c.text for c in front]}")
    else:
        kinds = [chunk.kind for chunk in front]
        require(kinds in (["pp"], ["adverb"], ["clause"], ["da"], ["adverb", "pp"]), f"before the verb: {kinds}")
        for chunk in front:
            require(chunk.kind != "pp" or places(chunk), f"{chunk.text!r} is no place or time")
        rest = [chunk for i, chunk in enumerate(rest) if not (i == 0 and chunk.kind == "sich")] if rest else rest
        sich = len(rest) != len(chunks[verb + 1 :])
        require(rest and rest[0].kind == "np", "no subject after the verb")
        numbers, used = _subject(rest, inverted=True)
        rest = ([Chunk("sich", "sich")] if sich else []) + rest[used:]
    if finite in ("wird", "werden") and rest and rest[-1].kind == "verb" and rest[-1].text in PARTICIPLES:
        rest[-1] = Chunk("participle", rest[-1].text)
    parts: list[tuple[str, list[Chunk]]] = [(finite, [])]
    for i, chunk in enumerate(rest):
        if chunk.kind == "und" and i + 1 < len(rest) and rest[i + 1].kind == "verb":
            continue
        if chunk.kind == "verb":
            require(rest[i - 1].kind == "und", f"a second verb {chunk.text!r}")
            parts.append((chunk.text, []))
        else:
            parts[-1][1].append(chunk)
    for finite, middle in parts:
        _predicate(finite, [c for c in middle if c.kind != "clause"], numbers)


def _subject(chunks: list[Chunk], inverted: bool = False) -> tuple[set[str], int]:
    """Return which numbers the verb can have, and how many chunks the subject takes."""
    numbers = {"pl" if r.gender == "pl" else "sg" for r in chunks[0].readings if r.case == "nom"}
    require(numbers, f"{chunks[0].text!r} is no nominative")
    used = 1
    while used < len(chunks):
        chunk = chunks[used]
        following = chunks[used + 1] if used + 1 < len(chunks) else None
        if chunk.kind == "und" and following is not None and following.kind == "np":
            require(any(r.case == "nom" for r in following.readings), f"{following.text!r} is no nominative")
            numbers, used = {"pl"}, used + 2
        elif (chunk.kind == "pp" and not inverted) or chunk.kind == "clause":
            own = chunk.preposition in ("mit", "in", "von") and chunks[used - 1].preposition in ("", "von")
            require(chunk.kind != "pp" or (own and places(chunk)), f"{chunk.text!r} is no attribute")
            used += 1
        elif chunk.kind == "pp" and chunk.preposition in ("mit", "in", "von") and _joins(chunks[used:]):
            used += 1
        else:
            break
    return numbers, used


def _joins(chunks: list[Chunk]) -> bool:
    """Return whether a preposition phrase after the verb and subject is followed by more of the subject."""
    kinds = [chunk.kind for chunk in chunks[1:3]]
    return kinds == ["und", "np"] or chunks[0].preposition == "von"


def _predicate(finite: str, middle: list[Chunk], numbers: set[str]) -> None:
    if finite in ("wird", "werden"):
        require(("sg" if finite == "wird" else "pl") in numbers, f"{finite} does not agree with its subject")
        require(middle and middle[-1].kind == "participle", "a passive without participle at its end")
        for i, chunk in enumerate(middle):
            joined = i > 1 and middle[i - 1].kind == "und" and any(r.case == "dat" for r in chunk.readings)
            require(chunk.kind not in ("np", "sich") or joined, "an object in a passive")
        require(all(places(chunk) for chunk in middle if chunk.kind == "pp"), "a direction in a passive")
        return
    prefix = middle[-1].text if middle and middle[-1].kind == "prefix" else ""
    require(not any(chunk.kind == "prefix" for chunk in middle[: -1 if prefix else None]), "a prefix inside")
    _verb(finite, prefix, [chunk for chunk in middle if chunk.kind != "prefix"], numbers)


def _verb(finite: str, prefix: str, middle: list[Chunk], numbers: set[str]) -> None:
    known = VERBS.get((finite, prefix))
    if known is None:
        raise Wrong(f"no verb {finite!r} with {prefix!r}")
    frames = [frame for number in numbers for frame in known.get(number, [])]
    require(frames, f"{finite!r} does not agree in number")
    require(
        any(_governs(frame, middle) for frame in frames),
        f"{finite} {prefix}: wrong cases in {[c.text for c in middle]}",
    )


def _governs(frame: Frame, middle: list[Chunk]) -> bool:
    middle = [chunk for chunk in middle if chunk.kind != "clause"]
    objects = [chunk for chunk in middle if chunk.kind == "np"]
    if len(objects) != len(frame.objects) or frame.reflexive != any(chunk.kind == "sich" for chunk in middle):
        return False
    if any(chunk.kind not in ("np", "pp", "adverb", "sich", "path") for chunk in middle):
        return False
    if not all(any(r.case == case for r in it.readings) for it, case in zip(objects, frame.objects, strict=True)):
        return False
    if any(chunk.kind == "path" for chunk in middle) and not frame.goes:
        return False
    phrases = [chunk for chunk in middle if chunk.kind == "pp"]
    if frame.preposition is not None:
        preposition, case = frame.preposition
        own = [c for c in phrases if c.preposition == preposition and any(r.case == case for r in c.readings)]
        if not own:
            return False
        phrases.remove(own[-1])
    directions = sum(not places(chunk) or chunk.preposition == "über" for chunk in phrases)
    return directions <= frame.goes and not any(c.preposition == "über" and _over(c) for c in phrases)


def _over(chunk: Chunk) -> bool:
    return not any(r.case == "acc" for r in chunk.readings)


def _final(words: list[str]) -> list[tuple[str, str, int]]:
    """Return the finite verb at the end, its prefix, and how many words they take."""
    found = []
    for size in (1, 2, 3):
        found += [(finite, prefix, size) for finite, prefix in AT_END.get(" ".join(words[-size:]), ())]
    return found


def _subordinate(words: list[str], main: list[Chunk]) -> None:
    rest = words[1:]
    if words[0] == "weil":
        _reason(rest, main)
        return
    problems = []
    for finite, prefix, size in reversed(_final(rest)):
        try:
            chunks = chunks_of(rest[:-size])
            require(chunks and chunks[0].kind == "np", "no subject in the subordinate clause")
            numbers, used = _subject(chunks, inverted=True)
            _verb(finite, prefix, chunks[used:], numbers)
            return
        except Wrong as wrong:
            problems.append(str(wrong))
    raise Wrong(f"no verb at the end of {' '.join(words)!r}: {problems}")


def _reason(words: list[str], main: list[Chunk]) -> None:
    text = " ".join(words)
    if re.fullmatch(r"es (regnet|schneit|Spaß macht|(heiß|kalt|spät) ist)|die Sonne scheint", text):
        return
    match = re.fullmatch(r"(er|sie|es) (müde|hungrig|durstig|spät dran|glücklich|traurig|gelangweilt) (ist|sind)", text)
    if match is None:
        raise Wrong(f"unknown reason {text!r}")
    phrases = [chunk for chunk in main if chunk.kind == "np" and any(r.case == "nom" for r in chunk.readings)]
    genders = {r.gender for chunk in phrases for r in chunk.readings if r.case == "nom"}
    if any(chunk.noun in FEMALE for chunk in phrases):
        genders.add("f")
    if any(chunk.kind == "und" for chunk in main):
        genders.add("pl")
    wanted = {("er", "ist"): "m", ("sie", "ist"): "f", ("es", "ist"): "n", ("sie", "sind"): "pl"}.get(
        (match[1], match[3])
    )
    require(wanted in genders, f"{match[0]!r} is about nobody in the sentence")


def _zu(words: list[str]) -> tuple[list[Frame], int] | None:
    for size in (4, 3, 2, 1):
        frames = ZU.get(" ".join(words[-size:]))
        if frames:
            return frames, size
    return None


def _purpose(words: list[str]) -> None:
    found = _zu(words)
    assert found is not None
    frames, size = found
    chunks = chunks_of(words[1:-size])
    require(any(_governs(frame, chunks) for frame in frames), f"wrong cases in {' '.join(words)!r}")


def _relative(words: list[str], antecedent: Chunk) -> None:
    kinds = {r.gender for r in antecedent.readings}
    preposition = words[0] if words[0] in PREPOSITIONS else ""
    pronoun, rest = (words[1], words[2:]) if preposition else (words[0], words[1:])
    cases = ("dat",) if preposition else ("nom", "acc")
    readings = {Reading(c, g) for c in CASES for g in ("m", "f", "n", "pl") if RELATIVE[c][g] == pronoun}
    readings = {r for r in readings if r.case in cases and r.gender in kinds}
    require(readings, f"{pronoun!r} does not agree with {antecedent.text!r}")
    problems = []
    for finite, prefix, size in reversed(_final(rest)):
        for reading in sorted(readings, key=str):
            try:
                chunks = chunks_of(rest[:-size])
                if reading.case == "nom":
                    _verb(finite, prefix, chunks, {"pl" if reading.gender == "pl" else "sg"})
                    return
                require(chunks and chunks[0].kind == "np", "no subject in the relative clause")
                numbers, used = _subject(chunks, inverted=True)
                gap = (
                    Chunk("np", pronoun, {reading}) if not preposition else Chunk("pp", pronoun, {reading}, preposition)
                )
                objects = [chunk for chunk in chunks[used:] if chunk.kind == "np"]
                order = [*objects, gap] if not preposition else [gap, *objects]
                _verb(finite, prefix, [*order, *(c for c in chunks[used:] if c.kind != "np")], numbers)
                return
            except Wrong as wrong:
                problems.append(str(wrong))
    raise Wrong(f"relative clause {' '.join(words)!r}: {problems}")
