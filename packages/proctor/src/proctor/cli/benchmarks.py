"""Benchmarks and their items: `proctor fetch`, `show` and `audit items`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from proctor.cli.output import (
    Output,
    OutputFormat,
    at_work,
    named_in,
    print_blocks,
    print_json,
    print_line,
    print_note,
    print_records,
    show,
    show_steps,
    spent,
)
from proctor.core import BENCHMARKS, Option, UsageError, count_of, reader_or_default
from proctor.shell import AllItems, BenchmarkName, Draws, ModelOptions, Seed, Selection, StoreUrl, Track

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proctor.audits.items import ModelReplies
    from proctor.core import Answer, Item, VideoClip
    from proctor.results import GivenAnswer, ItemHistory, StoredItemAnalysis


def fetch(
    benchmark: Annotated[
        str, Option("A benchmark's name.", metavar="BENCHMARK", names=BENCHMARKS.names, argument=True)
    ],
    out: Annotated[Path | None, Option("A new folder. [default: the benchmark's name]")] = None,
    url: Annotated[str, Option("A mirror's address, or a file that you downloaded.")] = "",
    output: Output = OutputFormat.TABLE,
) -> None:
    """Fetch a benchmark's public data.

    If the licence allows it, the archive is downloaded, checked, and unpacked into a new folder. Run the command again
    to continue after an interruption. Otherwise a message says who owns the data and where to ask. Videos on other
    platforms are listed.

    Example: proctor fetch rexsonovqa
    """
    from proctor import api

    with show_steps("fetching MB", 0) as progress:
        found = api.fetch(benchmark, out, url=url, on_change=progress)
    if output is OutputFormat.JSON:
        print_json(found.to_json())
        return
    for line in found.done:
        print_line(line)
    print_note(*found.notes)


_FRAMES = 64


def show_item(
    benchmark: BenchmarkName,
    options: Selection,
    item: Annotated[
        str,
        Option(
            "The item's id, as in results and reports; none: how many items there are.", metavar="ITEM", argument=True
        ),
    ] = "",
    by: Annotated[str, Option("Without an item: count items by these facets.", metavar="FACET,FACET")] = "",
    all_items: AllItems = False,
    store: StoreUrl = None,
    prompt: Annotated[bool, Option("Also show the prompt.")] = False,
    pictures: Annotated[Path | None, Option("Write the pictures that were shown to this folder.")] = None,
    media: Annotated[Path | None, Option("The media, for --pictures; the store remembers them.")] = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show one item with answers and scores.

    Shows the question, its options and reference, and for each run the answer, the parsed value, the scores and the
    replies of judges. Pictures are reproduced from the media and compared with the record of what was shown. Without an
    item, counts the items and groups of the benchmark by facets.

    Example: proctor show rexsonovqa 1st_Trimester_Scan/mcq-01 --store runs.db --system gemini-3-pro
    """
    from proctor import api, shell
    from proctor.reports import outside_line, records_table
    from proctor.results import composition, item_history, items_outside

    opened = api.open_store(store, create=False)
    benchmark = named_in(opened, benchmark)
    if not item:
        facets = list(shell.facets_of(by))
        rows = composition(opened, benchmark, facets, all_items=all_items)
        show(output, rows, records_table(opened.card(benchmark).title, rows))
        outside = items_outside(opened, benchmark, facets, all_items=all_items)
        print_note(*filter(None, [outside_line(outside, facets)]))
        return
    if output is OutputFormat.CSV:
        raise UsageError("One item is no table for a CSV. Give --format json.")
    found = item_history(opened, benchmark, item, tuple(options["systems"]), tuple(options["conditions"]))
    reader = opened.card(benchmark).read_by
    sent = {number: _sent(reader, found.item, one) for number, one in enumerate(found.given) if prompt}
    how: Any = {"systems": options["systems"], "conditions": options["conditions"], "media": media}
    written = [] if pictures is None else shell.write_shown(opened, item, pictures, benchmark, **how)
    if output is OutputFormat.JSON:
        told = found.to_json() | ({"prompt": _prompt(reader, found.item)} if prompt else {})
        for number, words in sent.items():
            told["runs"][number]["prompt_sent"] = words
        print_json(told | ({"pictures": written} if pictures else {}))
        return
    _say_item(found)
    if prompt and not any(sent.values()):
        print_line("\nPrompt, as a model would be asked:")
        for text in _prompt(reader, found.item):
            print_line(_indented(text))
    for number, one in enumerate(found.given):
        _say_answer(one, sent.get(number) or ())
    for line in ("", *written) if written else ():
        print_line(line)


