"""Leakage by the options of choice items: measured features, and tests of right options against wrong ones."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, Item, generator, tokens
from proctor.core.formats import option_letters
from proctor.metrics.text import Encoder
from proctor.stats import Estimate, Resampling, holm_known, mean_interval

_HEDGES = frozenset(
    re.findall(
        "[a-z]+",
        """about appears approximately can could generally likely may maybe might mostly often partly perhaps
        possible possibly potentially presumably probable probably relatively roughly seems should sometimes
        somewhat suggest suggesting suggestive suggests tends typically usually""",
    )
)
_ABSOLUTES = frozenset(
    re.findall(
        "[a-z]+",
        """all always any cannot certainly completely definitely each entirely every exclusively fully must
        never no none nothing only solely totally without""",
    )
)
_NEGATIONS = frozenset(re.findall("[a-z]+", "avoid except instead neither no nor not rather than unlike without"))


@dataclass(frozen=True)
class Feature:
    """One number about an option, and the names of two rules: take the option with the `most` of it, or the `least`."""

    name: str
    label: str
    most: str
    least: str


FEATURES = (
    Feature("length", "characters", "longest-option", "shortest-option"),
    Feature("word-length", "characters per word", "longest-words", "shortest-words"),
    Feature("question-words", "share of its words that the question uses", "most-question-words", "least-question-words"),
    Feature("question-similarity", "TF-IDF similarity to the question", "nearest-to-question", "farthest-from-question"),
    Feature("question-characters", "TF-IDF similarity to the question by runs of 3 to 5 characters", "nearest-in-characters", "farthest-in-characters"),
    Feature("typicality", "mean TF-IDF similarity to the other options", "most-typical", "odd-one-out"),
    Feature("own-words", "share of its words in no other option", "most-own-words", "least-own-words"),
    Feature("length-outlier", "distance from the item's mean length in standard deviations", "odd-length", "usual-length"),
    Feature("hedges", "hedging words", "most-hedged", "least-hedged"),
    Feature("absolutes", "absolute words", "most-absolute", "least-absolute"),
    Feature("negations", "negating or contrasting words", "most-negated", "least-negated"),
    Feature("numbers", "numbers", "most-numbers", "fewest-numbers"),
    Feature("punctuation", "commas, brackets and other marks", "most-punctuated", "least-punctuated"),
    Feature("capitals", "share of capital letters", "most-capitals", "fewest-capitals"),
    Feature("repeats", "other items of the group that offer it too", "most-repeated", "least-repeated"),
    Feature("in-questions", "other questions of the group that contain it", "most-in-questions", "least-in-questions"),
    Feature("offers", "other items of the benchmark that offer it too", "most-offered", "least-offered"),
    Feature("topic", "TF-IDF similarity to the group's other questions and their options", "nearest-to-group", "farthest-from-group"),
    Feature("group-name", "share of its words in the group's name", "most-like-group-name", "least-like-group-name"),
)  # fmt: skip
"""Word lists are English: in other languages these features are 0 for every option."""

EMBEDDED = (
    Feature("meaning", "embedding similarity to the question", "nearest-in-meaning", "farthest-in-meaning"),
    Feature("meaning-topic", "embedding similarity to the group's other questions and their options", "nearest-to-group-in-meaning", "farthest-from-group-in-meaning"),
)  # fmt: skip
"""Features that need an encoder."""


def words(text: str) -> list[str]:
    """The words of a text, case folded."""
    return list(_words(text))


@lru_cache(maxsize=100_000)
def _words(text: str) -> list[str]:
    return tokens(text, inside="")


class OptionTable:
    """The choice items as arrays, one row per item and one column per option (padded to the largest number of options).

    Nothing in it depends on the key. `present` marks the real options; `lots` holds a random number for each option,
    drawn by item id, which breaks ties independently of the order of items. With `encode` the features `EMBEDDED` are
    measured, too.
    """

    def __init__(self, items: Sequence[Item], seed: int, encode: Encoder | None = None) -> None:
        self.items = items
        self.features = FEATURES if encode is None else (*FEATURES, *EMBEDDED)
        self._encode = encode
        self.counts = np.array([len(item.options) for item in items])
        self.width = int(self.counts.max())
        self.present: NDArray[np.bool_] = np.arange(self.width) < self.counts[:, None]
        self.lots = np.full(self.present.shape, -1.0)
        for row, item in enumerate(items):
            self.lots[row, : self.counts[row]] = generator(seed, "audit", "lots", item.id).random(self.counts[row])

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Items × options × `features`, 0 without an option; rounded, so that equal values compare equal."""
        columns = {**self._by_words(), **self._by_length(), **self._by_similarity(), **self._by_group()}
        columns |= {} if self._encode is None else self._by_meaning(self._encode)
        return np.stack([columns[feature.name] for feature in self.features], axis=-1).round(
            9 if self._encode is None else 6
        )

    @cached_property
    def phrases(self) -> list[list[str]]:
        """The words of each option, joined by spaces."""
        return [[" ".join(words(option)) for option in item.options] for item in self.items]

    @cached_property
    def relative(self) -> NDArray[np.float64]:
        """Each feature twice: centred over the item's options, and as a rank among them (0 to 1, ties share the middle);
        then the position of the option, 0 to 1."""
        values, present = self.values, self.present[:, :, None]
        means = values.sum(axis=1, keepdims=True) / self.counts[:, None, None]
        others = np.maximum(self.counts - 1, 1)[:, None, None]
        below = ((values[:, None] < values[:, :, None]) & present[:, None]).sum(axis=2)
        equal = ((values[:, None] == values[:, :, None]) & present[:, None]).sum(axis=2) - 1
        ranks = (below + equal / 2) / others
        slot = np.broadcast_to(np.arange(self.width)[:, None] / others, (*self.present.shape, 1))
        return np.concatenate([values - means, ranks, slot], axis=-1) * present

    @cached_property
    def words(self) -> Any:
        """TF-IDF of the options' words, centred over the item's options: sparse, one row per option, in the order of
        `present.nonzero()`."""
        from scipy.sparse import csr_array

        single = tfidf([option for item in self.items for option in item.options], (1, 1), min_df=2)
        rows = self.present.nonzero()[0]
        member = csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))))
        means = (member @ single).multiply(1 / self.counts[:, None]).tocsr()
        return (single - means[rows]).tocsr()

    def hits(self, scores: NDArray[np.float64], right: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether each item's option with the highest score is right (both arguments are items × options); ties are broken
        by `lots`."""
        masked = np.where(self.present, scores, -np.inf)
        tied = self.present & (masked == masked.max(axis=1, keepdims=True))
        slots = np.where(tied, self.lots, -1.0).argmax(axis=1)
        return np.asarray(right[np.arange(len(slots)), slots])

    def options_of(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """A mask (items × options) of the options of these items."""
        mask = np.zeros_like(self.present)
        mask[rows] = self.present[rows]
        return mask

    def _each(self, measure: Callable[[str], float]) -> NDArray[np.float64]:
        table = np.zeros(self.present.shape)
        options = [option for item in self.items for option in item.options]
        found = {option: measure(option) for option in set(options)}
        table[self.present] = [found[option] for option in options]
        return table

    def _by_words(self) -> dict[str, NDArray[np.float64]]:
        question = np.zeros(self.present.shape)
        own = np.zeros(self.present.shape)
        for row, item in enumerate(self.items):
            asked = set(words(item.question))
            option_words = [set(words(option)) for option in item.options]
            uses = Counter(word for option in option_words for word in option)
            for slot, option in enumerate(option_words):
                if option:
                    question[row, slot] = len(option & asked) / len(option)
                    own[row, slot] = sum(uses[word] == 1 for word in option) / len(option)
        return {
            "question-words": question,
            "own-words": own,
            "hedges": self._each(lambda text: sum(word in _HEDGES for word in words(text))),
            "absolutes": self._each(lambda text: sum(word in _ABSOLUTES for word in words(text))),
            "negations": self._each(lambda text: sum(word in _NEGATIONS for word in words(text))),
            "numbers": self._each(lambda text: len(re.findall(r"\d+(?:[.,]\d+)*", text))),
            "punctuation": self._each(lambda text: sum(map(_is_punctuation, text))),
            "capitals": self._each(lambda text: sum(map(str.isupper, text)) / max(1, len(text))),
        }

    def _by_length(self) -> dict[str, NDArray[np.float64]]:
        length = self._each(len)
        centred = (length - (length.sum(axis=1) / self.counts)[:, None]) * self.present
        spread = np.sqrt((centred**2).sum(axis=1) / self.counts)[:, None]
        outlier = np.divide(np.abs(centred), spread, out=np.zeros_like(centred), where=spread > 0)
        return {
            "length": length,
            "length-outlier": outlier,
            "word-length": self._each(lambda text: sum(map(len, words(text))) / max(1, len(words(text)))),
        }

    def _by_similarity(self) -> dict[str, NDArray[np.float64]]:
        questions = [item.question for item in self.items]
        options = [option for item in self.items for option in item.options]
        weights = tfidf([*questions, *options], (1, 2))
        rows, slots = self.present.nonzero()
        asked, offered = weights[: len(questions)], weights[len(questions) :]
        to_question = np.zeros(self.present.shape)
        to_question[self.present] = _row_products(asked[rows], offered)
        first = np.concatenate([[0], np.cumsum(self.counts)[:-1]])
        to_others = np.zeros(self.present.shape)
        for step in range(1, self.width):  # each option with the one `step` positions further, cyclically
            count = self.counts[rows]
            live = step < count
            partner = first[rows] + (slots + step) % count
            to_others[rows[live], slots[live]] += _row_products(offered[live], offered[partner[live]])
        to_others /= np.maximum(self.counts - 1, 1)[:, None]
        letters = tfidf([*questions, *options], CHARACTERS)
        to_letters = np.zeros(self.present.shape)
        to_letters[self.present] = _row_products(letters[: len(questions)][rows], letters[len(questions) :])
        found = {"question-similarity": to_question, "question-characters": to_letters, "typicality": to_others}
        return found | {"topic": self._topic(asked, offered)}

    def _topic(self, asked: Any, offered: Any) -> NDArray[np.float64]:
        """For each option the mean product with the texts of its group's other items."""
        from scipy.sparse import csr_array

        rows = self.present.nonzero()[0]
        member = csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))))
        _, codes = np.unique([item.group for item in self.items], return_inverse=True)
        of_group = csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))))
        own = member @ offered + asked
        rest = (of_group @ own)[codes] - own
        texts = self.counts + 1
        others = np.maximum(np.bincount(codes, texts)[codes] - texts, 1)
        topic = np.zeros(self.present.shape)
        products = offered * rest[rows] if isinstance(offered, np.ndarray) else offered.multiply(rest[rows])
        topic[self.present] = np.asarray(products.sum(axis=1), dtype=np.float64).ravel() / others[rows]
        return topic

    def _by_meaning(self, encode: Encoder) -> dict[str, NDArray[np.float64]]:
        texts = [*(item.question for item in self.items), *(option for item in self.items for option in item.options)]
        distinct = list(dict.fromkeys(texts))
        slot = {text: index for index, text in enumerate(distinct)}
        vectors = np.asarray(encode(distinct), dtype=np.float64)[[slot[text] for text in texts]]
        asked, offered = vectors[: len(self.items)], vectors[len(self.items) :]
        meaning = np.zeros(self.present.shape)
        meaning[self.present] = (asked[self.present.nonzero()[0]] * offered).sum(axis=1)
        return {"meaning": meaning, "meaning-topic": self._topic(asked, offered)}

    def _by_group(self) -> dict[str, NDArray[np.float64]]:
        repeats = np.zeros(self.present.shape)
        inside = np.zeros(self.present.shape)
        phrases = self.phrases
        for rows in rows_by_group(self.items).values():
            offers = Counter(phrase for row in rows for phrase in set(phrases[row]))
            sizes = {len(phrase.split()) for phrase in offers}
            asked = {row: phrases_of(self.items[row].question, sizes) for row in rows}
            mentions = Counter(phrase for found in asked.values() for phrase in found & offers.keys())
            for row in rows:
                for slot, phrase in enumerate(phrases[row]):
                    repeats[row, slot] = offers[phrase] - 1
                    inside[row, slot] = mentions[phrase] - (phrase in asked[row])
        every = Counter(phrase for own_phrases in phrases for phrase in set(own_phrases))
        named = [set(words(item.group.replace("_", " "))) for item in self.items]
        offered, name = np.zeros(self.present.shape), np.zeros(self.present.shape)
        for row, own_phrases in enumerate(phrases):
            for slot, phrase in enumerate(own_phrases):
                own = set(phrase.split())
                offered[row, slot] = every[phrase] - 1
                name[row, slot] = len(own & named[row]) / max(1, len(own))
        return {"repeats": repeats, "in-questions": inside, "offers": offered, "group-name": name}


