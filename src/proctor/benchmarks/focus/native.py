"""The toolkit's own files: requests, references, responses, and the answer file of a container."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from proctor.benchmarks.files import read_json, validated
from proctor.core import InputError

__all__ = [
    "NativeReference",
    "NativeRequest",
    "NativeResponse",
    "Repeated",
    "entries",
    "read_references",
    "read_requests",
    "read_responses",
    "write_answer",
    "write_native",
]


def _storable(text: str) -> str:
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("half of a surrogate pair, which is no character")
    return text


class Repeated(list[tuple[str, Any]]):
    """An object of a file that names a key twice: its pairs, since a dictionary would keep the last alone."""

    @property
    def key(self) -> str:
        """The first key that comes again."""
        names = [name for name, _ in self]
        return next(name for place, name in enumerate(names) if name in names[:place])


Text = Annotated[str, AfterValidator(_storable)]
Name = Annotated[str, Field(min_length=1), AfterValidator(_storable)]


def _storable_values(arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
    _storable(json.dumps(arguments, ensure_ascii=False))
    return arguments


class _Native(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    qID: Name  # noqa: N815 - the files' own name


class NativeRequest(_Native):
    """One question as it is asked; times are seconds of the video, and the question is asked at `end_time`."""

    videoID: Name  # noqa: N815 - the files' own name
    start_time: float = Field(ge=0)
    end_time: float = Field(ge=0)
    procedure_type: Text
    question: Name


class NativeReference(_Native):
    """The key of one question with its labels. `options` are those of a multiple choice: the toolkit, which
    leaves it to a judge, has no field for them and passes over this one."""

    primary: Text
    format: Text
    format_kwargs: Annotated[dict[str, JsonValue], AfterValidator(_storable_values)] = Field(
        default_factory=dict
    )
    answer: Text
    options: tuple[Text, ...] = ()
    secondaries: tuple[Text, ...] = ()
    ood: bool = False
    clinical: bool = False


class NativeResponse(_Native):
    """One answer, None where there is none; `latency` is in seconds, None where nobody measured it (the answer
    file of a container)."""

    content: Text | None
    latency: float | None = Field(default=None, ge=0)


Model = TypeVar("Model", bound=_Native)


def read_requests(data: Path) -> list[NativeRequest]:
    """`requests.json` of a folder. Raises `InputError` for what is not as it should be, and for a duplicate."""
    return _unique(NativeRequest, data / "requests.json")


def read_references(data: Path) -> list[NativeReference]:
    """`references.json` of a folder, as `read_requests`."""
    return _unique(NativeReference, data / "references.json")


def read_responses(file: Path) -> list[NativeResponse]:
    """`responses.json`, or a container's `answer.json`: a list of objects with `qID`, `content` and, where it
    was measured, `latency`; or one object from question ids to contents. As `read_requests`."""
    return _unique(NativeResponse, file)


def entries(file: Path) -> list[Any]:
    """The raw entries of one of these files; an object from ids to contents is turned into a list, an id that it
    names twice is there twice. An entry that names a field twice is a `Repeated`."""
    raw = read_json(file, pairs=_object, halves=True)  # a submission is told of them answer by answer
    if isinstance(raw, Repeated) or (isinstance(raw, dict) and raw and "qID" not in raw):
        pairs = raw if isinstance(raw, Repeated) else raw.items()
        return [{"qID": name, "content": content} for name, content in pairs]
    if isinstance(raw, list):
        return raw
    found = "no list"
    if isinstance(raw, dict):
        found = "an object with one entry's fields" if raw else "an empty object"
    raise InputError(file, found=found, expected="a list of objects, each with a qID")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Repeated:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Repeated(pairs)


def write_native(file: Path, records: Iterable[NativeRequest | NativeReference | NativeResponse]) -> None:
    """Writes one of the toolkit's files; what is read from it again is the same."""
    plain = [record.model_dump(mode="json", exclude_unset=True) for record in records]
    file.write_text(json.dumps(plain, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def write_answer(file: Path, responses: Sequence[NativeResponse]) -> None:
    """Writes what a container leaves behind: the contents without latencies, which only its caller can measure."""
    bare = [NativeResponse(qID=one.qID, content=one.content) for one in responses]
    write_native(file, bare)


def _unique(model: type[Model], file: Path) -> list[Model]:
    found: dict[str, Model] = {}
    for number, entry in enumerate(entries(file), start=1):
        if isinstance(entry, Repeated):
            raise InputError(
                file, f"entry {number}", found=f"the field {entry.key!r} twice", expected="each field once"
            )
        one = validated(model, entry, file, f"entry {number}")
        if one.qID in found:
            raise InputError(file, f"entry {number}", found=f"{one.qID} again", expected="each qID once")
        found[one.qID] = one
    return list(found.values())
