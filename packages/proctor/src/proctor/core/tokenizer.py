"""Texts in words (tokens), in any script: how ROUGE and other overlaps of texts split them."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Literal

Units = Literal["words", "characters"]

# Scripts that are written without spaces between words: Han, kana, Thai, Lao, Myanmar, Khmer; Hangul is not among them.
_UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
    "\u0e01-\u0e4e\u0e81-\u0eaf\u0eb0-\u0ece\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
)
_UNSEEN = re.compile("[\u00ad\u200c\u200d]")  # soft hyphen and (non-)joiners: they stand within words


@cache
def _pattern(units: Units, inside: str) -> re.Pattern[str]:
    """A word or a character: letters and digits, each with the marks on it (vowel signs, accents)."""
    marks = "".join(chr(code) for code in range(0x300, 0x20000) if unicodedata.category(chr(code))[0] == "M")
    letter, alone = rf"[^\W_{_UNSPACED}]", rf"(?![{marks}])[{_UNSPACED}][{marks}]*"
    if units == "characters":
        return re.compile(f"{alone}|{letter}[{marks}]*")
    letters = rf"{letter}+(?:[{marks}]{letter}*)*"
    decimals = "".join(one for one in inside if one in ".,")
    number = rf"(?:[{decimals}](?=\d)\d+)*" if decimals else ""
    joined = f"(?:'{letters})*" if "'" in inside else ""
    return re.compile(f"{alone}|{letters}{number}{joined}")


def without_joiners(text: str) -> str:
    """The text without soft hyphens, joiners and non-joiners.

    >>> without_joiners("kid\u00adney")
    'kidney'
    """
    return _UNSEEN.sub("", text)


def tokens(text: str, units: Units = "words", *, inside: str = ".,") -> list[str]:
    """The tokens of a text, in its order: compatibility forms unified (NFKC), case folded, no punctuation.

    "words": runs of letters and digits, and every single character where a script puts no spaces between
    words (Chinese, Japanese, Thai, Lao, Burmese, Khmer). "characters": every letter and digit by itself. Vowel signs
    and accents belong to their letter. `inside` are the marks that do not split a word: "." and "," between
    digits, "'" between letters. A text without letters and digits has no tokens.

    >>> tokens("Apply 0.05% cream, 外用激素软膏。")
    ['apply', '0.05', 'cream', '外', '用', '激', '素', '软', '膏']
    >>> tokens("MRI 检查", "characters")
    ['m', 'r', 'i', '检', '查']
    >>> tokens("सीने में दर्द"), tokens("दर्द", "characters")
    (['सीने', 'में', 'दर्द'], ['द', 'र्', 'द'])
    >>> tokens("Don’t cut 0.5"), tokens("Don’t cut 0.5", inside="'")
    (['don', 't', 'cut', '0.5'], ["don't", 'cut', '0', '5'])
    """
    plain = without_joiners(unicodedata.normalize("NFKC", text).casefold())
    return _pattern(units, inside).findall(plain.replace("’", "'"))