def _is_punctuation(char: str) -> bool:
    return not (char.isalnum() or char.isspace() or char == "_" or unicodedata.category(char)[0] == "M")


def rows_by_group(items: Sequence[Item]) -> dict[str, list[int]]:
    """The row numbers of each group's items."""
    rows: dict[str, list[int]] = {}
    for row, item in enumerate(items):
        rows.setdefault(item.group, []).append(row)
    return rows


def phrases_of(text: str, sizes: set[int]) -> set[str]:
    """All phrases of the given numbers of words, two at least: single words recur by nature."""
    own = words(text)
    return {" ".join(own[start : start + size]) for size in sizes if size >= 2 for start in range(len(own) - size + 1)}


CHARACTERS = (3, 5)
"""Runs of 3 to 5 characters within words, for `tfidf`: they see stems, and need no spaces between words."""


def tfidf(texts: Sequence[str], ngrams: tuple[int, int], min_df: int = 1) -> Any:
    """TF-IDF rows of length 1, or 0 for a text without counted words. `ngrams` are the shortest and longest run of words, or
    `CHARACTERS`."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    if ngrams == CHARACTERS:
        counter = CountVectorizer(analyzer="char_wb", ngram_range=ngrams, dtype=np.float64)
    else:
        counter = CountVectorizer(
            tokenizer=words, token_pattern=None, lowercase=False, ngram_range=ngrams, dtype=np.float64
        )
    usual = "question"  # keeps the vocabulary from being empty
    slot = {text: row for row, text in enumerate(dict.fromkeys([*texts, usual]))}
    counts = counter.fit_transform(slot)[[slot[text] for text in [*texts, *min_df * [usual]]]]
    counts = counts[:, np.bincount(counts.indices, minlength=counts.shape[1]) >= min_df]
    counts.sort_indices()  # sums are taken in this order
    return TfidfTransformer(sublinear_tf=True).fit(counts).transform(counts[: len(texts)])


def _row_products(left: Any, right: Any) -> NDArray[np.float64]:
    return np.asarray(left.multiply(right).sum(axis=1), dtype=np.float64).ravel()


@dataclass(frozen=True)
class Histogram:
    """How often the right option is at each of `options` positions, with `p` against equal frequencies. The `test` is
    "chi-square", or "simulated chi-square" if fewer than five are expected at a position."""

    options: int
    counts: tuple[int, ...]
    p: float
    test: str


@dataclass(frozen=True)
class OptionContrast:
    """One feature of options: its mean over right and over wrong options (each item counts once), the difference within
    items with its clustered interval, and the two-sided p (None with one group), unadjusted and by Holm over all
    features."""

    feature: str
    label: str
    right: float
    wrong: float
    difference: Estimate
    p: float | None
    p_holm: float | None


@dataclass(frozen=True)
class OptionAudit:
    """Leakage by the options. `key_positions` and `length_ranks` (1 = shortest) hold one histogram per number of options;
    `strictly_shortest` and `strictly_longest` count items whose right option is shorter (longer) than all others."""

    key_positions: tuple[Histogram, ...]
    length_ranks: tuple[Histogram, ...]
    strictly_shortest: int
    strictly_longest: int
    contrasts: tuple[OptionContrast, ...]


_Floats = NDArray[np.float64]


def p_above_chance(hits: NDArray[np.bool_], chance: _Floats, groups: NDArray[np.int64]) -> _Floats:
    """One-sided p of each baseline (a row of `hits`, baselines × items) against random guessing, where item i is right
    with probability `chance[i]`.

    It is the larger of two p values, since either may be too small: the exact tail of the number of hits for independent
    items (with few groups the t-test estimates the spread badly), and a t-test of the groups' surplus (hits − chance,
    summed over the group) against 0 (items of a group may be alike). With a single group only the first is used. Never
    NaN; 1 without items.
    """
    exact = _tail(chance)[hits.sum(axis=1)]
    _, codes = np.unique(groups, return_inverse=True)
    if len(codes) == 0 or codes.max() < 1:
        return np.asarray(exact)
    surplus = _group_sums(hits - chance, codes)
    return np.asarray(np.maximum(exact, _stdtr(surplus.shape[1] - 1, -_t(surplus))))


def difference_p(differences: _Floats, groups: NDArray[np.int64]) -> float | None:
    """Two-sided p of a t-test of the groups' summed differences against 0; None with one group."""
    _, codes = np.unique(groups, return_inverse=True)
    if len(codes) == 0 or codes.max() < 1:
        return None
    sums = _group_sums(differences[None, :], codes)
    return float(2 * _stdtr(sums.shape[1] - 1, -abs(_t(sums)[0])))


