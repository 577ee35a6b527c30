"""Words that clinicians' ratings may hang on: hedging, referral, negation, urgency, drugs, limits, tests."""

from __future__ import annotations

import re
from functools import cache

_WORDS = {
    "en": {
        "hedge": r"\b(?:may|might|could|possibl\w+|likely|probabl\w+|suspect\w*|suggest\w*|consider|appears?"
        r"|seems?|unclear)\b",
        "refer": r"\b(?:doctor|dermatologist|physician|specialist|provider|professional|hospital|clinic"
        r"|evaluation|consult\w*|see a)\b",
        "negation": r"\b(?:no|not|never|without|avoid\w*|unlikely|cannot|don't|isn't|rather than)\b",
        "urgency": r"\b(?:emergency|immediate\w*|urgent\w*|promptly|fever|pus|spreading|infection|redness"
        r"|swelling)\b",
        "drug": r"\b(?:ointment|cream|antibiotic\w*|steroid\w*|topical|oral|antihistamine\w*|antifungal\w*"
        r"|\w+(?:cillin|mycin|azole|sone|olone|tinib|cort|dine))\b",
        "limit": r"\b(?:without (?:more|further|an image|seeing)|more information"
        r"|cannot (?:determine|diagnose|tell)|unable|sorry|as an ai|image|photo|picture)\b",
        "test": r"\b(?:biops\w+|test\w*|culture|x-?ray|mri|exam\w*|imaging|koh)\b",
    },
    "zh": {
        "hedge": r"可能|考虑|也许|疑似|大概|或许|怀疑|似乎|不排除|倾向",
        "refer": r"就医|医院|医生|就诊|面诊|专科|门诊|咨询",
        "negation": r"不|没|无|避免|勿|别|非",
        "urgency": r"立即|尽快|及时|紧急|发热|发烧|脓|红肿|感染|加重",
        "drug": r"膏|素|药|激素|口服|外用|注射|消炎|霜|碘伏|酒精",
        "limit": r"图片|照片|无法|不能确定|更多信息|抱歉|不清楚",
        "test": r"检查|活检|化验|切片|镜检|培养|拍片",
    },
}

LANGUAGES = tuple(_WORDS)
"""Languages that answers can be read in."""

CUES = tuple(_WORDS["en"])
"""The kinds of words, the same in every language."""

_SENTENCE_ENDS = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")


def cue_counts(text: str, language: str) -> dict[str, int]:
    """How often each kind of words occurs.

    >>> cue_counts("Possibly eczema. See a dermatologist.", "en")["refer"]
    2
    """
    return {name: len(pattern.findall(text)) for name, pattern in _patterns(language).items()}


def sentences(text: str) -> list[str]:
    """The sentences of a text that have a letter or digit.

    >>> sentences("Eczema. 外用激素软膏。避免搔抓。")
    ['Eczema.', '外用激素软膏。', '避免搔抓。']
    """
    parts = (part.strip() for part in _SENTENCE_ENDS.split(text))
    return [part for part in parts if any(char.isalnum() for char in part)]


@cache
def _patterns(language: str) -> dict[str, re.Pattern[str]]:
    return {name: re.compile(words, re.IGNORECASE) for name, words in _WORDS[language].items()}
