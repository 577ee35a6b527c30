"""Sound in your own questions: recordings by their paths, videos whose sound belongs to them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

import proctor
from proctor.core import AudioClip, Benchmark, ConfigurationError, Image, InputError, VideoClip
from tests.support.faulty_server import FaultyServer
from tests.support.program import proctor as shell
from tests.support.sounds import heard, sounding, tones, write_sound, write_video

HEAD = "id,question,answer,option A,option B,media,audio,start,end,patient\n"


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video with sound, one without, a silent recording, one that is cut off, and a still."""
    folder = tmp_path_factory.mktemp("media")
    write_video(folder / "talk.mp4", 3.0, tones(3.0, [(1.0, 2.0, 600.0)]))
    write_video(folder / "mute.mp4", 3.0, None)
    write_sound(folder / "heart.wav", tones(3.0, [(0.5, 2.5, 300.0)], 8000), 8000)
    write_sound(folder / "quiet.flac", tones(2.0, []))
    cut = write_sound(folder / "cut.mp3", tones(6.0, [(0.0, 6.0, 300.0)]))
    cut.write_bytes(cut.read_bytes()[:20_000])
    Pillow.new("RGB", (8, 8)).save(folder / "still.png")
    return folder


def read(
    folder: Path, rows: str, settings: str = "", head: str = HEAD, media: Path | None = None, **how: Any
) -> Benchmark:
    folder.mkdir(exist_ok=True)
    (folder / "questions.csv").write_text(head + rows)
    (folder / "benchmark.yaml").write_text(settings)
    for name in () if media else ("talk.mp4", "heart.wav", "two.opus", "still.png", "ct.png"):
        (folder / name).write_bytes(b"")
    return proctor.load(folder, media=media, **how)


def faults(folder: Path, rows: str, settings: str = "", head: str = HEAD, **how: Any) -> list[str]:
    with pytest.raises(InputError) as told:
        read(folder, rows, settings, head, **how)
    return [line.replace(f"{folder}/", "") for line in getattr(told.value, "__notes__", [])] or [
        str(told.value).replace(f"{folder}/", "")
    ]


def test_recordings_stand_alone_and_beside_other_media(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "q1,?,A,a,b,heart.wav,,0.5,0:02,p1\n"
        "q2,?,A,a,b,,heart.wav,,2,p1\n"
        'q3,?,A,a,b,talk.mp4,"heart.wav#t=1,2.5",1,2,p1\n'
        "q4,?,A,a,b,still.png,heart.wav; two.opus#t=0:10,,,p1\n"
        "q5,?,A,a,b,still.png,heart.wav,1,2,p1\n",
    )
    assert [item.media for item in found.items] == [
        (AudioClip(source="heart.wav", start=0.5, end=2.0),),
        (AudioClip(source="heart.wav", end=2.0),),
        (VideoClip(source="talk.mp4", start=1.0, end=2.0), AudioClip(source="heart.wav", start=1.0, end=2.5)),
        (Image(source="still.png"), AudioClip(source="heart.wav"), AudioClip(source="two.opus", start=10.0)),
        (Image(source="still.png"), AudioClip(source="heart.wav", start=1.0, end=2.0)),
    ]
    assert "media = 'media', audio = 'audio', start = 'start'" in found.reading[1]
    assert "Sound: 5 questions with a recording" in found.reading


def test_the_sound_of_a_video_belongs_to_it_where_that_is_said(tmp_path: Path) -> None:
    rows = "q1,?,A,a,b,talk.mp4,,1,2,p1\nq2,?,A,a,b,still.png,,,,p2\n"
    plain = read(tmp_path, rows)
    assert plain.items[0].media == (VideoClip(source="talk.mp4", start=1.0, end=2.0),)
    assert not any(line.startswith("Sound") for line in plain.reading)
    spoken = read(tmp_path, rows, "audio: true\n")
    assert spoken.items[0].media == (VideoClip(source="talk.mp4", start=1.0, end=2.0, audio=True),)
    assert spoken.items[1] == plain.items[1]
    assert "Sound: the video's belongs to 1 question" in spoken.reading
    assert spoken.fingerprint != plain.fingerprint


