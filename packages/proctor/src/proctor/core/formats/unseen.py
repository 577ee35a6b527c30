"""Whether a reply says that there is nothing to see, to read or to hear."""

from __future__ import annotations

import re

from proctor.core.formats.reply import gives_up
from proctor.core.formats.thoughts import without_thoughts
from proctor.core.text import deferred

_MOST = 2_000  # characters that are read: a model that sees nothing says so early
_NOT = (
    r"(?:no|not|none|nothing|cannot|can't|couldn't|don't|doesn't|isn't|aren't|wasn't|unable|without|missing|kein\w{0,2}|nicht|nichts"
    r"|fehlt|aucune?|pas|ningún|ninguna?|sin|nessuna?|non|нет|не)"
)
_THING = (
    r"(?:pictures?|images?|photos?|videos?|frames?|clips?|files?|attach\w{0,6}|numbers?|digits?|visible|legible|readable|provided"
    r"|uploaded|see|seen|view|read|hear|heard|sounds?|audio|tones?|bild(?:er)?|zahl(?:en)?|ziffern?|sehen|sehe|lesen|vidéo|nombre"
    r"|chiffre|vois|voir|imagen|imágenes|número|veo|ver|immagine|numero|vedo|изображени\w{0,3}|числ\w{0,3}|виж\w{0,3})"
)
_UNSEEN = deferred(
    rf"\b{_NOT}\b[^.!?\n]{{0,60}}\b{_THING}\b|\b{_THING}\b[^.!?\n]{{0,30}}\b{_NOT}\b"
    r"|(?:没有|看不到|看不见|看不清|无法|未提供)[^。\n]{0,20}(?:图|片|视频|数字|看|读)"
    r"|(?:画像|写真|動画|数字)[^。\n]{0,20}(?:ありません|見えません|ない)|(?:이미지|그림|숫자)[^.\n]{0,20}(?:없|보이지)",
    re.IGNORECASE,
)
_APOSTROPHES = str.maketrans("\u2019\u02bc", "''")


def sees_nothing(text: str) -> bool:
    """Whether a reply says that there is no picture, or that nothing in it can be read; also one that gives up. For replies in
    which a format finds no answer: it is not asked whether one is there.

    >>> sees_nothing("I'm sorry, but I don't see any image."), sees_nothing("Ich kann kein Bild sehen.")
    (True, True)
    >>> sees_nothing("<think>No picture?</think>The disc moves up."), sees_nothing("A green disc.")
    (False, False)
    """
    said = without_thoughts(text)[:_MOST].translate(_APOSTROPHES)
    return gives_up(text) or _UNSEEN.search(said) is not None
