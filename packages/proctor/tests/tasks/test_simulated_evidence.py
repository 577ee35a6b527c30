"""Evidence of simulated questions: it covers every pixel that the answer depends on, tells nothing of the answer, and
hiding it takes away what `classical-vision` knows."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from proctor.core import Benchmark, Evidence, InputError
from proctor.core.formats import BinaryFormat
from proctor.media import CONDITIONS, ConditionContext, MediaLibrary, view
from proctor.stats import Resampling, mean_interval
from proctor.tasks.simulated import READER, candidates, simulate
from proctor.tasks.simulated.classical_vision import ClassicalVision
from proctor.tasks.simulated.pictures import Renderer
from proctor.tasks.simulated.script import draw_script
from proctor.tasks.simulated.simulation import RULES, Truth, observe
from proctor.tracks import (
    AnnotatedBox,
    AnnotatedVideo,
    Annotation,
    CandidateQuestion,
    Sighting,
    Timeline,
    evidence_of,
    traces_of,
)
from proctor.tracks.evidence import EVIDENCE_OF_RULES, Trace, hull, merged

SIZE = (256, 144)


@pytest.fixture(scope="module")
def made() -> list[tuple[Truth, Renderer]]:
    found = []
    for seed in range(4):
        script = draw_script(seed, f"sim-{seed:03d}", 24.0)
        renderer = Renderer(script, SIZE, seed)
        found.append((observe(script, renderer), renderer))
    return found


def test_every_rule_is_decided() -> None:
    assert set(EVIDENCE_OF_RULES) < set(RULES)
    assert set(RULES) - set(EVIDENCE_OF_RULES) == {"seen", "how-many"}  # nothing shows that something is not there


def test_having_evidence_tells_nothing_of_the_answer(made: list[tuple[Truth, Renderer]]) -> None:
    """All questions of a rule have some, or none."""
    for truth, _ in made:
        has = defaultdict(set)
        for candidate in candidates(truth):
            has[candidate.rule].add(evidence_of(candidate, truth, truth.traces) is not None)
        for rule, found in has.items():
            assert found == {rule in EVIDENCE_OF_RULES}, rule


def test_boxes_cover_every_pixel_of_what_is_asked_about(made: list[tuple[Truth, Renderer]]) -> None:
    """Against the renderer's own map of which pixel shows which object."""
    checked = 0
    for truth, renderer in made:
        classes = {event.instance: event.class_name for event in truth.script.events}
        owners = {time: renderer.picture(time).owner for time in (3.0, 5.6, 9.5, 15.2, 18.3, 21.4)}
        asked = [one for one in candidates(truth) if one.mentions and EVIDENCE_OF_RULES.get(one.rule) != "moment"]
        for candidate in asked:
            evidence = evidence_of(candidate, truth, truth.traces)
            if evidence is None:
                continue
            own = [index for name, index in renderer.instances.items() if classes[name] in candidate.mentions]
            for time, owner in owners.items():
                shown = np.isin(owner, own)
                assert not (shown & ~covered(evidence, time + 0.01)).any()
                checked += int(shown.any())
    assert checked > 100


def covered(evidence: Evidence, time: float) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    mask = np.zeros((SIZE[1], SIZE[0]), dtype=bool)
    for box in evidence.boxes:
        assert box.start is not None
        assert box.end is not None
        if box.start <= time < box.end:
            top, bottom = round(box.y * SIZE[1]), round((box.y + box.height) * SIZE[1])
            mask[top:bottom, round(box.x * SIZE[0]) : round((box.x + box.width) * SIZE[0])] = True
    return mask


def test_a_covered_object_has_one_box_that_tells_no_time(made: list[tuple[Truth, Renderer]]) -> None:
    truth = made[0][0]
    asked = [one for one in candidates(truth) if one.rule == "when-seen"]
    assert asked
    for candidate in asked:
        evidence = evidence_of(candidate, truth, truth.traces)
        assert evidence is not None
        times = {(box.start, box.end) for box in evidence.boxes}
        assert times == {(0.0, 24.0)}
        assert len(evidence.boxes) == len(truth.insertions(candidate.mentions[0]))


def test_a_moment_is_hidden_in_whole(made: list[tuple[Truth, Renderer]]) -> None:
    truth = made[0][0]
    asked = [one for one in candidates(truth) if one.rule == "where"]
    assert asked
    for candidate in asked:
        evidence = evidence_of(candidate, truth, truth.traces)
        assert evidence is not None
        ((window),) = evidence.windows
        assert candidate.at is not None
        assert (window.start, window.end) == (candidate.at - 1, min(24.0, candidate.at + 1))


def box(x: float, y: float) -> AnnotatedBox:
    return AnnotatedBox(x=x, y=y, width=10, height=10)


