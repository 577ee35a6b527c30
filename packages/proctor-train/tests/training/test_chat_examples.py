"""What counts in the loss, and what a form filled in by local weights says; no library of training is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.core import ConfigurationError, InputError
from proctor.models.queries import Choices, FixedForm, Query
from proctor.models.weights import Weights
from proctor_train.fine_tuning import ChatExample, collate, measure
from proctor_train.run_folder import template_hash
from tests.support.tiny_vlm import jpeg, make_tiny_lm, make_tiny_vlm

pytestmark = pytest.mark.xdist_group("weights")


@pytest.fixture(scope="module", params=[make_tiny_lm, make_tiny_vlm], ids=["text", "pictures"])
def weights(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Weights:
    import torch

    torch.set_num_threads(1)
    folder: Path = request.param(tmp_path_factory.mktemp("weights"))
    found = Weights("tiny", str(folder), "cpu")
    found.load()
    return found


def example(weights: Weights, text: str, answer: str = '{"overall": 2}') -> ChatExample:
    pictures = (jpeg(len(text)),) if weights.takes_pictures else ()
    return ChatExample(Query("Rate.", (*pictures, text), Choices(8)), answer, "e")


def test_only_the_reply_and_its_end_count_in_the_loss(weights: Weights) -> None:
    some = [example(weights, "short"), example(weights, "a longer question", "No.")]
    batch = collate(weights, some)
    for row, one in enumerate(some):
        learned = batch["labels"][row][batch["labels"][row] != -100].tolist()
        assert weights.tokenizer.decode(learned) == f" {one.answer}</s>"
        ids = batch["input_ids"][row][batch["attention_mask"][row] == 1].tolist()
        assert ids == [*weights.prompts([one.query])["input_ids"][0].tolist(), *learned]  # what is asked in use


def test_padding_changes_no_probability(weights: Weights) -> None:
    """The longer neighbour in a batch leaves the shorter one's logits as they are."""
    import torch

    some = [example(weights, "short"), example(weights, "a much longer question than that", "No.")]
    together, alone = collate(weights, some), collate(weights, some[:1])
    with torch.no_grad():
        logits = [
            weights.model(**{name: value for name, value in one.items() if name != "labels"}).logits[0]
            for one in (together, alone)
        ]
    size = alone["input_ids"].shape[1]
    assert torch.allclose(logits[0][:size], logits[1], atol=1e-4)


def test_lengths_are_measured_and_nothing_is_cut(weights: Weights) -> None:
    some = [example(weights, "short"), example(weights, "a longer question", "No.")]
    found = measure(weights, some)
    assert found.replies == (len(' {"overall": 2}') + 1, len(" No.") + 1)
    assert found.pictures == ((16, 16) if weights.takes_pictures else (0, 0))
    assert found.questions[1] - found.questions[0] == len("a longer question") - len("short")
    with pytest.raises(InputError, match=r"found 1 of 2 longer than that, the longest 4\d\d\d, expected at most 4096"):
        measure(weights, [*some[:1], example(weights, "x" * 4080)])
    with pytest.raises(InputError, match="found none"):
        measure(weights, [])


def test_a_reply_with_a_special_token_in_it_is_refused(weights: Weights) -> None:
    with pytest.raises(InputError, match="found the special token '</s>', expected text without special tokens"):
        collate(weights, [example(weights, "short", "No.</s>Yes.")])


def test_a_template_without_its_end_gets_one(weights: Weights) -> None:
    """The tiny models' templates do not end a turn: without the token, a model would learn to speak indefinitely."""
    assert weights.reply_tokens("No.")[-1] in weights.ends
    assert len(template_hash(weights)) == 64


FORM = FixedForm(('{"a": ', ', "b": ', "}"), (("0", "1", "2"), ("0", "1")))


def test_a_form_is_filled_in_and_its_probabilities_are_the_models_own(weights: Weights) -> None:
    import torch

    one = example(weights, "short")
    (said,) = weights.generate([Query(one.query.system, one.query.parts, Choices(8), FORM)], lambda: False)
    assert said.text in {FORM.filled([first, second]) for first in "012" for second in "01"}
    filled = collate(weights, [ChatExample(one.query, said.text, "e")])
    with torch.no_grad():
        logits = weights.model(**{name: value for name, value in filled.items() if name != "labels"}).logits[0]
    text = weights.tokenizer.decode(filled["input_ids"][0])
    for number, row in enumerate((text.rindex('"a": ') + 5, text.rindex('"b": ') + 5)):
        before = len(weights.tokenizer(text[:row], add_special_tokens=False)["input_ids"])
        chances = logits[before - 1].softmax(-1)
        for option, chance in said.chances[number].items():
            token = weights.tokenizer.convert_tokens_to_ids(option)
            assert chance == pytest.approx(float(chances[token]), abs=1e-5)


def test_options_without_tokens_of_their_own_are_refused(weights: Weights) -> None:
    form = FixedForm(('{"a": ', "}"), (("0", "10"),))
    with pytest.raises(ConfigurationError, match="has no token of its own for each of 0, 10"):
        weights.generate([Query("", ("?",), Choices(8), form)], lambda: False)
