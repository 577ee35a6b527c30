"""One answer opened: its pictures, reply, prompt, scores with judgements, and what all systems said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proctor.core import Answer, InputError, Item, VideoClip, count_of, dollars, plain_name, seconds, thousands
from proctor.results import (
    STATES,
    AnswerIndex,
    AnswerState,
    GivenAnswer,
    RunColumn,
    Selected,
    given_answer,
    items_at,
    parsed_values,
)
from proctor.runs import MODEL, SHOWN
from proctor_web.view.query import answer_path, column_name, column_of, path_of
from proctor_web.view.shown import ShownPicture, shown_pictures, shown_records
from proctor_web.view.site import Asked
from proctor_web.view.words import (
    column_words,
    excerpt,
    key_of,
    kind_of,
    mark_of,
    options_of,
    said,
    seconds_or_dash,
    state_words,
)

_PICTURES = 96


@dataclass(frozen=True)
class Given:
    """One answer in full: its state and value, what was parsed, times and costs, scores with the replies of judges."""

    column: RunColumn
    name: str
    state: AnswerState
    answer: Answer | None
    found: GivenAnswer
    facts: tuple[tuple[str, str], ...]
    scores: tuple[ScoreLine, ...]
    prompt: tuple[str, ...]
    pictures: tuple[ShownPicture, ...]

    @property
    def mark(self) -> str:
        return mark_of(self.state)

    @property
    def kind(self) -> str:
        return kind_of(self.state)

    @property
    def words(self) -> str:
        return state_words(self.state)

    @property
    def reason(self) -> str:
        return "" if self.answer is None else self.answer.reason or self.answer.problem


@dataclass(frozen=True)
class ScoreLine:
    """One score: the metric, its value and level, who gave it, and the judgement behind it: its reply by field and its
    flags."""

    metric: str
    value: str
    level: str
    scorer: str
    reply: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Opened:
    """One answer opened: its item, another run's answer beside it, and what all systems said."""

    item: Item
    position: str
    first: Given
    second: Given | None
    options: tuple[tuple[str, str, bool, int, bool], ...]
    asked: int
    key: str
    accepted: str
    facets: tuple[tuple[str, str, str], ...]
    systems: tuple[tuple[str, tuple[tuple[str, str, str, str, str], ...]], ...]
    besides: tuple[tuple[str, str], ...]
    previous: str
    next: str
    pictures: tuple[tuple[ShownPicture, str], ...]
    more_pictures: int
    shown_words: str
    shown_href: str
    clip_href: str
    link: str
    item_href: str

    @property
    def data(self) -> dict[str, Any]:
        """As data."""
        return {"item": self.item.model_dump(mode="json"), "runs": [self.first.found.to_json()]}


def open_answer(asked: Asked, chosen: Selected, row: int) -> Opened:
    """One answer with all that belongs to it."""
    index, query, store = asked.state.index, asked.query.but(), asked.view.store
    position, number = index.located(row)
    item = items_at(store, index, [position])[position]
    first = given(asked, item, position, number)
    beside = _beside(index, position, number, query.beside)
    second = None if beside is None else given(asked, item, position, beside)
    at = chosen.position(row)
    said_by = _said_by(asked, position)
    around = [_neighbour(asked, chosen, at, step) for step in (-1, 1)]
    pictures = [(one, picture_path(item.id, first.column, one)) for one in first.pictures[:_PICTURES]]
    return Opened(
        item=item,
        position=f"{thousands(at + 1)} of {thousands(len(chosen))}" if at is not None else "not among those filtered",
        first=first,
        second=second,
        options=_options(item, first, said_by),
        asked=len([one for one in said_by.values() if one[0] is not AnswerState.NOT_ASKED]),
        key=key_of(item),
        accepted="" if item.reference is None else item.reference.rationale,
        facets=tuple(facets_of(asked, position)),
        systems=_systems(asked, item, said_by),
        besides=tuple(
            (column_name(one), " / ".join(column_words(one)))
            for other, one in enumerate(index.columns)
            if other != number
        ),
        previous=around[0],
        next=around[1],
        pictures=tuple(pictures),
        more_pictures=max(0, len(first.pictures) - _PICTURES),
        shown_words=shown_words(first),
        shown_href=path_of("b", asked.state.name, "shown", item.id, *_names(first.column)) if first.pictures else "",
        clip_href="" if first.answer is None else clip_path(asked, item, first.column),
        link=answer_path(item.id, first.column) + query.text(),
        item_href=path_of("b", asked.state.name, "items", item.id),
    )


def _names(column: RunColumn) -> tuple[str, str, int]:
    return column.run.system, column.run.condition, column.repetition


