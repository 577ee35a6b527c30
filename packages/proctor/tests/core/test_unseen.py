"""Replies that say that there is nothing to see, in the words of models, and replies that only look like it."""

from __future__ import annotations

import pytest

from proctor.core.formats import sees_nothing

NOTHING = (
    "I can't see any picture.",
    "I’m sorry, but I don’t see an image attached to your message.",
    "There is no image.",
    "No picture was provided.",
    "As a text-based model, I am unable to view images.",
    "The image is not visible to me.",
    "<think>Where is it?</think>I cannot see a number in the picture.",
    "Ich sehe kein Bild.",
    "Auf dem Bild ist keine Zahl zu sehen.",
    "Je ne vois aucune image.",
    "No veo ninguna imagen.",
    "我看不到图片。",
    "画像は見えません。",
    "I hear nothing, there is no sound.",
    "Unfortunately, I can't help without the video.",
)
SOMETHING = (
    "",
    "The disc moves up.",
    "A green disc at the top left.",
    "417",
    "zxq blorp 3*H",
    "<think>No image?</think>417",
)


@pytest.mark.parametrize("said", NOTHING)
def test_it_says_so(said: str) -> None:
    assert sees_nothing(said)


@pytest.mark.parametrize("said", SOMETHING)
def test_it_says_something_else(said: str) -> None:
    assert not sees_nothing(said)


def test_a_long_reply_takes_no_longer_than_a_short_one() -> None:
    """Only the beginning is read: who sees nothing says so early."""
    assert not sees_nothing("x " * 100_000 + "no image")
