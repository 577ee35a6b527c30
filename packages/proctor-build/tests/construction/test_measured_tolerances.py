"""Tolerances from two annotators: the estimator by simulation and by hand, and what the questions of FOCUS are given."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from proctor.core import InputError, write_whole
from proctor.stats import Resampling, annotation_tolerance
from proctor.tracks import AnnotatedBox, AnnotatedMoment, AnnotatedVideo, Annotation, Sighting
from proctor_build.annotators import compare_tracks, measured_tolerances, tolerance_lines
from tests.support.program import proctor
from tests.support.simulation import assert_share, repetitions

SECONDS = 120
CLASSES = ("Needle", "Clip", "Mesh", "Sponge")


def annotated(number: int, shift: float, rng: np.random.Generator) -> Annotation:
    """Four objects that come and go; `shift` is the standard deviation of an annotator's error in seconds."""
    video = AnnotatedVideo(id=f"op-{number}", file=f"op-{number}.mp4", width=320, height=180, seconds=SECONDS, fps=10)
    sightings, moments = [], []
    for row, name in enumerate(CLASSES):
        box = AnnotatedBox(x=10.0 + 70 * row, y=20, width=30, height=30)
        first, last = 12 + 9 * row + number % 3, 70 + 9 * row
        sightings += [
            Sighting(second=s, instance=name.lower(), class_name=name, box=box) for s in range(first, last + 1)
        ]
        for kind, at in (("insertion", first), ("retrieval", last)):
            time = float(max(0.0, at + rng.normal(0, shift)))
            moments.append(AnnotatedMoment(kind=kind, instance=name.lower(), class_name=name, time=time))  # type: ignore[arg-type]
    return Annotation(video=video, sightings=tuple(sightings), moments=tuple(moments))


def two(videos: int, shift: float, seed: int = 0) -> list[tuple[Annotation, Annotation]]:
    rng = np.random.default_rng(seed)
    return [(annotated(number, shift, rng), annotated(number, shift, rng)) for number in range(videos)]


def test_the_quantile_and_its_correction_by_hand() -> None:
    # (20 + 1) · 0.95 = 19.95: between the 19th and the 20th of 20 differences
    differences = [(-1) ** n * float(n) for n in range(1, 21)]
    found = annotation_tolerance(differences, np.repeat(list("abcde"), 4))
    assert found.apart.value == pytest.approx(19.95)
    assert found.tolerance.value == pytest.approx(19.95 / np.sqrt(2))
    assert (found.apart.n, found.apart.groups) == (20, 5)
    assert found.apart.ci_low is not None
    assert found.apart.ci_low < 19.95
    assert found.apart.ci_high == 20.0


@pytest.mark.parametrize(
    ("differences", "videos", "quantile"),
    [(19, 5, 0.95), (40, 4, 0.95), (60, 6, 0.99)],
    ids=["few pairs", "few videos", "few for the quantile"],
)
def test_with_too_few_there_is_no_tolerance(differences: int, videos: int, quantile: float) -> None:
    groups = [f"v{n % videos}" for n in range(differences)]
    found = annotation_tolerance(np.linspace(0, 1, differences).tolist(), groups, quantile=quantile)
    assert found.tolerance.value is found.apart.value is found.apart.ci_low is None
    assert (found.apart.n, found.apart.groups) == (differences, videos)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match=r"quantile: found 0\.3, expected a share from 0\.5 to 0\.99"):
        annotation_tolerance([1.0], ["v"], quantile=0.3)
    with pytest.raises(InputError, match="difference"):
        annotation_tolerance([float("nan")], ["v"])


def test_names_and_order_of_videos_do_not_matter() -> None:
    rng = np.random.default_rng(4)
    differences, videos = rng.normal(0, 1, 60), np.repeat(np.arange(10), 6)
    shuffled = rng.permutation(60)
    found = annotation_tolerance(differences.tolist(), videos)
    assert found == annotation_tolerance((-differences[shuffled]).tolist(), [f"z{9 - v}" for v in videos[shuffled]])


@pytest.mark.simulation
@pytest.mark.parametrize(("videos", "each", "alike"), [(8, 8, 0.0), (24, 8, 0.0), (24, 8, 0.3)])
def test_an_exact_answer_is_right_in_95_of_100_and_the_interval_holds(videos: int, each: int, alike: float) -> None:
    """Errors are normal; `alike` is the share of the variance that all differences of a video have in common."""
    rng = np.random.default_rng([videos, int(10 * alike)])
    times = repetitions(200)
    right, held = [], 0
    for _ in range(times):
        own = [
            rng.normal(0, np.sqrt(alike), (videos, 1)) + rng.normal(0, np.sqrt(1 - alike), (videos, each)) for _ in "ab"
        ]
        found = annotation_tolerance(
            (own[0] - own[1]).ravel().tolist(), np.repeat(np.arange(videos), each), plan=Resampling(draws=300)
        ).tolerance
        assert found.value is not None
        assert found.ci_low is not None
        assert found.ci_high is not None
        right.append(float(np.mean(np.abs(rng.normal(0, 1, 2000)) <= found.value)))
        held += found.ci_low <= 1.96 <= found.ci_high
    assert np.mean(right) == pytest.approx(0.95, abs=0.012)
    assert_share(held, times, 0.85, 0.99)


