"""Examples of a benchmark's items: the reply reads back as right, long clips are shown in windows, parts share nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from proctor.core import Image, InputError, Item, Reference, VideoClip
from proctor.core.formats import (
    BinaryFormat,
    BoxesFormat,
    ChoiceFormat,
    ChoicesFormat,
    ClassesFormat,
    CountFormat,
    FreeTextFormat,
    IntervalsFormat,
    OrderingFormat,
    PercentageFormat,
    PointFormat,
    PreferenceFormat,
    QuantityFormat,
    ScaleFormat,
    ShortTextFormat,
    TimestampsFormat,
)
from proctor.media import MediaLibrary, MediaSettings, view
from proctor.models import ModelClient, ModelSpec, Query
from proctor.systems import ModelSystem
from proctor_train.answerer import ItemExamples, lessons, refuse_shared, reply_to
from tests.support.clock_video import ClockVideo, read_clock, write_clock_video

YES = BinaryFormat()
TEN_SECONDS = ClockVideo(range(0, 10_000, 40))
FORMATS: tuple[tuple[Any, Any], ...] = (
    (BinaryFormat(), True),
    (BinaryFormat(strict=True), False),
    (BoxesFormat(), [[0.0, 0.0, 10.0, 10.0]]),
    (ChoiceFormat(), "B"),
    (ChoiceFormat(strict=True), "B"),
    (ChoicesFormat(), ["A", "B"]),
    (ClassesFormat(classes=("clip", "sponge")), []),
    (CountFormat(), 3),
    (FreeTextFormat(), "It is the left kidney."),
    (IntervalsFormat(), [[0.0, 10.5]]),
    (OrderingFormat(labels=("A", "B", "C")), ["C", "A", "B"]),
    (PercentageFormat(), 12.5),
    (PointFormat(tolerance=5), [100.0, 100.0]),
    (PreferenceFormat(), "tie"),
    (QuantityFormat(unit="mm", tolerance=2), 20.0),
    (ScaleFormat(), 4),
    (ShortTextFormat(), "left kidney"),
    (TimestampsFormat(tolerance=1.0), [75.0]),
)


def item(
    form: Any = YES,
    key: Any = True,
    *,
    group: str = "v",
    source: str = "",
    span: tuple[float, float | None] = (0.0, None),
) -> Item:
    media = (VideoClip(source=source, start=span[0], end=span[1]),) if source else ()
    options = ("liver", "spleen") if form.kind in {"choice", "choices"} else ()
    reference = Reference(answer=form.check(key, options))
    return Item(
        id=f"{group}-{source}",
        group=group,
        question="?",
        answer=form,
        options=options,
        reference=reference,
        media=media,
    )


@pytest.mark.parametrize(("form", "key"), FORMATS, ids=[f"{form.kind}-{key}" for form, key in FORMATS])
def test_the_reply_to_learn_is_right_and_in_the_form_that_is_asked_for(form: Any, key: Any) -> None:
    asked = item(form, key)
    said = reply_to(asked)
    assert said is not None
    assert asked.reference is not None
    assert form.match(asked.reference.answer, form.parse(said, asked.options))
    wants = form.instruction(asked.options)
    assert said.startswith("Answer: ") == ('"Answer: ' in wants)


def test_what_has_no_answer_teaches_nothing() -> None:
    assert reply_to(item().model_copy(update={"reference": None})) is None
    assert lessons([item().model_copy(update={"reference": None})], MediaLibrary(None)) == []


@pytest.fixture
def library(tmp_path: Path) -> MediaLibrary:
    """A clip of ten seconds, of which four frames are shown."""
    write_clock_video(tmp_path / "long.mp4", TEN_SECONDS)
    return MediaLibrary(tmp_path, MediaSettings(fps=1.0, max_frames=4), tmp_path / "cache")


def examples(given: list[Any], library: MediaLibrary, condition: str = "video") -> list[Query]:
    """What is asked, of weights that are never loaded."""
    assert library.root is not None
    (library.root / "config.json").write_text("{}")
    client = ModelClient(ModelSpec(name=f"transformers:{library.root}"))
    try:
        made = ItemExamples(
            given,
            ModelSystem(client),
            lambda one: view(one, condition, library, others=[one.item for one in given]),
            library,
        )
        assert made[0] is made[0]
        return [one.query for one in made]
    finally:
        asyncio.run(client.aclose())


def times(query: Query) -> list[float]:
    return [float(part.split()[2]) for part in query.parts if isinstance(part, str) and part.startswith("t = ")]


def test_a_long_clip_is_shown_in_windows_with_the_times_of_what_is_shown(library: MediaLibrary) -> None:
    long, short = item(source="long.mp4"), item(group="w", source="long.mp4", span=(2.0, 5.0))
    given = lessons([long, short], library, windows=3)
    assert [(one.item.id, one.turn) for one in given] == [(long.id, 0), (long.id, 1), (long.id, 2), (short.id, 0)]
    queries = examples(given, library)
    usual, *drawn = [times(one) for one in queries[:3]]
    for row, moments in enumerate(drawn):
        assert moments != usual
        assert moments == [pytest.approx(1.25 + 2.5 * k, abs=1.3) for k in range(4)]  # one in each quarter
        assert [read_clock(picture) for picture in queries[1 + row].pictures] == [
            pytest.approx(moment * 25, abs=3)
            for moment in moments  # told to a tenth of a second
        ]
    assert drawn[0] != drawn[1]
    assert examples(given, library) == queries  # the same moments each time
    assert len(times(queries[3])) == 3


def test_other_conditions_show_what_an_examination_shows(library: MediaLibrary) -> None:
    given = lessons([item(source="long.mp4")], library, windows=2)
    first, second = examples(given, library, "shuffled")
    assert first == second
    assert examples(given, library, "text-only")[0].pictures == []


def test_parts_share_no_group_and_no_medium_under_whatever_name(library: MediaLibrary) -> None:
    assert library.root is not None
    (library.root / "copy.mp4").write_bytes((library.root / "long.mp4").read_bytes())
    write_clock_video(library.root / "other.mp4", ClockVideo(range(0, 3000, 40)))
    learned = [item(group="a", source="long.mp4")]
    refuse_shared(learned, [item(group="b", source="other.mp4")], library)
    for held, what in ((item(group="b", source="copy.mp4"), "medium"), (item(group="a", source="other.mp4"), "group")):
        with pytest.raises(InputError) as caught:
            refuse_shared(learned, [held], library)
        found = f"the same {what} in 'a-long.mp4' and {held.id!r}"
        assert str(caught.value) == f"training and validation: found {found}, expected parts that share none"


def test_a_picture_of_both_parts_is_found(tmp_path: Path) -> None:
    for name in ("one.png", "two.png"):
        (tmp_path / name).write_bytes(b"the same")
    still = [
        item(group=name).model_copy(update={"id": name, "media": (Image(source=f"{name}.png"),)})
        for name in ("one", "two")
    ]
    with pytest.raises(InputError, match="the same medium in 'one' and 'two'"):
        refuse_shared(still[:1], still[1:], MediaLibrary(tmp_path, cache_dir=tmp_path / "cache"))
