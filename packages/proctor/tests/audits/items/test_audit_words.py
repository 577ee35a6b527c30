"""Weights of words, computed once for each distinct text: those of scikit-learn's `TfidfVectorizer`, to the last
digit."""

from __future__ import annotations

import random

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from proctor.audits.items.options import tfidf, words

_SOME = ("the", "clip", "duct", "Question", "question", "cut", "a", "ä", "what", "?", "!")


@pytest.mark.parametrize(("ngrams", "min_df"), [((1, 2), 1), ((1, 1), 1), ((1, 1), 2), ((1, 1), 3)])
def test_weights_are_those_of_every_text_by_itself(ngrams: tuple[int, int], min_df: int) -> None:
    rng = random.Random(f"{ngrams} {min_df}")
    for _ in range(60):
        texts = [" ".join(rng.choices(_SOME, k=rng.randint(0, 6))) for _ in range(rng.randint(1, 30))]
        usual = TfidfVectorizer(
            tokenizer=words, token_pattern=None, lowercase=False, ngram_range=ngrams, min_df=min_df, sublinear_tf=True
        )
        usual.fit([*texts, *min_df * ["question"]])
        expected, found = usual.transform(texts), tfidf(texts, ngrams, min_df)
        assert found.shape == expected.shape
        assert (found.toarray() == expected.toarray()).all()
