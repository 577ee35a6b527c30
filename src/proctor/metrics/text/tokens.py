"""Tokens of texts in any script, for metrics that count them."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

__all__ = ["Units", "tokens"]

Units = Literal["words", "characters"]

# Scripts that are written without spaces between words: Han, kana, Hangul is not among them.
_UNSPACED = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_WORDS = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}_])\w)+(?:[.,](?=\d)\d+)*")


def tokens(text: str, units: Units = "words") -> list[str]:
    """The tokens of a text, in its order: compatibility forms unified (NFKC), case folded, no punctuation.

    "words": runs of letters and digits, and every single character where a script puts no spaces between
    words (Chinese, Japanese). "characters": every letter and digit by itself. A text without either has
    no tokens.

    >>> tokens("Apply 0.05% cream, 外用激素软膏。")
    ['apply', '0.05', 'cream', '外', '用', '激', '素', '软', '膏']
    >>> tokens("MRI 检查", "characters")
    ['m', 'r', 'i', '检', '查']
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    if units == "characters":
        return [one for one in plain if one.isalnum()]
    return _WORDS.findall(plain)