def test_traces_of_a_box_a_second() -> None:
    """Seen at 3 and 4 s, and again at 8: boxes around both, and larger ones a second before and after."""
    places = {3: box(10, 10), 4: box(14, 10), 8: box(50, 50)}
    seen = tuple(Sighting(second=second, instance="a", class_name="clip", box=one) for second, one in places.items())
    video = AnnotatedVideo(id="v", file="v.mp4", width=100, height=100, seconds=20, fps=25)
    (traces,) = traces_of(Timeline(Annotation(video=video, sightings=seen))).of({"clip"})
    assert [(one.start, one.end) for one in traces] == [(2, 3), (3, 4), (4, 5), (7, 8), (8, 9)]
    assert traces[0].box == AnnotatedBox(x=5, y=5, width=20, height=20)
    assert traces[1].box == AnnotatedBox(x=10, y=10, width=14, height=10)
    line = Timeline(Annotation(video=video, sightings=seen))
    asked = CandidateQuestion("?", BinaryFormat(), True, "yes", mentions=("clip",), rule="plural", end=8.5)
    evidence = evidence_of(asked, line, traces_of(line))
    assert evidence is not None
    assert max(one.end or 0 for one in evidence.boxes) == 8.5  # what comes after the question is not evidence
    assert evidence_of(replace(asked, mentions=("mesh",)), line, traces_of(line)) is None


def test_boxes_that_hardly_move_become_one() -> None:
    still = [Trace(k / 10, (k + 1) / 10, box(10 + k * 0.1, 10)) for k in range(10)]
    assert [(one.start, one.end) for one in merged(still)] == [(0.0, 1.0)]
    fast = [Trace(k / 10, (k + 1) / 10, box(10 + k * 5, 10)) for k in range(4)]
    assert len(merged(fast)) == 4
    apart = [Trace(0.0, 0.1, box(10, 10)), Trace(0.5, 0.6, box(10, 10))]
    assert len(merged(apart)) == 2
    assert hull([one.box for one in still]).width == pytest.approx(10.9)


@pytest.fixture(scope="module")
def benchmark_data(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    folder = tmp_path_factory.mktemp("simulated") / "data"
    return READER.load(simulate(folder, videos=3, size=SIZE, fps=6, seed=11))


def test_classical_vision_needs_the_evidence_and_nothing_else(benchmark_data: Benchmark, tmp_path: Path) -> None:
    """Near chance without it, and the same answers where as much is hidden elsewhere. (`bench/evidence.py` says the same of
    24 videos, with intervals.)"""
    library, system = MediaLibrary(benchmark_data.media_root, cache_dir=tmp_path), ClassicalVision()
    names = ("video", "occlude-elsewhere", "occlude-evidence")
    asked = [
        item
        for item in benchmark_data.items
        if not CONDITIONS.get(names[1]).unable(ConditionContext(item, (), 0, library, whole=True))
    ]
    assert len(asked) >= 24

    async def right(condition: str) -> list[bool]:
        found = []
        for item in asked:
            assert item.reference is not None
            answer = await system.answer(item.as_asked(), view(item, condition, library))
            found.append(item.answer.match(item.reference.answer, answer.parsed))
        return found

    video, elsewhere, evidence = (asyncio.run(right(name)) for name in names)
    assert np.mean(video) >= 0.85
    assert np.mean([a != b for a, b in zip(video, elsewhere, strict=True)]) <= 0.05
    known = [
        (hit, level, item.group)
        for item, hit in zip(asked, evidence, strict=True)
        if item.reference is not None
        and (level := item.answer.chance([item.reference.answer], item.options)) is not None
    ]
    groups = [group for _, _, group in known]
    codes = np.array([sorted(set(groups)).index(group) for group in groups])
    one = mean_interval([float(hit) for hit, _, _ in known], codes, Resampling(bounds=(0, 1)))
    assert one.ci_low is not None
    assert one.ci_high is not None
    assert one.ci_low <= np.mean([level for _, level, _ in known]) <= one.ci_high
    assert np.mean(evidence) < 0.4


def test_evidence_of_other_media_is_refused(tmp_path: Path) -> None:
    folder = simulate(tmp_path / "data", videos=1, seconds=8, size=SIZE, fps=5, seed=3)
    path = folder / "questions.json"
    content = json.loads(path.read_text())
    question = content["questions"][0]
    question["evidence"] = {"windows": [{"medium": 1, "start": 1, "end": 2}]}
    path.write_text(json.dumps(content))
    with pytest.raises(InputError) as caught:
        READER.load(folder)
    assert str(caught.value).endswith(
        f"questions.json: item '{question['id']}', field 'evidence': found evidence of other media, expected a window of one "
        "of the item's media (0 to 0), not of 1"
    )
