"""What a text asserts and what it denies, after NegEx (Chapman et al. 2001, Journal of Biomedical Informatics 34:301):
a negator denies the words that follow it in its clause; a sentence that calls what was said untrue denies all of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from proctor.metrics.text import tokens

_SCOPE = {"en": 6, "zh": 8}
_CLAUSE = re.compile(r"[,.;:!?()\n，。；：！？、（）]+")
_HEADS = re.compile(r"[:：]|\b(?:that|to say)\b")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")

_NEGATORS = {
    "en": r"\b(?:no|not|never|without|avoid(?:ing)?|cannot|neither|nor|unlikely|denies|stop|instead of|rather than"
    r"|rules? out|ruled out|absence of|free of)\b|n[o']t\b",
    "zh": r"没有|并非|避免|禁止|排除|切勿|停用|不是|不要|不能|不需|不必|不宜|不|没|无|非|勿|别|未",
}
_UNTRUE = {
    "en": r"\b(?:(?:not|never|isn't|aren't|wasn't|hardly|no longer) (?:\w+ ){0,2}?|none of (?:\w+ ){1,4}?)"
    r"(?:true|correct|right|accurate|valid|the case|so|holds?)\b"
    r"|\b(?:untrue|false|incorrect|inaccurate|wrong|mistaken|nonsense|invalid|the opposite|disregard|no truth"
    r"|(?:do not|don't|never) believe|(?:do not|don't) hold)\b",
    "zh": r"(?:不|并非|没有|无)(?:是|属)?(?:真的|真实|正确|准确|对|属实|实|成立|可信|事实)|错误|错的|有误|虚假|相反|谎|不属实",
}
_SAID = {
    "en": r"\b(?:it|this|that|these|those|following|above|statements?|answers?|claims?|information|everything|all|none"
    r"|nothing|what|anyone|say|says|said|believe)\b",
    "zh": r"以下|以上|如下|下面|上面|上述|前面|这|该|说法|内容|回答|所说|所有|都|全|有人",
}


class AssertedWords(NamedTuple):
    """How often each word of a text is asserted, and how often denied."""

    asserted: Counter[str]
    denied: Counter[str]


@cache
def _pattern(table: str, language: str) -> re.Pattern[str]:
    return re.compile({"negators": _NEGATORS, "untrue": _UNTRUE, "said": _SAID}[table][language], re.IGNORECASE)


def untrue(sentence: str, language: str) -> bool:
    """Whether a sentence calls what is said before or after it untrue.

    >>> untrue("It is not true that:", "en"), untrue("It is not eczema.", "en"), untrue("以上说法都不正确。", "zh")
    (True, False, True)
    """
    found = _pattern("untrue", language).search(sentence)
    return found is not None and _pattern("said", language).search(sentence) is not None


def claims(text: str, language: str) -> AssertedWords:
    """The words of a text by whether they are asserted. What a sentence calls untrue turns round: all that follows,
    where it stands first, else all that comes before.

    >>> claims("It is eczema, not a burn.", "en").denied["burn"], claims("This is false: use a cream.", "en").denied["cream"]
    (1, 1)
    """
    whole = AssertedWords(Counter(), Counter())
    turned = False  # by what stood before
    for number, sentence in enumerate(one for one in _SENTENCE.split(text.replace("’", "'")) if one.strip()):
        *heads, last = _HEADS.split(sentence)
        for place, part in enumerate((*heads, last)):
            own = _in_sentence(part, language)
            if untrue(part, language):
                own = AssertedWords(Counter(), Counter())
                if place < len(heads) or number == 0:
                    turned = not turned
                else:
                    whole = AssertedWords(whole.denied, whole.asserted)
            asserted, denied = (own.denied, own.asserted) if turned else own
            whole.asserted.update(asserted)
            whole.denied.update(denied)
    return whole


def _in_sentence(sentence: str, language: str) -> AssertedWords:
    asserted: Counter[str] = Counter()
    denied: Counter[str] = Counter()
    for clause in _CLAUSE.split(sentence):
        parts = _pattern("negators", language).split(clause)
        asserted.update(_words(tokens(parts[0]), language))
        for place, part in enumerate(parts[1:]):
            words, doubled = tokens(part), place > 0 and not tokens(parts[place])
            scope = _SCOPE[language]
            (asserted if doubled else denied).update(_words(words[:scope], language))
            asserted.update(_words(words[scope:], language))
    return AssertedWords(asserted, denied)


def _words(words: Sequence[str], language: str) -> list[str]:
    """Those that carry meaning by themselves: of English words the longer ones, of Chinese each two characters."""
    if language == "zh":
        return [first + second for first, second in pairwise(words)]
    return [one for one in words if len(one) > 3]


def contradictions(candidate: str, references: Sequence[str], language: str) -> dict[str, float]:
    """How far an answer asserts what the references assert: of its words that they have too, the share with the other
    polarity ("conflict"; 0 where they share none), the same as seen from their words, and the share of its words that it
    denies.

    >>> contradictions("It is not eczema.", ["Chronic eczema."], "en")["conflict"]
    1.0
    """
    own = claims(candidate, language)
    their = AssertedWords(Counter(), Counter())
    for one in references:
        found = claims(one, language)
        their.asserted.update(set(found.asserted))
        their.denied.update(set(found.denied))
    known = {word: their.asserted[word] >= their.denied[word] for word in their.asserted | their.denied}
    agree = against = 0
    for word, affirmed in known.items():
        same, other = (own.asserted, own.denied) if affirmed else (own.denied, own.asserted)
        agree += same[word]
        against += other[word]
    said = own.asserted.total() + own.denied.total()
    return {
        "conflict": against / (agree + against) if agree + against else 0.0,
        "conflicting-words": against / max(1, said),
        "denied": own.denied.total() / max(1, said),
    }
