"""Picture captions in German and English from a grammar and a lexicon: no network, no licence question, no end."""

from embinit.corpora.captions.generation import LABELS, labelled, pairs, stream

__all__ = ["LABELS", "labelled", "pairs", "stream"]
