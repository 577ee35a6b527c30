"""Speech that is recognised: what is sent, when it was said, what is kept, by a server that listens and by
faster-whisper."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proctor.core import ConfigurationError
from proctor.media.audio import RATE, cut_sound, speech_parts
from proctor.models import ModelClient, ModelSpec
from proctor.runs import Store
from proctor_build.pipeline import Project, funnel, history, redo_record, run_stages
from tests.support.ear import SENTENCES, ear, frames_of, project_of, transcribed
from tests.support.faulty_server import Fault, FaultyServer
from tests.support.killed_child import in_a_fork
from tests.support.sounds import tones, write_sound, write_video
from tests.support.tiny_whisper import write_tiny_whisper

SAID = ((2.0, 5.0, 300), (6.0, 9.0, 400), (12.0, 14.0, 500), (15.0, 18.0, 600), (21.0, 25.0, 700))
SERVER = "openai-transcription:whisper-1"


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty seconds with five tones."""
    return write_video(tmp_path_factory.mktemp("spoken") / "v.mp4", 30, tones(30, SAID))


@pytest.fixture
def hearing(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    with FaultyServer(ear) as running:
        yield running


def said(made: dict[str, Any]) -> list[tuple[float, float, str]]:
    return [(one["start"], one["end"], one["text"]) for one in made["records"]]


def close_to_the_truth(found: list[tuple[float, float, str]], within: float = 0.05) -> bool:
    truth = [(start, end, SENTENCES[hertz]) for start, end, hertz in SAID]
    alike = [one[2] for one in found] == [one[2] for one in truth]
    return alike and all(abs(a - b) < within for one, other in zip(found, truth, strict=True)
                         for a, b in zip(one[:2], other[:2], strict=True))  # fmt: skip


def test_what_is_said_is_found_when_it_was_said(tmp_path: Path, video: Path, hearing: FaultyServer) -> None:
    folder = project_of(tmp_path / "p", video, SERVER, hearing.url)
    made = transcribed(folder)
    assert close_to_the_truth(said(made))
    first = made["records"][0]
    assert [one["text"] for one in first["words"]] == SENTENCES[300].split()
    starts = [one["start"] for one in first["words"]]
    assert starts == sorted(starts)
    assert starts[0] == first["start"]
    assert first["words"][-1]["end"] == pytest.approx(first["end"], abs=0.01)
    assert [one["flags"] for one in made["records"]] == [[]] * 5
    assert made["refused"] == []
    assert made["notes"] == ["1 silence, 5 of 30 s"]


def test_what_arrives_is_the_sound_of_the_trim(tmp_path: Path, video: Path, hearing: FaultyServer) -> None:
    settings = {"prompt": "duct, hilum", "temperature": 0}
    folder = project_of(
        tmp_path / "p", video, SERVER, hearing.url, start=5.5, end=20.0, language="de", model={"settings": settings}
    )
    made = transcribed(folder)
    (request,) = hearing.requests
    assert request.body["file"] == cut_sound(video, (5.5, 20.0))
    fields = {name: value for name, value in request.body.items() if name not in {"file", "headers"}}
    assert fields == {
        "model": ["whisper-1"], "response_format": ["verbose_json"], "timestamp_granularities[]": ["word", "segment"],
        "language": ["de"], "prompt": ["duct, hilum"], "temperature": ["0"],
    }  # fmt: skip
    assert request.body["headers"]["Authorization"] == "Bearer sk-of-the-environment"
    assert [text for _, _, text in said(made)] == [SENTENCES[hertz] for hertz in (400, 500, 600)]
    assert said(made)[0][0] == pytest.approx(6.0, abs=0.05)
    kept = b"".join(one.read_bytes() for one in folder.rglob("*") if one.is_file() and not one.is_symlink())
    assert b"of-the-environment" not in kept


def test_parts_are_cut_in_pauses_and_their_times_shifted_back(
    tmp_path: Path, video: Path, hearing: FaultyServer
) -> None:
    whole = transcribed(project_of(tmp_path / "whole", video, SERVER, hearing.url))
    before = hearing.count
    made = transcribed(project_of(tmp_path / "parts", video, SERVER, hearing.url, stages={"transcript": {"part_s": 8}}))
    assert hearing.count - before >= 4
    assert close_to_the_truth(said(made))
    assert [one[2] for one in said(made)] == [one[2] for one in said(whole)]
    assert all(abs(a[0] - b[0]) < 0.01 for a, b in zip(said(made), said(whole), strict=True))
    assert len({one["calls"][0]["key"] for one in made["records"]}) >= 4
    assert made["notes"] == whole["notes"]  # no cut where somebody speaks


def test_parts_hold_every_sample_once(tmp_path: Path) -> None:
    """At the rate of the recording nothing is resampled: the parts on end are the recording."""
    rng = np.random.default_rng(3)
    samples = tones(21, SAID[:4], RATE) + rng.normal(0, 0.002, 21 * RATE).astype(np.float32)
    file = write_sound(tmp_path / "s.wav", samples, RATE)
    parts = list(speech_parts(file, (0.5, 20.5), 8.0))
    assert frames_of([one.sound.wav for one in parts]) == frames_of([cut_sound(file, (0.5, 20.5))])
    spans = [one.sound.span for one in parts]
    assert (spans[0][0], spans[-1][1]) == (0.5, 20.5)
    assert all(a[1] == b[0] and 1 <= a[1] - a[0] <= 8 for a, b in pairwise(spans))
    assert not any(start < cut < end for _, cut in spans[:-1] for start, end, _ in SAID)
    assert not any(one.cut_short for one in parts)
    assert parts[0].heard(2.0, 3.0)
    assert not parts[0].heard(0.0, 1.0)  # noise, 43 dB below the tones


def test_a_cut_in_speech_is_noted(tmp_path: Path, hearing: FaultyServer) -> None:
    video = write_video(tmp_path / "v.mp4", 12, tones(12, [(0.5, 11.5, 400)]))
    made = transcribed(project_of(tmp_path / "p", video, SERVER, hearing.url, stages={"transcript": {"part_s": 6}}))
    assert made["notes"][0] == "2 cuts where somebody may be speaking"


def test_nothing_is_heard_twice(tmp_path: Path, video: Path, hearing: FaultyServer) -> None:
    folder = project_of(tmp_path / "p", video, SERVER, hearing.url)
    first = transcribed(folder)
    assert hearing.count == 1
    file = folder / "work" / "transcript" / "a.json"
    before = file.read_bytes()
    transcribed(folder)
    assert (hearing.count, file.read_bytes()) == (1, before)
    settings = folder / "project.yaml"
    settings.write_text(settings.read_text().replace("stages: {}", "stages: {transcript: {pause_s: 0.5}}\nseed: 7"))
    assert said(transcribed(folder)) == said(first)  # made again, from the journal
    assert hearing.count == 1
    redo_record(Project(folder), "transcript", "a")
    transcribed(folder)
    assert hearing.count == 2
    redo_record(Project(folder), "transcript", "a", undo=True)
    transcribed(folder)
    assert hearing.count == 2
    (row,) = [one for one in funnel(Project(folder)) if one.stage == "transcript"]
    assert (row.calls, row.cost_usd, row.flagged) == (1, None, 0)
    assert history(Project(folder), "a-s001")[0].replies[0]["judge"] == "build.transcript"


def test_killed_and_resumed_it_asks_for_no_part_again(tmp_path: Path, video: Path, hearing: FaultyServer) -> None:
    stages = {"transcript": {"part_s": 8}}
    whole = transcribed(project_of(tmp_path / "whole", video, SERVER, hearing.url, stages=stages))
    parts = hearing.count
    for moment in (1, 3):
        folder = project_of(tmp_path / f"broken-{moment}", video, SERVER, hearing.url, stages=stages)
        before = hearing.count
        assert _run_and_die(folder, moment)
        assert hearing.count == before + moment
        assert not (folder / "work" / "transcript").exists()
        assert transcribed(folder) == whole
        assert hearing.count == before + parts
        bodies = [(tmp_path / one / "work/transcript/a.json").read_bytes() for one in ("whole", folder.name)]
        assert bodies[0] == bodies[1]


def _run_and_die(folder: Path, moment: int) -> bool:
    """Runs in a child that is killed once its reply number `moment` is kept."""
    left, write = [moment], Store.put_judgements

    def deadly(*given: Any) -> Any:
        done = write(*given)
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    def deadly_run() -> None:
        Store.put_judgements = deadly  # type: ignore[method-assign, assignment]
        transcribed(folder)

    return in_a_fork(deadly_run) == -signal.SIGKILL


@pytest.mark.parametrize(
    "faults",
    [[Fault.RATE_LIMIT, Fault.SERVER_ERROR], [Fault.UNAVAILABLE, Fault.RESET], [Fault.CUT_OFF, Fault.TRUNCATED_JSON]],
)
def test_faults_that_pass_are_waited_for(
    tmp_path: Path, video: Path, hearing: FaultyServer, faults: list[Fault]
) -> None:
    hearing._script = [*faults]
    folder = project_of(tmp_path / "p", video, SERVER, hearing.url, model={"retries": 2})
    assert close_to_the_truth(said(transcribed(folder)))
    assert hearing.count == 3


def test_a_server_that_is_down_is_waited_for(tmp_path: Path, video: Path, hearing: FaultyServer) -> None:
    folder = project_of(tmp_path / "p", video, SERVER, hearing.url)
    hearing._script = [Fault.SERVER_ERROR]
    (state,) = asyncio.run(run_stages(Project(folder), until="transcript"))
    assert (state.state, state.why) == ("waiting", f"{SERVER}: HTTP 500: The server had an error")
    assert not (folder / "work" / "transcript").exists()
    assert close_to_the_truth(said(transcribed(folder)))


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_whisper(tmp_path_factory.mktemp("weights") / "tiny")


def test_faster_whisper_hears_by_path(tmp_path: Path, video: Path, weights: Path) -> None:
    """Drawn weights hear letters: what counts is the way there, and that times and probabilities fit the sound."""
    model = {"settings": {"vad": False, "temperature": 0}}
    folder = project_of(tmp_path / "p", video, f"faster-whisper:{weights}", start=2.0, end=9.0, model=model)
    made = transcribed(folder)
    assert made["records"]
    assert all(re.fullmatch(r"[a-z ]+", one["text"]) for one in made["records"])
    words = [word for one in made["records"] for word in one["words"]]
    assert words
    assert all(2.0 <= one["start"] <= one["end"] <= 9.0 and 0 < one["confidence"] < 1 for one in words)
    assert [one["start"] for one in words] == sorted(one["start"] for one in words)
    (call,) = made["records"][0]["calls"]
    assert call["model"] == f"faster-whisper:{weights}"


def test_faster_whisper_leaves_silence_out(tmp_path: Path, video: Path, weights: Path) -> None:
    """Tones are no speech: its detector of speech, whose weights come with the package, leaves nothing to invent."""
    folder = project_of(tmp_path / "p", video, f"faster-whisper:{weights}")
    with pytest.raises(Exception, match=r"source 'a': found no speech from 0 to 30 s, expected a narrated stretch"):
        transcribed(folder)


def test_faster_whisper_needs_its_package_and_files(
    tmp_path: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.bin").touch()
    with pytest.raises(
        ConfigurationError, match=r"found no config\.json and no tokenizer\.json there, expected a fold"
    ):
        ModelClient(ModelSpec(name=f"faster-whisper:{tmp_path}"))
    with pytest.raises(ConfigurationError, match="unknown model setting 'beams'"):
        ModelClient(ModelSpec(name=f"faster-whisper:{weights}", settings={"beams": 3}))
    monkeypatch.setattr("proctor.models.speech.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"is not installed: pip install 'proctor-eval\[asr\]'"):
        ModelClient(ModelSpec(name=f"faster-whisper:{weights}"))


def test_weights_that_are_none_and_languages_that_it_does_not_know(tmp_path: Path, video: Path, weights: Path) -> None:
    folder = project_of(tmp_path / "p", video, f"faster-whisper:{weights}", language="de")
    with pytest.raises(ConfigurationError, match="language: found 'de', expected en"):
        transcribed(folder)
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in weights.iterdir():
        (broken / file.name).write_bytes(b"none" if file.name == "model.bin" else file.read_bytes())
    with pytest.raises(ConfigurationError, match="faster-whisper:"):
        transcribed(project_of(tmp_path / "q", video, f"faster-whisper:{broken}"))
