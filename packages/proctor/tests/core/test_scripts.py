"""Texts in scripts with vowel signs, and in scripts without spaces between words."""

from __future__ import annotations

import pytest

from proctor.audits.items.options import words
from proctor.core.formats import ShortTextFormat, word_f1


@pytest.mark.parametrize(
    ("reference", "prediction", "f1"),
    [
        ("左侧肾脏", "左肾", 2 * 2 / (4 + 2)),  # CMRC 2018, MLQA: each Han character is a token
        ("左侧肾脏", "脾", 0.0),
        ("MRI 检查", "mri 检", 2 * 2 / (3 + 2)),  # and Latin words stay words
        ("左腎です", "左腎", 2 * 2 / (4 + 2)),  # JaQuAD: each character
        ("ไตซ้าย", "ไตขวา", 2 * 3 / (5 + 5)),  # a sign above stays with its letter: ไ ต ซ้ า ย, and ไ ต ข ว า
        ("बायाँ गुर्दा", "बायाँ गुर्दे", 2 * 1 / (2 + 2)),  # Hindi has spaces: another vowel is another word
        ("좌측 신장", "신장", 2 * 1 / (2 + 1)),  # and so has Korean
        ("the left kidney", "kidney", 2 / 3),
    ],
)
def test_short_texts_share_words_or_characters(reference: str, prediction: str, f1: float) -> None:
    assert word_f1(reference, prediction) == pytest.approx(f1)
    distance = ShortTextFormat().distance(reference, prediction)
    assert distance == pytest.approx(1 - f1)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("kid\u00adney", "kidney", True),  # a soft hyphen
        ("می\u200cشود", "میشود", True),  # a non-joiner
        ("गुर्दा", "गुर्दे", False),
    ],
)
def test_joiners_split_no_word_of_a_short_text(one: str, other: str, same: bool) -> None:
    assert ShortTextFormat().match(one, other) is same


def test_options_of_any_script_have_words() -> None:
    assert words("बायाँ गुर्दा, 3.5") == ["बायाँ", "गुर्दा", "3", "5"]
    assert words("左肾 ไต") == ["左", "肾", "ไ", "ต"]
