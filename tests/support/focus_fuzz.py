"""Questions, keys and answers of FOCUS at random: what models write, what programs write, and what nobody should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from proctor.core import generator
from proctor.tasks.focus.vocabulary import CAPABILITIES
from proctor.tracks import OBJECTS

Rng = np.random.Generator
EncodedFrame = tuple[str, dict[str, Any], str, str | None]
"""Format, arguments, reference, answer."""

_SCRIPTS = ("٠", "０", "०", "๐")  # the zeros of other digits
_BLANKS = (" ", "\n", "\t", "\u00a0", "\u3000", "\u2003", "\x1f", " \n ")
_CLASSES = tuple(OBJECTS)


def fuzzed(count: int, seed: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Requests, references and responses as the toolkit's files hold them; some answers are missing, `null`, or
    late."""
    rng = generator(seed, "FOCUS answers at random")
    requests, references, responses = [], [], []
    for number in range(count):
        kind, arguments, key, said = _KINDS[number % len(_KINDS)](rng)
        name = f"q{number:05d}"
        requests.append(
            {
                "qID": name,
                "videoID": f"v{rng.integers(12):02d}.mp4",
                "start_time": 0.0,
                "end_time": float(rng.integers(1, 7200)),
                "procedure_type": "any",
                "question": "Which, when or how many?",
            }
        )
        references.append(
            {
                "qID": name,
                "primary": _spelled(rng, _pick(rng, CAPABILITIES)),
                "format": kind,
                "format_kwargs": arguments,
                "answer": key,
                "secondaries": [_pick(rng, CAPABILITIES) for _ in range(rng.integers(3))],
                "ood": bool(rng.integers(2)),
                "clinical": bool(rng.integers(2)),
            }
        )
        if rng.random() > 0.02:
            latency = _pick(rng, (0.0, 1.5, 30.0, 30.0000001, 29.99999, 1e6)) if rng.random() < 0.2 else 0.5
            responses.append({"qID": name, "content": said, "latency": latency})
    return requests, references, responses


def _pick(rng: Rng, some: Any) -> Any:
    return some[int(rng.integers(len(some)))]


def _spelled(rng: Rng, leaf: str) -> str:
    """A capability as the toolkit takes it: its name in several forms, or its code."""
    codes = dict(
        zip(
            CAPABILITIES,
            ["1a", "1b", "1c", "1d", "1e", "2a", "2b", "3a", "3b", "4a", "4b", "4c", "5a", "5b", "5c"],
            strict=True,
        )
    )
    forms = (leaf, leaf.upper(), leaf.replace("_", "-"), leaf.replace("_", " ").title(), codes[leaf])
    return str(_pick(rng, (*forms, codes[leaf].upper(), f" {codes[leaf]} ")))


def _dressed(rng: Rng, said: str) -> str | None:
    """The same, or nearly the same, as somebody might write it."""
    changes: tuple[Callable[[str], str | None], ...] = (
        lambda text: text,
        lambda text: text,
        lambda text: text + ".",
        lambda text: text + " .",
        lambda text: text + _pick(rng, ("..", "。", "!", ",", ", ", ";", ". .", ".\n")),
        lambda text: _pick(rng, _BLANKS) + text + _pick(rng, _BLANKS),
        lambda text: text.upper() if rng.random() < 0.5 else text.title(),
        lambda text: _digits(rng, text),
        lambda text: _pick(rng, ("Answer: ", "**", "about ", "- ", "+", "\u200b", '"')) + text,
        lambda text: text + _pick(rng, (" (sure)", "%", " %", " s", "\u200b", "\x00", ",,", ",none")),
        lambda text: text + " " * 25_000 + _pick(rng, ("", ".", "x")),
        lambda _: _pick(rng, ("", " ", ".", ",", ", ,", "\n", "x" * 25_000, "I can't see a video.")),
        lambda _: None,
    )
    return changes[int(rng.choice(len(changes), p=_weights(len(changes))))](said)


def _weights(number: int) -> Any:
    heavy = np.ones(number)
    heavy[-1] = 0.2
    return heavy / heavy.sum()


def _digits(rng: Rng, text: str) -> str:
    zero = ord(_pick(rng, _SCRIPTS))
    return "".join(chr(zero + int(one)) if one in "0123456789" else one for one in text)


def _binary(rng: Rng) -> EncodedFrame:
    said = _pick(rng, ("yes", "no", "Yes", "NO", "true", "y", "yess", "ｙｅｓ", "not", "yes, no"))
    return "binary", {}, _pick(rng, ("yes", "no", "Yes.", " NO ")), _dressed(rng, said)


def _number(rng: Rng) -> EncodedFrame:
    key = int(rng.integers(0, 12))
    said = _pick(rng, (str(key), str(key), f"{key:03d}", str(key + 1), f"{key}.0", f"-{key}", f"{key}e0"))
    odd = ("²", "①", "Ⅲ", "9" * 400, "9" * 5000, "0" * 5000, f"{key:04300d}", f"{key:04301d}", "1_0", "0x3")
    written = _pick(rng, (str(key), f"{key}.", f" {key} ", f"0{key}"))
    return "number", {}, written, _dressed(rng, _pick(rng, odd) if rng.random() < 0.15 else said)


