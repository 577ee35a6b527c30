"""An answerer of pictures is trained, killed, gone on with, loaded again and examined; labels that say nothing teach
nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import proctor
import proctor_train
from proctor.core import ACCURACY, Benchmark, Image, InputError, Item, Reference, generator
from proctor.core.formats import BinaryFormat
from proctor.models.adapters import SEEN, read_record, seen_media
from proctor.runs import Store
from proctor_train import RunFolder
from proctor_train.answerer import TrainedAnswerer
from proctor_train.answerer_training import AnswererTable
from tests.support.killed_child import killed
from tests.support.tiny_vlm import make_tiny_vlm

pytestmark = [
    pytest.mark.training,
    pytest.mark.xdist_group("training-peft"),
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning"),
]

PICTURES = 60
OPTIONS: dict[str, Any] = {
    "device": "cpu",
    "vision": True,
    "learning_rate": 1e-2,
    "epochs": 8,
    "evaluate_every": 24,
    "batch": 6,
    "share": 0.4,
    "draws": 200,
}


@pytest.fixture(scope="module", autouse=True)
def alone() -> Iterator[None]:
    """One thread, and no hub is ever asked."""
    import torch
    from huggingface_hub import constants

    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        yield


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answerer")
    (folder / "short.txt.j2").write_text("{% block system %}{% endblock %}{% block user %}{{ question }}{% endblock %}")
    make_tiny_vlm(folder / "random")
    form = trained(folder, "form", "random", shuffled=True, rank=0, epochs=10, evaluate_every=60)
    shutil.copytree(form.weights, folder / "base")  # it has learned what a reply looks like, and nothing of pictures
    return folder


def lights(folder: Path, *, shuffled: bool = False) -> Benchmark:
    """Is the picture light? Half of them are; where labels are `shuffled`, they say nothing."""
    from PIL import Image as Pillow

    draw = generator(0, "lights")
    folder.mkdir(exist_ok=True)
    light = [number % 2 == 0 for number in range(PICTURES)]
    told = [light[int(k)] for k in generator(5, "labels").permutation(PICTURES)] if shuffled else light
    for number, one in enumerate(light):
        level = int(draw.integers(170, 250) if one else draw.integers(5, 80))
        Pillow.new("RGB", (32, 32), (level, level, (level + number) % 256)).save(folder / f"{number}.png")
    items = [
        Item(
            id=f"q{number}",
            group=f"p{number}",
            question="Light?",
            answer=BinaryFormat(),
            media=(Image(source=f"{number}.png"),),
            reference=Reference(answer=one),
            tags={"kind": "light"},
        )
        for number, one in enumerate(told)
    ]
    return Benchmark(
        "lights",
        "Lights",
        tuple(items),
        (ACCURACY,),
        "accuracy",
        facets=("kind",),
        buckets=("kind",),
        media_root=folder,
    )


def trained(
    location: Path, name: str, base: str = "base", *, shuffled: bool = False, **changed: Any
) -> TrainedAnswerer:
    given = {**OPTIONS, "prompt": str(location / "short.txt.j2"), "cache": location / "frames", **changed}
    benchmark = lights(location / "pictures", shuffled=shuffled)
    return proctor_train.train_answerer(benchmark, location / base, location / name, **given).data


@pytest.fixture(scope="module")
def whole(location: Path) -> TrainedAnswerer:
    return trained(location, "whole")


def steps(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]


def test_the_table_says_what_it_learned_from_and_what_is_to_beat(whole: TrainedAnswerer) -> None:
    lengths, without, *_ = AnswererTable(whole).notes
    assert lengths == f"Examples: {whole.lengths}."
    assert without.startswith("Without looking: ")
    assert AnswererTable(replace(whole, lengths="")).notes[0] == without


def test_it_learns_from_pixels_and_shuffled_labels_teach_nothing(location: Path, whole: TrainedAnswerer) -> None:
    best = next(one for one in whole.checkpoints if one.chosen)
    assert best.accuracy.value is not None
    assert best.accuracy.value == max(one.accuracy.value or 0.0 for one in whole.checkpoints)
    assert best.accuracy.value >= whole.baselines["majority"] + 0.25
    last = trained(location, "control", shuffled=True).checkpoints[-1].accuracy
    assert last.ci_low is not None
    assert last.ci_high is not None
    assert last.ci_low <= 0.5 <= last.ci_high
    assert best.accuracy.ci_low is not None
    assert last.value is not None
    assert best.accuracy.ci_low > last.value


def test_what_was_killed_goes_on_to_the_same_bits(
    location: Path, whole: TrainedAnswerer, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = RunFolder.note

    def dies(folder: RunFolder, **told: Any) -> None:
        if told["step"] == 48 and "evaluation" in told:  # its answers are in the store by then
            os.kill(os.getpid(), signal.SIGKILL)
        note(folder, **told)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "note", dies)
        killed(lambda: trained(location, "killed"))
    again = trained(location, "killed")
    assert steps(again.folder) == steps(whole.folder)
    weights = "adapter_model.safetensors"
    assert (again.weights / weights).read_bytes() == (whole.weights / weights).read_bytes()
    assert again.checkpoints == whole.checkpoints


def test_it_answers_as_it_did_in_training_and_says_what_it_has_seen(location: Path, whole: TrainedAnswerer) -> None:
    benchmark = lights(location / "pictures")
    made = proctor.run(
        benchmark,
        model=whole.model,
        name="tuned",
        store=location / "run.db",
        prompt=str(location / "short.txt.j2"),
        cache=location / "frames",
        settings={"max_tokens": 27, "device": "cpu"},
        baselines=False,
    )
    then = Store(whole.folder / "evaluations.db", create=False)
    step = next(one.step for one in whole.checkpoints if one.chosen)
    (examined,) = [run for run in then.runs("lights") if run.system == f"step-{step:06d}"]
    now = made.store.answers(made.runs[0])
    answers = then.answers(examined)
    assert {name: one.text for name, one in answers.items()} == {name: now[name].text for name in answers}
    assert len(answers) == 24
    told = next(line for line in made.notes if "trained on" in line)
    assert told == f"{whole.model}: trained on 36 of these 60 media, and chosen by 24: no evidence on 60 questions"
    record = read_record(whole.weights)
    assert record is not None
    assert len(seen_media(str(whole.weights)).trained) == 36
    assert json.loads((whole.weights / SEEN).read_text())["chosen"]
    card = (whole.weights / "README.md").read_text()
    assert f"chosen at step {step} on 24 other groups" in card


def test_other_data_are_not_learned_in_the_same_folder(location: Path, whole: TrainedAnswerer) -> None:
    with pytest.raises(InputError, match=r"found a training with other training, validation, expected the same"):
        trained(location, "whole", shuffled=True)
    with pytest.raises(InputError, match=r"found a training with other lora\.rank"):
        trained(location, "whole", rank=4)
    assert trained(location, "whole") == whole  # done: nothing is trained again


def test_a_benchmark_without_answers_teaches_nothing(location: Path) -> None:
    benchmark = lights(location / "pictures")
    blank = replace(benchmark, items=tuple(one.model_copy(update={"reference": None}) for one in benchmark.items))
    with pytest.raises(InputError, match="lights: found nothing to learn from, expected reference answers"):
        proctor_train.train_answerer(blank, location / "base", location / "blank", share=0.5)
