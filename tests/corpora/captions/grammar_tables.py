"""German tables of the checker's own, and the lexicon's words read from its TOML files; none of the generator's code."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import embinit

FOLDER = Path(embinit.__file__).parent / "corpora" / "captions"
CASES = ("nom", "acc", "dat")

#: (case, gender or pl) -> article or ending, written out for m, f, n, pl.
DER = {
    "nom": {"m": "der", "f": "die", "n": "das", "pl": "die"},
    "acc": {"m": "den", "f": "die", "n": "das", "pl": "die"},
    "dat": {"m": "dem", "f": "der", "n": "dem", "pl": "den"},
}
EIN = {
    "nom": {"m": "", "f": "e", "n": "", "pl": "e"},
    "acc": {"m": "en", "f": "e", "n": "", "pl": "e"},
    "dat": {"m": "em", "f": "er", "n": "em", "pl": "en"},
}
AFTER_DER = {
    "nom": {"m": "e", "f": "e", "n": "e", "pl": "en"},
    "acc": {"m": "en", "f": "e", "n": "e", "pl": "en"},
    "dat": {"m": "en", "f": "en", "n": "en", "pl": "en"},
}
AFTER_EIN = {
    "nom": {"m": "er", "f": "e", "n": "es", "pl": "en"},
    "acc": {"m": "en", "f": "e", "n": "es", "pl": "en"},
    "dat": {"m": "en", "f": "en", "n": "en", "pl": "en"},
}
AFTER_NOTHING = {
    "nom": {"m": "er", "f": "e", "n": "es", "pl": "e"},
    "acc": {"m": "en", "f": "e", "n": "es", "pl": "e"},
    "dat": {"m": "em", "f": "er", "n": "em", "pl": "en"},
}
SHORT = {
    "im": ("in", "dem"), "am": ("an", "dem"), "zum": ("zu", "dem"), "zur": ("zu", "der"), "ins": ("in", "das"),
    "ans": ("an", "das"), "beim": ("bei", "dem"), "vom": ("von", "dem"),
}  # fmt: skip
MUST_CONTRACT = {("in", "dem"), ("an", "dem"), ("zu", "dem"), ("zu", "der"), ("in", "das"), ("von", "dem")}
DATIVE = {"mit", "von", "zu", "bei"}
ACCUSATIVE = {"durch", "um"}
TWO_WAY = {"in", "an", "auf", "neben", "vor", "hinter", "unter", "über"}
PREPOSITIONS = DATIVE | ACCUSATIVE | TWO_WAY
NUMBERS = {"zwei", "drei", "vier", "fünf"}
SOME = {"mehrere", "einige", "viele"}
AFTERWORDS = {"entlang", "hinauf", "hinunter"}
STEMS = {"dunkl": "dunkel", "teur": "teuer", "hoh": "hoch", "müd": "müde"}
#: Nouns and adjectives of times, weather and groups, which the lexicon holds as fixed phrases.
OTHER_NOUNS = (
    "m/Morgen m/Nachmittag m/Abend f/Nacht m/Mittag f/Pause n/Wochenende m/Sonntag m/Tag m/Sommertag m/Wintertag m/Regen "
    "m/Sonnenschein m/Nebel m/Sonnenuntergang m/Schneefall f/Sonne f/Gruppe/Gruppen m/Spaß"
)
OTHER_STEMS = "früh sonnig warm heiß kalt bewölkt regnerisch stark"
OTHER_ADVERBS = {"nachts", "mittags", "früh"}


@dataclass(frozen=True)
class Reading:
    case: str
    gender: str  # m, f, n, or pl


@dataclass(frozen=True)
class Frame:
    """What one verb asks for: the cases of its bare objects, its preposition, where it can go."""

    objects: tuple[str, ...]
    preposition: tuple[str, str] | None
    goes: bool
    reflexive: bool


def read(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))


NOUNS: dict[str, set[Reading]] = defaultdict(set)
#: nouns that stand without an article in the singular
MASS: set[str] = set()
BARE: set[str] = set()
FEMALE: set[str] = set()


def _add_noun(form: str) -> None:
    gender, singular, *rest = form.split("/")
    weak = "weak" in rest
    if gender == "p":
        rest = [singular]
    else:
        NOUNS[singular] |= {Reading(case, gender) for case in (("nom",) if weak else CASES)}
    if not rest:
        MASS.add(singular)
        return
    plural = rest[0]
    if weak:
        NOUNS[plural] |= {Reading("acc", gender), Reading("dat", gender)}
    NOUNS[plural] |= {Reading("nom", "pl"), Reading("acc", "pl")}
    NOUNS[plural if plural[-1] in "ns" else plural + "n"].add(Reading("dat", "pl"))


for _kind, _entries in (*read("nouns").items(), *read("places").items()):
    for _data in _entries.values():
        for _form in _data["de"]:
            _add_noun(_form)
            if _kind in ("instrument", "game"):
                BARE.add(_form.split("/")[1])
            if "female" in _data.get("is", "").split():
                FEMALE.add(_form.split("/")[1])
for _form in OTHER_NOUNS.split():
    _add_noun(_form)

#: form -> endings that it can stand for
ADJECTIVES: dict[str, set[str]] = defaultdict(set)
for _data in read("adjectives")["adjectives"].values():
    for _stem in _data["de"]:
        _changed = next((new for new, old in STEMS.items() if old == _stem), _stem)
        for _ending in ("e", "er", "es", "em", "en"):
            ADJECTIVES[_stem if _data.get("fixed") else _changed + _ending].add(_ending)
for _stem in OTHER_STEMS.split():
    for _ending in ("e", "er", "es", "em", "en"):
        ADJECTIVES[_stem + _ending].add(_ending)

ADVERBS = OTHER_ADVERBS | {word for data in read("words")["adverbs"].values() for word in data["de"]}

#: (finite form, separable prefix) -> number and frames
VERBS: dict[tuple[str, str], dict[str, list[Frame]]] = defaultdict(lambda: defaultdict(list))
#: finite form at the clause's end, prefix joined (`einkauft`, `Ski fährt`) -> the pair above
AT_END: dict[str, set[tuple[str, str]]] = defaultdict(set)
ZU: dict[str, list[Frame]] = defaultdict(list)
PARTICIPLES: set[str] = set()
FORMS: set[str] = set()

for _name, _data in read("verbs").items():
    _case = _data.get("case", "acc")
    for _form in _data["de"]:
        _own = _form.startswith("sich ")
        _prefix, _, _forms = _form.removeprefix("sich ").rpartition("|")
        _parts = _forms.split("/")
        _objects: list[str] = ["dat"] if "to" in _data else []
        if "object" in _data and "prep" not in _data:
            _objects.append(_case)
        if _prefix.startswith("ein "):  # `ein Foto machen`: an object that the verb always has
            _objects, _prefix = [*_objects, "acc"], ""
        _frame = Frame(tuple(_objects), (_data["prep"], _case) if "prep" in _data else None, "go" in _data, _own)
        for _number, _finite in zip(("sg", "pl"), _parts, strict=False):
            VERBS[_finite, _prefix.strip()][_number].append(_frame)
            AT_END[_prefix + _finite].add((_finite, _prefix.strip()))
            FORMS.add(_finite)
        ZU[f"{_prefix}zu{'' if _prefix and not _prefix.endswith(' ') else ' '}{_parts[1]}"].append(_frame)
        PARTICIPLES |= set(_parts[2:])
for _forms in read("words")["existence"].values():
    for _number, _finite in zip(("sg", "pl"), _forms.split("/"), strict=True):
        VERBS[_finite, ""][_number].append(Frame((), None, False, False))
        FORMS.add(_finite)
FORMS |= {"wird", "werden", "sieht", "gibt"}
PREFIXES = sorted({prefix for _, prefix in VERBS if prefix}, key=len, reverse=True)
