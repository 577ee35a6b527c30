"""The published data sets: one row a question, with its key, in Parquet, JSON or JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from proctor.core import InputError, read_json, read_jsonl, validated
from proctor.tasks.focus.native import Name, NativeReference, NativeRequest, Text, time_tolerance

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
    """As orena-focus 0.4.0 reads it from the hub; further columns are labels of the question."""

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    id: Name
    video: Name
    timestamp_start: Annotated[str, AfterValidator(_seconds)]
    timestamp_end: Annotated[str, AfterValidator(_seconds)]
    procedure_type: Text
    question: Name
    primary_capability: Text
    secondary_capabilities: Annotated[tuple[Text, ...], BeforeValidator(_list)] = ()
    answer_format: Text
    answer: Text
    clinical_relevance: bool = False
    ood: bool = False
    track: str | None = Field(default=None)


def read_rows(data: Path, track: str) -> tuple[list[NativeRequest], list[NativeReference]] | None:
    """The questions and keys of one track from the rows in a file or in a folder and its subfolders; None where
    there is no file of rows.

    In a folder, files below a subfolder named after a track, or with its name before a hyphen, hold that
    track's rows, and those of other tracks are passed over; so are rows whose column `track` names another
    one. A time may be off by min(5, 1 + duration · 4 / 360) seconds, as in the toolkit. Raises `InputError`
    for a row that is not as it should be, and for an id that comes twice.
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
    """The files that may hold rows: where some are named after a track, only those of this one."""
    files = [one for one in data.rglob("*") if one.suffix in _SUFFIXES and one.is_file()]
    tracks = {"frame", "segment", "procedure", "all_tracks"}
    named = {one: tracks & _names(one.relative_to(data)) for one in files}
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
    raw = read_json(file, halves=True)  # told row by row
    return raw if isinstance(raw, list) else []


def _light(column: Any) -> bool:
    """Whether a column is one of the toolkit's or may be a label: no pictures, no nested objects."""
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
