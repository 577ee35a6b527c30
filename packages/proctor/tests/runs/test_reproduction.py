"""What systems were shown is recorded with their answers, and can be made again from the media alone."""

from __future__ import annotations

import json
import re
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import av
import numpy as np
import pytest
from PIL import Image as Picture
from sqlalchemy import text

import proctor
from proctor.core import Answer, Benchmark, Image, InputError, Item, Reference, VideoClip, View, current_repetition
from proctor.core.formats import BinaryFormat, ChoiceFormat
from proctor.media import ShowsFiles, ShowsOriginals
from proctor.runs import Reproduction, Store, recorded
from proctor.shell import write_shown
from proctor.systems import prompt_as_sent
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.faulty_server import FaultyServer
from tests.support.program import proctor as program

CONDITIONS = ("video", "text-only", "shuffled", "single-frame", "other-video")


def question(name: str, source: str, start: float = 0.0, end: float = 4.0) -> Item:
    clip = VideoClip(source=source, start=start, end=end)
    return Item(
        id=name,
        group=source,
        question=f"Is {name} so?",
        answer=BinaryFormat(),
        media=(clip,),
        reference=Reference(answer=True),
    )


class Looker:
    """Looks twice at what it may see: at all, and closely at a part."""

    name = "looker"
    settings: ClassVar[dict[str, Any]] = {}

    def supports(self, item: Item) -> bool:
        return item.id != ""

    async def answer(self, item: Item, view: View) -> Answer:
        await view.frames(count=3)
        await view.frames(fps=2.0, window=(1.0, 2.5))
        await view.frames(count=3)  # once more: recorded once
        return Answer(item_id=item.id, text="yes", extra={"mine": 1})


@pytest.fixture
def media(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        write_clock_video(tmp_path / "media" / f"{name}.mp4", _clock(name))
    return tmp_path / "media"


def _clock(name: str) -> ClockVideo:
    return ClockVideo(times_ms=range(0, 5000 if name == "a" else 6000, 100), rate=10, keyint=10)


@pytest.fixture(autouse=True)
def folders(tmp_path: Path) -> None:
    (tmp_path / "media").mkdir()


def benchmark(media: Path) -> Benchmark:
    items = (question("q1", "a.mp4"), question("q2", "a.mp4", 1.0, 3.0), question("q3", "b.mp4"))
    return Benchmark("toy", "Toy", items, (proctor.ACCURACY,), "accuracy", media_root=media)


def asked(media: Path, tmp_path: Path, *systems: Any, conditions: tuple[str, ...] = ("video",), **more: Any) -> Store:
    store = Store(str(tmp_path / "runs.db"))
    how: dict[str, Any] = {"conditions": conditions, "cache": tmp_path / "cache", "store": store} | more
    proctor.run(benchmark(media), **{"system": list(systems) or [Looker()]} | how)
    return store


def states(store: Store, media: Path, **more: Any) -> dict[tuple[str, str], str]:
    """(item, condition) to state."""
    found = proctor.reproduce(store, media=media, systems="looker", **more)
    return {(one.item, one.condition): one.state.value for one in found.data}


def recoded(path: Path, quality: str) -> None:
    """The same pictures, coded anew."""
    with av.open(str(path)) as source:
        pictures = [frame.to_ndarray(format="rgb24") for frame in source.decode(video=0)]
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10, options={"crf": quality, "g": "10", "bf": "0"})
        assert isinstance(stream, av.VideoStream)
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for number, one in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(one, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 10)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def test_an_answer_holds_the_hashes_of_what_was_shown(media: Path, tmp_path: Path) -> None:
    import hashlib

    shown: list[list[bytes]] = []

    class Keeper(Looker):
        async def answer(self, item: Item, view: View) -> Answer:
            shown.append([one.jpeg for one in await view.frames(count=3)])
            return Answer(item_id=item.id, text="yes")

    store = asked(media, tmp_path, Keeper(), concurrency=1)
    run = next(one for one in store.runs("toy") if one.system == "looker")
    kept = [recorded(answer)[0] for answer in store.answers(run).values()]
    digests = [[hashlib.sha256(jpeg).digest() for jpeg in pictures] for pictures in shown]
    assert [one.sha256 for one in kept] == [hashlib.sha256(b"".join(one)).hexdigest() for one in digests]
    assert [list(one.prefixes) for one in kept] == [[each.hex()[:8] for each in one] for one in digests]
    assert kept[0].media == {"a.mp4": hashlib.sha256((media / "a.mp4").read_bytes()).hexdigest()}
    assert (kept[0].count, kept[0].fps) == (3, None)
    assert [*kept[0].times] == pytest.approx([2 / 3, 2.0, 10 / 3])


