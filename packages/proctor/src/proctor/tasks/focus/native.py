"""The toolkit's own files: requests, references, responses, a container's answers, and the published rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from proctor.core import Evidence, InputError, TagValue, check_fields, check_wrapped, read_json, read_jsonl, validated
from proctor.tasks.focus.vocabulary import FORMATS, UNKNOWN, time_tolerance

_HALF = re.compile("[\ud800-\udfff]")


def _storable(text: str) -> str:
    if _HALF.search(text):
        raise ValueError("half of a surrogate pair, which is no character")
    return text


class Repeated(list[tuple[str, Any]]):
    """The pairs of an object with a repeated key, of which a dictionary would keep only the last value."""

    @property
    def key(self) -> str:
        """The first repeated key."""
        names = [name for name, _ in self]
        return next(name for number, name in enumerate(names) if name in names[:number])


Text = Annotated[str, AfterValidator(_storable)]
Name = Annotated[str, Field(min_length=1), AfterValidator(_storable)]


def _storable_values(arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
    _storable(json.dumps(arguments, ensure_ascii=False))
    return arguments


def _none_as_empty(value: object) -> object:
    return () if value is None else value


class _Native(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    qID: Name  # noqa: N815 - the files' own name


class NativeRequest(_Native):
    """One question; times are seconds of the video, and the question is asked at `end_time`."""

    videoID: Name  # noqa: N815 - the files' own name
    start_time: float = Field(ge=0)
    end_time: float = Field(ge=0)
    procedure_type: Text
    question: Name


class NativeReference(_Native):
    """The key of one question with its labels. `options` are those of a multiple choice; the toolkit, which leaves it to
    a judge, ignores this field, and `evidence`, which says where and when the answer is visible. `secondaries` are as given: the reader leaves out what is no capability."""

    primary: Text
    format: Text
    format_kwargs: Annotated[dict[str, JsonValue], AfterValidator(_storable_values)] = Field(default_factory=dict)
    answer: Text
    options: tuple[Text, ...] = ()
    secondaries: Annotated[tuple[Text | None, ...], BeforeValidator(_none_as_empty)] = ()
    ood: bool = False
    clinical: bool = False
    evidence: Evidence | None = None


class NativeResponse(_Native):
    """One answer; `content` is None where there is none. `latency` is in seconds, None where it was not measured (in the
    answer file of a container)."""

    content: Text | None
    latency: float | None = Field(default=None, ge=0)


Model = TypeVar("Model", bound=_Native)


def read_requests(data: Path) -> list[NativeRequest]:
    """`requests.json` of a folder. Raises `InputError` for an invalid or repeated entry."""
    return _unique(NativeRequest, data / "requests.json")


def read_references(data: Path) -> list[NativeReference]:
    """`references.json` of a folder, as `read_requests`."""
    return _unique(NativeReference, data / "references.json")


def read_responses(file: Path) -> list[NativeResponse]:
    """`responses.json`, or a container's `answer.json`: a list of objects with `qID`, `content` and, where it was
    measured, `latency`; or one object from question ids to contents. Raises as `read_requests`."""
    return _unique(NativeResponse, file)


def entries(file: Path) -> list[Any]:
    """The raw entries of one of these files. An object from ids to contents becomes a list, with repeated ids repeated;
    an entry with a repeated field is a `Repeated`."""
    raw = read_json(file, pairs=_object, halves=True)  # faults are reported answer by answer
    if isinstance(raw, dict):
        check_wrapped(file, raw)
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
    """Writes one of the toolkit's files; reading it gives the same records."""
    plain = [record.model_dump(mode="json", exclude_unset=True) for record in records]
    file.write_text(json.dumps(plain, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def write_questions(
    out: Path, requests: Sequence[NativeRequest], references: Sequence[NativeReference], *, blind: bool
) -> None:
    """Writes `requests.json` and, unless `blind`, `references.json` into a folder. Blind requests state the format of
    their answers, with its arguments and options, which otherwise only references do."""
    keys = {reference.qID: reference for reference in references}
    if blind:
        requests = [_named(request, keys[request.qID]) if request.qID in keys else request for request in requests]
    else:
        write_native(out / "references.json", references)
    write_native(out / "requests.json", requests)


def _named(request: NativeRequest, key: NativeReference) -> NativeRequest:
    form: dict[str, Any] = {"answer_format": key.format}
    form |= {"format_kwargs": key.format_kwargs} if key.format_kwargs else {}
    form |= {"options": list(key.options)} if key.options else {}
    return NativeRequest.model_validate(request.model_dump(mode="json", exclude_unset=True) | form)


def write_answer(file: Path, responses: Sequence[NativeResponse]) -> None:
    """Writes a container's `answer.json`: contents without latencies, which only the caller can measure."""
    write_native(file, [NativeResponse(qID=response.qID, content=response.content) for response in responses])


def check_names(file: Path, raw: Sequence[object]) -> None:
    """Raises `InputError` if the fields of nearly all responses have other names."""
    check_fields(file, raw, ("qID", "content"), "the fields qID, content and latency (in seconds)")


def _unique(model: type[Model], file: Path) -> list[Model]:
    found: dict[str, Model] = {}
    raw = entries(file)
    if issubclass(model, NativeResponse):
        check_names(file, raw)
    for number, entry in enumerate(raw, start=1):
        if isinstance(entry, Repeated):
            raise InputError(
                file, f"entry {number}", found=f"the field {entry.key!r} twice", expected="each field once"
            )
        one = validated(model, entry, file, f"entry {number}")
        if one.qID in found:
            raise InputError(file, f"entry {number}", found=f"{one.qID} again", expected="each qID once")
        found[one.qID] = one
    return list(found.values())


_MAX_LABEL = 80  # characters; a longer value is a text, not a label
_OF_THE_FORMAT = {"answer_format", "format", "format_kwargs", "options"}


def further_fields(record: NativeRequest | NativeReference) -> dict[str, TagValue]:
    """The labels among the fields that the toolkit does not know: short texts, numbers, yes or no, and lists of short
    texts; empty ones are left out."""
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
        return text if len(text) <= _MAX_LABEL else None
    if isinstance(value, list):
        texts = [_label(one) for one in value]
        return tuple(str(one) for one in texts) if all(isinstance(one, str) for one in texts) else None
    return None


def format_named(request: NativeRequest) -> str:
    """The answer format in a request's further fields, else `UNKNOWN`."""
    more = request.model_extra or {}
    named = more.get("answer_format", more.get("format"))
    return named if isinstance(named, str) and named in FORMATS else UNKNOWN


def without_reference(request: NativeRequest) -> NativeReference:
    """A placeholder for a missing reference: the format that the request names, with its arguments and options, else free
    text. It has no capability and no answer, and must not be used for scoring."""
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


_TAKEN = {*NativeReference.model_fields, *NativeRequest.model_fields}
_SUFFIXES = (".parquet", ".jsonl", ".json")


def _seconds(clock: str) -> float:
    parts = clock.split(":")
    if len(parts) != 3 or not all(part.isdecimal() and len(part) <= 4 for part in parts):
        raise ValueError("no time as hh:mm:ss")
    hours, minutes, seconds = map(int, parts)
    return float(3600 * hours + 60 * minutes + seconds)


def _list(value: object) -> object:
    return () if value is None else [one for one in value if one] if isinstance(value, list) else value


class _Row(BaseModel):
    """A row as orena-focus 0.4.0 reads it from the hub; further columns are labels of the question."""

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    id: Name
    video: Name
    timestamp_start: Annotated[str, AfterValidator(_seconds)]
    timestamp_end: Annotated[str, AfterValidator(_seconds)]
    procedure_type: Text
    question: Name
    primary_capability: Text
    secondary_capabilities: Annotated[tuple[Text | None, ...], BeforeValidator(_list)] = ()
    answer_format: Text
    answer: Text
    clinical_relevance: bool = False
    ood: bool = False
    track: str | None = Field(default=None)


def read_rows(data: Path, track: str) -> tuple[list[NativeRequest], list[NativeReference]] | None:
    """The questions and keys of one track from the rows in a file, or in a folder and its subfolders; None where there
    is no file of rows.

    In a folder, a track's files are those below a subfolder named after it, or with its name before a hyphen. Rows whose
    column `track` names another track are skipped. The tolerance of times is that of `time_tolerance`, as in the
    toolkit. Raises `InputError` for an invalid row and for a repeated id.
    """
    files = [data] if data.is_file() else sorted(_of_track(data, track))
    found: dict[str, tuple[NativeRequest, NativeReference]] = {}
    seen = False
    for file in files:
        for number, entry in enumerate(_entries(file), start=1):
            if not isinstance(entry, dict) or "timestamp_start" not in entry:
                break  # another kind of file
            seen = True
            row = validated(_Row, entry, file, f"row {number}")
            if row.track is not None and row.track.lower() != track:
                continue
            if row.id in found:
                raise InputError(file, f"row {number}", found=f"{row.id} again", expected="each id once")
            found[row.id] = _pair(row)
    if not seen:
        return None
    if not found:
        raise InputError(data, found="no row of this track", expected=f"rows of the track {track}")
    return [request for request, _ in found.values()], [key for _, key in found.values()]


def _of_track(data: Path, track: str) -> Iterator[Path]:
    """The files that may have rows: where some are named after this track, only those."""
    files = [path for path in data.rglob("*") if path.suffix in _SUFFIXES and path.is_file()]
    tracks = {"frame", "segment", "procedure", "all_tracks"}
    named = {file: tracks & _names(file.relative_to(data)) for file in files}
    own = [one for one, names in named.items() if track in names]
    yield from own or [one for one, names in named.items() if not names or names == {"all_tracks"}]


def _names(path: Path) -> set[str]:
    return {*path.parts[:-1], path.stem, path.stem.split("-")[0]}


def _pair(row: _Row) -> tuple[NativeRequest, NativeReference]:
    start, end = float(row.timestamp_start), float(row.timestamp_end)
    timed = row.answer_format == "time"
    request = NativeRequest(
        qID=row.id,
        videoID=row.video,
        start_time=start,
        end_time=end,
        procedure_type=row.procedure_type,
        question=row.question,
    )
    known: dict[str, Any] = {
        "qID": row.id,
        "primary": row.primary_capability,
        "format": row.answer_format,
        "format_kwargs": {"threshold_seconds": time_tolerance(end - start)} if timed else {},
        "answer": row.answer,
        "secondaries": row.secondary_capabilities,
        "ood": row.ood,
        "clinical": row.clinical_relevance,
    }
    further = {name: value for name, value in (row.model_extra or {}).items() if name not in _TAKEN}
    return request, NativeReference.model_validate(further | known)


def _entries(file: Path) -> list[Any]:
    if file.suffix == ".parquet":
        return _parquet(file)
    if file.suffix == ".jsonl":
        return [one for _, one in read_jsonl(file, halves=True)]
    raw = read_json(file, halves=True)  # faults are reported row by row
    return raw if isinstance(raw, list) else []


def _light(column: Any) -> bool:
    """Whether a column is one of the toolkit's or may be a label (no picture, no nested object)."""
    import pyarrow as pa

    kind = column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    plain = text or pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return column.name in _Row.model_fields or plain


def _parquet(file: Path) -> list[Any]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        columns = [one.name for one in parquet.read_schema(file) if _light(one)]
        return list(parquet.read_table(file, columns=columns).to_pylist())
    except (pa.ArrowException, OSError) as error:
        raise InputError(file, found="a file that can't be read", expected="a Parquet file") from error
