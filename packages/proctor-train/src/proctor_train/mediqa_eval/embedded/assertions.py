"""What a text asserts and what it denies, and how far an answer contradicts its references.

After NegEx (Chapman et al. 2001, Journal of Biomedical Informatics 34:301): a negator denies the words that follow it in
its clause. A part of a text that the text itself calls untrue is denied as a whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from proctor.metrics.text import tokens

_CLAUSE = {
    "en": r"[,.;:!?()\n，。；：！？、（）]+|\b(?:but|unless|except|because|if|until)\b",
    "zh": r"[,.;:!?()\n，。；：！？、（）]+|但是?|而是|除非|如果|因为|以免|以防",
}
_NEGATORS = {
    "en": r"\b(?:no|not|never|without|cannot|neither|nor|unlikely|denies)\b|n[o']t\b",
    "zh": r"没有|并非|并不|禁止|切勿|不是|不要|不能|不需|不必|不宜|不(?![适断仅同良错久管明])|没|无(?![菌创线论])|非(?![常处])"
    r"|勿|(?<![特分区个鉴类性级识])别|未(?!来)",
}
_AVOIDING = {
    "en": r"\b(?:avoid(?:ing)?|stop|instead of|rather than|rules? out|ruled out|absence of|free of)\b",
    "zh": r"避免|排除|停用",
}


class Part(NamedTuple):
    """A sentence of a text, and whether the text calls it untrue."""

    text: str
    denied: bool = False


class AssertedWords(NamedTuple):
    """The counts of words of a text: asserted, denied, and to be avoided or ruled out (which is a denial only of what
    somebody else asserts)."""

    asserted: Counter[str]
    denied: Counter[str]
    avoided: Counter[str]


@cache
def _pattern(table: str, language: str) -> re.Pattern[str]:
    found = {"clause": _CLAUSE[language], "negator": f"({_NEGATORS[language]})|({_AVOIDING[language]})"}
    return re.compile(found[table], re.IGNORECASE)


def claims(parts: Sequence[Part], language: str) -> AssertedWords:
    """The asserted, denied and avoided words of a text; what a denied part asserts is denied, and the reverse.

    >>> claims([Part("It is eczema, not a burn.")], "en").denied["burn"], claims([Part("Use a cream.", True)], "en").denied["cream"]
    (1, 1)
    """
    whole = AssertedWords(Counter(), Counter(), Counter())
    for part in parts:
        own = _in_sentence(part.text.replace("’", "'"), language)
        whole.asserted.update(own.denied + own.avoided if part.denied else own.asserted)
        whole.denied.update(own.asserted if part.denied else own.denied)
        if not part.denied:
            whole.avoided.update(own.avoided)
    return whole


def _in_sentence(sentence: str, language: str) -> AssertedWords:
    found = AssertedWords(Counter(), Counter(), Counter())
    for clause in _pattern("clause", language).split(sentence):
        start, into = 0, found.asserted
        for negator in _pattern("negator", language).finditer(clause):
            between = tokens(clause[start : negator.start()])
            into.update(_words(between, language))
            doubled = into is found.denied and not between
            into = found.asserted if doubled else found.denied if negator[1] else found.avoided
            start = negator.end()
        into.update(_words(tokens(clause[start:]), language))
    return found


def _words(words: Sequence[str], language: str) -> list[str]:
    """The words that carry meaning by themselves: longer words in English, pairs of characters in Chinese."""
    if language == "zh":
        return [first + second for first, second in pairwise(words)]
    return [word for word in words if len(word) > 3]


def contradictions(own: AssertedWords, references: Sequence[AssertedWords]) -> dict[str, float]:
    """How far an answer contradicts the references: the share of the shared words with the other polarity ("conflict"; 0
    without shared words), the same as a share of all words ("conflicting-words"), the share of words that it denies, and
    the share of words that it denies though no reference does, or asserts though most references deny them
    ("contrary").

    >>> contradictions(claims([Part("It is not eczema.")], "en"), [claims([Part("Chronic eczema.")], "en")])["conflict"]
    1.0
    """
    asserted = Counter(word for reference in references for word in set(reference.asserted))
    denied = Counter(word for reference in references for word in set(reference.denied + reference.avoided))
    known = {word: asserted[word] >= denied[word] for word in asserted | denied}
    own_denied = own.denied + own.avoided
    agree = against = 0
    for word, affirmed in known.items():
        same, other = (own.asserted, own_denied) if affirmed else (own_denied, own.asserted)
        agree += same[word]
        against += other[word]
    said = max(1, own.asserted.total() + own_denied.total())
    unknown = sum(count for word, count in own.denied.items() if word not in known)
    return {
        "conflict": against / (agree + against) if agree + against else 0.0,
        "conflicting-words": against / said,
        "denied": own_denied.total() / said,
        "contrary": (against + unknown) / said,
    }
