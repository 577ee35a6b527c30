"""Answers recorded by another program, and their mapping to a benchmark's items: unknown and repeated items, other
prompts and options."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from proctor import core
from proctor.core.formats import abstains
from proctor.interchange.export_source import file_hash
from proctor.interchange.repetitions import missing_note, numbered, passed_off, suffixed
from proctor.interchange.shown_options import option_order, reads_by_letter, shown_to_model, value_by_shown
from proctor.metrics import AccuracyScorer
from proctor.models import CUT_OFF, FINISH_REASON, End, Ending

POSITION = "position"
"""As the column of ids: the number of the record is the item's index in the benchmark, from 0."""

_SHOWN = 60


@dataclass(frozen=True)
class RecordedAnswer:
    """One record. `location` says where in the file, `key` the id or number of its item, `prompt` the recorded prompt if
    the format has it, and `options` the options that the record states, in the order of their letters. `scores` are
    recorded scores by metric, `compared` those that are only compared with ours, and `targets` the record's own
    reference answers. `parsed` is the value in a record that Proctor wrote (of options that were shown in another
    order, for example). `asked` is the question in the prompt, where a record has it apart. `repetition` counts the system's answers to the item from 0; None: the file does not number
    them."""

    location: str
    key: str
    text: str = ""
    status: core.Status = core.Status.ANSWERED
    reason: str = ""
    prompt: str = ""
    options: tuple[str, ...] = ()
    usage: core.Usage = field(default_factory=core.Usage)
    model_s: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    compared: Mapping[str, float] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    parsed: JsonValue = None
    extra: Mapping[str, JsonValue] = field(default_factory=dict)
    repetition: int | None = None
    asked: str = ""


@dataclass(frozen=True)
class RecordedFile:
    """The content of a file: `system` and `condition` as the file states ("" if it does not), and `faults` for
    unreadable records. `own_order` means that Proctor wrote the letters, in the order of the item's options; `in_ids` that the
    number of a repetition stands in the id, as ID#NUMBER or ID-rNUMBER, since the format has no other field for it."""

    answers: Sequence[RecordedAnswer]
    system: str = ""
    condition: str = ""
    notes: tuple[str, ...] = ()
    faults: tuple[core.Finding, ...] = ()
    settings: Mapping[str, JsonValue] = field(default_factory=dict)
    own_order: bool = False
    in_ids: bool = False


def mapped(
    file: Path, form: str, found: RecordedFile, benchmark: core.Benchmark, id_column: str = ""
) -> core.RecordedAnswers:
    """The records as answers to the items, by id; or (`id_column` "position") by the item's index, where a recorded
    prompt must contain the item's question.

    A letter means the option that was shown (see `shown_options`). `notes` list records without an item, which are left
    out, letters in a file that does not hold the options, and items on which the file's scores or reference answers
    differ from ours. Raises `InputError`, with all faults as its notes, for unreadable records, other options than the
    item's, an item with two answers of one repetition, or with answers to different prompts, repetitions under ids of
    their own, and a file without any record of an item.
    """
    items = {item.id: item for item in benchmark.items}
    found = _with_numbers_of_ids(found, items) if found.in_ids else found
    by_location = id_column == POSITION
    ordered = _order(benchmark, found.answers) if by_location else benchmark.items
    matched = _Matched(list(found.faults))
    for answer in found.answers:
        item = _at(ordered, answer.key) if by_location else items.get(answer.key)
        wrong = None
        if item is not None:
            wrong = _mismatch(answer, item, benchmark, by_location=by_location, own=found.own_order)
        matched.add(answer, item, wrong)
    chosen, unknown = matched.chosen, matched.unknown
    faults = [*matched.faults, *_other_prompts(chosen)]
    if not (by_location or faults):
        faults = passed_off([(one.location, one.key) for one in unknown], items)
    if faults:
        raise _refused(file, faults)
    if not chosen:
        raise core.InputError(
            file, unknown[0].location if unknown else "", found=_found(unknown), expected=_expected(ordered, benchmark)
        )
    answers = tuple(_answer(items[name], one) for (name, _), one in chosen.items())
    notes = [*found.notes, *_left_out(unknown, benchmark.items), *_counted(chosen, benchmark)]
    notes += [] if found.own_order else _unknown_order(chosen, benchmark)
    notes += [*missing_note(chosen), *_compared(chosen, items, answers)]
    return core.RecordedAnswers(
        answers,
        scores=_scores(form, {key: one.scores for key, one in chosen.items() if one.status is not core.Status.FAILED}),
        compared=_scores(form, {key: one.compared for key, one in chosen.items()}),
        prompts=_prompts(chosen),
        settings={"recorded": file.name, "format": form, "sha256": file_hash(file), **found.settings},
        notes=tuple(notes),
        condition=found.condition,
        system=found.system,
        unknown=tuple(answer.key for answer in unknown),
        repeated=tuple(dict.fromkeys(matched.repeated)),
    )


