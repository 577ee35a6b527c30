"""The finder of pictures outside the body: what it is fitted on, how its threshold is chosen, what it says of
itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from proctor.core import InputError
from proctor_build.sources.outside import OutsideFinder, _folds, _threshold, fit_finder, look_of
from tests.support.rooms import made_videos


def looks(groups: int, each: int, seed: int, apart: float = 4.0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Five numbers a picture: outside ones lie `apart` from the others in the first, each group a little beside."""
    rng = np.random.default_rng(seed)
    outside = np.tile(np.arange(each) % 2 == 0, groups)
    beside = np.repeat(rng.normal(0, 0.5, groups), each)
    found = rng.normal(0, 1, (groups * each, 5))
    found[:, 0] += apart * outside + beside
    return found, outside, [f"g{k // each}" for k in range(groups * each)]


@pytest.mark.parametrize(("target", "expected"), [(0.5, 0.8), (0.6, 0.7), (0.8, 0.6), (0.9, 0.1), (0.999, 0.1)])
def test_the_threshold_is_the_highest_that_finds_the_share(target: float, expected: float) -> None:
    """Of 0.9, 0.8, 0.7, 0.6 … each threshold t finds those at or above t; by hand for five scores."""
    scores = np.array([0.7, 0.9, 0.1, 0.8, 0.6])
    row = math.ceil(target * 5) - 1
    assert _threshold(scores, target) == sorted(scores, reverse=True)[row]
    assert (scores >= _threshold(scores, target)).mean() >= target
    by_hand = {0.5: 0.7, 0.6: 0.7, 0.8: 0.6, 0.9: 0.1, 0.999: 0.1}
    assert _threshold(scores, target) == by_hand[target], expected


@pytest.mark.parametrize("seed", range(30))
def test_every_fold_shows_both_kinds(seed: int) -> None:
    """Groups that show outside only, inside only, or both, in any numbers with three of each kind."""
    rng = np.random.default_rng(seed)
    while True:
        shows = rng.integers(0, 3, int(rng.integers(3, 12)))
        if (shows != 0).sum() >= 3 and (shows != 1).sum() >= 3:
            break
    pairs = [
        (f"g{k}", out) for k, kind in enumerate(shows) for out in {0: [False], 1: [True], 2: [True, False]}[int(kind)]
    ]
    names, outside = np.array([name for name, _ in pairs]), np.array([out for _, out in pairs])
    fold = _folds(names, outside, seed)
    assert len(set(fold.tolist())) >= 3
    for one in set(fold.tolist()):
        assert set(outside[fold == one].tolist()) == {True, False}
    assert all(len(set(fold[names == name].tolist())) == 1 for name in set(names.tolist()))


def test_what_is_held_out_says_what_new_videos_will_show() -> None:
    """Over 6 fits, new groups lie within the stated intervals, and the target is nearly reached."""
    inside, reached = 0, []
    for seed in range(6):
        finder = fit_finder(*looks(16, 12, seed), target=0.95, seed=seed)
        new, outside, _ = looks(200, 10, 1000 + seed)
        hit = finder.scores(new) >= finder.threshold
        sensitivity, specificity = hit[outside].mean(), 1 - hit[~outside].mean()
        held = finder.held_out
        assert held.sensitivity_low is not None
        assert held.sensitivity_high is not None
        assert held.specificity_low is not None
        assert held.specificity_high is not None
        inside += held.sensitivity_low - 0.01 <= sensitivity <= held.sensitivity_high + 0.01
        inside += held.specificity_low - 0.01 <= specificity <= held.specificity_high + 0.01
        reached.append(sensitivity)
    assert inside >= 10  # of 12
    assert np.mean(reached) == pytest.approx(0.95, abs=0.03)


def test_labels_that_mean_nothing_are_seen_to_be_worth_nothing() -> None:
    found, outside, groups = looks(12, 20, 3, apart=0.0)
    held = fit_finder(found, outside, groups, target=0.9).held_out
    assert abs(held.sensitivity + held.specificity - 1) < 0.15


def test_the_same_labels_and_seed_give_the_same_finder_and_it_survives_json() -> None:
    first, again = (fit_finder(*looks(6, 10, 1), seed=4) for _ in range(2))
    assert first == again
    assert OutsideFinder.model_validate_json(first.model_dump_json()) == first
    assert first.hash == OutsideFinder.model_validate_json(first.model_dump_json()).hash
    assert first.hash != fit_finder(*looks(6, 10, 1), seed=5, target=0.9).hash


def test_too_few_videos_are_refused() -> None:
    found, outside, groups = looks(4, 10, 1)
    kept = ~outside | np.isin(groups, ["g0", "g1"])
    with pytest.raises(InputError) as raised:
        fit_finder(found[kept], outside[kept], [name for name, keep in zip(groups, kept, strict=True) if keep])
    assert str(raised.value) == (
        "found 2 of 4 labelled videos that show outside of the body, "
        "expected at least 3 videos that do, and 3 that show the other"
    )


def test_made_rooms_are_told_from_made_tissue() -> None:
    made = made_videos(4, 8, 11, size=(96, 64))
    found = np.stack([look_of(one) for one in made.pictures])
    assert found.shape == (32, 54)
    assert np.isfinite(found).all()
    finder = fit_finder(found, made.outside, made.groups, target=0.9)
    assert finder.held_out.groups == 4
    hit = finder.scores(found) >= finder.threshold
    assert hit[made.outside].mean() > 0.8


@pytest.mark.parametrize("shape", [(1, 1), (2, 200), (9, 3), (160, 90)])
def test_pictures_of_any_shape_have_looks(shape: tuple[int, int]) -> None:
    assert np.isfinite(look_of(np.full((*shape, 3), 7, dtype=np.uint8))).all()
