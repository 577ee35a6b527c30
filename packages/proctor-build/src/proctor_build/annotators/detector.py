"""Object detectors: one trained on annotators' boxes in folds by video, and one exported to ONNX.

What the trained detector says of a video comes from a network that has not seen it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, PositiveFloat

from proctor.core import ConfigurationError, InputError, count_of, generator, pip_install, read_bytes, read_model
from proctor.models import Letterbox, NetworkProcess
from proctor.tracks import AnnotatedBox, Annotation
from proctor_build.annotators.proposals import BoxDetection

if TYPE_CHECKING:
    from PIL.Image import Image

LEAST_SCORE = 0.05
"""Detections with lower scores are dropped; `sure_score` decides which of the others count."""

_MOST_MB = 1000
_USUAL_SIDE = 640
_LARGEST_SIDE = 4096
_EXPECTED = "[1, queries, classes] and [1, queries, 4] (DETR, YOLOS, RT-DETR), or [1, 4 + classes, candidates] (YOLO)"

Floats = NDArray[np.float32]


class DetectorNetwork:
    """An exported detector in ONNX: RT-DETR and YOLOS as exported by transformers, or YOLO.

    Its input is 1 × 3 × height × width (RGB from 0 to 1, with grey borders). Its outputs are class scores and boxes:
    DETR's (logits, and centre and size as shares of the input; one more logit than classes is "nothing" and makes scores
    a softmax, else a sigmoid), or YOLO's (centre and size in pixels of the input, and a score from 0 to 1 for each
    class). `classes` are the names in the network's order.

    Raises `ConfigurationError` if onnxruntime is not installed, and `InputError` for a file that is unreadable, no
    network, or has another layout.
    """

    def __init__(self, weights: Path, classes: Sequence[str]) -> None:
        if not classes:
            raise InputError(weights, "classes", found="none", expected="the names in the network's order")
        try:
            content = read_bytes(weights, _MOST_MB)
        except OSError as error:
            raise InputError(weights, found=error.strerror or "", expected="the weights of a network") from error
        self._weights, self.classes = weights, tuple(classes)
        self.sha256 = hashlib.sha256(content).hexdigest()
        self._process = NetworkProcess(weights, "detector", "pip install 'proctor-eval[pose]'")
        self._side = self._input(self._process.load(content))

    def detections(self, video: str, frames: Iterable[tuple[int, Image]]) -> list[BoxDetection]:
        """The detections in frames of a video (with their seconds), in pixels, with a score of `LEAST_SCORE` or more.

        Raises `InputError` if the outputs don't fit the layout, or it takes too much time or memory."""
        found = []
        for second, picture in frames:
            letterbox = Letterbox.of(picture.size, self._side)
            scores, boxes = self._read(self._process.run(letterbox.fitted(picture.convert("RGB"), self._side)))
            found += located(video, second, (scores, boxes), self.classes, letterbox)
        return found

    def _input(self, model: dict[str, Any]) -> tuple[int, int]:
        inputs = model["inputs"]
        shape = list(inputs[0][2]) if len(inputs) == 1 else []
        if len(shape) != 4 or shape[1] != 3 or inputs[0][1] != "tensor(float)":
            found = ", ".join(f"{kind} {size}" for _, kind, size in inputs)
            expected = "one tensor(float) [1, 3, height, width] (export without half)"
            raise InputError(self._weights, "input", found=found, expected=expected)
        high, wide = (side if isinstance(side, int) and side > 0 else _USUAL_SIDE for side in shape[2:])
        if max(high, wide) > _LARGEST_SIDE:
            expected = f"at most {_LARGEST_SIDE} pixels a side"
            raise InputError(self._weights, "input", found=f"{wide} x {high}", expected=expected)
        return wide, high

    def _read(self, outputs: list[Floats]) -> tuple[Floats, Floats]:
        """Scores (queries × classes), and centres and sizes in pixels of the input (queries × 4)."""
        n, (wide, high) = len(self.classes), self._side
        if len(outputs) == 1 and outputs[0].ndim == 3 and outputs[0].shape[:2] == (1, 4 + n):
            return outputs[0][0, 4:].T, outputs[0][0, :4].T
        pair = outputs[:2]
        if len(pair) == 2 and all(one.ndim == 3 and one.shape[0] == 1 for one in pair):
            logits, boxes = sorted((one[0] for one in pair), key=lambda one: one.shape[1] == 4)
            if logits.shape[1] in {n, n + 1} and boxes.shape == (len(logits), 4):
                scale = np.array([wide, high, wide, high], dtype=np.float32)
                return probabilities(logits, n), boxes * scale
        shapes = ", ".join(str(list(output.shape)) for output in outputs)
        raise InputError(self._weights, "output", found=f"{shapes} for {n} classes", expected=_EXPECTED)


