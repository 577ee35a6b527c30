"""Presence by several annotators: the table, the decisions, the votes still needed, and who answers without looking."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from proctor.core import InputError
from proctor.stats import Resampling
from proctor_build.annotators.presence import PresenceVote, clip_start, clips_of, estimate_presence

PLAN = Resampling(draws=100)
CLASSES = {"Needle": 0.3, "Clip": 0.15, "Sponge": 0.05}
GOOD = {"ada": (0.95, 0.97), "bob": (0.9, 0.95), "cyd": (0.85, 0.96)}


def simulated(
    seed: int, rights: dict[str, tuple[float, float]], videos: int = 12
) -> tuple[list[PresenceVote], dict[tuple[str, int, str], bool]]:
    rng = np.random.default_rng(seed)
    truth = {
        (f"v{video:02d}", 5 * clip, name): bool(rng.random() < share)
        for video in range(videos)
        for clip in range(12)
        for name, share in CLASSES.items()
    }
    votes = [
        PresenceVote(*key, who, bool(rng.random() < (yes if there else 1 - no)))
        for key, there in truth.items()
        for who, (yes, no) in rights.items()
    ]
    return votes, truth


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sim-000", "item: found 'sim-000', expected VIDEO@START with the id of a source: op@2, v"),
        ("w@5", "item: found 'w@5', expected VIDEO@START"),
        ("v@7", "item: found 'v@7', expected a start that is a multiple of 5 s, v@10 at most: the video lasts 12.0 s"),
        ("v@-5", "item: found 'v@-5', expected a start"),
        ("v@٥", "item: found 'v@٥', expected a start"),
        ("v@15", "item: found 'v@15', expected a start"),
    ],
)
def test_a_clip_that_no_video_has_is_told(name: str, said: str) -> None:
    videos = {"v": 12.0, "op@2": 20.0}
    assert clip_start("op@2@15", videos) == ("op@2", 15)
    with pytest.raises(InputError) as error:
        clip_start(name, videos)
    assert said in str(error.value)


def test_what_an_adjudicator_settled_is_no_estimate() -> None:
    votes, _ = simulated(1, GOOD)
    due = estimate_presence(votes, plan=PLAN).due[0]
    key = (due.video, due.start, due.class_name)
    for there in (True, False):
        report = estimate_presence(votes, settled={key: there}, plan=PLAN)
        (one,) = [one for one in report.clips if (one.video, one.start, one.class_name) == key]
        assert (one.present, one.why, one.entropy, one.votes) == (there, "", 0.0, due.votes)


def test_decisions_and_the_votes_that_are_due() -> None:
    votes, truth = simulated(1, GOOD)
    report = estimate_presence(votes, plan=PLAN)
    assert [(one.video, one.start, one.class_name) for one in report.clips] == sorted(truth)
    settled = [one for one in report.clips if not one.why]
    wrong = sum(one.present != truth[one.video, one.start, one.class_name] for one in settled)
    assert len(settled) > 0.85 * len(truth)
    assert wrong <= 0.02 * len(settled)
    assert report.due
    assert all(one.present is None for one in report.due)
    assert [one.entropy for one in report.due] == sorted((one.entropy for one in report.due), reverse=True)
    unsure = {(one.yes, one.votes) for one in report.due}
    assert (0, 3) not in unsure  # all say no
    assert (3, 3) not in unsure
    assert all(one.low is not None and one.low <= one.probability <= (one.high or 0) + 1e-9 for one in report.clips)
    assert not [one for one in report.annotators if one.flag]
    assert report.prevalence == pytest.approx(CLASSES, abs=0.1)


def test_another_vote_settles_a_clip() -> None:
    votes, truth = simulated(2, GOOD)
    due = estimate_presence(votes, plan=PLAN).due
    more = [
        PresenceVote(one.video, one.start, one.class_name, who, truth[one.video, one.start, one.class_name])
        for one in due
        for who in ("ref1", "ref2")
    ]
    assert len(estimate_presence([*votes, *more], plan=PLAN).due) < len(due) / 2


def test_one_vote_never_decides() -> None:
    votes, _ = simulated(3, GOOD)
    alone = PresenceVote("v00", 60, "Needle", "ada", True)
    report = estimate_presence([*votes, alone], plan=PLAN)
    assert next(one for one in report.clips if one.start == 60).why == "1 of 2 votes"


def test_lazy_hostile_and_copying_annotators_are_flagged() -> None:
    votes, truth = simulated(4, GOOD | {"dan": (0.88, 0.93), "lazy": (0.0, 1.0), "foe": (0.1, 0.08)})
    votes += [replace(one, annotator="zoe") for one in votes if one.annotator == "bob"]
    report = estimate_presence(votes, plan=PLAN)
    assert {one.annotator: one.flag for one in report.annotators if one.flag} == {
        "foe": "inverted", "lazy": "uninformative", "zoe": "copies",
    }  # fmt: skip
    by_name = {one.annotator: one for one in report.annotators}
    assert "no in 100%" in by_name["lazy"].why
    assert "bob" in by_name["zoe"].why
    assert by_name["ada"].agrees > 0.93
    assert by_name["foe"].agrees < 0.15
    settled = [one for one in report.clips if not one.why]
    assert sum(one.present != truth[one.video, one.start, one.class_name] for one in settled) <= 0.02 * len(settled)


def test_two_videos_give_no_interval_and_say_so() -> None:
    report = estimate_presence(simulated(5, GOOD, videos=2)[0], plan=PLAN)
    assert {one.why for one in report.annotators} == {"too few videos for an interval"}
    assert all(one.low is None for one in report.clips)


def test_a_clip_of_every_five_seconds() -> None:
    assert clips_of("a", 15.0) == ["a@0", "a@5", "a@10"]
    assert clips_of("a", 15.2)[-1] == "a@15"