def test_what_is_measured_by_hand() -> None:
    pairs = two(6, 0.0)
    a, b = pairs[0]
    moved = b.model_copy(
        update={
            "moments": tuple(
                one.model_copy(update={"time": one.time + (3.0 if one.kind == "insertion" else -1.0)})
                for one in b.moments
            ),
            "sightings": tuple(one for one in b.sightings if (one.class_name, one.second) != ("Needle", 12)),
        }
    )
    found = measured_tolerances(
        [(one, moved if one is a else other, compare_tracks(one, other)) for one, other in pairs]
    )
    assert found.kinds["moment"].apart.n == 6 * 8
    # 44 of 48 are 0 or 1 apart, 4 are 3: (49 · 0.95) = 46.55 is among the threes
    assert found.moment_apart == pytest.approx(3.0)
    assert found.time_s == 2.2  # 3 / √2 = 2.13, up to a tenth
    assert found.kinds["share"].apart.value == pytest.approx(0.0, abs=0.9)
    assert found.share_pp == 1.0
    assert found.kinds["count"].apart.value == 0.0
    lines = tolerance_lines(found)
    assert lines[0].startswith("times of insertion and retrieval: 95 % of 48 pairs in 6 videos within 3.00 ")
    few = tolerance_lines(measured_tolerances([(*pairs[0], compare_tracks(*pairs[0]))]))
    assert (
        few[0]
        == "times of insertion and retrieval: no tolerance from 8 pairs in 1 video, expected at least 20 pairs in 5 videos"
    )


def write_all(folder: Path, annotations: list[Annotation]) -> Path:
    for one in annotations:
        write_whole(folder / f"{one.video.id}.json", json.dumps(one.model_dump(mode="json")))
    return folder


def thresholds(folder: Path) -> set[float]:
    """The tolerances of times in the questions; a duration has twice that of a time."""
    references = json.loads((folder / "references.json").read_text())
    timed = [one for one in references if one["format"] == "time" and one["rule"] not in ("stay", "one-stay")]
    assert timed
    return {one["format_kwargs"]["threshold_seconds"] for one in timed}


def test_questions_get_the_tolerance_of_the_two_annotators(tmp_path: Path) -> None:
    pairs = two(6, 2.0)
    mine, theirs = (write_all(tmp_path / name, [pair[n] for pair in pairs]) for n, name in enumerate("ab"))
    apart = [abs(x.time - y.time) for one, other in pairs for x, y in zip(one.moments, other.moments, strict=True)]
    expected = np.ceil(10 * np.quantile(apart, 0.95, method="weibull") / np.sqrt(2)) / 10
    command: list[str | Path] = ["build", "focus", mine, "--allow-findings", "--out"]
    said = proctor(*command, tmp_path / "measured", "--second-annotator", theirs)
    assert said.returncode == 0, said.stderr
    assert [*thresholds(tmp_path / "measured")] == pytest.approx([expected])
    assert f"tolerances: times {expected:g} s, from the annotators' differences; shares 1 points" in said.stdout
    record = json.loads((tmp_path / "measured" / "build.json").read_text())
    assert record["plan"]["time_tolerance"] == pytest.approx(expected)
    assert proctor(*command, tmp_path / "published").returncode == 0
    assert thresholds(tmp_path / "published") != thresholds(tmp_path / "measured")


def test_with_too_few_questions_have_the_published_tolerance(tmp_path: Path) -> None:
    pairs = two(2, 2.0)
    mine, theirs = (write_all(tmp_path / name, [pair[n] for pair in pairs]) for n, name in enumerate("ab"))
    said = proctor("build", "focus", mine, "--allow-findings", "--out", tmp_path / "out", "--second-annotator", theirs)
    assert said.returncode == 0, said.stderr
    assert "no tolerance from 16 pairs in 2 videos, expected at least 20 pairs in 5 videos" in said.stdout
    assert "tolerances: times as published; shares as published" in said.stdout


def test_a_video_that_one_annotator_lacks_is_named(tmp_path: Path) -> None:
    pairs = two(3, 0.0)
    mine = write_all(tmp_path / "a", [one for one, _ in pairs])
    theirs = write_all(tmp_path / "b", [other for _, other in pairs[:2]])
    said = proctor("build", "focus", mine, "--check-only", "--allow-findings", "--second-annotator", theirs)
    assert said.returncode != 0
    assert "found video 'op-2' of one annotator alone, expected the same videos of both" in said.stderr