def probabilities(logits: Floats, classes: int) -> Floats:
    """Class scores from logits (queries × classes, or one more for "nothing").

    >>> probabilities(np.array([[0.0, 0.0]], dtype=np.float32), 2).tolist()
    [[0.5, 0.5]]
    >>> probabilities(np.array([[0.0, 0.0, 0.0]], dtype=np.float32), 2).round(2).tolist()
    [[0.33000001311302185, 0.33000001311302185]]
    """
    if logits.shape[1] == classes:
        return np.asarray(1 / (1 + np.exp(-np.clip(logits, -80, 80))), dtype=np.float32)
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray((raised / raised.sum(axis=1, keepdims=True))[:, :classes], dtype=np.float32)


def located(
    video: str, second: int, found: tuple[Floats, Floats], classes: Sequence[str], letterbox: Letterbox
) -> list[BoxDetection]:
    """Detections in the frame's pixels from scores and boxes (centres and sizes in pixels of the input): each query with
    its best class, without queries below `LEAST_SCORE`, non-finite boxes and boxes without extent."""
    scores, boxes = found
    detections = []
    for row, (x, y, wide, high) in zip(scores, boxes.tolist(), strict=True):
        best = int(np.argmax(row))
        score = float(row[best])
        if not (LEAST_SCORE <= score <= 1 and np.isfinite((x, y, wide, high)).all() and wide > 0 and high > 0):
            continue
        left, top = letterbox.undone(x - wide / 2, y - high / 2)
        box = AnnotatedBox(x=left, y=top, width=wide / letterbox.scale, height=high / letterbox.scale)
        detections.append(BoxDetection(video, second, classes[best], box, score))
    return detections


Frames = Callable[[str, Sequence[int]], Iterable["Image"]]
"""The frames of a video at given seconds, in order."""

Progress = Callable[[int, int], None]

_MOST_PIXELS = 4 * 2**30
_STRIDE = 32
_BATCH_OF_LOOKING = 16


@dataclass(frozen=True)
class DetectorPlan:
    """The training of a detector.

    One network for each of `folds` is trained on the videos of all other folds (videos of a group share a fold), for
    `steps` steps of `batch` frames of `width` × `height` pixels (multiples of 32). `weights` is a folder of transformers
    (safetensors; RT-DETR, YOLOS and similar), fine-tuned with a learning rate of 1e-4. Without it a small RT-DETR is
    trained from scratch, with 3e-3. `seed` draws folds, frames and initial weights.

    Raises `InputError` for a value out of range.
    """

    folds: int = 3
    steps: int = 1000
    batch: int = 8
    width: int = 224
    height: int = 128
    weights: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        bounds = (
            ("folds", 2, 20),
            ("steps", 1, 1_000_000),
            ("batch", 1, 256),
            ("width", 32, 2048),
            ("height", 32, 2048),
        )
        for name, low, high in bounds:
            value = getattr(self, name)
            if not low <= value <= high:
                raise InputError(name, found=str(value), expected=f"{low:,} to {high:,}")
        for name in ("width", "height"):
            if getattr(self, name) % _STRIDE:
                raise InputError(name, found=str(getattr(self, name)), expected=f"a multiple of {_STRIDE}")


def folds_of(groups: Mapping[str, str], folds: int, seed: int) -> dict[str, int]:
    """The fold of each video, from 0; `groups` are the videos' groups. Groups are assigned in a random order; folds
    differ by at most one group. Raises `InputError` for fewer groups than folds."""
    names = sorted(set(groups.values()))
    if len(names) < folds:
        found = f"{count_of(len(names), 'group')} of videos"
        raise InputError("folds", found=found, expected=f"at least {folds}, one for each fold")
    order = generator(seed, "detector", "folds").permutation(len(names))
    fold = {names[int(row)]: number % folds for number, row in enumerate(order)}
    return {video: fold[group] for video, group in groups.items()}