def _percentage(rng: Rng) -> EncodedFrame:
    key = _pick(rng, (0, 1, 33.333, 50, 76, 98, 100, 104.5, 120))
    arguments = {"threshold_pp": _pick(rng, (0, 0.5, 5, 7.25, 10.0))} if rng.random() < 0.4 else {}
    allowed = arguments.get("threshold_pp", 5.0)
    off = _pick(rng, (0, 0, 1, 3, 4.99, 5, 5.01, 6, allowed, allowed + 1e-9, -allowed, 27))
    value = max(0.0, key + off)
    odd = ("1e2", "inf", "nan", "9" * 400, "5" + "0" * 5000, ".5", "5.", "50,5", "1/2", "50.0.0", "--5", "½")
    said = _pick(rng, (f"{value:g}", f"{value!r}", f"{value:g}%", f"{value:g} %", f"{value:.4f}", f"0{value:g}"))
    written = _pick(rng, (f"{key:g}", f"{key:g}%", f"{key:g} %.", f" {key:g}"))
    said = _pick(rng, odd) if rng.random() < 0.15 else said
    return "percentage", arguments, written, _dressed(rng, said)


def _classes(rng: Rng) -> EncodedFrame:
    known = _CLASSES
    arguments: dict[str, Any] = {}
    if rng.random() < 0.2:
        known = ("Tape", "Loop", "Surgical  Tape")
        arguments = {"valid_names": list(known)}
    names = list(rng.permutation(known)[: int(rng.integers(0, 4))])
    key = ", ".join(names) or _pick(rng, ("none", "None", "NONE."))
    changed = {
        "same": names,
        "turned": names[::-1],
        "twice": names + names[:1],
        "fewer": names[1:],
        "other": [*names, str(_pick(rng, known))],
        "unknown": [*names, _pick(rng, ("scalpel", "Sponges", "a Clip", "none", "ſponge", "Clıp"))],
    }
    said = changed[_pick(rng, list(changed))]
    joint = _pick(rng, (", ", ",", " , ", ",,", ", ,", "; ", " and ", ",\n"))
    text = joint.join(said) or _pick(rng, ("none", "None", "none, none", "nothing", "none,", ""))
    if rng.random() < 0.1:
        text = text.replace(" ", "  ")
    return "fo_class", arguments, key, _dressed(rng, _cased(rng, text))


def _cased(rng: Rng, text: str) -> str:
    return str(_pick(rng, (text, text, text.lower(), text.upper(), text.swapcase())))


def _time(rng: Rng) -> EncodedFrame:
    moments = [int(one) for one in rng.integers(0, 7200, size=int(rng.integers(1, 4)))]
    arguments = {"threshold_seconds": _pick(rng, (0, 1.5, 3.0, 5, 5.0))} if rng.random() < 0.5 else {}
    off = _pick(rng, (0, 0, 1, 2, 3, 5, 6, -5, -6))
    said = [max(0, moment + off) for moment in moments]
    change = rng.random()
    said = said[1:] if change < 0.08 else [*said, said[0]] if change < 0.16 else said[::-1]
    joint = _pick(rng, (", ", ",", ",, ", " ,", "; ", " and ", ", , "))
    form = _pick(rng, (_clock, _clock, _clock, _short, lambda one: f"{_clock(one)}.0", lambda one: f"{one} s"))
    odd = ("00:60:00", "00:00:60", "99:59:59", "1:2:3", "00:00", "000:00:01", "-00:00:01", "00:00:01-00:00:09")
    text = _pick(rng, odd) if rng.random() < 0.1 else joint.join(form(one) for one in said)
    return "time", arguments, ", ".join(map(_clock, moments)), _dressed(rng, text)


def _clock(second: int) -> str:
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def _short(second: int) -> str:
    return f"{second // 60}:{second % 60:02d}"


def _words(kind: str) -> Callable[[Rng], EncodedFrame]:
    def made(rng: Rng) -> EncodedFrame:
        key = _pick(rng, ("To keep the bowel aside", "B) right", "red", "x" * 40, "The loop. It holds a vessel."))
        arguments = {"max_length": _pick(rng, (5, 40, 1000))} if rng.random() < 0.3 else {}
        if len(key) > arguments.get("max_length", 300):
            arguments = {}
        long = "word " * int(rng.integers(50, 70)) + "x" * int(rng.integers(8))
        said = _pick(rng, (key, key.lower(), key.upper(), key.replace(" ", "  "), "blue", long, "y" * 300))
        return kind, arguments, key, _dressed(rng, said)

    return made


_PATTERNS = (
    ("[1-4]/[1-4]", ("2/3", "4/4"), ("2/3", "2-3", "5/1", "2/3/4")),
    ("[A-D](-[A-D]){3}", ("B-A-D-C",), ("B-A-D-C", "b-a-d-c", "BADC", "B-A-D")),
    ("(?i)left|right", ("left",), ("LEFT", "left", "lef", "left right")),
    (r"\d{2}x\d{2}", ("12x34",), ("12x34", "１２x３４", "1x2", "12X34")),
    (r"(?=.*b)\w+", ("abc",), ("abc", "ABC", "ac", "äb")),
    (r"(\w)\1", ("aa",), ("aa", "ab", "AA", "aA")),
    (r"\S+( \S+)?\.", ("to it.",), ("to it.", "to it", "to  it.")),
    (r"a{e}|^b$", ("b",), ("b", "B", "a{e}", "a", "b\n")),
    (r"[\w\s]{1,9}", ("x y",), ("x y", "x  y", "xy", "x\u00a0y")),
)


def _matching(rng: Rng) -> EncodedFrame:
    pattern, keys, answers = _pick(rng, _PATTERNS)
    arguments: dict[str, Any] = {"pattern": pattern}
    if rng.random() < 0.2:
        arguments["max_length"] = 9
    return "matching", arguments, _pick(rng, keys), _dressed(rng, _pick(rng, answers))


_KINDS: tuple[Callable[[Rng], EncodedFrame], ...] = (
    _binary,
    _number,
    _percentage,
    _classes,
    _time,
    _words("open_ended"),
    _words("multiple_choice"),
    _matching,
)
