"""What the files say beyond the toolkit's fields: further labels, and formats in requests without references."""

from __future__ import annotations

from pydantic import JsonValue

from proctor.benchmarks.focus.forms import ARGUMENTS
from proctor.benchmarks.focus.native import NativeReference, NativeRequest
from proctor.core import TagValue

__all__ = ["UNKNOWN", "format_named", "further_fields", "without_reference"]

UNKNOWN = "unknown"
"""What stands for the answer format of a question without reference whose request names none."""

_LONGEST = 80  # characters of a label; what is longer is a text
_OF_THE_FORMAT = {"answer_format", "format", "format_kwargs", "options"}


def further_fields(record: NativeRequest | NativeReference) -> dict[str, TagValue]:
    """The fields that the toolkit does not know, as far as they are labels: short texts, numbers, yes or no, and lists
    of short texts. An empty one is none."""
    found: dict[str, TagValue] = {}
    for name, value in (record.model_extra or {}).items():
        label = _label(value)
        if name not in _OF_THE_FORMAT and name.isidentifier() and label not in {None, "", ()}:
            found[name] = label
    return found


def _label(value: JsonValue) -> TagValue | None:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        text = " ".join(value.split())
        return text if len(text) <= _LONGEST else None
    if isinstance(value, list):
        texts = [_label(one) for one in value]
        return tuple(str(one) for one in texts) if all(isinstance(one, str) for one in texts) else None
    return None


def format_named(request: NativeRequest) -> str:
    """The answer format that a request names beside the toolkit's fields, else `UNKNOWN`."""
    more = request.model_extra or {}
    named = more.get("answer_format", more.get("format"))
    return named if isinstance(named, str) and named in ARGUMENTS else UNKNOWN


def without_reference(request: NativeRequest) -> NativeReference:
    """What stands for a reference that is not there: the format that the request names, with its arguments and options,
    else free text. It has no capability and no answer, and nothing may be marked by it."""
    more, form = request.model_extra or {}, format_named(request)
    arguments, options = more.get("format_kwargs"), more.get("options")
    listed = options if isinstance(options, list) else []
    return NativeReference(
        qID=request.qID,
        primary="",
        format="open_ended" if form == UNKNOWN else form,
        format_kwargs=arguments if isinstance(arguments, dict) and form != UNKNOWN else {},
        answer="",
        options=tuple(str(one) for one in listed),
    )