def _stdtr(degrees: int, t: Any) -> Any:
    """The distribution of Student's t. SciPy takes a second to import, which reports without an item audit save."""
    from scipy.special import stdtr

    return stdtr(degrees, t)


def _tail(chance: _Floats) -> _Floats:
    """P(at least h hits), h = 0 to n, for independent trials with these probabilities."""
    from scipy.stats import binom

    mass = np.ones(1)
    for probability, tries in zip(*np.unique(chance, return_counts=True), strict=True):
        mass = np.convolve(mass, binom.pmf(np.arange(tries + 1), tries, probability))
    return np.minimum(1.0, np.cumsum(mass[::-1])[::-1])


def _group_sums(values: _Floats, codes: NDArray[np.int64]) -> _Floats:
    return np.stack([np.bincount(codes, row) for row in values])


def _t(sums: _Floats) -> _Floats:
    """The t statistic of each row against 0; 0 for rows of zeros, infinite for other constant rows."""
    mean = sums.mean(axis=1)
    error = sums.std(axis=1, ddof=1) / np.sqrt(sums.shape[1])
    error[error < 1e-12] = 0.0
    unlimited = np.where(np.abs(mean) < 1e-12, 0.0, np.copysign(np.inf, mean))
    return np.asarray(np.divide(mean, error, out=unlimited, where=error > 0))