def test_a_named_column_says_it_row_by_row(tmp_path: Path) -> None:
    rows = "q1,?,A,a,b,talk.mp4,yes,,,p1\nq2,?,A,a,b,talk.mp4,no,,,p2\nq3,?,A,a,b,talk.mp4,heart.wav,,,p2\nq4,?,A,a,b,talk.mp4,,,,p2\n"
    for settings, last in (("columns: {audio: audio}\n", False), ("audio: true\ncolumns: {audio: audio}\n", True)):
        found = read(tmp_path, rows, settings)
        assert [[getattr(one, "audio", None) for one in item.media] for item in found.items] == [
            [True], [False], [last, None], [last],
        ]  # fmt: skip
    lines = faults(
        tmp_path, "q1,?,A,a,b,still.png,yes,,,p1\nq2,?,A,a,b,talk.mp4,loud,,,p1\n", "columns: {audio: audio}\n"
    )
    wav = "an audio file (.wav, .mp3, .m4a, .flac, .ogg, .opus), or yes or no: whether the video's sound belongs to it"
    assert lines == [
        "questions.csv: row 2, column 'audio': found 'yes', expected a video, whose sound belongs to the question",
        f"questions.csv: row 3, column 'audio': found 'loud', expected {wav}",
    ]


@pytest.mark.parametrize("cells", [("yes", "no"), ("clear", "noisy"), ("heart.wav", "none"), ("", "")])
def test_a_column_that_is_only_called_so_stays_a_facet(tmp_path: Path, cells: tuple[str, str]) -> None:
    """As it was before there was sound: the same items and fingerprint as under another name."""
    rows = "".join(f"q{k},?,A,a,b,talk.mp4,{cell},,,p{k}\n" for k, cell in enumerate(cells))
    found = read(tmp_path, rows)
    assert all(one == VideoClip(source="talk.mp4") for item in found.items for one in item.media)
    assert [item.tags.get("audio", "") for item in found.items] == list(cells)


def test_what_is_ambiguous_or_wrong_is_told_with_row_and_column(tmp_path: Path) -> None:
    lines = faults(
        tmp_path,
        "q1,?,A,a,b,talk.mp4,heart.wav,1,2,p1\n"
        "q2,?,A,a,b,,heart.wav; two.opus,1,2,p1\n"
        "q3,?,A,a,b,,\"heart.wav#t=9,3\",,,p1\n"
        "q4,?,A,a,b,,heart.wav#t=soon,,,p1\n"
        "q5,?,A,a,b,,../heart.wav,,,p1\n"
        "q6,?,A,a,b,,\"heart.wav#t=1,2\",1,2,p1\n"
        "q7,?,A,a,b,,heart.wav#t=,,,p1\n",
    )  # fmt: skip
    each, after = (
        "expected the times of each recording after its name (talk.wav#t=0:10,0:25)",
        "expected times after a recording's name, as in talk.wav#t=0:10,0:25",
    )
    assert sorted(lines) == [
        f"questions.csv: row 2, column 'media': found 'start and end with 1 video and 1 recording', {each}",
        f"questions.csv: row 3, column 'audio': found 'start and end with 0 videos and 2 recordings', {each}",
        f"questions.csv: row 4, column 'audio': found 'heart.wav#t=9,3', {after}, the end after the start",
        f"questions.csv: row 5, column 'audio': found 'heart.wav#t=soon', {after}",
        "questions.csv: row 6, column 'audio': found '../heart.wav', expected a path below the folder of the questions",
        "questions.csv: row 7, column 'audio': found 'both', expected start and end, or times after a recording's name",
        f"questions.csv: row 8, column 'audio': found 'heart.wav#t=', {after}, the end after the start",
    ]


