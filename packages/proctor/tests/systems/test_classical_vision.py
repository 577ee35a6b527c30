"""`classical-vision` looks: it is good with the video, lost without the order, and at chance without pixels."""

from __future__ import annotations

import asyncio
import io
from collections import defaultdict

import numpy as np
import pytest
from PIL import Image

from proctor.core import Answer, Benchmark, Frame, Item
from proctor.core.formats import (
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    CountFormat,
    FreeTextFormat,
    OrderingFormat,
    RatingsFormat,
    TimestampsFormat,
)
from proctor.media import MediaLibrary, view
from proctor.systems import build_system
from proctor.tasks.simulated import candidates, simulate
from proctor.tasks.simulated.classical_vision import ClassicalVision, answer_from, understood
from proctor.tasks.simulated.pictures import CLASSES, ObjectClass, Renderer, sprite
from proctor.tasks.simulated.reader import READER
from proctor.tasks.simulated.script import Script, draw_script
from proctor.tasks.simulated.simulation import observe
from proctor.tasks.simulated.vision import LOOKS, Detection, SeenPicture, detect, follow


class Frames:
    """A view that shows given frames and counts how often it is asked."""

    def __init__(self, frames: list[Frame], span: tuple[float, float] | None = (0.0, 24.0)) -> None:
        self._frames = frames
        self._span = span
        self.asked = 0

    @property
    def condition(self) -> str:
        return "video"

    @property
    def span(self) -> tuple[float, float] | None:
        return self._span

    async def frames(
        self, *, count: int | None = None, fps: float | None = None, window: tuple[float, float] | None = None
    ) -> list[Frame]:
        self.asked += 1
        return self._frames