_Key = tuple[str, int]
"""An item's id, and the repetition."""


def _scores(form: str, stated: Mapping[_Key, Mapping[str, float]]) -> tuple[core.Score, ...]:
    """Scores that a file of a format states."""
    return tuple(
        core.Score(item_id=name, repetition=number, metric=metric, value=value, scorer=form)
        for (name, number), scores in stated.items()
        for metric, value in scores.items()
    )


def _prompts(chosen: Mapping[_Key, RecordedAnswer]) -> dict[str, str]:
    """The prompt of each item, as far as the file states it: that of the first repetition with one."""
    found: dict[str, str] = {}
    for (name, _), answer in chosen.items():
        if answer.prompt:
            found.setdefault(name, answer.prompt)
    return found


@dataclass
class _Matched:
    """The records by the item and repetition that they answer; those without an item; the items that are there again."""

    faults: list[core.Finding]
    chosen: dict[_Key, RecordedAnswer] = field(default_factory=dict)
    unknown: list[RecordedAnswer] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)

    def add(self, answer: RecordedAnswer, item: core.Item | None, wrong: core.Finding | None) -> None:
        """Adds a record of an item (None: of none that is known), or what is wrong with it."""
        if item is None:
            self.unknown.append(answer)
        elif wrong is not None:
            self.faults.append(wrong)
        elif (before := self.chosen.get(key := (item.id, answer.repetition or 0))) is not None:
            self.repeated.append(item.id)
            if (before.text, before.status) != (answer.text, answer.status):
                self.faults.append(_second_answer(answer, item, before))
        else:
            self.chosen[key] = replace(answer, options=shown_to_model(item, answer.options, answer.prompt))
            self.faults += _other_options(item, self.chosen[key])


def _second_answer(answer: RecordedAnswer, item: core.Item, before: RecordedAnswer) -> core.Finding:
    """The fault of a second answer to an item, of the same repetition or without any."""
    again = "" if answer.repetition is None else " in the same repetition"
    advice = f"one ({before.location})"
    if answer.repetition is None:
        advice += ", or a column 'repetition' that numbers a system's answers to an item"
    return _fault("two answers", answer.location, f"another answer to {item.id}{again}", advice)


def _other_prompts(chosen: Mapping[_Key, RecordedAnswer]) -> list[core.Finding]:
    """The faults of answers to one item that were given to different prompts; the order of words does not count, since
    options may be shuffled."""
    first: dict[str, RecordedAnswer] = {}
    faults = []
    for (name, _), answer in chosen.items():
        before = first.setdefault(name, answer)
        now, then = answer.asked or answer.prompt, before.asked or before.prompt
        if now and then and _words_of(now) != _words_of(then):
            found = f"another prompt for {name}: {now[:_SHOWN]!r}"
            faults.append(_fault("another prompt", answer.location, found, f"the one of {before.location}"))
    return faults


def _words_of(prompt: str) -> list[str]:
    return sorted(re.findall(r"\w+", prompt.casefold()))


def _with_numbers_of_ids(found: RecordedFile, items: Mapping[str, core.Item]) -> RecordedFile:
    """The records with their repetition, where an id is one of an item with `#` or `-r` and a number behind it. The id
    alone, beside such ids, is the first repetition."""
    split = [suffixed(one.key, items) if _NUMBERED.search(one.key) else None for one in found.answers]
    several = {own[0] for own in split if own is not None}
    numbers = [
        own[1] if own is not None else 0 if one.key in several else None
        for own, one in zip(split, found.answers, strict=True)
    ]
    cells = [(one.location, number) for one, number in zip(found.answers, numbers, strict=True) if number is not None]
    counted, faults = numbered(cells, column="custom_id")
    if faults:
        return replace(found, faults=(*found.faults, *faults))
    left, answers = iter(counted), list[RecordedAnswer]()
    for one, own, number in zip(found.answers, split, numbers, strict=True):
        key = one.key if own is None else own[0]
        answers.append(one if number is None else replace(one, key=key, repetition=next(left)))
    return replace(found, answers=answers)