def clip_path(asked: Asked, item: Item, column: RunColumn) -> str:
    """The address at which an item's clip is played; empty where it has none, or no folder of media is known."""
    has_clip = any(isinstance(medium, VideoClip) for medium in item.media)
    if not has_clip or asked.view.media_of(asked.state.name) is None:
        return ""
    return path_of("b", asked.state.name, "clip", item.id, *_names(column))


def picture_path(item: str, column: RunColumn, one: ShownPicture) -> str:
    """The address of a picture, which names its hash: another picture has another address."""
    names = _names(column)
    return path_of("b", column.run.benchmark, "picture", item, *names, one.request, one.number, one.prefix)


def shown_words(one: Given) -> str:
    """What a system was given, in words."""
    if not one.pictures:
        extra = {} if one.answer is None else one.answer.extra
        nothing = one.answer is not None and (one.column.run.settings.get("media") == {} or extra.get(SHOWN) == [])
        return "Nothing was shown: the question alone." if nothing else "The store has no record of what was shown."
    records = shown_records(one.answer) if one.answer is not None else ()
    kinds = {"sounds": "sound", "files": "video file"}
    counts: dict[str, int] = {}
    for picture in one.pictures:
        kind = kinds.get(picture.asked_as, "frame" if picture.time is not None else "picture")
        counts[kind] = counts.get(kind, 0) + 1
    settings: Any = one.column.run.settings.get("media") or {}
    side = settings.get("max_side") if isinstance(settings, dict) else None
    parts = [" and ".join(count_of(count, kind) for kind, count in counts.items())]
    parts += [f"{records[0].fps:g} a second"] if records and records[0].fps else []
    parts += [f"at most {side} px"] if side else []
    parts += [f"SHA-256 {records[0].sha256[:12]}…"] if records else []
    parts += [f"condition {one.column.run.condition}"]
    return f"As {one.column.run.system} was given them: {', '.join(parts)}."


def _beside(index: AnswerIndex, position: int, number: int, wanted: str) -> int | None:
    """The column to show beside another one: the one asked for, else the next system under the same condition that has an
    answer."""
    if wanted:
        chosen = column_of(index, wanted)
        return chosen if chosen != number else None
    own = index.columns[number]
    others: list[int] = [*range(number + 1, len(index.columns)), *range(number)]
    for other in others:
        one = index.columns[other]
        there = STATES[int(one.state[position])] not in {AnswerState.NOT_ASKED, AnswerState.UNSUPPORTED}
        if there and one.run.condition == own.run.condition and one.run.system != own.run.system:
            return other
    return None


def _neighbour(asked: Asked, chosen: Selected, at: int | None, step: int) -> str:
    if at is None or not 0 <= at + step < len(chosen):
        return ""
    index = asked.state.index
    position, number = index.located(int(chosen.rows[at + step]))
    return answer_path(index.items.id_of(position), index.columns[number]) + asked.query.but().text()


def given(asked: Asked, item: Item, position: int, number: int) -> Given:
    """One run's answer to an item in full."""
    index, store = asked.state.index, asked.view.store
    column = index.columns[number]
    found = given_answer(store, column.run, item.id, column.repetition, column.keys)
    answer = found.answer
    return Given(
        column=column,
        name=column_name(column),
        state=STATES[int(column.state[position])],
        answer=answer,
        found=found,
        facts=tuple(_facts(answer)),
        scores=tuple(_scores(index, found)),
        prompt=_prompt(index, item, column, answer),
        pictures=() if answer is None else tuple(shown_pictures(answer)),
    )


def _facts(answer: Answer | None) -> list[tuple[str, str]]:
    if answer is None:
        return []
    whole = answer.parsed == answer.text
    read = "the whole reply" if whole else said(answer.parsed) if answer.parsed is not None else "can't be read"
    found = [("Read as", read)]
    if answer.timing is not None:
        times = [f"{seconds_or_dash(answer.timing.model_s)} s"]
        times += [f"media {seconds(answer.timing.media_s)} s"] if answer.timing.media_s else []
        times += [f"waited {seconds(answer.timing.retry_s)} s for retries"] if answer.timing.retry_s else []
        found.append(("Time", ", ".join(times)))
    usage = answer.usage
    if usage.requests:
        cost = [] if usage.cost_usd is None else [dollars(usage.cost_usd)]
        tokens = f"{thousands(usage.input_tokens)} tokens in, {thousands(usage.output_tokens)} out"
        found.append(("Cost", " · ".join([*cost, tokens])))
        found.append(("Asked", count_of(usage.requests, "request")))
    served = answer.extra.get(MODEL)
    found += [("Model", str(served))] if served else []
    found += [("Ended", str(answer.extra["finish_reason"]))] if answer.extra.get("finish_reason") else []
    found += [("Cut off", "the model's token limit ended the reply")] if answer.extra.get("cut_off") is True else []
    return found


