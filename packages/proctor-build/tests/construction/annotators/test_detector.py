"""The detector: folds, a tiny training that learns, weights by path, and exported networks in both layouts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from PIL import Image, ImageDraw

from proctor.core import InputError
from proctor.tracks import AnnotatedBox, AnnotatedVideo, Annotation, Sighting
from proctor_build.annotators.detector import (
    DetectorNetwork,
    DetectorPlan,
    _from_weights,
    _Network,
    _pictures,
    _seeded,
    folds_of,
    held_out_detections,
)
from proctor_build.annotators.proposals import propose

SIDE = 64
COLOURS = {"Clip": (220, 40, 40), "Sponge": (40, 220, 60)}


def squares(video: str, seconds: int = 12) -> tuple[Annotation, list[Image.Image]]:
    """A video of one coloured square at a time."""
    rng = np.random.default_rng(list(video.encode()))
    pictures, sightings = [], []
    for second in range(seconds):
        picture = Image.fromarray(rng.integers(70, 90, (SIDE, SIDE, 3), dtype=np.uint8))
        name = list(COLOURS)[int(rng.integers(2))]
        x, y = (int(value) for value in rng.integers(4, SIDE - 24, 2))
        ImageDraw.Draw(picture).rectangle((x, y, x + 19, y + 19), fill=COLOURS[name])
        box = AnnotatedBox(x=x, y=y, width=20, height=20)
        sightings.append(Sighting(second=second, instance=f"{name}-{second}", class_name=name, box=box))
        pictures.append(picture)
    known = AnnotatedVideo(id=video, file=f"{video}.mp4", width=SIDE, height=SIDE, seconds=seconds, fps=10)
    return Annotation(video=known, sightings=tuple(sightings)), pictures


DRAWN = dict(zip("abcd", (squares(name) for name in "abcd"), strict=True))
SECONDS = {name: range(12) for name in DRAWN}
TINY = DetectorPlan(folds=2, steps=60, batch=8, width=SIDE, height=SIDE)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads that wait for one another are slow on a busy machine, and such small networks gain nothing from them."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def frames(video: str, seconds: Sequence[int]) -> Iterable[Image.Image]:
    return [DRAWN[video][1][second] for second in seconds]


def test_folds_keep_groups_together_and_are_equal() -> None:
    groups = {f"v{k}": f"patient {k // 2}" for k in range(12)}
    folds = folds_of(groups, 3, 0)
    assert all(folds[f"v{2 * k}"] == folds[f"v{2 * k + 1}"] for k in range(6))
    assert sorted(folds.values()) == [0] * 4 + [1] * 4 + [2] * 4
    assert folds == folds_of(dict(reversed(groups.items())), 3, 0)
    assert len({tuple(folds_of(groups, 3, seed).values()) for seed in range(9)}) > 3
    with pytest.raises(InputError, match="found 6 groups of videos, expected at least 7"):
        folds_of(groups, 7, 0)


def test_a_small_network_learns() -> None:
    plan = DetectorPlan(folds=2, steps=24, batch=4, width=SIDE, height=SIDE)
    pictures = _pictures([one for one, _ in DRAWN.values()], SECONDS, frames, plan, list(COLOURS))
    rng = np.random.default_rng(0)
    with _seeded(0):
        network = _Network(plan, list(COLOURS))
        for _ in range(plan.steps):
            network.learn([pictures[int(k)] for k in rng.integers(0, len(pictures), plan.batch)], rng)
    assert np.mean(network.losses[-5:]) < 0.85 * np.mean(network.losses[:5])
    found = network.look(pictures)
    assert {one.class_name for one in found} <= set(COLOURS)
    centres = np.array([one.box.centre for one in found])
    assert (centres > 0).all()
    assert (centres < SIDE).all()


def test_the_same_seed_gives_the_same_network_and_leaves_others_draws_alone() -> None:
    import torch

    annotations = [one for one, _ in DRAWN.values()]
    short = DetectorPlan(folds=2, steps=2, batch=2, width=SIDE, height=SIDE)
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    done: list[tuple[int, int]] = []
    one = held_out_detections(annotations, SECONDS, frames, short, progress=lambda *now: done.append(now))
    assert done == [(2, 4), (4, 4)]
    assert {each.video for each in one} == set(DRAWN)
    assert torch.rand(1) == expected
    two = held_out_detections(annotations, SECONDS, frames, short)
    assert [(d.video, d.second, d.class_name) for d in one] == [(d.video, d.second, d.class_name) for d in two]
    assert [d.score for d in one] == pytest.approx([d.score for d in two], abs=1e-5)


def test_boxes_are_fitted_in_with_the_picture() -> None:
    wide = AnnotatedVideo(id="w", file="w.mp4", width=128, height=64, seconds=1, fps=10)  # shown in half its size
    box = AnnotatedBox(x=64, y=0, width=32, height=64)
    annotation = Annotation(video=wide, sightings=(Sighting(second=0, instance="c", class_name="Clip", box=box),))
    picture = Image.new("RGB", (64, 32), (255, 0, 0))
    one = _pictures([annotation], {"w": [0]}, lambda *_: [picture], TINY, ["Clip"])[0]
    assert one.boxes.tolist() == [[0.625, 0.5, 0.25, 0.5]]
    assert one.pixels[15, 0].tolist() == [114] * 3
    assert one.pixels[16, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize("kind", ["yolos", "rt_detr"])
def test_weights_by_path_are_fine_tuned(tmp_path: Path, kind: str) -> None:
    if kind == "yolos":
        from transformers import YolosConfig, YolosForObjectDetection

        config = YolosConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                             image_size=[SIDE, SIDE], patch_size=16, num_detection_tokens=5, num_labels=7)  # fmt: skip
        YolosForObjectDetection(config).save_pretrained(tmp_path)
        (tmp_path / "preprocessor_config.json").write_text('{"do_normalize": true, "image_mean": [0.1, 0.2, 0.3]}')
    else:
        _Network(TINY, ["x"] * 3)._model.save_pretrained(tmp_path)
    plan = DetectorPlan(folds=2, steps=2, batch=2, width=SIDE, height=SIDE, weights=tmp_path)
    network = _Network(plan, list(COLOURS))
    assert network._mean.tolist() == pytest.approx([0.1, 0.2, 0.3] if kind == "yolos" else [0, 0, 0])
    pictures = _pictures([DRAWN["a"][0]], SECONDS, frames, plan, list(COLOURS))
    rng = np.random.default_rng(0)
    network.learn(pictures[:2], rng)
    network.learn(pictures[:2], rng)
    assert all(np.isfinite(network.losses))
    assert {one.class_name for one in network.look(pictures)} <= set(COLOURS)


def test_a_folder_that_holds_no_detector_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no config\.json and \*\.safetensors"):
        _from_weights(tmp_path, ["a"])
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "model.safetensors").write_bytes(b"x" * 40)
    with pytest.raises(InputError, match="expected a detector of transformers"):
        _from_weights(tmp_path, ["a"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"folds": 1}, "folds: found 1, expected 2 to 20"),
        ({"width": 100}, "width: found 100, expected a multiple of 32"),
    ],
)
def test_a_plan_out_of_range_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        DetectorPlan(**change)


def test_nothing_to_learn_from_is_said() -> None:
    empty = [Annotation(video=one.video) for one, _ in DRAWN.values()]
    with pytest.raises(InputError, match="boxes: found none"):
        held_out_detections(empty, SECONDS, frames, TINY)
    with pytest.raises(InputError, match="expected at least 2, one for each fold"):
        held_out_detections([DRAWN["a"][0]], SECONDS, frames, TINY)


def exported(file: Path, outputs: dict[str, NDArray[np.float32]], side: tuple[int, int] = (SIDE, SIDE)) -> Path:
    """A network that always gives the same."""
    nodes = [helper.make_node("ReduceMean", ["images"], ["mean"], keepdims=0)]
    nodes.append(helper.make_node("Mul", ["mean", "zero"], ["nothing"]))
    nodes += [helper.make_node("Add", [f"{name}_", "nothing"], [name]) for name in outputs]
    constants = {f"{name}_": value for name, value in outputs.items()} | {"zero": np.array(0, np.float32)}
    graph = helper.make_graph(
        nodes, "detector",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, side[1], side[0]])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(value.shape)) for name, value in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    file.write_bytes(model.SerializeToString())
    return file


LOGITS = np.array([[[-9.0, 2.0], [-9.0, -9.0]]], dtype=np.float32)
BOXES = np.array([[[0.5, 0.5, 0.25, 0.5], [0.1, 0.1, 0.1, 0.1]]], dtype=np.float32)


@pytest.mark.parametrize(
    ("outputs", "score"),
    [
        ({"logits": LOGITS, "pred_boxes": BOXES}, 1 / (1 + np.exp(-2.0))),
        ({"pred_boxes": BOXES, "logits": LOGITS}, 1 / (1 + np.exp(-2.0))),
        ({"logits": np.array([[[-9.0, 2.0, 0.0], [-9, -9, 0]]], np.float32), "boxes": BOXES}, 1 / (1 + np.exp(-2.0))),
        ({"output0": np.array([[[32.0, 9], [32, 9], [16, 3], [32, 3], [0.1, 0.0], [0.8, 0.01]]], np.float32)}, 0.8),
    ],
)
def test_exported_networks(tmp_path: Path, outputs: dict[str, NDArray[np.float32]], score: float) -> None:
    network = DetectorNetwork(exported(tmp_path / "d.onnx", outputs), list(COLOURS))
    found = network.detections("v", [(3, Image.new("RGB", (128, 64)))])  # shown in half its size, 16 rows above it
    assert [(one.video, one.second, one.class_name) for one in found] == [("v", 3, "Sponge")]
    assert found[0].score == pytest.approx(score, abs=1e-3)
    assert found[0].box.model_dump() == pytest.approx({"x": 48, "y": 0, "width": 32, "height": 64})


def test_another_layout_is_refused(tmp_path: Path) -> None:
    network = DetectorNetwork(exported(tmp_path / "d.onnx", {"logits": LOGITS, "boxes": BOXES}), ["a", "b", "c", "d"])
    with pytest.raises(
        InputError, match=r"output: found \[1, 2, 2\], \[1, 2, 4\] for 4 classes, expected \[1, queries"
    ):
        network.detections("v", [(0, Image.new("RGB", (64, 64)))])
    (tmp_path / "none.onnx").write_bytes(b"no network")
    with pytest.raises(InputError, match="no network that can be run"):
        DetectorNetwork(tmp_path / "none.onnx", ["a"])
    with pytest.raises(InputError, match="classes: found none"):
        DetectorNetwork(tmp_path / "none.onnx", [])


def test_a_networks_detections_become_proposals(tmp_path: Path) -> None:
    network = DetectorNetwork(exported(tmp_path / "d.onnx", {"logits": LOGITS, "pred_boxes": BOXES}), list(COLOURS))
    found = network.detections("a", [(0, Image.new("RGB", (SIDE, SIDE)))])
    box = AnnotatedBox(x=25, y=17, width=15, height=30)
    crowd = Annotation(
        video=DRAWN["a"][0].video, sightings=(Sighting(second=0, instance="c", class_name="Clip", box=box),)
    )
    assert [(one.kind, one.class_name) for one in propose(crowd, found, 0.5)] == [("mislabelled", "Sponge")]