def jpeg(pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def correct(item: Item, answer: Answer) -> bool:
    assert item.reference is not None
    assert item.answer.parse(answer.text, item.options) == answer.parsed
    return item.answer.match(item.reference.answer, answer.parsed)


@pytest.fixture(scope="module")
def benchmark_data(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    return READER.load(simulate(tmp_path_factory.mktemp("simulated") / "data", videos=3, seed=11))


@pytest.fixture(scope="module")
def answers(benchmark_data: Benchmark) -> dict[str, list[tuple[Item, Answer]]]:
    """Every item under every condition, through the real media room."""

    async def ask() -> dict[str, list[tuple[Item, Answer]]]:
        library = MediaLibrary(benchmark_data.media_root)
        system = ClassicalVision()
        found = defaultdict(list)
        for condition in benchmark_data.conditions:
            for item in benchmark_data.items:
                seen = view(item, condition, library, seed=0, others=benchmark_data.items)
                found[condition].append((item, await system.answer(item.as_asked(), seen)))
        return found

    return asyncio.run(ask())


def accuracy(some: list[tuple[Item, Answer]]) -> float:
    return sum(correct(item, answer) for item, answer in some) / len(some)


def test_with_the_video_it_is_good_at_every_format(answers: dict[str, list[tuple[Item, Answer]]]) -> None:
    assert all(answer.extra == {"evidence": "pixels"} for _, answer in answers["video"])
    assert accuracy(answers["video"]) >= 0.85
    least = {"choice": 0.7, "count": 0.7, "binary": 0.8, "classes": 0.6, "timestamps": 0.7, "ordering": 0.7}
    for kind, bound in least.items():
        some = [pair for pair in answers["video"] if pair[0].answer.kind == kind]
        assert len(some) >= 5
        assert accuracy(some) >= bound, kind


@pytest.mark.parametrize(
    ("condition", "because"), [("text-only", "there is nothing to look at"), ("black", "every frame is black")]
)
def test_without_pixels_it_guesses_and_says_so(
    answers: dict[str, list[tuple[Item, Answer]]], condition: str, because: str
) -> None:
    assert all(answer.extra == {"evidence": "guess", "because": because} for _, answer in answers[condition])
    assert accuracy(answers[condition]) < 0.45 < accuracy(answers["video"]) - 0.3


def test_disorder_costs_it_times_and_sequences_but_not_presence(answers: dict[str, list[tuple[Item, Answer]]]) -> None:
    def of(condition: str, *types: str) -> float:
        return accuracy([pair for pair in answers[condition] if pair[0].tags["question_type"] in types])

    assert of("shuffled", "timing", "sequence") <= of("video", "timing", "sequence") - 0.4
    seen = [pair for pair in answers["shuffled"] if pair[0].tags["rule"] in {"seen", "kinds-seen", "never"}]
    assert accuracy(seen) >= 0.8


def test_it_answers_alike_when_asked_again(
    benchmark_data: Benchmark, answers: dict[str, list[tuple[Item, Answer]]]
) -> None:
    item, before = answers["text-only"][0]
    again = asyncio.run(ClassicalVision().answer(item.as_asked(), Frames([], span=None)))
    assert again == before
    texts = {asyncio.run(ClassicalVision(seed=seed).answer(item.as_asked(), Frames([]))).text for seed in range(8)}
    assert len(texts) > 1


def test_it_understands_every_question_of_the_simulator() -> None:
    rules = set()
    for seed in range(4):
        script = draw_script(seed, "v", 24.0)
        for candidate in candidates(observe(script, Renderer(script, (256, 144), seed))):
            item = Item(
                id="q", group="v", question=candidate.question, answer=candidate.format, options=candidate.options
            )
            assert understood(item), candidate.question
            rules.add(candidate.rule)
    assert len(rules) > 20


def test_an_unknown_wording_is_guessed_without_looking() -> None:
    item = Item(id="q", group="v", question="Is the surgeon tired?", answer=BinaryFormat())
    seen = Frames([])
    answer = asyncio.run(ClassicalVision().answer(item, seen))
    assert answer.parsed in (True, False)
    assert answer.extra == {"evidence": "guess", "because": "the wording is not one that it knows"}
    assert seen.asked == 0


def test_a_known_wording_about_an_unknown_class_is_not_understood() -> None:
    item = Item(id="q", group="v", question="Does a purple elephant come into view at any time?", answer=BinaryFormat())
    assert not understood(item)


def test_what_was_not_found_is_guessed_with_the_reason() -> None:
    item = Item(
        id="q",
        group="v",
        question="When does a thin curved needle first come into view?",
        answer=TimestampsFormat(tolerance=1.0),
    )
    empty = Renderer(Script(video="v", seconds=8.0, events=()), (256, 144), 0)
    frames = [Frame(jpeg(empty.picture(time).pixels), time, "") for time in (0.0, 0.2, 0.4, 0.6)]
    answer = asyncio.run(ClassicalVision().answer(item, Frames(frames)))
    assert answer.extra == {"evidence": "guess", "because": "what it asks for was not found"}


@pytest.mark.parametrize(
    ("form", "supported"),
    [
        (ChoiceFormat(), True),
        (OrderingFormat(labels=("a", "b")), True),
        (CountFormat(), True),
        (ClassesFormat(classes=("clip",)), True),
        (FreeTextFormat(), False),
        (RatingsFormat(dimensions=("a",)), False),
    ],
)
def test_supported_formats(form: ChoiceFormat | FreeTextFormat, supported: bool) -> None:
    assert ClassicalVision().supports(Item(id="q", group="v", question="?", answer=form)) is supported


def test_its_name_and_settings() -> None:
    system = build_system("classical-vision", seed=3)
    assert isinstance(system, ClassicalVision)
    assert system.name == "classical-vision"
    assert system.settings == {"version": "2", "fps": 6.0, "seed": 3}


# Detection


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.name)
def test_each_class_is_found_where_it_lies_and_no_other(kind: ObjectClass) -> None:
    empty = Renderer(Script(video="v", seconds=8.0, events=()), (384, 216), 4)
    for seed in range(3):
        drawn = sprite(kind, 1.0, np.random.default_rng(seed))
        pixels = empty.picture(1.0).pixels.astype(np.float32)
        height, width = drawn.opacity.shape
        window = (slice(60, 60 + height), slice(200, 200 + width))
        pixels[window] += (drawn.colour - pixels[window]) * drawn.opacity[..., None]
        (found,) = detect(jpeg(pixels.astype(np.uint8))).detections
        assert found.class_name == kind.name
        assert abs(found.x * 384 - (200 + width / 2)) < 9
        assert abs(found.y * 216 - (60 + height / 2)) < 14
        left, top, right, bottom = found.box
        assert left <= found.x <= right
        assert top <= found.y <= bottom


def test_tissue_alone_shows_nothing() -> None:
    for seed in range(5):
        empty = Renderer(Script(video="v", seconds=8.0, events=()), (384, 216), seed)
        picture = detect(jpeg(empty.picture(2.0).pixels))
        assert picture.detections == ()
        assert not picture.blank


def test_black_is_blank() -> None:
    assert detect(jpeg(np.zeros((90, 160, 3), dtype=np.uint8))) == SeenPicture((), True, 160 / 90)


def test_the_looks_are_those_of_the_simulators_classes() -> None:
    assert set(LOOKS) == {kind.name for kind in CLASSES}


# Tracking, by hand: 10 pictures a second, aspect 1


def path(name: str, locations: dict[float, tuple[float, float]]) -> dict[float, Detection]:
    return {t: Detection(name, x, y, 0.01, (x - 0.05, y - 0.05, x + 0.05, y + 0.05)) for t, (x, y) in locations.items()}


def story_of(*paths: dict[float, Detection], until: float = 5.0) -> list[tuple[str, float, float, bool, bool, bool]]:
    times = [round(0.1 * index, 1) for index in range(round(until * 10))]
    pictures = [SeenPicture(tuple(one[time] for one in paths if time in one), False, 1.0) for time in times]
    lives = follow(times, pictures).lives
    return [(one.class_name, one.first, one.last, one.left, one.was_hidden, one.was_moved) for one in lives]


def still(start: float, end: float, x: float, y: float) -> dict[float, tuple[float, float]]:
    return {round(0.1 * index, 1): (x, y) for index in range(round(start * 10), round(end * 10))}


def test_what_stays_stays() -> None:
    assert story_of(path("clip", still(1, 5, 0.5, 0.5))) == [("clip", 1.0, 4.9, False, False, False)]


def test_a_gap_in_the_same_place_is_one_life_that_was_hidden() -> None:
    seen = path("clip", still(1, 2, 0.5, 0.5) | still(4, 5, 0.52, 0.5))
    assert story_of(seen) == [("clip", 1.0, 4.9, False, True, False)]


def test_what_goes_over_the_edge_is_gone_and_what_comes_back_is_new() -> None:
    out = {round(2 + 0.1 * k, 1): (0.5 + 0.1 * k, 0.5) for k in range(5)}
    seen = path("clip", still(1, 2, 0.5, 0.5) | out | still(4, 5, 0.9, 0.5))
    assert story_of(seen) == [("clip", 1.0, 2.4, True, False, False), ("clip", 4.0, 4.9, False, False, False)]


def test_what_is_carried_to_another_place_was_moved() -> None:
    carried = {round(2 + 0.1 * k, 1): (0.2 + 0.1 * k, 0.5) for k in range(5)}
    seen = path("clip", still(1, 2, 0.2, 0.5) | carried | still(2.5, 5, 0.6, 0.5))
    assert story_of(seen) == [("clip", 1.0, 4.9, False, False, True)]


def test_two_of_a_class_are_kept_apart_and_a_flicker_is_no_object() -> None:
    first, second = path("clip", still(0, 5, 0.2, 0.5)), path("clip", still(2, 5, 0.8, 0.5))
    flicker = path("sponge", still(3, 3.2, 0.5, 0.2))
    assert story_of(first, second, flicker) == [
        ("clip", 0.0, 4.9, False, False, False),
        ("clip", 2.0, 4.9, False, False, False),
    ]


def test_no_pictures_no_story() -> None:
    assert follow([], []).lives == ()


def test_labels_that_were_not_seen_come_last() -> None:
    item = Item(
        id="q",
        group="v",
        question="In which order do these kinds of object first come into view?",
        answer=OrderingFormat(labels=("clip", "needle", "sponge")),
    )
    times = [round(0.1 * index, 1) for index in range(50)]
    seen = path("sponge", still(1, 5, 0.2, 0.5))
    late = path("clip", still(2, 5, 0.8, 0.5))
    pictures = [SeenPicture(tuple(one[t] for one in (seen, late) if t in one), False, 1.0) for t in times]
    assert answer_from(item, follow(times, pictures)) == ["sponge", "clip", "needle"]


def test_a_picture_is_segmented_once() -> None:
    empty = Renderer(Script(video="v", seconds=8.0, events=()), (256, 144), 0)
    frames = [Frame(jpeg(empty.picture(time).pixels), time, "") for time in (0.0, 0.5, 1.0)]
    system = ClassicalVision()
    for name in ("q1", "q2"):
        item = Item(
            id=name,
            group="v",
            question="Which kinds of foreign object come into view at any time?",
            answer=ClassesFormat(classes=tuple(LOOKS)),
        )
        assert asyncio.run(system.answer(item, Frames(frames))).parsed == []
    assert len(system._known) == 3