@pytest.mark.parametrize("name", ["muted", "speech-only"])
def test_conditions_that_make_no_sense_are_refused(tmp_path: Path, name: str) -> None:
    told = f"benchmark.yaml: column 'conditions': found '{name}', and no item has "
    sound = "sound (`audio: true` in benchmark.yaml says that a video's belongs to the question)"
    assert faults(tmp_path, "q1,?,A,a,b,talk.mp4,,,,p1\n", f"conditions: [video, {name}]\n") == [
        f"{told}{sound}, expected another condition"
    ]
    assert faults(tmp_path, "q1,?,A,a,b,,heart.wav,,,p1\n", f"conditions: [{name}]\n") == [
        f"{told}pictures beside its sound, expected another condition"
    ]


def test_a_check_opens_every_track(tmp_path: Path, media: Path) -> None:
    rows = "q1,?,A,a,b,mute.mp4,,,,p1\nq2,?,A,a,b,,quiet.flac,,,p2\nq3,?,A,a,b,,cut.mp3,,,p3\nq4,?,A,a,b,,heart.wav,7,,p4\nq5,?,A,a,b,talk.mp4,,2.2,2.8,p5\n"
    read(tmp_path / "own", rows, "audio: true\n", media=media)
    done = shell("check", tmp_path / "own", "--media", media, "--all", "--out", tmp_path / "p.html")
    where, played = f"{tmp_path}/own/questions.csv: row", ", expected a file that can be played"
    found = [line.replace(f"{media}/", "") for line in done.stdout.splitlines() if line.startswith(where)]
    assert sorted(line.removeprefix(where).removesuffix(played) for line in found) == [
        " 2, column 'media': found mute.mp4: found no audio track, expected sound",
        " 3, column 'audio': found quiet.flac: found silence from 0 s to 2 s, expected sound that can be heard",
        " 4, column 'audio': found cut.mp3: found a truncated sound: it ends at 2.4 s, expected 6.0 s as its header says",
        " 5, column 'audio': found heart.wav: the clip's start: found 7 s, expected a time within the recording's 3.00 s",
        " 6, column 'media': found talk.mp4: found silence from 2.2 s to 2.8 s, expected sound that can be heard",
    ]
    assert done.returncode == 1
    assert all(line.endswith(played) for line in found)
    assert not (tmp_path / "p.html").exists()