def _scores(index: AnswerIndex, found: GivenAnswer) -> list[ScoreLine]:
    behind = {judgement.key: judgement for judgement in found.judgements}
    lines = []
    for score in found.scores:
        metric, judgement = index.card.metric(score.metric), behind.get(score.judgement_key)
        reply = () if judgement is None else tuple((name, said(one)) for name, one in judgement.reply.items())
        flags = () if judgement is None else judgement.flags
        lines.append(ScoreLine(metric.label, metric.show(score.value), score.label, score.scorer, reply, flags))
    order = {metric.label: position for position, metric in enumerate(index.card.metrics)}
    return sorted(lines, key=lambda line: (order.get(line.metric, len(order)), line.scorer))


def _prompt(index: AnswerIndex, item: Item, column: RunColumn, answer: Answer | None) -> tuple[str, ...]:
    """The messages as they were sent, where their recorded hash confirms them; empty otherwise."""
    from proctor.systems import prompt_as_sent

    settings = column.run.settings.get("system")
    if answer is None or not isinstance(settings, dict):
        return ()
    shown = shown_records(answer)
    try:
        found = prompt_as_sent(index.card.read_by, item, answer, settings, shown, column.run.condition)
    except InputError:
        return ()
    return () if found is None else tuple(filter(None, found))


SaidBy = dict[int, tuple[AnswerState, Any]]
"""By column: how its answer ended, and what was parsed."""


def _said_by(asked: Asked, position: int) -> SaidBy:
    """What every run said to the item at a position."""
    index = asked.state.index
    values = parsed_values(asked.view.store, index, position)
    return {
        number: (STATES[int(column.state[position])], values.get(number)) for number, column in enumerate(index.columns)
    }


def _options(item: Item, first: Given, said_by: SaidBy) -> tuple[tuple[str, str, bool, int, bool], ...]:
    """The options: letter, text, whether it is right, how many chose it, whether the opened answer did."""
    values = [value for _, value in said_by.values()]
    own = None if first.answer is None else first.answer.parsed
    return tuple(
        (letter, text, right, sum(_chose(value, letter) for value in values), _chose(own, letter))
        for letter, text, right in options_of(item)
    )


def _chose(value: Any, letter: str) -> bool:
    return letter in value if isinstance(value, list) else value == letter


def facets_of(asked: Asked, position: int) -> list[tuple[str, str, str]]:
    """The facets of an item with their values, and the address of all answers that share one."""
    index, found = asked.state.index, []
    for name in index.facets:
        codes, values = index.items.coded_facet(name)
        for one in values[int(codes[position])]:
            query = asked.query.narrowed(facets=((name, one),), item="")
            shown = one if one not in {"yes", "no"} else f"{plain_name(name)}: {one}"
            found.append((plain_name(name), shown, path_of("b", asked.state.name, "answers") + query.text()))
    return found


def _systems(
    asked: Asked, item: Item, said_by: SaidBy
) -> tuple[tuple[str, tuple[tuple[str, str, str, str, str], ...]], ...]:
    """A row for each system: for each condition and repetition the class, sign, words, what was said, and the address."""
    index, query = asked.state.index, asked.query.but()
    rows: dict[str, list[tuple[str, str, str, str, str]]] = {}
    for condition in index.conditions:
        for system in index.systems:
            own = [
                (number, column)
                for number, column in enumerate(index.columns)
                if (column.run.system, column.run.condition) == (system, condition)
            ]
            if not own:
                rows.setdefault(system, []).append(("", "", "", "", ""))
            for number, column in own[:1]:
                state, value = said_by[number]
                again = "".join(mark_of(said_by[other][0]) for other, _ in own[1:])
                shown = excerpt(said(value), 24)
                rows.setdefault(system, []).append(
                    (
                        kind_of(state),
                        mark_of(state) + again,
                        state_words(state),
                        shown,
                        answer_path(item.id, column) + query.text(),
                    )
                )
    return tuple((system, tuple(cells)) for system, cells in rows.items())


def addressed_answer(asked: Asked) -> tuple[RunColumn, Item, Answer]:
    """The answer in an address …/ITEM/SYSTEM/CONDITION/K/…. Raises `InputError` where there is none."""
    index, rest = asked.state.index, asked.segments[3:]
    if len(rest) < 4 or not rest[3].isdigit():
        raise InputError("address", found="/".join(rest)[:80], expected="ITEM/SYSTEM/CONDITION/REPETITION")
    position, number = index.item_position(rest[0]), index.column(rest[1], rest[2], int(rest[3]))
    item = items_at(asked.view.store, index, [position])[position]
    column = index.columns[number]
    answer = given_answer(asked.view.store, column.run, item.id, column.repetition, keys=()).answer
    if answer is None:
        raise InputError("answer", found="none", expected="one that was given")
    return column, item, answer
