"""The toolkit's own files (requests, references, responses, a container's answers), the published rows, and FOCUS's taxonomy
of capabilities."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypedDict, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from proctor.core import InputError, TagValue, read_json, read_jsonl, validated
from proctor.core.formats import (
    AnswerFormat,
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    CountFormat,
    FreeTextFormat,
    PatternFormat,
    PercentageFormat,
    TimestampsFormat,
    option_letters,
)


class CapabilityGroup(TypedDict):
    """One of the five groups: its title, what it asks, and its leaves with what each means."""

    title: str
    asks: str
    leaves: dict[str, str]


def _groups() -> dict[str, CapabilityGroup]:
    found: dict[str, CapabilityGroup] = json.loads(
        files(__package__).joinpath("taxonomy.json").read_text(encoding="utf-8")
    )
    return found


GROUPS = MappingProxyType(_groups())
"""The five groups by their name in the files."""

GROUP_OF = MappingProxyType({leaf: name for name, group in GROUPS.items() for leaf in group["leaves"]})
"""Each of the fifteen leaves with its group."""

CAPABILITIES = tuple(GROUP_OF)
"""The fifteen leaves, in the order of the taxonomy."""

_CODES = MappingProxyType(
    {
        f"{number}{chr(ord('a') + place)}": leaf
        for number, group in enumerate(GROUPS.values(), start=1)
        for place, leaf in enumerate(group["leaves"])
    }
)


def leaf_of(label: str) -> str | None:
    """A leaf by its name in any case, with hyphens or spaces for underscores, or by its code; None for what is no leaf.

    >>> leaf_of("1a"), leaf_of("Temporal-Ordering"), leaf_of("aggregation")
    ('object_identification', 'temporal_ordering', None)
    """
    said = label.strip().lower()
    name = said.replace("-", "_").replace(" ", "_")
    return _CODES.get(said.replace(" ", ""), name if name in GROUP_OF else None)


FOREIGN_OBJECT = (
    "Anything that is brought wholly into the body cavity during the procedure and has to be retrieved or accounted "
    "for, and tissue or a stone that has come loose in it and has to be taken out. Not meant are instruments that "
    "stay connected to the outside (graspers, scissors, trocars, staplers, cameras) and parts that come off an "
    "instrument, such as the anvil of a stapler."
)
"""What all classes have in common, in our own words."""


_HALF = re.compile("[\ud800-\udfff]")


def _storable(text: str) -> str:
    if _HALF.search(text):
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
    format_kwargs: Annotated[dict[str, JsonValue], AfterValidator(_storable_values)] = Field(default_factory=dict)
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


def write_questions(
    out: Path, requests: Sequence[NativeRequest], references: Sequence[NativeReference], *, blind: bool
) -> None:
    """Writes `requests.json` and, unless `blind`, `references.json` into a folder. Blind requests name the format of
    their answers with its arguments and options, which only the references say otherwise."""
    keys = {one.qID: one for one in references}
    if blind:
        requests = [_named(one, keys[one.qID]) if one.qID in keys else one for one in requests]
    else:
        write_native(out / "references.json", references)
    write_native(out / "requests.json", requests)


def _named(request: NativeRequest, key: NativeReference) -> NativeRequest:
    told: dict[str, Any] = {"answer_format": key.format}
    told |= {"format_kwargs": key.format_kwargs} if key.format_kwargs else {}
    told |= {"options": list(key.options)} if key.options else {}
    return NativeRequest.model_validate(request.model_dump(mode="json", exclude_unset=True) | told)


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


MAX_CHARS = 300
"""The longest free text where the reference names no `max_length`."""

PERCENT_TOLERANCE = 5.0
"""Percentage points that a percentage may be off where the reference names no `threshold_pp`."""

TIME_TOLERANCE_S = 5.0
"""Seconds that a time may be off where the reference names no `threshold_seconds`."""


class FormQuestion:
    """What a format depends on: the question's own arguments, its options, the known classes."""

    def __init__(self, arguments: dict[str, Any], options: Sequence[str] = (), classes: tuple[str, ...] = ()) -> None:
        self.arguments = arguments
        self.classes = classes
        self._options = options

    @property
    def options(self) -> tuple[str, ...]:
        """The options of a multiple choice; empty where the file lists none. Raises `TypeError` for what is no
        list of texts."""
        listed = self.arguments.get("options", self.arguments.get("choices", list(self._options)))
        return _texts(listed, "the options")

    def number(self, default: float, *names: str) -> float:
        """The argument under the first of the names that is there."""
        return float(next((self.arguments[name] for name in names if name in self.arguments), default))

    @property
    def max_chars(self) -> int:
        """The longest text of an answer."""
        return int(self.arguments.get("max_length", MAX_CHARS))


def _texts(listed: object, what: str) -> tuple[str, ...]:
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise TypeError(f"{what} are no list of texts")
    return tuple(listed)


def lettered(options: Sequence[str]) -> str:
    """Options as they stand in a question's text.

    >>> lettered(["left", "right"])
    'A) left; B) right.'
    """
    named = zip(option_letters(len(options)), options, strict=True)
    return "; ".join(f"{letter}) {option}" for letter, option in named) + "."


def time_tolerance(duration_s: float) -> float:
    """Seconds that a time of the published rows may be off: min(5, 1 + duration · 4 / 360).

    >>> time_tolerance(0), time_tolerance(180), time_tolerance(3600)
    (1.0, 3.0, 5.0)
    """
    return min(5.0, 1.0 + duration_s * 4 / 360)


def _classes(question: FormQuestion) -> AnswerFormat:
    given = question.arguments.get("valid_names")
    names = question.classes if given is None else _texts(given, "the valid names")
    return ClassesFormat(classes=names, strict=True)


def _time(question: FormQuestion) -> AnswerFormat:
    # How many moments there are is part of the question, so the format does not give it away.
    tolerance = question.number(TIME_TOLERANCE_S, "threshold_seconds")
    return TimestampsFormat(tolerance=tolerance, several=True, strict=True)


def _free(question: FormQuestion) -> AnswerFormat:
    return FreeTextFormat(max_chars=question.max_chars, strict=True)


def _pattern(question: FormQuestion) -> AnswerFormat:
    pattern = str(question.arguments.get("pattern", ""))
    return PatternFormat(pattern=pattern, max_chars=question.max_chars, strict=True)


_PERCENTAGE = ("threshold_pp", "tolerance")

FORMATS: dict[str, tuple[tuple[str, ...], Callable[[FormQuestion], AnswerFormat]]] = {
    "binary": ((), lambda _: BinaryFormat(strict=True)),
    "number": ((), lambda _: CountFormat(strict=True)),
    "percentage": (
        _PERCENTAGE,
        lambda asked: PercentageFormat(tolerance=asked.number(PERCENT_TOLERANCE, *_PERCENTAGE), strict=True),
    ),
    "fo_class": (("valid_names",), _classes),
    "time": (("threshold_seconds",), _time),
    "open_ended": (("max_length",), _free),
    "matching": (("pattern", "max_length"), _pattern),
    "pattern": (("pattern", "max_length"), _pattern),
    # Options that stand in the question alone can't be compared by code: a judge decides.
    "multiple_choice": (
        ("max_length", "options", "choices"),
        lambda asked: ChoiceFormat(strict=True) if asked.options else _free(asked),
    ),
}
"""The toolkit's names with the arguments of each format, and what makes the format of a question. `tolerance`,
`options`, `choices` and the format `pattern` are of earlier versions of `build focus`."""


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
    return named if isinstance(named, str) and named in FORMATS else UNKNOWN


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
