"""What a system hears under each condition, and what is recorded of it."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest

from proctor.core import AudioClip, Image, InputError, Item, Media, VideoClip, View
from proctor.core.formats import BinaryFormat
from proctor.media import CONDITIONS, MediaLibrary, PlaysSounds, RecordsShown, ShownRecord, Sound, shown_again, view
from tests.support.sounds import heard, hertz, sounding, tones, write_sound, write_video

PITCHES = {"one": 500.0, "two": 1500.0, "three": 2500.0}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> MediaLibrary:
    """Three videos and a recording of 4 s with a pitch of their own between 1 and 2 s, and one without sound."""
    root = tmp_path_factory.mktemp("media")
    for name, pitch in PITCHES.items():
        write_video(root / f"{name}.mp4", 4.0, tones(4.0, [(1.0, 2.0, pitch)]))
        write_sound(root / f"{name}.wav", tones(4.0, [(1.0, 2.0, pitch)]))
    write_video(root / "mute.mp4", 4.0, None)
    write_sound(root / "silent.flac", tones(2.0, []))
    return MediaLibrary(root, cache_dir=root / "cache")


def item(name: str, *media: Media, group: str = "") -> Item:
    return Item(id=name, group=group or name, question="?", answer=BinaryFormat(), media=media)


SPOKEN = item("spoken", VideoClip(source="one.mp4", start=0.5, end=3.0, audio=True))
OTHER = item("other", VideoClip(source="two.mp4", audio=True))
PLAIN = item("plain", VideoClip(source="three.mp4"))
RECORDED = item("recorded", AudioClip(source="one.wav", start=0.5, end=3.0))
BESIDE = item("beside", VideoClip(source="mute.mp4"), AudioClip(source="two.wav"), AudioClip(source="three.wav"))


def seen(library: MediaLibrary, asked: Item, condition: str, window: tuple[float, float] | None = None) -> Any:
    """The view, its frames at one a second, and its sounds."""
    shown = view(asked, condition, library, others=[SPOKEN, OTHER, PLAIN, RECORDED, BESIDE])
    assert isinstance(shown, PlaysSounds)
    frames = asyncio.run(shown.frames(fps=1.0, window=window))
    return shown, frames, asyncio.run(shown.sounds(window=window))


def test_a_video_is_shown_with_its_sound_where_that_belongs_to_the_question(library: MediaLibrary) -> None:
    shown, frames, sounds = seen(library, SPOKEN, "video")
    assert (len(frames), [(one.label, one.span) for one in sounds]) == (3, [("clip", (0.5, 3.0))])
    samples = heard(sounds[0].wav)
    assert len(samples) == 40_000
    assert sounding(samples) == pytest.approx((0.5, 1.5), abs=0.003)
    assert hertz(samples[9600:22_400]) == pytest.approx(PITCHES["one"], abs=4)
    assert shown.sounding


def test_without_it_the_pictures_alone_are_shown_and_recorded_as_ever(library: MediaLibrary) -> None:
    shown, frames, sounds = seen(library, PLAIN, "video")
    assert (len(frames), sounds, shown.sounding, shown.unheard) == (4, [], False, False)
    assert [one.asked_as for one in shown.shown] == ["frames"]


@pytest.mark.parametrize(
    ("condition", "pictures", "plays"),
    [
        ("video", 3, True),
        ("black", 3, True),
        ("shuffled", 3, True),
        ("reversed", 3, True),
        ("single-frame", 1, True),
        ("muted", 3, False),
        ("speech-only", 0, True),
        ("text-only", 0, False),
    ],
)
def test_each_condition_changes_pictures_or_sound(
    library: MediaLibrary, condition: str, pictures: int, plays: bool
) -> None:
    _, plain, as_it_is = seen(library, SPOKEN, "video")
    _, frames, sounds = seen(library, SPOKEN, condition)
    assert len(frames) == pictures
    assert sounds == (as_it_is if plays else [])
    if condition == "muted":
        assert frames == plain


def test_no_condition_but_two_knows_of_sound() -> None:
    """Conditions of other packages keep the sound, as those that change pictures do."""
    said = {name: (CONDITIONS.get(name).shows, CONDITIONS.get(name).hears) for name in CONDITIONS.names()}
    changed = {name: value for name, value in said.items() if value != (True, True)}
    assert changed == {"text-only": (False, False), "muted": (True, False), "speech-only": (False, True)}


def test_recordings_have_names_and_no_pictures(library: MediaLibrary) -> None:
    _, frames, sounds = seen(library, BESIDE, "video")
    assert len(frames) == 4
    assert [one.label for one in sounds] == ["recording 1", "recording 2"]
    assert [round(hertz(heard(one.wav)[17_000:30_000]), -2) for one in sounds] == [1500, 2500]
    shown, frames, sounds = seen(library, RECORDED, "video")
    assert (frames, sounds[0].label, shown.span) == ([], "recording", (0.5, 3.0))
    assert view(RECORDED, "muted", library).span is None


def test_a_window_is_cut_to_the_clip(library: MediaLibrary) -> None:
    _, _, sounds = seen(library, SPOKEN, "video", (1.5, 9.0))
    assert sounds[0].span == (1.5, 3.0)
    assert sounding(heard(sounds[0].wav)) == pytest.approx((0.0, 0.5), abs=0.003)
    _, _, sounds = seen(library, SPOKEN, "video", (3.5, 4.0))
    assert sounds == []
    with pytest.raises(InputError, match=r"sounds: found window=\(2.0, 1.0\), expected its end after its start"):
        asyncio.run(view(SPOKEN, "video", library).sounds(window=(2.0, 1.0)))  # type: ignore[attr-defined]


def test_another_video_brings_its_own_sound(library: MediaLibrary) -> None:
    """The partner must have sound of the same kind: 'plain' and 'recorded' are none. Times told stay the item's own."""
    _, _, sounds = seen(library, SPOKEN, "other-video")
    assert (sounds[0].span, sounds[0].label) == ((0.5, 3.0), "clip")
    assert len(heard(sounds[0].wav)) == 64_000
    assert hertz(heard(sounds[0].wav)[17_000:30_000]) == pytest.approx(PITCHES["two"], abs=4)
    _, _, sounds = seen(library, SPOKEN, "other-video", (0.5, 1.75))
    assert len(heard(sounds[0].wav)) == 32_000  # its first half, as of the clip
    with pytest.raises(InputError, match="no other item with other media of the same kind"):
        seen(library, item("alone", AudioClip(source="one.wav"), Image(source="x.png")), "other-video")