def _say_item(found: ItemHistory) -> None:
    from proctor.core.formats import option_letters

    item = found.item
    print_line(f"{item.id}  ({item.answer.kind}, group {item.group})", bold=True)
    print_line(_indented(item.question))
    for letter, option in zip(option_letters(len(item.options)), item.options, strict=True):
        print_line(f"    {letter}  {option}")
    if item.reference is not None:
        accepted = "".join(f"; also {_value(one)}" for one in item.reference.accepted)
        if item.has_answer:
            print_line(f"Reference: {_value(item.reference.answer)}{accepted}")
        if item.unanswerable:
            print_line("Reference: unanswerable")
        for criterion in item.reference.criteria:
            print_line(f"Criterion: {criterion.points:+g}: {criterion.criterion}")
        if item.reference.rationale:
            print_line(_indented(item.reference.rationale))
    if item.media:
        print_line("Media: " + "; ".join(_medium(medium) for medium in item.media))
    if item.tags:
        print_line("Facets: " + "; ".join(f"{name} {_value(value)}" for name, value in item.tags.items()))


def _sent(benchmark: str, item: Item, given_answer: GivenAnswer) -> tuple[str, str] | None:
    """The prompt behind an answer, if its recorded hash confirms it."""
    from proctor.runs import recorded
    from proctor.systems import prompt_as_sent

    settings = given_answer.run.settings.get("system")
    if given_answer.answer is None or not isinstance(settings, dict):
        return None
    return prompt_as_sent(
        benchmark, item, given_answer.answer, settings, recorded(given_answer.answer), given_answer.run.condition
    )


_OF_EVERY_CALL = frozenset(
    {
        "asked_by", "corrected", "cut_off", "finish_reason", "frames", "model", "rationale", "rejected",
        "prefix_not_reused", "schema_rejected", "shown", "sounds", "thoughts_in_text", "video_bytes",
    }
)  # fmt: skip
"""What is kept with every answer of a model, and the rationale, which is shown."""


def _say_answer(given_answer: GivenAnswer, sent: Sequence[str] = ()) -> None:
    from proctor.core import Status

    run = f"{given_answer.run.system} / {given_answer.run.condition}"
    answer = given_answer.answer
    if answer is None:
        print_line(f"\n{run}: not asked", bold=True)
        return
    parsed = "can't be read" if answer.parsed is None else _value(answer.parsed)
    if isinstance(answer.parsed, str) and answer.text and answer.parsed.split() == answer.text.split():
        parsed = "answered"  # the value is the text, which stands below
    print_line(f"\n{run}: {parsed if answer.status is Status.ANSWERED else answer.status.value}", bold=True)
    cut_off = "cut off by the model's token limit" if answer.extra.get("cut_off") is True else ""
    for reason in (answer.reason, answer.problem, cut_off):
        if reason:
            print_line(f"  {reason}")
    if sent:
        print_line("  Asked with (these words have the hash that was recorded):")
        for text in filter(None, sent):
            print_line(_indented(_indented(text)))
        print_line("  Replied:")
    if answer.text:
        print_line(_indented(answer.text))
    _say_kept(answer)
    for score in given_answer.scores:
        label = f" ({score.label})" if score.label else ""
        print_line(f"  {score.metric} {score.value:g}{label} by {score.scorer}")
    for judgement in given_answer.judgements:
        flags = f" flagged: {', '.join(judgement.flags)}" if judgement.flags else ""
        print_line(f"  {judgement.judge} replied{flags}: {_value(judgement.reply)}")


def _say_kept(answer: Answer) -> None:
    """The rationale, and what else a method kept with its answer."""
    rationale = answer.extra.get("rationale")
    if isinstance(rationale, str) and rationale and rationale not in answer.text:
        print_line(_indented(f"Rationale: {rationale}"))
    if more := [
        name for name, kept in answer.extra.items() if name not in _OF_EVERY_CALL and kept not in (None, "", [], {})
    ]:
        print_line(f"  Kept with it: {', '.join(more)} (--format json shows them, proctor export has them as extra)")


def _prompt(benchmark: str, item: Item) -> list[str]:
    """The messages that a model gets with the pictures under the condition `video`, from the default prompt."""
    from proctor.core import VideoClip
    from proctor.systems import Sent, prompt_for_benchmark, prompt_text

    clips = [medium for medium in item.media if isinstance(medium, VideoClip)]
    pictures = sum(_frames(clip) for clip in clips) + len(item.pictured) - len(clips)
    if clips:
        print_note("Numbers of frames in the prompt are for one frame a second, at most 64.")
    briefing = reader_or_default(benchmark).briefing
    prompt, sounds = prompt_for_benchmark(benchmark, sounding=bool(item.sounding)), len(item.sounding)
    as_json = item.answer.kind == "ordering"
    if as_json:
        print_note("Orders are requested by a JSON schema; as text (--orders text) the prompt says so.")
    texts = prompt_text(prompt, item, briefing, Sent(pictures, timed=bool(clips), sounds=sounds), as_json=as_json)
    return [text for text in texts if text]


