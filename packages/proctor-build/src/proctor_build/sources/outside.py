"""Which frames of a procedure are outside the body: a small classifier of colour and texture.

It is fitted on stretches of videos that people have labelled, and reports its performance on held-out videos.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from proctor.core import FrozenModel, InputError, content_hash, generator, need_extra
from proctor.stats import Estimate, Resampling, mean_interval

Pixels = NDArray[np.uint8]
Looks = NDArray[np.float64]

LOOK_SIDE = 160
"""The longer side, in pixels, of the frames that are classified."""
LOOK_VERSION = 1
_FEWEST = 3  # videos (groups) that show outside, and inside, below which nothing can be said of others
_FOLDS = 5
_STRENGTH = 0.3  # inverse of the penalty


def look_of(pixels: Pixels) -> Looks:
    """57 numbers of one picture's colour and texture: how bright, saturated and red it is; its hues; how dark its
    corners are, as an endoscope leaves them; how strong its edges are and how many run straight across or down, as
    walls, screens and tables do; and its local binary patterns (Ojala et al. 2002, doi 10.1109/TPAMI.2002.1017623).
    """
    need_extra("vision", "finding what is outside of the body", "cv2")
    import cv2

    hsv = cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV).astype(np.float32)
    hue, saturation, value = hsv[..., 0] / 180, hsv[..., 1] / 255, hsv[..., 2] / 255
    lab = cv2.cvtColor(pixels, cv2.COLOR_RGB2LAB).astype(np.float32)
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    seen = value > 0.12
    total = pixels.astype(np.float32).sum(axis=2)
    red = np.where(seen, pixels[..., 0] / np.maximum(total, 1), 1 / 3)
    parts = [
        _spread(value),
        _spread(saturation),
        _spread(red),
        [float(lab[..., k].mean()) / 255 for k in (1, 2)] + [float(lab[..., k].std()) / 64 for k in (1, 2)],
        [float(np.mean(~seen)), float(np.mean((value > 0.9) & (saturation < 0.2)))],
        _hues(hue, saturation * value),
        [_corners(value)],
        _edges(grey),
        _patterns(grey),
    ]
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])


def _spread(plane: NDArray[Any]) -> list[float]:
    return [float(plane.mean()), float(plane.std()), *map(float, np.quantile(plane, (0.1, 0.5, 0.9)))]


def _hues(hue: NDArray[Any], weight: NDArray[Any]) -> NDArray[Any]:
    bins = np.minimum((hue * 12).astype(np.intp), 11)
    return np.sqrt(np.bincount(bins.ravel(), weights=weight.ravel(), minlength=12) / weight.size)


def _corners(value: NDArray[Any]) -> float:
    """The brightness of the corners relative to the middle."""
    down, across = max(1, value.shape[0] // 8), max(1, value.shape[1] // 8)
    corners = np.mean(
        [part.mean() for half in (value[:down], value[-down:]) for part in (half[:, :across], half[:, -across:])]
    )
    middle = value[2 * down : -2 * down, 2 * across : -2 * across]
    return float(corners / (float(middle.mean()) + 0.05)) if middle.size else 1.0


def _edges(grey: NDArray[Any]) -> list[float]:
    import cv2

    across = cv2.Sobel(grey, cv2.CV_32F, 1, 0)
    down = cv2.Sobel(grey, cv2.CV_32F, 0, 1)
    strength = np.hypot(across, down) / 255
    turn = np.minimum((np.mod(np.arctan2(down, across), np.pi) / np.pi * 12 + 0.5).astype(np.intp) % 12, 11)
    turns = np.bincount(turn.ravel(), weights=strength.ravel(), minlength=12) + 1e-6
    share = turns / turns.sum()
    sharp = float(cv2.Laplacian(grey, cv2.CV_32F).var())
    strengths = [float(strength.mean()), *map(float, np.quantile(strength, (0.5, 0.9, 0.99)))]
    return [
        *strengths,
        math.log1p(sharp),
        float(share[0] + share[6]),
        float(share.max()),
        float(-(share * np.log(share)).sum()),
    ]


def _patterns(grey: NDArray[Any]) -> NDArray[Any]:
    """Shares of rotation-invariant uniform local binary patterns, at two scales."""
    found = []
    for step in (1, 3):
        middle = grey[step:-step, step:-step].astype(np.int16)
        rows, columns = grey.shape
        around = [(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]
        bits = np.stack(
            [
                grey[step + step * y : rows - step + step * y, step + step * x : columns - step + step * x] >= middle
                for y, x in around
            ]
        )
        changes = (bits != np.roll(bits, 1, axis=0)).sum(axis=0)
        code = np.where(changes <= 2, bits.sum(axis=0), 9)
        found.append(np.bincount(code.ravel(), minlength=10)[[0, 2, 4, 6, 8, 9]] / max(1, code.size))
    return np.concatenate(found)


class HeldOut(FrozenModel):
    """The performance of a finder on held-out videos, at thresholds chosen without them. Shares of frames with 95 %
    intervals over groups; an end is None if there are too few."""

    sensitivity: float
    sensitivity_low: float | None
    sensitivity_high: float | None
    specificity: float
    specificity_low: float | None
    specificity_high: float | None
    outside: int
    inside: int
    groups: int


class OutsideFinder(FrozenModel):
    """A logistic regression on features. Frames with a score of `threshold` or more are proposed as outside: the highest
    threshold that finds the share `target` of the labelled ones in cross-validation by group."""

    version: Literal[1] = 1
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[float, ...]
    intercept: float
    threshold: float = Field(gt=0, lt=1)
    target: float = Field(gt=0, lt=1)
    seed: int
    held_out: HeldOut

    def scores(self, looks: Looks) -> NDArray[np.float64]:
        """The probability of each frame to be outside, 0 to 1."""
        return _scores((np.array(self.mean), np.array(self.scale), np.array(self.weights), self.intercept), looks)

    @property
    def hash(self) -> str:
        """Its identity in manifests."""
        return content_hash(self)


_Fitted = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]


def fit_finder(
    looks: Looks,
    outside: NDArray[np.bool_],
    groups: Sequence[str],
    *,
    target: float = 0.98,
    seed: int = 0,
    location: Path | None = None,
) -> OutsideFinder:
    """Fits a finder to labelled frames: their features (n × features), whether each is outside, and its group (patient).

    Groups are assigned to up to five folds, those with outside frames evenly. The threshold is the highest that finds
    the share `target` of all outside frames, each scored by a regression fitted without its fold. For `held_out` the
    threshold, too, is chosen without the fold that it is applied to. Each group has the same weight.

    Raises `InputError` (naming `location`) if fewer than three groups show the outside, or the inside.
    """
    names = np.asarray(groups)
    for what, mask in (("outside", outside), ("inside", ~outside)):
        there = len(set(names[mask].tolist()))
        if there < _FEWEST:
            found = f"{there} of {len(set(groups))} labelled videos that show {what} of the body"
            raise InputError(
                location, found=found, expected=f"at least {_FEWEST} videos that do, and {_FEWEST} that show the other"
            )
    fold = _folds(names, outside, seed)
    weights = _weights(names, outside)
    apart = _cross_scores(looks, outside, weights, fold)
    threshold = _threshold(apart[outside], target)
    held = np.zeros(len(looks), dtype=bool)
    for one in np.unique(fold):
        rest = fold != one
        inner = _cross_scores(looks[rest], outside[rest], weights[rest], fold[rest])
        held[~rest] = apart[~rest] >= _threshold(inner[outside[rest]], target)
    mean, scale, slopes, intercept = _fit(looks, outside, weights)
    return OutsideFinder(
        mean=tuple(mean.tolist()),
        scale=tuple(scale.tolist()),
        weights=tuple(slopes.tolist()),
        intercept=intercept,
        threshold=threshold,
        target=target,
        seed=seed,
        held_out=_held_out(held, outside, groups, seed),
    )


def _held_out(held: NDArray[np.bool_], outside: NDArray[np.bool_], groups: Sequence[str], seed: int) -> HeldOut:
    plan = Resampling(seed=seed).within(0.0, 1.0)

    def share(mask: NDArray[np.bool_], hits: NDArray[np.bool_]) -> Estimate:
        return mean_interval(hits[mask].astype(float), [groups[int(k)] for k in np.flatnonzero(mask)], plan)

    found, left = share(outside, held), share(~outside, ~held)
    return HeldOut(
        sensitivity=found.value or 0.0,
        sensitivity_low=found.ci_low,
        sensitivity_high=found.ci_high,
        specificity=left.value or 0.0,
        specificity_low=left.ci_low,
        specificity_high=left.ci_high,
        outside=found.n,
        inside=left.n,
        groups=len(set(groups)),
    )


def _folds(names: NDArray[Any], outside: NDArray[np.bool_], seed: int) -> NDArray[np.intp]:
    """The fold of each frame. Groups are assigned in a random order, those with both kinds first, so that each fold
    has both."""
    known = sorted(set(names.tolist()))
    shown = {name: (bool(outside[names == name].any()), bool((~outside[names == name]).any())) for name in known}
    order = [known[int(k)] for k in generator(seed, "outside", "folds").permutation(len(known))]
    count = min(_FOLDS, *(sum(one[k] for one in shown.values()) for k in (0, 1)))
    row: dict[str, int] = {}
    for name in sorted((one for one in order if shown[one][0]), key=lambda one: not shown[one][1]):
        row[name] = len(row) % count
    for name in (one for one in order if not shown[one][0]):
        inside = [sum(shown[one][1] for one, fold in row.items() if fold == k) for k in range(count)]
        row[name] = int(np.argmin(inside))
    return np.array([row[str(name)] for name in names], dtype=np.intp)


def _weights(names: NDArray[Any], outside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Weights by which all groups of a kind, and both kinds, count the same."""
    weights = np.zeros(len(names))
    for kind in (outside, ~outside):
        groups, inverse, counts = np.unique(names[kind], return_inverse=True, return_counts=True)
        weights[kind] = 1 / counts[inverse] / len(groups)
    return weights * len(names) / 2


