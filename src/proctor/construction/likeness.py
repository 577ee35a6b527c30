"""How alike the texts of questions are, and how close their clips: what a right answer is judged by before it serves as
a wrong option elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.audits.items import tfidf, words
from proctor.core import AudioClip, InputError, Item, VideoClip
from proctor.core.formats import option_letters
from proctor.metrics.text import Encoder, rouge_l, tokens

Floats = NDArray[np.float64]
_Clip = VideoClip | AudioClip
_STEM = 5  # letters: "rotate", "rotating" and "rotation" are one word
_UNLIKE = 0.3  # below it nothing is decided by ROUGE-L
_SHORT = 3  # words of up to three letters carry no content


@dataclass(frozen=True)
class Texts:
    """Of n items, all n × n with the item first and the other one's right answer second: `similar`, to the item's right
    answer: the larger of ROUGE-L and of the F1 of content words by their first five letters (0 to 1); `meaning`, the
    cosine of their embeddings (None without an encoder); `supported`, the share of its content words in what is known
    of the item's clip; `topic` and `stems`, TF-IDF similarity to the right answer and between the questions; `form`,
    how far the two differ in length and in the form of their first words. `keys` are the right answers."""

    keys: tuple[str, ...]
    similar: Floats
    meaning: Floats | None
    supported: Floats
    topic: Floats
    stems: Floats
    form: Floats
    own_cues: dict[str, Floats]
    groups: tuple[str, ...]

    @property
    def cue_names(self) -> list[str]:
        return [*self.own_cues, "like right answers to similar questions"]

    def cues(self, pool: NDArray[np.int64]) -> dict[str, Floats]:
        """What baselines see that blocks don't silence, by name: the score of each right answer as an option of each
        item. Questions of the own pool are never asked what their right answer is."""
        apart = pool[:, None] != pool[None, :]
        return {**self.own_cues, "like right answers to similar questions": (self.stems * apart) @ self.topic}


def read_texts(items: Sequence[Item], *, beside: Sequence[Item] = (), encode: Encoder | None = None) -> Texts:
    """Compares the items' texts; `beside` are all items whose references say what an overlapping clip shows."""
    keys = [right_answer(item) for item in items]
    questions = [item.question for item in items]
    # As often as they are offered: so words weigh here what they weigh to who reads the repaired questions.
    offers = [key for key, item in zip(keys, items, strict=True) for _ in item.options[1:]]
    weights: Any = tfidf([*questions, *keys, *offers], (1, 2))
    asked, said = weights[: len(items)], weights[len(items) : 2 * len(items)]
    topic, stems = (said @ said.T).toarray(), (asked @ asked.T).toarray()
    content = [_content(key) for key in keys]
    similar = _similar(keys, content)
    known = _known(items, beside)
    supported = np.array([[len(own & shown) / max(1, len(own)) for own in content] for shown in known])
    to_stem = (asked @ said.T).toarray()
    cues = {
        "words of the question": _shares(keys, questions),
        "similarity to the question": to_stem,
        "similarity to the group": _to_group(items, topic, to_stem),
        "words of the group's name": _shares(keys, [item.group.replace("_", " ") for item in items]),
    }
    meaning = None
    if encode is not None:
        vectors = np.asarray(encode([*questions, *keys]), dtype=np.float64)
        meaning = vectors[len(items) :] @ vectors[len(items) :].T
        cues["meaning of the question"] = vectors[: len(items)] @ vectors[len(items) :].T
    cues["all of these"] = np.sum([_standard(score) for score in cues.values()], axis=0)
    groups = tuple(item.group for item in items)
    return Texts(tuple(keys), similar, meaning, supported, topic, stems, _form(keys), cues, groups)


def right_answer(item: Item) -> str:
    """The text of a choice's right option. Raises `InputError` for a reference that is none of the letters, and for
    options that are not all different."""
    letters = option_letters(len(item.options))
    answer = None if item.reference is None else item.reference.answer
    if answer not in letters:
        raise InputError(f"item {item.id}, reference", found=repr(answer), expected=f"one of {', '.join(letters)}")
    if len({option.casefold().strip() for option in item.options}) < len(item.options):
        raise InputError(f"item {item.id}, options", found="one option twice", expected="different options")
    return item.options[letters.index(str(answer))]


def gap_s(one: Item, other: Item) -> float | None:
    """The seconds between two items' clips of one video, 0 where they overlap, or show the same image; None where they
    have no medium in common.

    >>> from proctor.core.formats import FreeTextFormat
    >>> first, second = (
    ...     Item(id=name, group="v", question="?", answer=FreeTextFormat(), media=(VideoClip(source="v", start=a, end=b),))
    ...     for name, a, b in (("1", 0, 10), ("2", 12, 20))
    ... )
    >>> gap_s(first, second), gap_s(first, first)
    (2.0, 0.0)
    """
    pairs = [(left, right) for left in one.media for right in other.media if left.source == right.source]
    gaps = [
        _between(left, right) if isinstance(left, _Clip) and isinstance(right, _Clip) else 0.0 for left, right in pairs
    ]
    return min(gaps, default=None)


