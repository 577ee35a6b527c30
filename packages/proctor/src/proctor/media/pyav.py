"""Files are opened with PyAV here alone, and what differs between its versions 18 and 19 ends here.

PyAV 19 (Python 3.12 and newer; 3.11 keeps 18) returns its own `AVRational` where 18 returned a `Fraction` or None, reads
tags with `surrogateescape`, and takes no `metadata_errors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from numbers import Rational
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from av.container import InputContainer


def open_input(path: Path, **options: str) -> InputContainer:
    """A media file, opened for reading; only local files are, whatever a playlist inside refers to. `options` are
    FFmpeg's. Raises what PyAV raises (`av.FFmpegError`, `OSError`)."""
    import av

    without = {"metadata_errors": "replace"} if int(av.__version__.partition(".")[0]) < 19 else {}
    opened = cast("Any", av.open)(str(path), "r", options={"protocol_whitelist": "file", **options}, **without)
    return cast("InputContainer", opened)


def exact(ratio: Rational | None, otherwise: Fraction) -> Fraction:
    """A time base, a rate or an aspect of PyAV as a fraction; `otherwise` where the file does not state it, which is None
    in version 18, and 0/1, 0/0 or 1/0 in version 19.

    >>> exact(None, Fraction(1)), exact(Fraction(0), Fraction(1)), exact(Fraction(1, 25), Fraction(1))
    (Fraction(1, 1), Fraction(1, 1), Fraction(1, 25))
    """
    return Fraction(int(ratio.numerator), int(ratio.denominator)) if ratio else otherwise


def readable_tags(metadata: Mapping[str, str]) -> dict[str, str]:
    """The tags of a file or track, with U+FFFD for bytes that are no UTF-8: such text can be shown and stored.

    >>> readable_tags({"title": "M\\udcfcller"})
    {'title': 'M\ufffdller'}
    """
    return {_readable(name): _readable(value) for name, value in metadata.items()}


def _readable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
