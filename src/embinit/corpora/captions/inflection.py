"""German inflection: nouns, verbs, adjectives, articles and pronouns."""

from __future__ import annotations

from collections.abc import Mapping

CASES = ("nom", "acc", "dat")
NOM, ACC, DAT = range(3)
GENDERS = "mfnp"

#: Endings by case; by gender m, f, n, and the plural.
STRONG = (("er", "e", "es", "e"), ("en", "e", "es", "e"), ("em", "er", "em", "en"))
WEAK = (("e", "e", "e", "en"), ("en", "e", "e", "en"), ("en", "en", "en", "en"))
MIXED = (("er", "e", "es", "en"), ("en", "e", "es", "en"), ("en", "en", "en", "en"))
DEFINITE = (("der", "die", "das", "die"), ("den", "die", "das", "die"), ("dem", "der", "dem", "den"))
RELATIVE = (DEFINITE[0], DEFINITE[1], ("dem", "der", "dem", "denen"))
#: ein, kein, mein ...: no ending in the nominative of m and n, and in the accusative of n
_EIN = (("", "e", "", "e"), ("en", "e", "", "e"), ("em", "er", "em", "en"))

CONTRACTIONS = {
    "in dem": "im", "an dem": "am", "zu dem": "zum", "zu der": "zur", "in das": "ins", "an das": "ans",
    "bei dem": "beim", "von dem": "vom",
}  # fmt: skip
#: Stems that change before an ending.
_STEMS = {"dunkel": "dunkl", "teuer": "teur", "hoch": "hoh", "müde": "müd"}


def like_ein(stem: str, case: int, gender: str) -> str:
    """Return ein, kein, sein or ihr with its ending."""
    return stem + _EIN[case][GENDERS.index(gender)]


def noun(form: str) -> tuple[str, tuple[str, str, str], tuple[str, str, str]]:
    """Return gender, singular and plural by case of an entry; the plural of a mass noun is its singular.

    >>> noun("m/Junge/Jungen/weak")
    ('m', ('Junge', 'Jungen', 'Jungen'), ('Jungen', 'Jungen', 'Jungen'))
    """
    gender, singular, *rest = form.split("/")
    plural = rest[0] if rest else singular
    oblique = plural if "weak" in rest else singular
    dative = plural if plural.endswith(("n", "s")) else plural + "n"
    return gender, (singular, oblique, oblique), (plural, plural, dative)


def verb(form: str) -> tuple[str, str, str, str, str, str, bool]:
    """Return singular, plural, prefix, joined prefix, infinitive with "zu", participle, and whether it is reflexive.

    >>> verb("ein|kauft/kaufen/eingekauft")[4]
    'einzukaufen'
    """
    reflexive = form.startswith("sich ")
    prefix, _, forms = form.removeprefix("sich ").rpartition("|")
    singular, plural, participle = (*forms.split("/"), "")[:3]
    apart = prefix.endswith(" ") or not prefix
    zu = f"{prefix}zu {plural}" if apart else f"{prefix}zu{plural}"
    return singular, plural, prefix.strip(), prefix, zu, participle, reflexive


def adjective(stem: str, fixed: bool) -> Mapping[str, str]:
    """Return the form of an adjective by its ending."""
    changed = _STEMS.get(stem, stem)
    return {ending: stem if fixed else changed + ending for ending in ("e", "er", "es", "em", "en")}