def test_hash_and_times_of_the_sound_are_recorded_and_made_again(library: MediaLibrary) -> None:
    shown, _, sounds = seen(library, SPOKEN, "video")
    frames, record = shown.shown
    digest = hashlib.sha256(hashlib.sha256(sounds[0].wav).digest()).hexdigest()
    assert (record.asked_as, record.times, record.ends, record.sha256) == ("sounds", (0.5,), (3.0,), digest)
    assert record.media == frames.media == {"one.mp4": library.identity("one.mp4")}
    assert "ends" not in frames.model_dump(mode="json")
    again = ShownRecord.model_validate(record.model_dump(mode="json"))
    made, found = asyncio.run(shown_again(view(SPOKEN, "video", library), again))
    assert (made, again.difference(found)) == ([("001.wav", sounds[0].wav)], "")
    other = ShownRecord.of([Sound(b"RIFF", "clip", (0.5, 3.0))], asked_as="sounds")
    assert again.difference(other).startswith("sound 1 of 1 (at 0.5 s) has other samples: ")


@pytest.mark.parametrize("condition", ["muted", "text-only"])
def test_that_nothing_was_played_is_recorded(library: MediaLibrary, condition: str) -> None:
    shown, _, _ = seen(library, SPOKEN, condition)
    assert [(one.asked_as, one.times) for one in shown.shown if one.asked_as == "sounds"] == [("sounds", ())]


def test_who_looks_and_does_not_listen_is_known(library: MediaLibrary) -> None:
    def looked(asked: Item, condition: str, *, listens: bool) -> bool:
        shown: Any = view(asked, condition, library)
        assert not shown.unheard
        asyncio.run(shown.frames(fps=1.0))
        if listens:
            asyncio.run(shown.sounds())
        return bool(shown.unheard)

    assert looked(SPOKEN, "video", listens=False)
    assert looked(SPOKEN, "speech-only", listens=False)
    assert not looked(SPOKEN, "video", listens=True)
    assert not looked(SPOKEN, "muted", listens=False)
    assert not looked(SPOKEN, "text-only", listens=False)
    assert not looked(PLAIN, "video", listens=False)


def test_video_files_come_without_pictures_where_none_are_shown(library: MediaLibrary) -> None:
    shown: Any = view(SPOKEN, "speech-only", library)
    assert asyncio.run(shown.files()) == []
    assert len(asyncio.run(view(SPOKEN, "muted", library).files())) == 1  # type: ignore[attr-defined]


def test_a_check_finds_what_can_not_be_heard(library: MediaLibrary) -> None:
    wrong = [
        item("a", VideoClip(source="mute.mp4", audio=True)),
        item("b", AudioClip(source="silent.flac")),
        item("c", AudioClip(source="one.wav", start=5.0)),
        item("d", AudioClip(source="gone.wav")),
        item("e", AudioClip(source="one.wav", end=2.5)),
        item("f", AudioClip(source="one.wav", start=2.5, end=3.5)),
    ]
    said = [(problem.item_ids, str(problem)) for problem in library.problems(wrong)]
    root = library.root
    assert [(ids, text.replace(f"{root}/", "")) for ids, text in sorted(said)] == [
        (("a",), "mute.mp4: found no audio track, expected sound (needed by item 'a')"),
        (("b",), "silent.flac: found silence from 0 s to 2 s, expected sound that can be heard (needed by item 'b')"),
        (
            ("c",),
            "one.wav: the clip's start: found 5 s, expected a time within the recording's 4.00 s (needed by item 'c')",
        ),
        (
            ("d",),
            f"gone.wav: below {root}: found no such file, expected a video or image of this name (needed by item 'd')",
        ),
        (("f",), "one.wav: found silence from 2.5 s to 3.5 s, expected sound that can be heard (needed by item 'f')"),
    ]


def test_the_sounds_of_a_question_are_bounded_together(library: MediaLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.media.library.MAX_SOUND_S", 7.5)
    found = library.problems([BESIDE, RECORDED])
    assert [str(one) for one in found] == [
        "two.wav: found 8.0 s of sound in a question, expected at most 7.5 s (needed by item 'beside')"
    ]


def test_a_sound_is_decoded_once(library: MediaLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, sounds = seen(library, RECORDED, "video")
    monkeypatch.setattr("proctor.media.audio.cut_sound", lambda *_, **__: pytest.fail("decoded again"))
    fresh = MediaLibrary(library.root, cache_dir=library.cache_dir)
    assert seen(fresh, RECORDED, "speech-only")[2] == sounds


def test_items_without_sound_keep_their_fingerprints() -> None:
    assert "audio" not in PLAIN.model_dump(mode="json")["media"][0]
    assert SPOKEN.model_dump(mode="json")["media"][0]["audio"] is True


def test_a_view_is_still_a_view(library: MediaLibrary) -> None:
    shown: View = view(SPOKEN, "video", library)
    assert isinstance(shown, RecordsShown)
