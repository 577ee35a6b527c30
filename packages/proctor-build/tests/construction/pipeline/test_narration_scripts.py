"""Narration in scripts with vowel signs, and in scripts without spaces between words."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from proctor_build.pipeline import Project, run_stages
from proctor_build.pipeline.questions import QuestionsSettings, broken_rule
from proctor_build.pipeline.records import DraftQuestion
from proctor_build.pipeline.speech import changed
from proctor_build.pipeline.transcripts import read_transcript
from tests.support.faulty_server import FaultyServer, Request


def events_of(folder: Path, film: Path, segment: dict[str, Any], quote: str) -> tuple[list[Any], list[Any]]:
    """The events and the refused drafts of one spoken sentence, by a model that quotes it so."""
    (folder / "sources").mkdir(parents=True)
    (folder / "sources" / "a.mp4").symlink_to(next((film / "videos").iterdir()))
    (folder / "sources" / "a.json").write_text(json.dumps({"segments": [segment]}))
    event = {"sentences": [1], "quote": quote, "action": "look at the kidney"}

    def writer(request: Request) -> str:
        del request
        return json.dumps({"events": [event]})

    with FaultyServer(writer) as server:
        model = {"name": "openai:m", "base_url": server.url, "retries": 0, "structured": "prompted"}
        settings = {
            "kind": "rexsonovqa",
            "models": {"writer": model},
            "sources": [{"id": "a", "video": "sources/a.mp4", "transcript": "sources/a.json"}],
            "stages": {"normalise": {"model": False}},
        }
        (folder / "project.yaml").write_text(yaml.safe_dump(settings))
        asyncio.run(run_stages(Project(folder), until="events"))
    made = json.loads((folder / "work" / "events" / "a.json").read_text())
    return made["records"], made["refused"]


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("हम गुर्दे को देखते हैं", "हम गुर्दा को"),  # another vowel
        ("ننظر إلى كَبِد المريض", "كُبَد"),
        ("เราดูไตซ้าย", "ไตซาย"),
    ],
)
def test_a_quote_with_other_vowels_was_not_said(
    tmp_path: Path, film: Path, monkeypatch: pytest.MonkeyPatch, text: str, quote: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    segment = {"start": 1.0, "end": 5.0, "text": text}
    made, refused = events_of(tmp_path / "other", film, segment, quote)
    assert (made, [one["kind"] for one in refused]) == ([], ["quote"])
    made, refused = events_of(tmp_path / "said", film, segment, text.rsplit(maxsplit=1)[-1])
    assert (len(made), refused) == (1, [])


def test_an_event_in_chinese_begins_with_its_words(tmp_path: Path, film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    words = [
        ("我们", 1.0, 2.0),
        ("现在", 2.0, 3.0),
        ("观察", 3.0, 3.5),
        ("左", 3.5, 3.8),
        ("肾", 3.8, 4.5),
        ("。", 4.5, 5.0),
    ]
    spoken = [{"word": word, "start": start, "end": end} for word, start, end in words]
    segment = {"start": 1.0, "end": 5.0, "text": "我们现在观察左肾。", "words": spoken}
    (event,), _ = events_of(tmp_path / "p", film, segment, "观察左肾")
    assert (event["start"], event["end"]) == (3.0, 5.0)
    (event,), _ = events_of(tmp_path / "q", film, segment, "现在观察")
    assert (event["start"], event["end"]) == (2.0, 3.5)


def test_captions_in_chinese_roll_as_others_do(tmp_path: Path) -> None:
    file = tmp_path / "a.vtt"
    file.write_text(
        "WEBVTT\n\n00:00.000 --> 00:02.000\n我们移动探头\n\n00:02.000 --> 00:04.000\n我们移动探头\n向左侧看肾脏\n\n"
        "00:04.000 --> 00:06.000\n向左侧看肾脏\n好\n\n00:06.000 --> 00:07.000\n好\n"
    )
    assert [one.text for one in read_transcript(file).cues] == ["我们移动探头", "向左侧看肾脏", "好", "好"]


def test_a_normalised_sentence_keeps_its_vowels() -> None:
    assert changed("दाएँ गुर्दे को देखें", "दाएँ गुर्दे को देखें।") == ""
    assert changed("दाएँ गुर्दे को देखें", "दाएँ गुर्दा को देखें") == "'गुर्दा' is not in the original"
    assert changed("嗯我们现在观察左肾", "我们现在观察左肾。") == ""
    assert changed("我们观察左肾", "我们观察右肾") == "'右' is not in the original"


def test_options_in_another_order_of_words_differ() -> None:
    options = ("从左到右", "从右到左", "Move the probe left to right", "Move the probe right to left")
    draft = DraftQuestion(
        id="q", source="v", start=2, end=6, type="Type1", kind="mcq", text="What is done, and why?",
        key=0, options=options, groundtruth="It is moved.",
    )  # fmt: skip
    broken = broken_rule(draft, [], QuestionsSettings())
    assert broken is None or broken.name != "an option twice"