def _between(one: VideoClip | AudioClip, other: VideoClip | AudioClip) -> float:
    first, second = sorted((one, other), key=lambda clip: clip.start)
    return max(0.0, second.start - first.end) if first.end is not None else 0.0


def _known(items: Sequence[Item], beside: Sequence[Item]) -> list[set[str]]:
    """The content words of what is said of each item's clip: its rationale, and references of others that overlap it.
    The right option itself is no such word: what shares words with it is bounded by itself."""
    by_group: dict[str, list[Item]] = {}
    for one in beside:
        by_group.setdefault(one.group, []).append(one)
    found = []
    for item in items:
        said = [item.reference.rationale or ""] if item.reference else []
        for one in by_group.get(item.group, []):
            if one.id != item.id and one.reference is not None and gap_s(item, one) == 0:
                said += [one.reference.rationale or "", "" if one.options else str(one.reference.answer or "")]
        found.append(_content(" ".join(said)))
    return found


def _to_group(items: Sequence[Item], topic: Floats, to_stem: Floats) -> Floats:
    """Of each right answer the mean similarity to the questions and the right answers of an item's group, without those
    of the item itself, and without its own."""
    groups = np.array([item.group for item in items])
    found = np.zeros(topic.shape)
    for row in range(len(items)):
        mates = np.flatnonzero((groups == groups[row]) & (np.arange(len(items)) != row))
        if len(mates):
            answers = topic[mates].sum(axis=0)
            answers[mates] -= 1.0
            others = np.full(len(items), float(len(mates)))
            others[mates] -= 1
            found[row] = answers / np.maximum(others, 1) + to_stem[mates].mean(axis=0)
    return found


def _standard(scores: Floats) -> Floats:
    return np.asarray((scores - scores.mean()) / max(float(scores.std()), 1e-9))


def _form(keys: Sequence[str]) -> Floats:
    length = np.log([max(1, len(key)) for key in keys])
    first = np.array([_first_form(key) for key in keys])
    return np.asarray(np.abs(length[:, None] - length[None, :]) + 0.5 * (first[:, None] != first[None, :]))


def _first_form(text: str) -> str:
    """What a text begins with: a number, "to …", an article, an -ing or an -ed form, a capital, anything else."""
    first = (words(text) or [""])[0]
    forms = {"number": first[:1].isdigit(), "to": first == "to", "article": first in {"a", "an", "the"}}
    forms |= {"-ing": first.endswith("ing"), "-ed": first.endswith("ed"), "small": text[:1].islower()}
    return next((name for name, fits in forms.items() if fits), "")


def _content(text: str) -> set[str]:
    return {word[:_STEM] for word in words(text) if len(word) > _SHORT}


def _shares(texts: Sequence[str], others: Sequence[str]) -> Floats:
    """The share of each text's words (second) that each other text (first) has."""
    own, there = [set(words(text)) for text in texts], [set(words(other)) for other in others]
    return np.array([[len(some & seen) / max(1, len(some)) for some in own] for seen in there])


def alike(one: str, other: str) -> float:
    """How alike two options are: the larger of ROUGE-L and of the F1 of their content words by the first five letters.

    >>> alike("Rotate the probe to the long axis", "Rotating the probe to the long axis")
    1.0
    >>> alike("Gluteus medius", "Achilles tendon")
    0.0
    """
    return max(_f1(_content(one), _content(other)), rouge_l(one, other))


def _f1(one: set[str], other: set[str]) -> float:
    return 2 * len(one & other) / max(1, len(one) + len(other))


def _similar(keys: Sequence[str], content: Sequence[set[str]]) -> Floats:
    """`alike` for all pairs, but that ROUGE-L is computed only where the words in common allow it to be above 0.3."""
    known: dict[str, int] = {}
    said = [[known.setdefault(word, len(known)) for word in tokens(key)] for key in keys]
    counts = np.zeros((len(keys), max(1, len(known))), dtype=np.int16)
    for row, some in enumerate(said):
        np.add.at(counts[row], some, 1)
    lengths = counts.sum(axis=1)
    similar = np.eye(len(keys))
    for one in range(len(keys)):
        most = 2 * np.minimum(counts[one], counts[:one]).sum(axis=1) / np.maximum(1, lengths[one] + lengths[:one])
        for other in range(one):
            value = _f1(content[one], content[other])
            if most[other] > max(value, _UNLIKE):
                value = max(value, rouge_l(keys[one], keys[other]))
            similar[one, other] = similar[other, one] = value
    return similar