def test_the_preview_plays_what_a_model_gets(tmp_path: Path, media: Path) -> None:
    read(tmp_path / "own", "q1,?,A,a,b,talk.mp4,,,,p1\nq2,?,A,a,b,,heart.wav,,,p2\n", "audio: true\n", media=media)
    shell("check", tmp_path / "own", "--media", media, "--out", tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert page.count('src="data:audio/wav;base64,UklGR') == 2
    assert "media-src data:" in page


def test_recordings_inside_a_table_are_read(tmp_path: Path, media: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Hugging Face keeps sound in a column."""
    import pandas

    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    content = (media / "heart.wav").read_bytes()
    row = {"id": "q1", "question": "?", "answer": "yes", "audio": {"bytes": content, "path": "x"}, "patient": "p1"}
    pandas.DataFrame([row]).to_parquet(tmp_path / "test-00000-of-00001.parquet")
    found = proctor.load(tmp_path)
    (clip,) = found.items[0].media
    assert isinstance(clip, AudioClip)
    assert clip.source.endswith(".wav")
    assert found.media_root is not None
    assert (found.media_root / clip.source).read_bytes() == content


def test_from_a_table_to_numbers_with_and_without_sound(tmp_path: Path, media: Path) -> None:
    """The whole way: a model that hears the tone is right with it, and wrong without; what arrived is compared."""
    rows = "q1,Is a tone heard?,yes,,,talk.mp4,,0.5,2.5,p1\nq2,Is a tone heard?,yes,,,,heart.wav,,,p2\n"
    found = read(tmp_path / "own", rows, "audio: true\nconditions: [video, muted, speech-only]\n", media=media)

    def says(request: Any) -> str:
        return "Answer: yes" if "input_audio" in json.dumps(request.body) else "Answer: no"

    store = str(tmp_path / "own.db")
    with FaultyServer(says) as server:
        how: Any = {"model": "m", "base_url": server.url, "store": store, "baselines": True}
        done = proctor.run(found, conditions=["video", "muted", "speech-only", "text-only"], **how)
        frame = proctor.results(done).to_pandas()
    scores = {row.condition: row.value for row in frame.itertuples() if row.system == "m" and row.metric == "accuracy"}
    assert scores == {"video": 1.0, "muted": 0.0, "speech-only": 1.0, "text-only": 0.0}
    assert proctor.reproduce(done, systems=["m"]).ok
    shown = shell(
        "show",
        "own",
        "q1",
        "--store",
        store,
        "--system",
        "m",
        "--condition",
        "speech-only",
        "--pictures",
        tmp_path / "out",
    )
    assert "0 pictures and 1 sound in " in shown.stdout
    (wav,) = (tmp_path / "out").rglob("*.wav")
    assert sounding(heard(wav.read_bytes())) == pytest.approx((0.5, 1.5), abs=0.003)
    prompt = shell("show", "own", "q1", "--store", store, "--system", "m", "--condition", "speech-only", "--prompt")
    assert "Base your answer on what can be heard." in prompt.stdout
    page = tmp_path / "report.html"
    proctor.report(done, out=page)
    for name in ("muted", "speech-only"):
        assert name in page.read_text()


def test_a_run_refuses_what_makes_no_sense(tmp_path: Path, media: Path) -> None:
    found = read(tmp_path / "own", "q1,?,yes,,,talk.mp4,,,,p1\n", media=media)
    with pytest.raises(
        ConfigurationError, match=r"^condition 'muted' makes no sense for own: no item has sound \(`audio: true`"
    ):
        proctor.run(found, "random", conditions="muted", store=str(tmp_path / "x.db"))


def test_exports_hold_sound_or_say_that_they_lose_it(tmp_path: Path, media: Path) -> None:
    found = read(
        tmp_path / "own", "q1,?,yes,,,talk.mp4,,,,p1\nq2,?,yes,,,,heart.wav,1,2,p2\n", "audio: true\n", media=media
    )
    store = str(tmp_path / "own.db")
    proctor.run(found, "random", conditions="text-only", store=store)
    told = proctor.export(store, tmp_path / "croissant", "own", format="croissant", media=media)
    assert any("whether a video's sound belongs to the question" in line for line in told.dropped)
    proctor.export(store, tmp_path / "hf", "own", format="hf-dataset", media=media, copy_media=True)
    assert proctor.load(tmp_path / "hf").fingerprint == found.fingerprint
    refused = shell("export", "own", "--store", store, "--format", "inspect-task", "--out", tmp_path / "t")
    assert refused.returncode == 2
    assert "2 questions with sound" in refused.stderr


def test_a_run_says_how_many_questions_have_nothing_to_hear(tmp_path: Path, media: Path) -> None:
    rows = "q1,?,yes,,,talk.mp4,,,,p1\nq2,?,yes,,,still.png,,,,p2\n"
    found = read(tmp_path / "own", rows, "audio: true\n", media=media)
    done = proctor.run(found, "random", conditions=["speech-only", "muted"], store=str(tmp_path / "own.db"))
    assert [one for one in done.notes if "sound" in one and "only" in one] == [
        "speech-only: no sound in 1 of 2 questions"
    ]


def test_the_prompt_that_is_shown_is_that_of_items_with_sound(media: Path, tmp_path: Path) -> None:
    read(tmp_path / "q", "q1,What is heard?,A,a,b,heart.wav,,0.5,2,p1\n", media=media)
    store = tmp_path / "runs.db"
    proctor.run(tmp_path / "q", lambda question: "A", media=media, store=store, conditions="text-only")
    shown = shell("show", "q", "q1", "--prompt", "--store", store)
    assert shown.returncode == 0, shown.stderr
    assert "Base your answer on what can be heard." in shown.stdout
    assert "The sound above belongs to the question." in shown.stdout