_NUMBERED = re.compile(r"(?:#|-r)\d{1,6}$")


def read_reply(item: core.Item, text: str) -> core.Answer:
    """A reply to an item, recorded elsewhere, as an answer: with its value, or with the problem of a reply that can't be
    read."""
    return _answer(item, RecordedAnswer("", item.id, text))


def outcome_of(end: End, text: str) -> tuple[core.Status, str, dict[str, JsonValue]]:
    """What a recorded reply is by the way it ended, as our own runs would have it: status, reason, and `extra` with the
    server's word and whether the token limit ended it. Only a reply that is whole, or cut off with some text, is an
    answer."""
    cut_off = end.ending is Ending.CUT_OFF
    extra: dict[str, JsonValue] = {FINISH_REASON: end.word or None, "cut_off": cut_off}
    if end.ending is Ending.REFUSED:
        return core.Status.REFUSED, end.told or end.word, extra
    if end.fault:
        return core.Status.FAILED, end.fault, extra
    if not text.strip():
        return core.Status.ERROR, CUT_OFF if cut_off else "an empty reply", extra
    return core.Status.ANSWERED, "", extra


_NO_IDS = f"an id, and the questions have none: --map id=COLUMN names its column, or --id-column {POSITION}"


def _mismatch(
    answer: RecordedAnswer, item: core.Item, benchmark: core.Benchmark, *, by_location: bool, own: bool
) -> core.Finding | None:
    """The fault of a record that may be of another item: by its prompt, or by an id that was made up. Without a prompt
    such an id counts only in a file that Proctor wrote (`own`)."""
    if not by_location and (own or not benchmark.numbered):
        return None
    if not by_location and not answer.prompt:
        return _fault("no ids", answer.location, repr(answer.key[:_SHOWN]), _NO_IDS)
    if not _asks(answer, item):
        expected = "the question of the item at this index: name the ids with --id-column"
        return _fault("another question", answer.location, repr(answer.prompt[:_SHOWN]), expected)
    return None


def _order(benchmark: core.Benchmark, answers: Sequence[RecordedAnswer]) -> Sequence[core.Item]:
    """All items, or only those that count if the recorded prompts fit only these."""
    counted = benchmark.counted()
    for some in (benchmark.items, counted):
        if all((item := _at(some, answer.key)) is not None and _asks(answer, item) for answer in answers):
            return some
    return benchmark.items


def _asks(answer: RecordedAnswer, item: core.Item) -> bool:
    """Whether the recorded prompt contains the item's question; True if no prompt was recorded."""
    return not answer.prompt or _plain(item.question) in _plain(answer.prompt)


def _at(items: Sequence[core.Item], key: str) -> core.Item | None:
    number = int(key) if key.isdecimal() and key.isascii() and len(key) < 10 else -1
    return items[number] if 0 <= number < len(items) else None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _other_options(item: core.Item, answer: RecordedAnswer) -> list[core.Finding]:
    """A fault if the record shows other options than the item's."""
    if not answer.options or not item.options or answer.parsed is not None:
        return []
    try:
        option_order(answer.options, item.options)
    except core.ParseError as error:
        return [_fault("other options", f"{answer.location} ({item.id})", error.found, error.expected)]
    return []


def _answer(item: core.Item, answer: RecordedAnswer) -> core.Answer:
    timing = None if answer.model_s is None else core.Timing(model_s=answer.model_s)
    plain = core.Answer(
        item_id=item.id,
        repetition=answer.repetition or 0,
        text=answer.text,
        status=answer.status,
        reason=answer.reason,
        usage=answer.usage,
        timing=timing,
        extra={**answer.extra},
    )
    if answer.status is not core.Status.ANSWERED:
        return plain
    shown = answer.options
    if shown and item.options and answer.parsed is None:
        words = [item.options[row] for row in option_order(shown, item.options)]
        plain = plain.model_copy(update={"extra": {**plain.extra, "options_shown": words}})
    try:
        if answer.parsed is not None:
            return plain.model_copy(update={"parsed": item.answer.check(answer.parsed, item.options)})
        if not shown or abstains(answer.text, item.answer, shown):
            return core.read_answer(item, plain)
        return plain.model_copy(update={"parsed": _value(item, answer.text, shown, item.answer.parse)})
    except core.ParseError as error:
        return plain.model_copy(update={"problem": str(error)})


def _value(
    item: core.Item, text: str, shown: Sequence[str], read: Callable[[str, Sequence[str]], JsonValue]
) -> JsonValue:
    return value_by_shown(item, text, shown, read) if shown else read(text, item.options)


