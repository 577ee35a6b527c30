"""Formatting of numbers and texts for people: values, intervals, p values, dollars, seconds, counts; what is
shortened, and control characters replaced.

A minus is shown as a minus sign (−), a missing value as a dash (–), and percentages with one decimal.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from difflib import get_close_matches

from proctor.core.metric import ACCURACY, Metric

DASH = "–"
_MINUS = "−"

# Control characters, including those that change the text direction: an answer must not affect the page around it.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """The text with control characters replaced by the replacement character.

    >>> clean("a\\x00b\\u202ec")
    'a\\ufffdb\\ufffdc'
    """
    return _HIDDEN.sub("\ufffd", text.replace("\r\n", "\n"))


def shorten(text: str, limit: int) -> str:
    """The text on one line, truncated to at most `limit` characters.

    >>> shorten("a long  name", 8)
    'a long…'
    """
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def shell_word(value: object) -> str:
    """A value as one word of a command that somebody may copy into a shell.

    >>> shell_word("my runs/a.db")
    "'my runs/a.db'"
    """
    return shlex.quote(str(value))


def store_word(shown: str) -> str:
    """A store, as it is shown, as a word of a command. A URL whose password is hidden is read from the environment.

    >>> store_word("my runs.db")
    "'my runs.db'"
    >>> store_word("postgresql://me:***@db/runs")
    '"${PROCTOR_STORE:?export the URL of the store, with its password}"'
    """
    hidden = ":***@" in shown
    return '"${PROCTOR_STORE:?export the URL of the store, with its password}"' if hidden else shell_word(shown)


def plain_name(name: str) -> str:
    """The name of a tag as words.

    >>> plain_name("question_type")
    'question type'
    """
    return clean(name).replace("_", " ")


def value(metric: Metric, number: float | None) -> str:
    """The value of a metric; a dash for None.

    >>> value(ACCURACY, 0.5), value(ACCURACY, None)
    ('50.0 %', '–')
    """
    return DASH if number is None else metric.show(number).replace("-", _MINUS)


def interval(metric: Metric, low: float | None, high: float | None) -> str:
    """The interval of a metric; a dash for None.

    >>> interval(ACCURACY, 0.4, 0.625), interval(ACCURACY, None, 0.6)
    ('40.0 to 62.5', '–')
    """
    if low is None or high is None:
        return DASH
    return f"{_plain(metric, low)} to {_plain(metric, high)}"


def difference(metric: Metric, number: float | None) -> str:
    """A difference with its sign; in percentage points for percentages; a dash for None.

    >>> difference(ACCURACY, 0.05), difference(ACCURACY, -0.05), difference(ACCURACY, None)
    ('+5.0 pts', '−5.0 pts', '–')
    """
    if number is None:
        return DASH
    shown = _plain(metric, number)
    sign = "" if shown.startswith(_MINUS) or not shown.strip("0.") else "+"
    return f"{sign}{shown}{' pts' if metric.percent else ''}"


def points(metric: Metric, number: float | None, low: float | None = None, high: float | None = None) -> str:
    """A difference with its interval; without the interval if it is not known.

    >>> points(ACCURACY, 0.108, 0.012, 0.195), points(ACCURACY, 0.05), points(ACCURACY, None)
    ('+10.8 pts (1.2 to 19.5)', '+5.0 pts', '–')
    """
    ends = interval(metric, low, high)
    return difference(metric, number) + ("" if number is None or ends == DASH else f" ({ends})")


def p_value(p: float | None) -> str:
    """A p value with two significant digits; a dash for None.

    >>> p_value(0.00004), p_value(0.0042), p_value(0.0312), p_value(0.5), p_value(1.0), p_value(None)
    ('< 0.001', '0.0042', '0.031', '0.50', '1.00', '–')
    """
    if p is None:
        return DASH
    if p < 0.001:
        return "< 0.001"
    return f"{p:.4f}" if p < 0.00995 else f"{p:.3f}" if p < 0.0995 else f"{p:.2f}"


def seconds(number: float) -> str:
    """Seconds with about two significant digits.

    >>> seconds(0.0123), seconds(1.26), seconds(75.2)
    ('0.012', '1.3', '75')
    """
    if number < 0.1:
        return f"{number:.3f}"
    return f"{number:.2f}" if number < 1 else f"{number:.1f}" if number < 20 else f"{number:.0f}"


def thousands(number: int | None) -> str:
    """An integer with thousands separators; a dash for None.

    >>> thousands(1234567)
    '1\\u202f234\\u202f567'
    """
    return DASH if number is None else f"{number:,}".replace(",", "\u202f")


def dollars(number: float) -> str:
    """An amount of US dollars. A small one is not shown as nothing.

    >>> dollars(0.00321), dollars(12.345), dollars(0.00001), dollars(0.0)
    ('$0.0032', '$12.35', '< $0.0001', '$0')
    """
    if not number:
        return "$0"
    return f"${number:.2f}" if number >= 1 else f"${number:.4f}" if number >= 0.0001 else "< $0.0001"


def percent(share: float | None) -> str:
    """A share as a percentage with one decimal; a dash for None.

    >>> percent(0.5), percent(None)
    ('50.0 %', '–')
    """
    return value(ACCURACY, share)


def number(amount: float | None, digits: int = 3) -> str:
    """A number with this many decimals; a dash for None.

    >>> number(-0.25), number(-0.0001), number(None), number(0.125, 2)
    ('−0.250', '0.000', '–', '0.12')
    """
    return DASH if amount is None else _with_minus(f"{amount:.{digits}f}")


def signed(amount: float | None, digits: int = 3) -> str:
    """A difference with its sign; a dash for None.

    >>> signed(0.25), signed(-0.25), signed(0.0)
    ('+0.250', '−0.250', '0.000')
    """
    shown = number(amount, digits)
    return f"+{shown}" if amount is not None and amount > 0 and shown.strip("0.") else shown


def number_interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """An interval of numbers; a dash for None.

    >>> number_interval(-0.1, 0.25), number_interval(None, 1.0)
    ('−0.100 to 0.250', '–')
    """
    return DASH if low is None or high is None else f"{number(low, digits)} to {number(high, digits)}"


def rank_range(low: int | None, high: int | None) -> str:
    """An interval of ranks; a dash for None.

    >>> rank_range(1, 3), rank_range(2, 2), rank_range(None, None)
    ('1 to 3', '2', '–')
    """
    if low is None or high is None:
        return DASH
    return str(low) if low == high else f"{low} to {high}"


def count_of(count: int, noun: str) -> str:
    """A count with its noun in singular or plural.

    >>> count_of(1, "item"), count_of(1200, "item"), count_of(2, "entry"), count_of(2, "essay")
    ('1 item', '1\\u202f200 items', '2 entries', '2 essays')
    """
    plural = re.sub("([^aeiou])y$", r"\1ie", noun) + "s"
    return f"{thousands(count)} {noun if count == 1 else plural}"


def _plain(metric: Metric, number: float) -> str:
    return _with_minus(f"{100 * number:.1f}" if metric.percent else f"{number:.2f}")


def _with_minus(shown: str) -> str:
    """With a minus sign, except before zero."""
    return (shown.lstrip("-") if not shown.strip("-0.") else shown).replace("-", _MINUS)


_SAME_AS = {
    "muted": ("mute", "silent", "no-sound", "no-audio", "without-sound"),
    "speech-only": ("audio-only", "sound-only", "speech", "listening", "transcript-only"),
    "text-only": ("blind", "none", "no-video", "no-image", "no-images", "no-media", "question-only", "text"),
    "black": ("blank", "blank-frames", "black-frames", "dark"),
    "shuffled": ("permuted", "random-order"),
    "reversed": ("backward", "backwards"),
    "single-frame": ("middle-frame", "one-frame"),
    "other-video": ("random-video", "wrong-video"),
}
"""Synonyms of names, which are suggested in error messages."""


def one_of(choices: Iterable[str], found: str = "") -> str:
    """The choices as text for an error message, with a suggestion for what was probably meant.

    >>> one_of(["temperature", "top_p"], "temprature")
    "one of temperature, top_p; did you mean 'temperature'?"
    >>> one_of(["text-only", "video"], "no-video")
    "one of text-only, video; did you mean 'text-only'?"
    >>> one_of([])
    'one of none'
    """
    known = list(choices)
    word = found.lower().replace("_", "-")
    near = [name for name, others in _SAME_AS.items() if word in others and name in known]
    near = near or (get_close_matches(found, known, n=1) if found else [])
    return f"one of {', '.join(known) or 'none'}" + (f"; did you mean {near[0]!r}?" if near else "")