_SIMULATIONS = 10_000


def right_options(table: OptionTable) -> NDArray[np.bool_]:
    """Items × options: whether an option is right, accepted alternatives included. Raises `InputError` for a reference
    that is no option."""

    right = np.zeros_like(table.present)
    for row, item in enumerate(table.items):
        for slot in _slots(item):
            right[row, slot] = True
    return right


def audit_options(table: OptionTable, right: NDArray[np.bool_], *, draws: int, seed: int) -> OptionAudit:
    """Histograms and contrasts of right against wrong options. If several options are right, the histograms count the
    first one of the reference."""
    key = np.array([_slots(item)[0] for item in table.items])
    rows = np.arange(len(key))
    length = table.values[:, :, 0]
    own = length[rows, key]
    others = table.present.copy()
    others[rows, key] = False
    # Equally long options do not share a rank: `lots` break the tie.
    before = (length < own[:, None]) | ((length == own[:, None]) & (table.lots < table.lots[rows, key][:, None]))
    return OptionAudit(
        key_positions=_histograms(key, table.counts, "positions", seed),
        length_ranks=_histograms((before & others).sum(axis=1), table.counts, "ranks", seed),
        strictly_shortest=int((~others | (length > own[:, None])).all(axis=1).sum()),
        strictly_longest=int((~others | (length < own[:, None])).all(axis=1).sum()),
        contrasts=_contrasts(table, right, draws=draws, seed=seed),
    )


