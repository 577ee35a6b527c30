"""Right answers of other questions as wrong options: how alike texts are, which may serve, and what each costs.

One set of rules for `proctor build repair` and for projects: blocks exchange such options (`repair`), and a model adapts them
(`pipeline.rework`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.audits.items import CHARACTERS, tfidf, words
from proctor.core import AudioClip, InputError, Item, VideoClip
from proctor.core.formats import option_letters
from proctor.metrics.text import Encoder, rouge_l, tokens

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_Clip = VideoClip | AudioClip
_STEM = 5  # letters: "rotate", "rotating" and "rotation" are one word
_UNLIKE = 0.3  # below it nothing is decided by ROUGE-L
_SHORT = 3  # words of up to three letters carry no content
_NEAR_S = 30.0  # what is said this soon before or after a clip may be true of it, too


@dataclass(frozen=True)
class Bounds:
    """What no wrong option may exceed: `similar` in similarity to the right option (with an encoder also
    `similar_meaning`, the cosine of their embeddings), `supported` in the share of its content words in what is known of
    the clip."""

    similar: float = 0.5
    similar_meaning: float = 0.75
    supported: float = 0.5


class OptionCosts:
    """What each right answer costs as a wrong option of each choice, and which are forbidden: arrays (choices × choices)
    whose columns are the questions that lend their right answers. The cost of an option:

        |ln of the ratio of lengths| + 0.5 if the first words are of another form          (form)
        + 1 if both clips are of one group, + 1 more if they are less than 30 s apart      (may be true here as well)
        + 2 × share of its content words in what is known of the clip                      (the same)
        − 2 × min(0.3, TF-IDF similarity to the right option) − TF-IDF similarity of the stems   (same organ, same view)

    Forbidden are options above the bounds, and answers about an overlapping clip. `published` are wrong options (columns)
    with the choice (row) that has offered them so far: there they are known to be wrong. `gaps` are the seconds between two clips
    of one medium, infinite without one.
    """

    def __init__(
        self,
        choices: Sequence[Item],
        texts: Texts,
        bounds: Bounds = Bounds(),
        published: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self.choices, self.texts, self.published = choices, texts, dict(published)
        groups = np.array([item.group for item in choices])
        same = groups[:, None] == groups[None, :]
        gaps = np.full(same.shape, np.inf)
        for one, other in zip(*np.nonzero(np.triu(same, 1)), strict=True):
            gap = gap_s(choices[int(one)], choices[int(other)])
            gaps[one, other] = gaps[other, one] = np.inf if gap is None else gap
        self.gaps = gaps
        near = same * 1.0 + (gaps < _NEAR_S)
        close = np.minimum(0.3, texts.topic)
        self.cost = texts.form + near + 2 * texts.supported - 2 * close - texts.stems
        self.forbidden: Bools = (texts.similar > bounds.similar) | (gaps <= 0)
        self.forbidden |= texts.supported > bounds.supported
        if texts.meaning is not None:
            self.forbidden |= texts.meaning > bounds.similar_meaning
        np.fill_diagonal(self.forbidden, val=False)
        for column, row in published.items():
            self.forbidden[row, column] = False
            self.cost[row, column] -= near[row, column] + 2 * texts.supported[row, column]

    def cheapest(self, row: int, among: Sequence[int]) -> list[int]:
        """The questions `among` whose right answers may serve as wrong options of the one at `row`, cheapest first (ties:
        by text); each text once."""
        offered: dict[str, int] = {}
        for other in sorted(among, key=lambda other: (round(float(self.cost[row, other]), 9), self.texts.keys[other])):
            if other != row and not self.forbidden[row, other]:
                offered.setdefault(self.texts.keys[other], other)
        return list(offered.values())


@dataclass(frozen=True)
class Texts:
    """Comparisons of n items; `keys` are their right answers. Arrays are n × n: rows are items, columns the right answers
    of other items as their options.

    `similar`: similarity to the item's right answer (see `alike`, 0 to 1); `meaning`: cosine of their embeddings (None
    without an encoder); `supported`: share of content words in what is known of the item's clip; `topic`: TF-IDF
    similarity to the right answer; `stems`: TF-IDF similarity of the questions; `form`: difference in length and in the
    form of the first words. `own_cues` are the scores of text-only baselines, by name.
    """

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
        """The scores of right answers as options by each baseline that blocks don't rule out. Similar questions count
        from other pools only."""
        apart = pool[:, None] != pool[None, :]
        return {**self.own_cues, "like right answers to similar questions": (self.stems * apart) @ self.topic}


def read_texts(items: Sequence[Item], *, beside: Sequence[Item] = (), encode: Encoder | None = None) -> Texts:
    """Compares the items' texts; the references of items `beside` say what an overlapping clip shows."""
    keys = [right_answer(item) for item in items]
    questions = [item.question for item in items]
    # Right answers count as often as they are offered, as in the repaired questions.
    offers = [key for key, item in zip(keys, items, strict=True) for _ in item.options[1:]]
    weights: Any = tfidf([*questions, *keys, *offers], (1, 2))
    of_questions, of_answers = weights[: len(items)], weights[len(items) : 2 * len(items)]
    topic, stems = (of_answers @ of_answers.T).toarray(), (of_questions @ of_questions.T).toarray()
    content = [_content(key) for key in keys]
    similar = _similar(keys, content)
    known = _known(items, beside)
    supported = np.array([[len(own & shown) / max(1, len(own)) for own in content] for shown in known])
    to_stem = (of_questions @ of_answers.T).toarray()
    letters: Any = tfidf([*questions, *keys], CHARACTERS)
    cues = {
        "words of the question": _word_shares(keys, questions),
        "similarity to the question": to_stem,
        "characters of the question": (letters[: len(items)] @ letters[len(items) :].T).toarray(),
        "similarity to the group": _to_group(items, topic, to_stem),
        "words of the group's name": _word_shares(keys, [item.group.replace("_", " ") for item in items]),
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
    """The text of a choice's right option. Raises `InputError` for an invalid reference and for equal options."""
    letters = option_letters(len(item.options))
    answer = None if item.reference is None else item.reference.answer
    if answer not in letters:
        raise InputError(f"item {item.id}, reference", found=repr(answer), expected=f"one of {', '.join(letters)}")
    if len({option.casefold().strip() for option in item.options}) < len(item.options):
        raise InputError(f"item {item.id}, options", found="one option twice", expected="different options")
    return item.options[letters.index(str(answer))]


def gap_s(item: Item, other: Item) -> float | None:
    """The seconds between two items' clips of one video, 0 if they overlap or show the same image; None without a
    common medium.

    >>> from proctor.core.formats import FreeTextFormat
    >>> first, second = (
    ...     Item(id=name, group="v", question="?", answer=FreeTextFormat(), media=(VideoClip(source="v", start=a, end=b),))
    ...     for name, a, b in (("1", 0, 10), ("2", 12, 20))
    ... )
    >>> gap_s(first, second), gap_s(first, first)
    (2.0, 0.0)
    """
    pairs = [(left, right) for left in item.media for right in other.media if left.source == right.source]
    gaps = [
        _between(left, right) if isinstance(left, _Clip) and isinstance(right, _Clip) else 0.0 for left, right in pairs
    ]
    return min(gaps, default=None)


def _between(one: VideoClip | AudioClip, other: VideoClip | AudioClip) -> float:
    first, second = sorted((one, other), key=lambda clip: clip.start)
    return max(0.0, second.start - first.end) if first.end is not None else 0.0


def _known(items: Sequence[Item], beside: Sequence[Item]) -> list[set[str]]:
    """The content words known of each item's clip: its rationale, and the references of overlapping items. The item's
    own right option is not included; similarity to it is bounded separately."""
    by_group: dict[str, list[Item]] = {}
    for one in beside:
        by_group.setdefault(one.group, []).append(one)
    found = []
    for item in items:
        texts = [item.reference.rationale or ""] if item.reference else []
        for one in by_group.get(item.group, []):
            if one.id != item.id and one.reference is not None and gap_s(item, one) == 0:
                texts += [one.reference.rationale or "", "" if one.options else str(one.reference.answer or "")]
        found.append(_content(" ".join(texts)))
    return found


def _to_group(items: Sequence[Item], topic: Floats, to_stem: Floats) -> Floats:
    """The mean similarity of each right answer to the questions and right answers of an item's group, without those of
    the item and without itself."""
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
    """The form of a text's first word: a number, "to", an article, an -ing or -ed form, lower case; "" for others."""
    first = (words(text) or [""])[0]
    forms = {"number": first[:1].isdigit(), "to": first == "to", "article": first in {"a", "an", "the"}}
    forms |= {"-ing": first.endswith("ing"), "-ed": first.endswith("ed"), "small": text[:1].islower()}
    return next((name for name, fits in forms.items() if fits), "")


def _content(text: str) -> set[str]:
    return {word[:_STEM] for word in words(text) if len(word) > _SHORT}


def _word_shares(texts: Sequence[str], others: Sequence[str]) -> Floats:
    """The share of each text's words (columns) that the others (rows) contain."""
    own, there = [set(words(text)) for text in texts], [set(words(other)) for other in others]
    return np.array([[len(some & seen) / max(1, len(some)) for some in own] for seen in there])


def alike(one: str, other: str) -> float:
    """The similarity of two options, 0 to 1: the larger of ROUGE-L and of the F1 of content words (by five letters).

    >>> alike("Rotate the probe to the long axis", "Rotating the probe to the long axis")
    1.0
    >>> alike("Gluteus medius", "Achilles tendon")
    0.0
    """
    return max(_f1(_content(one), _content(other)), rouge_l(one, other))


def _f1(one: set[str], other: set[str]) -> float:
    return 2 * len(one & other) / max(1, len(one) + len(other))


def _similar(keys: Sequence[str], content: Sequence[set[str]]) -> Floats:
    """`alike` for all pairs; ROUGE-L is only computed if the common words allow a value above 0.3."""
    known: dict[str, int] = {}
    token_ids = [[known.setdefault(word, len(known)) for word in tokens(key)] for key in keys]
    counts = np.zeros((len(keys), max(1, len(known))), dtype=np.int16)
    for row, some in enumerate(token_ids):
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


def looks_right(items: Sequence[Item], *, folds: int = 5) -> list[list[float]]:
    """How much each option of each item looks like a right one: the logarithm of the odds by a logistic regression on its
    words and form, learned from the items of other groups. It says how far wrong options can be told from right answers
    by their text alone. All 0 with fewer than `folds` groups."""
    from scipy.sparse import csr_array, hstack
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    options = [option for item in items for option in item.options]
    row = np.array([index for index, item in enumerate(items) for _ in item.options])
    names = sorted({item.group for item in items})
    scores = np.zeros(len(options))
    if len(names) >= folds:
        fold = np.array([names.index(items[index].group) % folds for index in row])
        keys = [right_answer(item) for item in items]
        right = np.array([option == keys[index] for index, option in zip(row, options, strict=True)])
        form = np.array([_form_of(option) for option in options])
        form = (form - form.mean(axis=0)) / np.maximum(form.std(axis=0), 1e-9)
        seen: Any = hstack([csr_array(form), tfidf(options, (1, 2), min_df=2)], format="csr")
        with threadpool_limits(limits=1):
            for number in range(folds):
                model = LogisticRegression(C=1.0, max_iter=1000).fit(seen[fold != number], right[fold != number])
                scores[fold == number] = model.decision_function(seen[fold == number])
    counts = np.cumsum([len(item.options) for item in items])[:-1]
    return [[float(score) for score in own.round(3)] for own in np.split(scores, counts)]


def _form_of(text: str) -> list[float]:
    own = words(text)
    marks = sum(not (char.isalnum() or char.isspace()) for char in text)
    letters = max(1, len(text))
    return [
        float(np.log(letters)),
        float(np.log(1 + len(own))),
        marks / letters,
        sum(map(str.isupper, text)) / letters,
        float(text.rstrip().endswith(".")),
        sum(map(str.isdigit, text)) / letters,
    ]
