"""EncodedFrame-up rated answers from which something can be learned, and an encoder that needs no weights."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from proctor.judges.dimensions import Case, Dimension, RatedCase, ReferenceAnswer
from proctor.metrics.text import tokens
from proctor.metrics.text.encoders import LongTexts, TextTokens
from proctor_train.mediqa_eval.embedded.answers import Encoders

DIMENSIONS = {
    "en": (Dimension("disagree_flag", (0.0, 1.0), lower_is_better=True), Dimension("overall", (0.0, 0.5, 1.0))),
    "zh": (Dimension("overall", (0.0, 0.5, 1.0)),),
}

_FINDINGS = {
    "en": ("eczema", "psoriasis", "cellulitis", "a burn", "a wart", "shingles", "acne", "a deep cut"),
    "zh": ("湿疹", "银屑病", "蜂窝组织炎", "烫伤", "寻常疣", "带状疱疹", "痤疮", "割伤"),
}
_SENTENCES = {
    "en": ("Please look at case {case}.", "This is {finding}. See a doctor.", "I cannot tell, sorry: {finding}?"),
    "zh": ("请看病例{case}。", "这是{finding}。请就医。", "抱歉，无法判断：{finding}？"),
}


def _vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """A vector for each text: the sum of its words'."""
    found = np.zeros((len(texts), 32), dtype=np.float32)
    for row, text in enumerate(texts):
        total = np.zeros(32, dtype=np.float32)
        for word in tokens(text) or [text]:
            digest = hashlib.sha256(word.encode()).digest()
            total += np.frombuffer(digest, dtype=np.uint8).astype(np.float32) - 127.5
        found[row] = total / max(1e-6, float(np.linalg.norm(total)))
    return found


class _Words:
    """A vector for each word of a text, the same wherever it stands."""

    name = "hashed"
    layer = 1
    long_texts: LongTexts = "windows"
    ends: frozenset[int] = frozenset()

    def __call__(self, texts: Sequence[str]) -> dict[str, TextTokens]:
        found = {}
        for text in texts:
            words = tokens(text)
            ids = np.array([int(hashlib.sha256(one.encode()).hexdigest()[:8], 16) for one in words])
            found[text] = TextTokens(ids.astype(np.int64), _vectors(words), empty=not words)
        return found


hashed = Encoders(_vectors, _Words())
"""Encoders without weights, the same in every process: each word is in a direction of its own."""


def made_up(
    encounters: int = 24, *, languages: Sequence[str] = ("en", "zh"), seed: int = 0, signal: float = 1.0
) -> list[RatedCase]:
    """Three answers to each encounter in each language. A good one says what the references say; ratings
    follow that with the strength `signal` (0: they are drawn)."""
    rng = np.random.default_rng(seed)
    rated = []
    for number in range(encounters):
        dataset = "one" if number % 2 else "two"
        for language in languages:
            findings = _FINDINGS[language]
            ask, good, bad = _SENTENCES[language]
            truth = findings[number % len(findings)]
            for answer in range(3):
                right = bool(rng.random() < 0.5)
                said = truth if right else findings[(number + 1 + answer) % len(findings)]
                text = (good if right else bad).format(finding=said)
                level = float(right) if rng.random() < signal else float(rng.integers(0, 2))
                values = {"disagree_flag": 1 - level, "overall": level or 0.5 * rng.integers(0, 2)}
                case = Case(
                    id=f"{dataset}/{number}/{language}",
                    encounter=f"{dataset}/{number}",
                    dataset=dataset,
                    language=language,
                    query=ask.format(case=number),
                    references=tuple(ReferenceAnswer(text=one) for one in (good.format(finding=truth), f"{truth}.")),
                    candidate=text,
                    dimensions=DIMENSIONS[language],
                )
                rated.append(RatedCase(case, {one.name: values[one.name] for one in case.dimensions}))
    return rated
