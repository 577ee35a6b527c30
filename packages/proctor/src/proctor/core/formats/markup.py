"""Replies as plain text: characters of any script and width as ASCII where they mean the same, and no markup."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import ClassVar


class _Plain(dict[int, str | None]):
    """Translates full-width and Chinese characters to ASCII, digits of any script to 0 to 9, arrows to ">", and removes
    hidden characters."""

    _FIXED: ClassVar[dict[str, str | None]] = {
        **{chr(0x2460 + n): f" {n + 1}. " for n in range(20)},  # numbers in circles
        "≺": "<",
        **dict.fromkeys("\ufe0f\u200b\u200c\u200d\u2060\ufeff\u00ad", None),
        **dict.fromkeys("→⇒➔➜➡⟶⟹▶►➤➝➞↓⬇⇓⟱", ">"),
        **dict.fromkeys("–—−‐‑‒﹣", "-"),
        **dict.fromkeys("“”„«»「」『』", '"'),
        **dict.fromkeys("‘’‚", "'"),
        **dict.fromkeys("【〔〖", "["),
        **dict.fromkeys("】〕〗", "]"),
        "、": ",",
        "،": ",",
        "؛": ";",
        "؟": "?",
        "\u20e3": ".",  # 1️⃣
        "。": ". ",
        "∶": ":",
        "≈": "~",
        "\u3000": " ",
    }

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        if char in self._FIXED:
            plain = self._FIXED[char]
        elif 0xFF01 <= code <= 0xFF5E:
            plain = chr(code - 0xFEE0)
        elif unicodedata.category(char) == "Nd":
            plain = str(unicodedata.decimal(char))
        elif char != "\n" and char.isspace():
            plain = " "
        else:
            plain = char
        self[code] = plain
        return plain


PLAIN = _Plain()
"""For `str.translate`."""
_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}|#\d{1,6});")
_MARKUP = (
    (re.compile(r"```[a-zA-Z]*|~~|\*|`"), ""),
    (re.compile(r"(?<![A-Za-z0-9_])_{1,3}(?=\S)|(?<=\S)_{1,3}(?![A-Za-z0-9_])"), ""),
    (re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|(?:>[ \t]+){1,3}(?=\S)|[-•·‣◦][ \t]+)", re.MULTILINE), ""),
    (re.compile(r"</?(?:b|i|em|strong|p|span|div|u|code|sub|sup|h[1-6]|li|ul|ol|final)>"), ""),
    (re.compile(r"</t[dh]>\s{0,9}<t[dh]>", re.IGNORECASE), " | "),
    (re.compile(r"<br ?/?>|</?t(?:able|r|head|body)>", re.IGNORECASE), "\n"),
    (re.compile(r"</?t[dh]>", re.IGNORECASE), " "),
    (re.compile(r"\\(?:long)?(?:right|Right)arrow\b|\\(?:to|succ|gt)\b"), ">"),
    (re.compile(r"\\(?:text|mathrm|mathbf|textbf|textit|mathit|mathsf)\s?\{([^{}]{0,200})\}"), r"\1"),
    (re.compile(r"\\(?:text|mathrm|mathbf|textbf|textit|mathit|mathsf|operatorname|bf|rm)\b"), ""),
    (re.compile(r"\\(?:quad|qquad|displaystyle|left|right)\b|\\[,;:! ]"), " "),
    (re.compile(r"\\[()\[\]]|\$"), ""),
    (re.compile(r"\\(?=[%#&_{}])"), ""),
)


def without_markup(text: str) -> str:
    """The text without Markdown, HTML and LaTeX around the words."""
    if "&" in text:
        text = _ENTITY.sub(lambda hit: html.unescape(hit[0]), text).translate(PLAIN)
    for pattern, plain in _MARKUP:
        text = pattern.sub(plain, text)
    return text