def _slots(item: Item) -> list[int]:
    letters = option_letters(len(item.options))
    keys = (item.reference.answer, *item.reference.accepted) if item.reference and item.has_answer else ()
    for key in keys:
        if key not in letters:
            raise InputError(f"item {item.id}, reference", found=repr(key), expected=f"one of {', '.join(letters)}")
    return [letters.index(str(key)) for key in keys]


def _histograms(slots: NDArray[np.int64], counts: NDArray[np.int64], what: str, seed: int) -> tuple[Histogram, ...]:
    found = []
    for options in np.unique(counts):
        seen = np.bincount(slots[counts == options], minlength=options)
        p, test = _uniform_p(seen, generator(seed, "audit", what, str(options)))
        found.append(Histogram(int(options), tuple(int(count) for count in seen), p, test))
    return tuple(found)


def _uniform_p(seen: NDArray[np.int64], rng: np.random.Generator) -> tuple[float, str]:
    """Pearson's chi-square test of equal frequencies; simulated if fewer than five are expected."""
    from scipy.special import chdtrc

    total, slots = int(seen.sum()), len(seen)
    expected = total / slots
    statistic = float(((seen - expected) ** 2).sum() / expected)
    if expected >= 5:
        return float(chdtrc(slots - 1, statistic)), "chi-square"
    simulated = rng.multinomial(total, np.full(slots, 1 / slots), size=_SIMULATIONS)
    as_far = (((simulated - expected) ** 2).sum(axis=1) / expected >= statistic - 1e-9).sum()
    return float((1 + as_far) / (1 + _SIMULATIONS)), "simulated chi-square"


def _contrasts(table: OptionTable, right: NDArray[np.bool_], *, draws: int, seed: int) -> tuple[OptionContrast, ...]:
    wrong = table.present & ~right
    both = right.any(axis=1) & wrong.any(axis=1)
    if not both.any():
        return ()
    values, right, wrong = table.values[both], right[both], wrong[both]
    of_right = (values * right[:, :, None]).sum(axis=1) / right.sum(axis=1)[:, None]
    of_wrong = (values * wrong[:, :, None]).sum(axis=1) / wrong.sum(axis=1)[:, None]
    groups = np.unique([item.group for item in table.items], return_inverse=True)[1][both]
    apart = of_right - of_wrong
    p = [difference_p(apart[:, index], groups) for index in range(len(table.features))]
    adjusted = holm_known(p)
    return tuple(
        OptionContrast(
            feature=feature.name,
            label=feature.label,
            right=float(of_right[:, index].mean()),
            wrong=float(of_wrong[:, index].mean()),
            difference=mean_interval(apart[:, index], groups, Resampling(draws=draws, seed=seed)),
            p=p[index],
            p_holm=adjusted[index],
        )
        for index, feature in enumerate(table.features)
    )
