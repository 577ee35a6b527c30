"""Words that speak of sound or of text on the screen, and words that only resemble them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from proctor_build.pipeline import FORBIDDEN


def reasons(text: str) -> list[str]:
    return [name for name, pattern in FORBIDDEN.items() if re.search(pattern, text, re.IGNORECASE)]


@pytest.mark.parametrize(
    "stem",
    [
        "Explain the operator's step in this clip and its aim.",
        "Explain what is done, and say why.",
        "Mention the step that is shown, and its aim.",
        "How can one tell the vein from the artery here?",
        "Which comparison is used to tell two adjacent vessels apart?",
        "What does one look at to tell us apart from the neighbours?",
        "What can you tell about the state of the view?",
        "Which manoeuvre best explains the loss of view?",
        "Which loss of view is best explained by the movement?",
        "Generally speaking, what is done and why?",
        "What is changed to improve the transmission of sound, and why?",
        "Which colour overlay is applied, and what for?",
        "What is measured with the on-screen calipers, and why?",
        "To which plane is the probe rotated by 90 degrees?",
        "Why is the picture labelled before it is stored?",
        "In this context, which ultrasound mode is chosen?",
    ],
)
def test_what_only_resembles_speech_or_text_passes(stem: str) -> None:
    assert reasons(stem) == []


@pytest.mark.parametrize(
    ("stem", "reason"),
    [
        ("What does the narrator explain here, and why?", "sound"),
        ("What does the operator say about the liver?", "sound"),
        ("What is the patient told to do, and why?", "sound"),
        ("What does the surgeon tell the patient?", "sound"),
        ("The sonographer tells viewers to slide: why?", "sound"),
        ("As mentioned in the clip, what is done?", "sound"),
        ("What is explained in the clip?", "sound"),
        ("What is explained by the doctor at this point?", "sound"),
        ("The radiologist then explains a plane: which one?", "sound"),
        ("Which sound can be noticed?", "sound"),
        ("According to the transcript, what is done?", "sound"),
        ("Which on-screen caption is shown?", "on-screen text"),
        ("What is written beside the organ?", "on-screen text"),
        ("Which label names the organ?", "on-screen text"),
        ("What does the label say of it?", "on-screen text"),
        ("What is measured at 104 mm, and why?", "exact readout"),
        ("At an angle of 37°, what is measured?", "exact readout"),
    ],
)
def test_what_no_picture_shows_is_refused(stem: str, reason: str) -> None:
    assert reason in reasons(stem)


def test_the_papers_own_questions_pass(data: Path) -> None:
    """All questions of the release that count, with their options."""
    files = sorted((data / "rexsonovqa" / "benchmark_questions").glob("*/*.json"))
    questions = [one["question"] for file in files for one in json.loads(file.read_text()) if one.get("keep", True)]
    assert len(questions) == 514
    assert [(reasons(one), one) for one in questions if reasons(one)] == []
