"""The classifier learns what can be learned and nothing else, goes on after a kill to the same bits, and leaks nothing."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from proctor.core import InputError, ProctorError
from proctor.judges.dimensions import Case, DimensionScores, RatedCase
from proctor_train import RunFolder, held_out_agreement, shuffled_ratings
from proctor_train.mediqa_eval.classifier import (
    ClassifierRecipe,
    TrainedClassifier,
    classifier_settings,
    save_classifier,
    train_classifier,
)
from proctor_train.mediqa_eval.classifier.judge import ClassifierJudge, load_classifier
from proctor_train.mediqa_eval.classifier.network import FrozenEncoder, tokenized
from tests.support.killed_child import killed
from tests.support.rated_answers import made_up
from tests.support.tiny_encoder import make_tiny_encoder

pytestmark = [pytest.mark.training, pytest.mark.xdist_group("training-classifier")]

RATED = made_up(24, languages=("en",))
SMALL = ClassifierRecipe({}, seeds=2, folds=3, epochs=6, layers=1, learning_rate=2e-3, head_rate=1e-2, max_tokens=64)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    texts = [text for one in made_up() for text in (one.case.query, one.case.candidate, one.case.references[0].text)]
    return str(make_tiny_encoder(tmp_path_factory.mktemp("encoder"), texts))


def train(folder: Path, rated: list[RatedCase], recipe: ClassifierRecipe) -> TrainedClassifier:
    captions = [""] * len(rated)
    with RunFolder.opened(folder, classifier_settings(rated, captions, recipe)) as opened:
        return train_classifier(rated, captions, recipe, opened)


@pytest.fixture(scope="module")
def trained(encoder: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TrainedClassifier]:
    folder = tmp_path_factory.mktemp("trained")
    found = train(folder / "run", RATED, replace(SMALL, encoders={"": encoder}))
    assert found.manifest is not None
    save_classifier(folder / "judge", found.states, found.manifest)
    return folder, found


def judged(judge: ClassifierJudge, *cases: Case) -> list[DimensionScores]:
    return [asyncio.run(judge.judge(one)) for one in cases]


def test_it_learns_and_the_shuffled_control_does_not(
    trained: tuple[Path, TrainedClassifier], encoder: str, tmp_path: Path
) -> None:
    whole = held_out_agreement(RATED, trained[1].mean_scores, draws=400)[0]
    recipe = replace(SMALL, encoders={"": encoder}, shuffled=True)
    control = train(tmp_path / "control", RATED, recipe)
    other = held_out_agreement(shuffled_ratings(RATED, recipe.seed), control.mean_scores, draws=400)[0]
    assert None not in (whole.value, whole.ci_low, other.value, other.ci_low, other.ci_high)
    assert (whole.ci_low or 0) > 0.5
    assert (other.ci_low or 0) < 0 < (other.ci_high or 0)
    assert (whole.value or 0) - (other.value or 0) > 0.5
    assert control.manifest is None  # nobody can judge by it


@pytest.mark.parametrize(("loss", "layers"), [("classes", 0), ("ordinal", 2)])
def test_both_losses_learn_with_and_without_trained_layers(
    loss: Any, layers: int, encoder: str, tmp_path: Path
) -> None:
    recipe = replace(SMALL, encoders={"": encoder}, loss=loss, layers=layers, seeds=1, folds=2)
    found = train(tmp_path / "run", RATED, recipe)
    assert (held_out_agreement(RATED, found.mean_scores, draws=0)[0].value or 0) > 0.5
    assert {value for one in found.level_scores for value in one.values()} <= {0.0, 0.5, 1.0}


def _killed_at(step: int, folder: Path, recipe: ClassifierRecipe) -> None:
    torch.set_num_threads(1)
    note = RunFolder.note

    def noted(self: RunFolder, **told: Any) -> None:
        note(self, **told)
        if told.get("step") == step and "loss" in told:
            os.kill(os.getpid(), signal.SIGKILL)

    RunFolder.note = noted  # type: ignore[method-assign]
    train(folder, RATED, recipe)


def test_killed_it_goes_on_to_the_same_bits(
    trained: tuple[Path, TrainedClassifier], encoder: str, tmp_path: Path
) -> None:
    recipe = replace(SMALL, encoders={"": encoder})
    for step in (7, 60):  # in an epoch of the first network, and of a later one
        killed(partial(_killed_at, step, tmp_path / "run", recipe))
        whole = [json.loads(line) for line in (tmp_path / "run" / "steps.jsonl").read_text().splitlines()]
        assert whole[-1]["step"] == step
    again = train(tmp_path / "run", RATED, recipe)
    first, second = ((path / "steps.jsonl").read_text() for path in (trained[0] / "run", tmp_path / "run"))
    assert first == second  # every loss and every agreement, to the last digit
    assert again.manifest == trained[1].manifest  # with the hashes of all weights
    assert again.scores == trained[1].scores


def test_a_second_call_trains_nothing_and_another_setting_is_refused(
    trained: tuple[Path, TrainedClassifier], encoder: str
) -> None:
    folder, found = trained
    before = hashlib.sha256((folder / "run" / "steps.jsonl").read_bytes()).hexdigest()
    assert train(folder / "run", RATED, replace(SMALL, encoders={"": encoder})).mean_scores == found.mean_scores
    assert hashlib.sha256((folder / "run" / "steps.jsonl").read_bytes()).hexdigest() == before
    with pytest.raises(InputError, match="a training with other epochs"):
        train(folder / "run", RATED, replace(SMALL, encoders={"": encoder}, epochs=7))
    with pytest.raises(InputError, match="data_sha256"):
        train(folder / "run", RATED[:-1], replace(SMALL, encoders={"": encoder}))


def test_the_judge_gives_what_was_trained_alone_and_in_company(trained: tuple[Path, TrainedClassifier]) -> None:
    judge = ClassifierJudge(*load_classifier(trained[0] / "judge"))
    cases = [replace(one.case, encounter="new", query=f"A new question {k}?") for k, one in enumerate(RATED[:6])]
    together = judged(judge, *cases)
    assert judged(judge, cases[3])[0] == together[3]
    good, bad = (
        replace(cases[0], candidate=text) for text in ("This is eczema. See a doctor.", "I cannot tell, sorry: a wart?")
    )
    best, worst = judged(judge, good, bad)
    assert best.values["overall"] > worst.values["overall"]
    assert best.values["disagree_flag"] < worst.values["disagree_flag"]
    probabilities = best.evidence[0]["probabilities"]
    assert isinstance(probabilities, dict)
    shares = probabilities["overall"]
    assert isinstance(shares, dict)
    assert sum(float(level) * float(str(share)) for level, share in shares.items()) == pytest.approx(
        best.values["overall"], abs=1e-3
    )
    assert best.disagreement.keys() == best.values.keys()
    assert not best.flags
    level = ClassifierJudge(*load_classifier(trained[0] / "judge"), readout="level")
    assert judged(level, good)[0].values["overall"] in {0.0, 0.5, 1.0}
    assert level.name != judge.name


def test_it_knows_what_it_was_trained_on_under_another_name(trained: tuple[Path, TrainedClassifier]) -> None:
    judge = ClassifierJudge(*load_classifier(trained[0] / "judge"))
    renamed = replace(RATED[0].case, id="x/en", encounter="x", dataset="x", candidate="A wart.")
    long = " ".join(["word"] * 200)
    unseen = replace(renamed, query="Another one?", candidate=long, images=("a.png",))
    one, other = judged(judge, renamed, unseen)
    assert one.flags == ("trained-on",)
    assert other.flags == ("images-unseen", "input-cut")


def test_an_empty_answer_to_no_question_is_scored(trained: tuple[Path, TrainedClassifier]) -> None:
    judge = ClassifierJudge(*load_classifier(trained[0] / "judge"))
    (one,) = judged(judge, replace(RATED[0].case, query="", candidate=" ", references=()))
    assert one.values.keys() == {"disagree_flag", "overall"}


def test_an_encoder_without_its_weights_is_refused_and_one_without_a_pooler_is_the_same(
    encoder: str, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    state = load_file(Path(encoder) / "model.safetensors")
    for name, start in (("plain", "pooler."), ("broken", "encoder.layer.1.output.")):
        folder = tmp_path / name
        folder.mkdir()
        for file in Path(encoder).iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        kept = {key: value for key, value in state.items() if not key.startswith(start)}
        save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    assert FrozenEncoder(str(tmp_path / "plain"), 1).sha256 == FrozenEncoder(encoder, 1).sha256
    with pytest.raises(
        ProctorError, match=r"no weights for encoder\.layer\.1\.output\.LayerNorm\.bias \(4 are missing\)"
    ):
        FrozenEncoder(str(tmp_path / "broken"), 1)


def test_what_it_has_not_learned_is_refused(trained: tuple[Path, TrainedClassifier]) -> None:
    judge = ClassifierJudge(*load_classifier(trained[0] / "judge"))
    with pytest.raises(InputError, match="the language 'zh', expected one that it has learned: en"):
        judged(judge, replace(RATED[0].case, language="zh"))
    wider = replace(RATED[0].case.dimensions[1], levels=(1.0, 2.0, 3.0))
    with pytest.raises(InputError, match=r"'overall' \(1, 2, 3\)"):
        judged(judge, replace(RATED[0].case, dimensions=(wider,)))


def test_other_weights_another_encoder_and_another_form_are_refused(
    trained: tuple[Path, TrainedClassifier], tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "judge"
    folder.mkdir()
    for file in (trained[0] / "judge").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    weights = folder / "weights-1-2.safetensors"
    state = load_file(weights)
    save_file(state | {"heads.0.weight": state["heads.0.weight"] + 1}, weights)
    with pytest.raises(InputError, match="found other weights"):
        load_classifier(folder)
    weights.write_bytes(b"\x80\x04pickle")
    with pytest.raises(InputError, match=r"weights-1-2\.safetensors"):
        load_classifier(folder)
    with pytest.raises(InputError, match="another encoder at"):
        load_classifier(trained[0] / "judge", str(make_tiny_encoder(tmp_path / "other", ["a b c"], seed=1)))
    with pytest.raises(ProctorError, match="no such folder"):
        load_classifier(trained[0] / "judge", str(tmp_path / "nowhere"))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["languages"]["en"]["levels"]["overall"] = [0.0, 1.0]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    weights.write_bytes((trained[0] / "judge" / weights.name).read_bytes())
    with pytest.raises(InputError, match="tensors of another form"):
        load_classifier(folder)


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_lower_and_top_layers_together_are_the_encoder(layers: int, encoder: str) -> None:
    from transformers import AutoModel

    split = FrozenEncoder(encoder, layers)
    case = replace(RATED[0].case, query="", references=())
    one = tokenized(case, "", split.tokenizer, split.limit, references=False)  # a single text
    (states,) = split.states([one])
    with torch.no_grad():
        known = AutoModel.from_pretrained(encoder).eval()(torch.tensor([one.texts[0][1]])).last_hidden_state
        if layers:
            mask = torch.ones(1, len(states), dtype=torch.long)
            states = split.top()(inputs_embeds=states[None], attention_mask=mask).last_hidden_state[0]
    assert torch.allclose(states, known[0], atol=1e-5)
    with pytest.raises(InputError, match="expected 0 to 2"):
        FrozenEncoder(encoder, 3)


def test_a_copy_of_an_encounter_is_never_on_both_sides(encoder: str, tmp_path: Path) -> None:
    """The same pictures under other names: the answers differ, and so do questions and references."""
    file = tmp_path / "a.png"
    Image.new("RGB", (8, 8), (9, 9, 9)).save(file)
    (tmp_path / "b.png").write_bytes(file.read_bytes())
    pictured = [
        RatedCase(replace(one.case, images=(("a.png", "b.png")[row % 2],), image_root=tmp_path), one.values)
        if one.case.encounter in {"two/0", "one/1"}
        else one
        for row, one in enumerate(RATED)
    ]
    seen: list[set[str]] = []

    def spied(train: Any, held: Any, *, where: str = "") -> None:
        seen.append({one.encounter for one in train} & {"two/0", "one/1"})

    import proctor_train.mediqa_eval.classifier.training as module

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "refuse_leaks", spied)
        train(tmp_path / "run", pictured, replace(SMALL, encoders={"": encoder}, epochs=1, layers=0))
    assert seen
    assert all(len(one) in {0, 2} for one in seen)


def test_ratings_that_teach_nothing_are_refused(encoder: str, tmp_path: Path) -> None:
    recipe = replace(SMALL, encoders={"": encoder})
    with pytest.raises(InputError, match="found none"):
        train(tmp_path / "none", [], recipe)
    flat = [RatedCase(one.case, {**one.values, "overall": 1.0}) for one in RATED]
    with pytest.raises(InputError, match="ratings of 'overall' in 'en': found all 1, expected some that differ"):
        train(tmp_path / "flat", flat, recipe)
    with pytest.raises(InputError, match="encounters in 'en' to train on: found 4, expected 5, since a part of them"):
        train(tmp_path / "few", made_up(8, languages=("en",)), replace(recipe, folds=2))
    with pytest.raises(InputError, match="30 folds"):
        train(tmp_path / "folds", RATED, replace(recipe, folds=30))