def test_what_was_shown_is_made_again_under_every_condition(media: Path, tmp_path: Path) -> None:
    store = asked(media, tmp_path, conditions=CONDITIONS, seed=3, overlay="clip", max_side=100)
    found = proctor.reproduce(store, media=media)
    assert found.ok, found
    rows = {(one.item, one.condition): one for one in found.data if one.system == "looker"}
    assert len(rows) == 3 * len(CONDITIONS)
    assert rows["q1", "video"].pictures == 3 + 3
    assert rows["q1", "text-only"].pictures == 0
    assert {one.system for one in found.data} > {"looker"}  # baselines, which were shown nothing
    for answer in store.answers(next(one for one in store.runs("toy") if one.system == "looker")).values():
        assert answer.extra["mine"] == 1


def test_a_copy_that_was_coded_anew_is_told_apart(media: Path, tmp_path: Path) -> None:
    store = asked(media, tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(media, copy)
    recoded(copy / "a.mp4", "35")
    found = proctor.reproduce(store, media=copy, systems="looker")
    by = {one.item: one for one in found.data}
    assert [by[name].state for name in ("q1", "q2", "q3")] == ["different", "different", "same"]
    assert re.match(
        r"picture \d of 3 \(at \S+ s\) has other pixels: [0-9a-f]{8} then, [0-9a-f]{8} now$", by["q1"].reason
    )
    assert by["q1"].media == ("a.mp4",)
    assert not found.ok
    assert "Not the same" in str(found)


def test_a_copy_in_another_container_shows_the_same(media: Path, tmp_path: Path) -> None:
    store = asked(media, tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(media, copy)
    with (
        av.open(str(media / "a.mp4")) as source,
        av.open(str(copy / "a.mp4"), "w", options={"movflags": "faststart"}) as to,
    ):
        stream = to.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                to.mux(packet)
    assert (copy / "a.mp4").read_bytes() != (media / "a.mp4").read_bytes()
    found = proctor.reproduce(store, media=copy, systems="looker")
    assert found.ok, found
    assert found.notes == ("Other files than before, with the same pictures: a.mp4.",)


def test_kept_frames_prove_nothing(media: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The frames of the run are in the cache, and the videos are gone."""
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    store = asked(media, tmp_path)
    (media / "b.mp4").unlink()
    assert states(store, media) == {("q1", "video"): "same", ("q2", "video"): "same", ("q3", "video"): "unreadable"}


def test_a_record_that_was_changed_is_noticed(media: Path, tmp_path: Path) -> None:
    store = asked(media, tmp_path)
    with store.writing() as connection:
        (extra,) = connection.execute(text("select extra from answers where extra like '%mine%' limit 1")).one()
        told = json.loads(extra)
        told["shown"][0]["sha256"] = "0" * 64
        connection.execute(
            text("update answers set extra = :new where extra = :old"), {"new": json.dumps(told), "old": extra}
        )
    assert sorted(states(store, media).values()) == ["different", "same", "same"]


@pytest.mark.parametrize("kept", [[], "yes", [{"sha256": 3}], [{"sha256": "a", "more": 1}], {"a": 1}, None])
def test_what_somebody_else_wrote_is_no_record(kept: Any) -> None:
    assert recorded(Answer(item_id="q1", extra={"shown": kept})) == ()


def test_imported_answers_have_no_record(media: Path, tmp_path: Path) -> None:
    store = asked(media, tmp_path)
    run = store.start_run("toy", "theirs", "video", {"origin": "a file"})
    store.write_many([(run, Answer(item_id="q1", text="yes", parsed=True), [])])
    (row,) = proctor.reproduce(store, media=media, systems="theirs").data
    assert (row.state, row.pictures) == (Reproduction.UNRECORDED, 0)


def test_originals_and_files_are_recorded(tmp_path: Path) -> None:
    media = tmp_path / "media"
    write_clock_video(media / "a.mp4", _clock("a"))
    pixels = np.random.default_rng(0).integers(0, 255, (600, 800, 3), dtype=np.uint8)
    Picture.fromarray(pixels).save(media / "still.png")

    class Taker(Looker):
        async def answer(self, item: Item, view: View) -> Answer:
            assert isinstance(view, ShowsFiles)
            assert isinstance(view, ShowsOriginals)
            await (view.originals() if isinstance(item.answer, ChoiceFormat) else view.files())
            return Answer(item_id=item.id, text="A")

    still = Item(
        id="s", group="s", question="?", options=("x", "y"), answer=ChoiceFormat(), media=(Image(source="still.png"),)
    )
    items = (question("q1", "a.mp4", 1.0, 3.0), still)
    mine = Benchmark("toy", "Toy", items, (proctor.ACCURACY,), "accuracy", media_root=media)
    store = Store(str(tmp_path / "runs.db"))
    how: dict[str, Any] = {"store": store, "cache": tmp_path / "cache", "conditions": ("video", "black")}
    proctor.run(mine, Taker(), **how)
    found = proctor.reproduce(store, media=media, systems="looker")
    encoded = [one for one in found.data if (one.item, one.condition) == ("q1", "black")]
    assert {one.state for one in found.data if one not in encoded} == {"same"}, found
    assert {one.state for one in encoded} <= {"same", "unrecorded"}  # the encoder's bytes vary on a busy machine
    run = next(one for one in store.runs("toy") if (one.system, one.condition) == ("looker", "video"))
    kinds = {item: [one.asked_as for one in recorded(answer)] for item, answer in store.answers(run).items()}
    assert kinds == {"q1": ["files"], "s": ["originals"]}
    pixels[0] = 255 - pixels[0]
    Picture.fromarray(pixels).save(media / "still.png")
    assert states(store, media)["s", "video"] == "different"


def test_the_words_of_a_model_are_proved_by_their_hash(media: Path, tmp_path: Path) -> None:
    with FaultyServer("Answer: yes") as server:
        store = asked(media, tmp_path, system=None, model="m", base_url=server.url, conditions=("video", "text-only"))
    runs = {run.condition: run for run in store.runs("toy") if run.system == "m"}
    items = {item.id: item for item in store.items("toy")}
    for condition, run in runs.items():
        for name, answer in store.answers(run).items():
            settings: Any = run.settings["system"]
            found = prompt_as_sent("toy", items[name], answer, settings, recorded(answer), condition)
            assert found is not None
            assert any(found[1] in request.text for request in server.requests)
            other = items[name].model_copy(update={"question": "Another?"})
            assert prompt_as_sent("toy", other, answer, settings, recorded(answer), condition) is None
    said = program("show", "toy", "q1", "--system", "m", "--prompt", "--store", tmp_path / "runs.db").stdout
    assert said.count("Asked with (these words have the hash that was recorded):") == 2
    assert said.count("Is q1 so?") == 3  # the item, and twice what was sent


def test_the_commands(media: Path, tmp_path: Path) -> None:
    asked(media, tmp_path, conditions=("video", "shuffled"))
    where = ("--store", tmp_path / "runs.db", "--media", media)
    done = program("reproduce", "toy", *where, "--system", "looker")
    assert done.returncode == 0, done.stderr
    assert [line.split() for line in done.stdout.splitlines()[2:]] == [
        ["looker", "shuffled", "3", "3", "0", "0", "0"],
        ["looker", "video", "3", "3", "0", "0", "0"],
    ]
    rows = json.loads(program("reproduce", "toy", *where, "--item", "q2", "--limit", "1", "--format", "json").stdout)
    assert {row["item"] for row in rows} == {"q2"}
    wrong = program("reproduce", "toy", *where, "--item", "q9")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (1, 1)
    assert "item of toy: found 'q9', expected one of q1, q2, q3" in wrong.stderr
    out = tmp_path / "pictures"
    done = program("show", "toy", "q1", *where, "--system", "looker", "--pictures", out)
    assert "looker / video: 6 pictures in " in done.stdout
    assert ", the same as were shown" in done.stdout
    first = out / "looker" / "video" / "request_1"
    assert sorted(file.name for file in first.iterdir()) == ["001_0.67s.jpg", "002_2.00s.jpg", "003_3.33s.jpg"]
    (media / "a.mp4").unlink()
    done = program("reproduce", "toy", *where, "--system", "looker")
    assert done.returncode == 1
    assert "found no such file" in done.stdout


def test_a_name_leads_nowhere_else(media: Path, tmp_path: Path) -> None:
    class Climber(Looker):
        name = "../../climber\x1b[31m"

    store = asked(media, tmp_path, Climber())
    (line,) = write_shown(store, "q1", tmp_path / "out", "toy", systems=Climber.name, media=media)
    assert "6 pictures" in line
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["_.._climber_[31m".replace("[", "_")]
    with pytest.raises(InputError, match="found no such folder"):
        proctor.reproduce(store, media=tmp_path / "none")


def test_bytes_of_an_encoded_file_that_vary_are_no_difference(tmp_path: Path) -> None:
    media = tmp_path / "media"
    write_clock_video(media / "a.mp4", _clock("a"))

    class Taker(Looker):
        async def answer(self, item: Item, view: View) -> Answer:
            assert isinstance(view, ShowsFiles)
            await view.files()
            return Answer(item_id=item.id, text="yes")

    items = (question("q1", "a.mp4", 1.0, 3.0),)
    mine = Benchmark("toy", "Toy", items, (proctor.ACCURACY,), "accuracy", media_root=media)
    store = Store(str(tmp_path / "runs.db"))
    proctor.run(mine, Taker(), store=store, cache=tmp_path / "cache", conditions=("black",))
    with store.writing() as connection:
        (extra,) = connection.execute(text("select extra from answers where extra like '%files%'")).one()
        told = json.loads(extra)
        told["shown"][0] |= {"sha256": "0" * 64, "prefixes": ["00000000"]}
        new = {"new": json.dumps(told), "old": extra}
        connection.execute(text("update answers set extra = :new where extra = :old"), new)
    (row,) = proctor.reproduce(store, media=media, systems="looker").data
    assert (row.state, "encoded" in row.reason) == (Reproduction.UNRECORDED, True)
    write_clock_video(media / "a.mp4", ClockVideo(times_ms=range(0, 5000, 100), rate=10, keyint=5))
    (row,) = proctor.reproduce(store, media=media, systems="looker").data
    assert row.state is Reproduction.DIFFERENT  # another video


class Undecided:
    """Looks once, at another part in each repetition but the first two."""

    name = "undecided"
    settings: ClassVar[dict[str, Any]] = {}

    def supports(self, item: Item) -> bool:
        return item.id != ""

    async def answer(self, item: Item, view: View) -> Answer:
        number = current_repetition().number
        await view.frames(count=2, window=(1.0, 2.0 if number < 2 else 2.0 + number / 10))
        return Answer(item_id=item.id, text="yes")


def test_each_repetition_is_made_again(media: Path, tmp_path: Path) -> None:
    made = proctor.run(benchmark(media), [Undecided()], store=tmp_path / "runs.db", repeats=4, baselines=False)
    table = proctor.reproduce(made.store)
    assert table.ok
    assert [(one.item, one.repetition) for one in table.data] == [
        (name, number) for name in ("q1", "q2", "q3") for number in range(4)
    ]
    assert [one.pictures for one in table.data] == [2] * 12
    limited = proctor.reproduce(made.store, limit=5)
    assert [(one.item, one.repetition) for one in limited.data] == [*(("q1", k) for k in range(4)), ("q2", 0)]
    # a record of the third repetition alone is changed: it alone differs, and the table says which one it is
    (run,) = made.store.runs("toy")
    kept = made.store.answers(run, 2)["q2"]
    shown = json.loads(json.dumps(kept.extra["shown"]))
    shown[0]["sha256"] = "0" * 64
    with made.store.writing() as connection:
        connection.execute(
            text(
                "update answers set extra = :extra where repetition = 2 and item = (select id from items where item = 'q2')"
            ),
            {"extra": json.dumps(dict(kept.extra) | {"shown": shown})},
        )
    table = proctor.reproduce(made.store)
    assert [(one.item, one.repetition) for one in table.data if one.state is Reproduction.DIFFERENT] == [("q2", 2)]
    assert "Repetition" in str(table)
    lines = write_shown(made.store, "q2", tmp_path / "out")
    assert [line.partition(":")[0] for line in lines] == [
        "undecided / video", *(f"undecided / video / repetition {k}" for k in (1, 2, 3))
    ]  # fmt: skip
    below = tmp_path / "out" / "undecided" / "video"
    assert len([*below.glob("*.jpg"), *below.glob("*/*.jpg")]) == 8
