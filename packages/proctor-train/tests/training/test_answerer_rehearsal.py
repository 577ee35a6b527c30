"""What is told before an answerer is trained: lengths, memory, what is to beat, and media that look the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from proctor.core import ACCURACY, Benchmark, Image, Item, Reference, percent
from proctor.core.formats import BinaryFormat
from proctor.media import MediaLibrary, MediaSettings
from proctor.models import ModelClient
from proctor.systems import ModelSystem, prompt_for_benchmark
from proctor_train.answerer import COMMONEST, AnswererTraining
from proctor_train.answerer_training import AnswererPlan
from tests.support.tiny_vlm import make_tiny_vlm

pytestmark = pytest.mark.xdist_group("weights")


def noise(seed: int) -> Pillow.Image:
    points = np.random.default_rng(seed).integers(0, 255, (8, 8), dtype=np.uint8)
    return Pillow.fromarray(points).resize((96, 96), Pillow.Resampling.BICUBIC).convert("RGB")


def part(name: str, folder: Path, pictures: list[Pillow.Image], told: list[bool]) -> Benchmark:
    items = []
    for number, (picture, one) in enumerate(zip(pictures, told, strict=True)):
        file = f"{name}{number}.jpg"
        picture.save(folder / file, quality=70)
        items.append(
            Item(
                id=f"{name}{number}",
                group=f"{name}{number}",
                question="Is it so?",
                answer=BinaryFormat(),
                media=(Image(source=file),),
                reference=Reference(answer=one),
                tags={"kind": "so"},
            )
        )
    return Benchmark(name, name, tuple(items), (ACCURACY,), "accuracy", facets=("kind",), buckets=("kind",))


@pytest.mark.parametrize("copied", [True, False])
def test_it_tells_what_training_takes_and_has_to_beat(copied: bool, tmp_path: Path) -> None:
    base = tmp_path / "base"
    make_tiny_vlm(base)
    (base / "model.safetensors").unlink()  # only the form of the weights is looked at
    again = noise(0).resize((80, 80)) if copied else noise(9)  # another file that shows the same
    training = part("t", tmp_path, [noise(seed) for seed in range(4)], [True, True, True, False])
    validation = part("v", tmp_path, [again, noise(5), noise(6), noise(7)], [False, False, False, True])
    prompt = prompt_for_benchmark("lights")

    def system(client: ModelClient, name: str) -> ModelSystem:
        return ModelSystem(client, prompt, name or None)

    library = MediaLibrary(tmp_path, MediaSettings(max_side=32), tmp_path / "cache")
    what = AnswererTraining(base, training, validation, library, system, draws=100)
    told = AnswererPlan(what, tmp_path / "out").rehearse()
    rows = {row["system"]: row["mean"] for row in told.rows}
    assert rows[COMMONEST] == 0.25  # "yes", as mostly in the training part
    assert rows["majority"] == 0.75  # "no": it has seen the validation part's answers
    ends = {row["system"]: (row["ci_low"], row["ci_high"]) for row in told.rows}
    shown = {str(cells[0]): str(cells[2]) for cells in told.tables[0].rows}
    assert shown == {
        name: "–" if low is None else f"{percent(low)} to {percent(high)}" for name, (low, high) in ends.items()
    }
    assert any(low is not None for low, _ in ends.values())
    lengths, memory, alike = told.notes
    assert lengths.startswith("Examples: questions of ")
    assert "of them pictures" in lengths
    assert "of them trained; about 0.0 GiB" in memory
    pair = "1 pair of media across the parts look the same (t0.jpg and v0.jpg)"
    assert alike.startswith(pair if copied else "No medium of one part looks like one of the other")
    assert not (tmp_path / "out").exists()
