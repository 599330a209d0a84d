"""`paper` of a block: the table, the task and the embedding of the paper that the block is compared with."""

from __future__ import annotations

import re

from embinit.errors import closest

TABLES = ("table 1", "table 2", "table 3", "table 4", "table 6", "table 7", "table 8", "figure 1")
TASKS = ("multi30k", "iwslt2017", "mnli", "sst2")
EMBEDDINGS = ("glove", "bert", "t5", "mbert", "mt5")
_PARTS = {"table": TABLES, "task": TASKS, "embedding": EMBEDDINGS}


def check_paper(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words unchanged; raise ValueError if the paper has no such table, task or embedding.

    Any spelling is accepted: ("Table 1", "SST-2", "mBERT").
    """
    if words and len(words) != len(_PARTS):
        raise ValueError(f'{list(words)!r}, but three names are expected: ["table 1", "multi30k", "glove"]')
    for word, (part, accepted) in zip(words, _PARTS.items(), strict=False):
        known = {_plain(name) for name in accepted}
        if _plain(word) not in known and f"table{_plain(word)}" not in known:
            raise ValueError(f"the paper has no {part} {word!r}{closest(word.lower(), accepted)}")
    return words


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())