def held_out_detections(
    annotations: Sequence[Annotation],
    seconds: Mapping[str, Sequence[int]],
    frames: Frames,
    plan: DetectorPlan,
    groups: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> list[BoxDetection]:
    """The detections in each video, at `seconds`, by the network that was trained without its group.

    Training uses the current boxes, errors included, without covered ones and those outside the frame. `groups` are the
    videos' groups (default: each is its own). `progress` is called with steps done and in all. The same arguments give
    the same detections on the same kind of processor and number of threads.

    Raises `ConfigurationError` if PyTorch or transformers is missing, and `InputError` for too few groups, no boxes,
    unusable weights, and more frames than fit into 4 GB.
    """
    videos = [annotation.video.id for annotation in annotations]
    fold = folds_of({name: (groups or {}).get(name, name) for name in videos}, plan.folds, plan.seed)
    classes = sorted(
        {
            sighting.class_name
            for annotation in annotations
            for sighting in annotation.sightings
            if sighting.box is not None
        }
    )
    if not classes:
        raise InputError("boxes", found="none", expected="boxes to learn from")
    pictures = _pictures(annotations, seconds, frames, plan, classes)
    total, found = plan.folds * plan.steps, []
    for held in range(plan.folds):
        seen = [picture for picture in pictures if fold[picture.video] != held]
        if not any(len(learned_picture.labels) for learned_picture in seen):
            raise InputError(f"fold {held}", found="no boxes in the other folds", expected="boxes to learn from")
        with _seeded(plan.seed + held):
            network = _Network(plan, classes)
            rng = generator(plan.seed, "detector", f"fold {held}")
            for step in range(plan.steps):
                network.learn([seen[int(k)] for k in rng.integers(0, len(seen), plan.batch)], rng)
                if progress is not None and (step % 10 == 9 or step + 1 == plan.steps):
                    progress(held * plan.steps + step + 1, total)
            found += network.look([picture for picture in pictures if fold[picture.video] == held])
    return sorted(found, key=lambda box_detection: (box_detection.video, box_detection.second, -box_detection.score))


@dataclass(frozen=True)
class _LearnedPicture:
    """A frame as input (height × width × 3, uint8) with its boxes: labels, and centres and sizes as shares of the
    input."""

    video: str
    second: int
    pixels: NDArray[np.uint8]
    letterbox: Letterbox
    labels: NDArray[np.int64]
    boxes: NDArray[np.float32]


def _pictures(
    annotations: Sequence[Annotation],
    seconds: Mapping[str, Sequence[int]],
    frames: Frames,
    plan: DetectorPlan,
    classes: Sequence[str],
) -> list[_LearnedPicture]:
    side = plan.width, plan.height
    number = sum(len(seconds.get(one.video.id, ())) for one in annotations)
    if 3 * number * plan.width * plan.height > _MOST_PIXELS:
        most = _MOST_PIXELS // (3 * plan.width * plan.height)
        raise InputError("pictures", found=f"{number:,} of {plan.width} x {plan.height}", expected=f"at most {most:,}")
    found = []
    for annotation in annotations:
        video, by_second = annotation.video, annotation.by_second()
        wanted = sorted(set(seconds.get(video.id, ())))
        for second, picture in zip(wanted, frames(video.id, wanted), strict=True):
            letterbox = Letterbox.of(picture.size, side)
            scale = letterbox.scale * picture.width / video.width, letterbox.scale * picture.height / video.height
            labels, boxes = [], []
            for sighting in by_second.get(second, []):
                if sighting.box is None or sighting.box.area <= 0:
                    continue
                x, y = (c * s for c, s in zip(sighting.box.centre, scale, strict=True))
                box = np.array(
                    [
                        x + letterbox.left,
                        y + letterbox.top,
                        sighting.box.width * scale[0],
                        sighting.box.height * scale[1],
                    ]
                )
                box /= np.array([*side, *side])
                if (box[:2] > 0).all() and (box[:2] < 1).all():
                    labels.append(classes.index(sighting.class_name))
                    boxes.append(np.minimum(box, 1.0))
            fitted = letterbox.fitted(picture.convert("RGB"), side)[0].transpose(1, 2, 0)
            found.append(
                _LearnedPicture(
                    video.id, second, np.rint(fitted * 255).astype(np.uint8), letterbox, np.array(labels, dtype=np.int64),
                    np.array(boxes, dtype=np.float32).reshape(-1, 4),
                )
            )  # fmt: skip
    return found


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seeds PyTorch within the context, and restores its state afterwards."""
    torch = _torch()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _torch() -> Any:
    try:
        import torch
        import transformers  # noqa: F401 - asked for before hours of work
    except ImportError as error:
        raise ConfigurationError(f"the detector needs PyTorch and transformers: {pip_install('train')}") from error
    return torch


class _Network:
    def __init__(self, plan: DetectorPlan, classes: Sequence[str]) -> None:
        self._torch, self._plan, self.classes = _torch(), plan, tuple(classes)
        self._mean, self._spread = np.full(3, 0.45, np.float32), np.full(3, 0.25, np.float32)
        if plan.weights is None:
            self._model = _from_scratch(len(classes))
            rate = 3e-3
        else:
            self._model = _from_weights(plan.weights, classes)
            self._mean, self._spread = _normalisation(plan.weights)
            rate = 1e-4
        optim = self._torch.optim
        self._optimiser = optim.AdamW(self._model.parameters(), lr=rate, weight_decay=1e-4)
        self._rates = optim.lr_scheduler.OneCycleLR(self._optimiser, rate, total_steps=plan.steps + 1, pct_start=0.1)
        self.losses: list[float] = []

    def learn(self, pictures: Sequence[_LearnedPicture], rng: np.random.Generator) -> None:
        """One training step; frames are mirrored at random along both axes and vary in brightness."""
        torch = self._torch
        pixels, labels = [], []
        for picture in pictures:
            light = np.float32(rng.uniform(0.8, 1.2) / 255)
            values, boxes = np.asarray(picture.pixels * light, dtype=np.float32), picture.boxes.copy()
            for axis in (1, 0):
                if rng.random() < 0.5:
                    values = np.flip(values, axis)
                    boxes[:, 1 - axis] = 1 - boxes[:, 1 - axis]
            pixels.append(self._normal(values))
            labels.append({"class_labels": torch.from_numpy(picture.labels), "boxes": torch.from_numpy(boxes)})
        self._model.train()
        loss = self._model(torch.from_numpy(np.stack(pixels)), labels=labels).loss
        self._optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), 0.5)
        self._optimiser.step()
        self._rates.step()
        self.losses.append(loss.item())
        if not math.isfinite(self.losses[-1]):
            raise InputError(
                self._plan.weights, "training", found="a loss that is not finite", expected="other weights"
            )

    def look(self, pictures: Sequence[_LearnedPicture]) -> list[BoxDetection]:
        """The detections with a score of `LEAST_SCORE` or more."""
        torch, found = self._torch, []
        self._model.eval()
        scale = np.array([self._plan.width, self._plan.height] * 2, dtype=np.float32)
        for start in range(0, len(pictures), _BATCH_OF_LOOKING):
            some = pictures[start : start + _BATCH_OF_LOOKING]
            values = np.stack(
                [self._normal(np.asarray(learned_picture.pixels / 255, dtype=np.float32)) for learned_picture in some]
            )
            with torch.no_grad():
                seen = self._model(torch.from_numpy(values))
            for one, logits, boxes in zip(some, seen.logits.numpy(), seen.pred_boxes.numpy(), strict=True):
                scores = probabilities(logits, len(self.classes))
                found += located(one.video, one.second, (scores, boxes * scale), self.classes, one.letterbox)
        return found

    def _normal(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.ascontiguousarray(((values - self._mean) / self._spread).transpose(2, 0, 1))


def _from_scratch(classes: int) -> Any:
    """RT-DETR with 0.3 million parameters: a residual network of three stages, features with strides of 8 and 16, two
    decoder layers, 20 queries."""
    from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrResNetConfig

    width, channels = 48, [24, 48, 64]
    backbone = RTDetrResNetConfig(
        embedding_size=channels[0], hidden_sizes=channels, depths=[1, 1, 1], layer_type="basic",
        out_features=["stage2", "stage3"],
    )  # fmt: skip
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 3, "decoder_layers": 2, "num_queries": 20}
    sizes = {"encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "encoder_hidden_dim": width, "d_model": width}
    config = RTDetrConfig(
        backbone_config=backbone, num_labels=classes, encoder_in_channels=channels[1:], feat_strides=[8, 16],
        num_feature_levels=2, decoder_in_channels=[width, width], num_denoising=20, hidden_expansion=0.5,
        encode_proj_layers=[1], anchor_image_size=None, **heads, **sizes,
    )  # fmt: skip
    return RTDetrForObjectDetection(config)


def _from_weights(folder: Path, classes: Sequence[str]) -> Any:
    from transformers import AutoModelForObjectDetection

    if not (folder / "config.json").is_file() or not list(folder.glob("*.safetensors")):
        raise InputError(
            folder, found="no config.json and *.safetensors", expected="a detector's folder (transformers)"
        )
    names = dict(enumerate(classes))
    try:
        return AutoModelForObjectDetection.from_pretrained(
            str(folder), id2label=names, label2id={name: number for number, name in names.items()},
            ignore_mismatched_sizes=True, local_files_only=True, use_safetensors=True, trust_remote_code=False,
        )  # fmt: skip
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        found = " ".join(str(error).split())[:120]
        raise InputError(folder, found=found, expected="a detector of transformers (RT-DETR, YOLOS, …)") from error


class _Processor(BaseModel):
    """The normalisation in `preprocessor_config.json`, with transformers' defaults."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)
    do_normalize: bool = False
    image_mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    image_std: tuple[PositiveFloat, PositiveFloat, PositiveFloat] = (0.229, 0.224, 0.225)


def _normalisation(folder: Path) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation by which the weights' training images were normalised; 0 and 1 for none."""
    file = folder / "preprocessor_config.json"
    processor = read_model(file, _Processor, "the settings of an image processor") if file.is_file() else _Processor()
    mean, spread = (processor.image_mean, processor.image_std) if processor.do_normalize else ((0, 0, 0), (1, 1, 1))
    return np.array(mean, dtype=np.float32), np.array(spread, dtype=np.float32)
