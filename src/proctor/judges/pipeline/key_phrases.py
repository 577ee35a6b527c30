"""The phrases that stand for a text, by KeyBERT (Grootendorst 2020): those whose embeddings are most like the text's,
and unlike one another. The only module that imports `keybert` (the extra `pipeline`)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import ConfigurationError, pip_install
from proctor.metrics.text import tokens

LONGEST = 400
"""Words (characters where a script puts no spaces between words) of a text that phrases are looked for in."""

KEPT = 8
_DIVERSITY = 0.5  # KeyBERT's own
_WORDS, _CHARACTERS = (1, 2), (2, 3)
_BREAKS = re.compile(r"[^\w\s/%.'-]+|\.\s|\n")
_NO_STOPS = {"fire", "serious", "thick", "thin"}  # scikit-learn's list has them, and they matter here
_STOP_CHARACTERS = frozenset("的了是在和与及或也就都而于对为有这那你您我他她它们不请可以能会")


def phrases_in(text: str) -> list[str]:
    """The phrases that could stand for a text, each once: one or two words, none that begins or ends with a stop word;
    two or three characters in Chinese. Punctuation ends a phrase.

    >>> phrases_in("Keep the wound clean.")
    ['wound', 'clean', 'wound clean']
    >>> phrases_in("湿疹，外用激素。")[:3]
    ['湿疹', '外用', '用激']
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    parts = [tokens(one) for one in _BREAKS.split(text)]
    words = [word for part in parts for word in part]
    spaced = sum(len(word) > 1 for word in words) * 2 >= len(words)
    stops, (low, high), between = (
        (ENGLISH_STOP_WORDS - _NO_STOPS, _WORDS, " ") if spaced else (_STOP_CHARACTERS, _CHARACTERS, "")
    )
    found: dict[str, None] = {}
    left = LONGEST
    for part in parts:
        kept, left = part[:left], left - len(part[:left])
        for size in range(low, high + 1):
            for start in range(len(kept) - size + 1):
                piece = kept[start : start + size]
                if not stops & {piece[0], piece[-1]} and any(one.isalpha() for one in "".join(piece)):
                    found[between.join(piece)] = None
    return list(found)


def key_phrases(texts: Sequence[str], embed: Callable[[Sequence[str]], NDArray[np.float64]]) -> list[tuple[str, ...]]:
    """At most `KEPT` phrases for each text, the most telling first; none for a text without words. `embed` gives a row
    of length 1 for each text. Raises `ConfigurationError` without the extra `pipeline`."""
    told = [text for text in dict.fromkeys(texts) if phrases_in(text)]
    if not told:
        return [()] * len(texts)
    from sklearn.feature_extraction.text import CountVectorizer

    model = _keybert(embed)
    counter = CountVectorizer(analyzer=phrases_in)
    # Twice the first text: of a single one the library gives another form of list.
    found = model.extract_keywords([*told, told[0]], vectorizer=counter, top_n=KEPT, use_mmr=True, diversity=_DIVERSITY)
    by_text = {text: tuple(phrase for phrase, _ in one) for text, one in zip(told, found, strict=False)}
    return [by_text.get(text, ()) for text in texts]


def _keybert(embed: Callable[[Sequence[str]], NDArray[np.float64]]) -> Any:
    try:
        with warnings.catch_warnings():  # importing it changes the filters of the whole process
            from keybert import KeyBERT
            from keybert.backend import BaseEmbedder
    except ImportError as error:
        raise ConfigurationError(
            f"key phrases need the extra 'pipeline' ({pip_install('pipeline')}): {error}"
        ) from error

    class Given(BaseEmbedder):  # type: ignore[misc]  # the library has no types
        """The pipeline's own sentence encoder."""

        def embed(self, documents: Any, verbose: bool = False) -> NDArray[np.float64]:
            del verbose
            return embed([str(one) for one in documents])

    return KeyBERT(model=Given())