def _fit(looks: Looks, outside: NDArray[np.bool_], weights: NDArray[np.float64]) -> _Fitted:
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    mean = np.average(looks, axis=0, weights=weights)
    scale = np.sqrt(np.average((looks - mean) ** 2, axis=0, weights=weights)) + 1e-6
    model = LogisticRegression(C=_STRENGTH, solver="newton-cholesky", max_iter=200)
    with threadpool_limits(1):  # small, and the same to the last digit on any number of cores
        model.fit((looks - mean) / scale, outside, sample_weight=weights)
    return mean, scale, np.asarray(model.coef_[0], dtype=np.float64), float(model.intercept_[0])


def _scores(fitted: _Fitted, looks: Looks) -> NDArray[np.float64]:
    mean, scale, slopes, intercept = fitted
    reach = np.clip((looks - mean) / scale, -6, 6) @ slopes + intercept
    return np.asarray(1 / (1 + np.exp(-reach)), dtype=np.float64)


def _cross_scores(
    looks: Looks, outside: NDArray[np.bool_], weights: NDArray[np.float64], fold: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Each frame's score by a regression fitted without its fold."""
    found = np.zeros(len(looks))
    for one in np.unique(fold):
        rest = fold != one
        found[~rest] = _scores(_fit(looks[rest], outside[rest], weights[rest]), looks[~rest])
    return found


def _threshold(scores: NDArray[np.float64], target: float) -> float:
    """The highest threshold that at least this share of the scores reaches."""
    row = math.ceil(target * len(scores) - 1e-9) - 1
    return float(np.clip(np.sort(scores)[::-1][max(row, 0)], 1e-6, 1 - 1e-6))