def _unknown_order(chosen: Mapping[_Key, RecordedAnswer], benchmark: core.Benchmark) -> list[str]:
    """A note on letters whose options the file does not hold."""
    items = {item.id: item for item in benchmark.items}
    count = sum(
        record.status is core.Status.ANSWERED
        and record.parsed is None
        and not record.options
        and reads_by_letter(items[name], record.text)
        for (name, _), record in chosen.items()
    )
    if not count:
        return []
    seed = benchmark.seeds.get("options")
    order = "the order here" if seed is None else f"the order here, shuffled by seed {seed}"
    name = "names an option by its letter" if count == 1 else "name options by letters"
    return [
        f"{core.count_of(count, 'answer')} {name}, and the file does not say which options were shown: read in {order}"
    ]


_SOME = 3
_RIGHT_OR_WRONG = {0.0, 1.0}


def _compared(
    chosen: Mapping[_Key, RecordedAnswer], items: Mapping[str, core.Item], answers: Sequence[core.Answer]
) -> list[str]:
    """On how many items (with repetitions: answers) the file's own scores, of right and wrong, and its reference answers differ from ours."""
    scorer = AccuracyScorer()
    ours = {
        (answer.item_id, answer.repetition): scorer.compute(items[answer.item_id], answer).value
        for answer in answers
        if answer.status is core.Status.ANSWERED and scorer.applies(items[answer.item_id])
    }
    unit = "answer" if any(number for _, number in chosen) else "item"
    theirs: dict[str, dict[_Key, float]] = {}
    for key in ours:
        for metric, value in {**chosen[key].scores, **chosen[key].compared}.items():
            theirs.setdefault(metric, {})[key] = value
    lines = []
    for metric, values in theirs.items():
        if set(values.values()) <= _RIGHT_OR_WRONG:
            other = [key[0] for key, value in values.items() if value != ours[key]]
            lines.append(_difference(f"the file's own score ({metric})", other, len(values), unit))
    keys = {key: _same_key(items[key[0]], chosen[key]) for key in ours}
    known = [key for key, same in keys.items() if same is not None]
    other = [key[0] for key in known if not keys[key]]
    return [
        *lines[:_SOME],
        *([_difference("the file's own reference answer", other, len(known), unit)] if other else []),
    ]


def _difference(what: str, other: Sequence[str], count: int, unit: str) -> str:
    if not other:
        return f"{what} is the same as ours on {core.count_of(count, unit)}"
    some = ", ".join(other[:_SOME]) + (" …" if len(other) > _SOME else "")
    return f"{what} differs from ours on {len(other)} of {core.count_of(count, unit)}: {some}"


def _same_key(item: core.Item, answer: RecordedAnswer) -> bool | None:
    """Whether the record's reference answer is one of the item's; None if it has none or can't be read."""
    if item.reference is None or item.reference.answer is None or not answer.targets:
        return None
    accepted = (item.reference.answer, *item.reference.accepted)
    try:
        values = [_value(item, target, answer.options, item.answer.from_cell) for target in answer.targets]
    except core.ParseError:
        return None
    return any(item.answer.match(right, value) for right in accepted for value in values)


def _fault(kind: str, location: str, found: str, expected: str) -> core.Finding:
    return core.Finding(kind, location, found, expected, line=f"{location}: found {found}, expected {expected}")


def fault(location: str, found: str, expected: str) -> core.Finding:
    """The note on an unreadable record.

    >>> fault("line 3", "no custom_id", "an id").line
    'line 3: found no custom_id, expected an id'
    """
    return _fault(expected, location, found, expected)


def _refused(file: Path, faults: Sequence[core.Finding]) -> core.InputError:
    """The first fault as the error, with all faults by cause as its notes."""
    lines = core.by_cause(faults, option="")
    first = faults[0]
    error = core.InputError(file, first.location, found=first.found, expected=first.expected)
    if len(faults) > 1:
        error.add_note(f"{len(faults)} faults in all:")
        for line in lines:
            error.add_note(line)
    return error


def _found(unknown: Sequence[RecordedAnswer]) -> str:
    return f"{unknown[0].key[:_SHOWN]!r}" if unknown else "no record"


def _expected(items: Sequence[core.Item], benchmark: core.Benchmark) -> str:
    if benchmark.numbered:
        return _NO_IDS
    return f"the id of an item, such as {items[0].id!r} (--id-column names the column, or {POSITION})"