def _frames(clip: VideoClip) -> int:
    return _FRAMES if clip.end is None else min(_FRAMES, max(1, round(clip.end - clip.start)))


def _medium(medium: object) -> str:
    from proctor.core import AudioClip, VideoClip

    if isinstance(medium, VideoClip | AudioClip):
        sound = " with its sound" if isinstance(medium, VideoClip) and medium.audio else ""
        if medium.end is None:
            begins = f" from {medium.start:g} s on" if medium.start else " (whole)"
            return f"{medium.source}{begins}{sound}"
        return f"{medium.source} from {medium.start:g} s to {medium.end:g} s{sound}"
    return str(getattr(medium, "source", medium))


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().splitlines())


def audit_items(
    benchmark: BenchmarkName,
    asking: ModelOptions,
    data: Annotated[Path | None, Option("The benchmark's own files, instead of those that a store knows.")] = None,
    track: Track = "",
    store: StoreUrl = None,
    top: Annotated[int, Option("How many text-only baselines to list.", low=1)] = 10,
    embeddings: Annotated[bool, Option("Also rules on sentence embeddings (extra semantic).")] = False,
    model: Annotated[
        list[str] | None,
        Option(
            "Also a model that sees the options alone, and rules some out; may be repeated.", metavar="PROVIDER:NAME"
        ),
    ] = None,
    all_items: AllItems = False,
    draws: Draws = 2000,
    seed: Seed = 0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Find items that the text alone gives away.

    Fixed rules and classifiers answer from the text without the media. With --store, the guessable items are recorded,
    for results --by guessable, and the replies of each --model, which are then not asked for again. If four or more
    systems answered in the store, items that better systems miss and poorer ones do not are listed: check their keys.

    Example: proctor audit items rexsonovqa --data rexsonovqa
    """
    from proctor import api, shell
    from proctor.audits.items import audit_items as compute
    from proctor.audits.items import to_json
    from proctor.metrics.text import default_encoder
    from proctor.reports import audit_section, item_analysis_blocks
    from proctor.results import items_to_audit

    if model and store is None:
        raise UsageError("--model keeps its replies in a store. Give one: --store FILE")
    if data is not None:
        loaded = api.load(benchmark, data, track=track)
        benchmark, items = loaded.name, loaded.counted(all_items=all_items)
    else:
        opened = api.open_store(store, create=False)
        benchmark = named_in(opened, benchmark)
        items = items_to_audit(opened, benchmark, all_items=all_items)
    replies = _option_auditors(items, model, store, asking, seed) if model else []
    with at_work("auditing the items"):
        encode = default_encoder() if embeddings else None
        audit = compute(items, seed=seed, draws=draws, encode=encode, models=replies)
    if store is not None:
        opened = api.open_store(store, create=False)
        flagged = shell.flag_guessable(opened, benchmark, audit)
        print_note(
            f"{flagged} of {count_of(len(audit.guessable), 'item')} flagged in {opened.shown}: results --by guessable"
        )
    analysed = (
        _item_analysis(store, benchmark, all_items=all_items, draws=draws, seed=seed) if store is not None else None
    )
    if output is OutputFormat.JSON:
        print_json(to_json(audit) | ({} if analysed is None else {"item_analysis": analysed.to_json()}))
    elif output is OutputFormat.CSV:
        print_records(audit.baseline_rows)
    elif (section := audit_section(audit, most=top)) is not None:
        print_blocks(*section.blocks)
        if analysed is not None:
            print_blocks(*item_analysis_blocks(analysed))


def _item_analysis(
    store: StoreUrl, benchmark: str, *, all_items: bool, draws: int, seed: int
) -> StoredItemAnalysis | None:
    """The items by the systems of the store, if four or more answered."""
    from proctor import api
    from proctor.results import analyse_items
    from proctor.stats import Resampling

    return analyse_items(
        api.open_store(store, create=False), benchmark, all_items=all_items, plan=Resampling(draws=draws, seed=seed)
    )


def _option_auditors(
    items: Sequence[Item], models: Sequence[str], store: StoreUrl, asking: ModelOptions, seed: int
) -> list[ModelReplies]:
    """The replies of models about options, with a progress bar; a note says what they cost."""
    from proctor import api, shell
    from proctor.runs import PaidJudgements

    paid = PaidJudgements(api.open_store(store, create=False))
    with show_steps("asking about options", 1) as progress:
        found = asyncio.run(shell.ask_option_auditors(items, models, paid, asking, seed=seed, progress=progress))
    print_note(*spent(paid))
    return found