def _left_out(unknown: Sequence[RecordedAnswer], items: Sequence[core.Item]) -> list[str]:
    if not unknown:
        return []
    if len(unknown) == 1:
        location = unknown[0].location
        known = f"no question has the id {unknown[0].key[:_SHOWN]!r} (the first has {items[0].id!r})"
        return [f"{location[:1].upper()}{location[1:]} left out: {known}."]
    some = ", ".join(
        f"{recorded_answer.location} ({recorded_answer.key[:_SHOWN]!r})" for recorded_answer in unknown[:10]
    )
    more = f" and {len(unknown) - 10} more" if len(unknown) > 10 else ""
    return [f"{core.count_of(len(unknown), 'record')} left out, since no question has the id: {some}{more}."]


def _counted(chosen: Mapping[_Key, RecordedAnswer], benchmark: core.Benchmark) -> list[str]:
    """The number of answers in each other status, with the first reason, and of items without an answer."""
    lines = []
    counts = Counter(recorded_answer.status for recorded_answer in chosen.values())
    for status, count in counts.items():
        if status is not core.Status.ANSWERED:
            reason = next(
                recorded_answer.reason for recorded_answer in chosen.values() if recorded_answer.status is status
            )
            lines.append(f"{count} {status.value}, for example: {reason[:200]}")
    cut = sum(one.extra.get("cut_off") is True for one in chosen.values() if one.status is core.Status.ANSWERED)
    lines += [f"{core.count_of(cut, 'answer')} cut off by the model's token limit"] if cut else []
    there = {name for name, _ in chosen}
    missing = sum(item.id not in there for item in benchmark.counted())
    return [*lines, *([f"{core.count_of(missing, 'item')} of {benchmark.name} without an answer"] if missing else [])]


def share(value: Any) -> float | None:
    """A recorded score between 0 and 1; None for anything else.

    >>> share(0.5), share(True), share("C"), share("I"), share(7), share("0.5"), share(float("nan"))
    (0.5, 1.0, 1.0, 0.0, None, None, None)
    """
    if isinstance(value, str):
        return {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}.get(value)
    if not isinstance(value, bool | int | float) or not 0 <= value <= 1:
        return None
    return float(value)


def kept_status(fields: Mapping[str, Any]) -> tuple[core.Status, str] | None:
    """The status and reason that Proctor stored in another program's file; None if there are none.

    >>> kept_status({"proctor_status": "refused", "proctor_reason": "no"}), kept_status({})
    ((<Status.REFUSED: 'refused'>, 'no'), None)
    """
    if fields.get("proctor_status") not in set(core.Status):
        return None
    return core.Status(fields["proctor_status"]), str(fields.get("proctor_reason", ""))


def kept_value(text: Any) -> JsonValue:
    """The value that Proctor stored in another program's file, from JSON; None if there is none.

    >>> kept_value('"B"'), kept_value(None), kept_value("not JSON"), kept_value("NaN")
    ('B', None, None, None)
    """
    if not isinstance(text, str) or not text:
        return None
    try:
        value: JsonValue = core.load_json(text)
        json.dumps(value, allow_nan=False)  # a value that is no number could not be stored
    except (core.JsonError, ValueError):
        return None
    return value


def kept_confidence(fields: Mapping[str, Any]) -> dict[str, JsonValue]:
    """The part of an answer's `extra` with the confidence that Proctor stored in another program's file; nothing if there
    is none. What is no confidence is one that is missing.

    >>> kept_confidence({"proctor_confidence": '{"source": "stated", "value": 0.85}'})
    {'confidence': {'source': 'stated', 'value': 0.85}}
    >>> kept_confidence({"proctor_confidence": '{"source": "stated", "value": 7}'})["confidence"]["missing"]
    'no confidence from 0 to 1'
    """
    if "proctor_confidence" not in fields:
        return {}
    kept = kept_value(fields["proctor_confidence"])
    found = core.Answer(item_id="", extra={core.CONFIDENCE: "" if kept is None else kept}).confidence
    return {} if found is None else {core.CONFIDENCE: found.model_dump(mode="json", exclude_defaults=True)}


def token_count(value: Any) -> int:
    """A count of tokens; 0 for anything else.

    >>> token_count(7), token_count(None), token_count(-1), token_count("7")
    (7, 0, 0, 0)
    """
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def as_list(value: Any) -> list[Any]:
    """A JSON list; empty for anything else."""
    return value if isinstance(value, list) else []


def as_object(value: Any) -> dict[str, Any]:
    """A JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}
