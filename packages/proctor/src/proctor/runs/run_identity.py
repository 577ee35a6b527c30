"""The settings of runs and scorers: one name never mixes two systems, or two scorers; and which runs and items are meant by
names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pydantic import JsonValue

from proctor import core
from proctor.core import HUMAN, InputError, Metric, RatingScheme, one_of, shell_word, store_word
from proctor.runs.schema import BenchmarkCard
from proctor.runs.served import SERVED, SIGHT, served_by

if TYPE_CHECKING:
    from proctor.core import Item, Scorer
    from proctor.runs.store import Run, Store

_ADDRESS = "base_url"
_SERVERS = "servers"
_FILE = "recorded"
CODE_HASHES = "code"
"""The setting with the hashes of code from outside Proctor."""
UNSUPPORTED = "unsupported"
"""The setting with the questions that a run does not ask, as its system does not support them, or its condition can't show
them: whole answer `formats`, and single `items`."""


def listed_items(settings: Mapping[str, Any]) -> set[str]:
    """The single items that a run does not ask (see `UNSUPPORTED`).

    >>> listed_items({"unsupported": {"formats": ["choice"], "items": ["q7"]}}), listed_items({})
    ({'q7'}, set())
    """
    told = settings.get(UNSUPPORTED)
    items = told.get("items") if isinstance(told, dict) else None
    return {str(item) for item in items} if isinstance(items, list) else set()


REPEATS = "repeats"
"""The setting with the number of repetitions that were asked for, if there are several. It says nothing of what the run is:
more can be asked for later."""


def repeats_of(settings: Mapping[str, Any]) -> int:
    """How many answers to each item were asked for.

    >>> repeats_of({}), repeats_of({"repeats": 5})
    (1, 5)
    """
    count = settings.get(REPEATS, 1)
    return count if isinstance(count, int) else 1


def same_run(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether two settings are equal except for addresses of servers, the names of models that answered, what a sight test
    found, the name of the file of recorded answers, the number of repetitions, and the list of unsupported questions.

    >>> same_run({"system": {"model": "m", "base_url": "http://a/v1"}}, {"system": {"model": "m", "base_url": "http://b/v1"}})
    True
    >>> same_run({"system": {"model": "m"}}, {"system": {"model": "n"}})
    False
    """
    return _identity(old, new) == _identity(new, old)


def with_servers(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The new settings; with all addresses that the run has used, in order, if there are several, with the models that
    have answered, with what the last sight test found, and with the larger number of repetitions.

    >>> with_servers({"system": {"base_url": "http://a/v1"}}, {"system": {"base_url": "http://b/v1"}})
    {'system': {'base_url': 'http://b/v1'}, 'servers': ['http://a/v1', 'http://b/v1']}
    """
    known = list(dict.fromkeys([*servers_of(old), *servers_of(new)]))
    plain = {name: value for name, value in new.items() if name != _SERVERS}
    served = list(dict.fromkeys([*served_by(old), *served_by(new)]))
    more: dict[str, Any] = {SERVED: served} if served else {}
    more |= {SIGHT: old[SIGHT]} if SIGHT in old and SIGHT not in new else {}
    more |= {_SERVERS: known} if len(known) > len(servers_of(new)) else {}
    repeats = max(repeats_of(old), repeats_of(new))
    return plain | more | ({REPEATS: repeats} if repeats > 1 else {})


def changed_settings(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The first settings that differ, by dotted names (see `same_run`).

    >>> changed_settings({"system": {"seed": 0, "model": "m"}}, {"system": {"seed": 1, "model": "m"}})
    'system.seed 0 then, 1 now'
    """
    before, now = _flat(_identity(old, new)), _flat(_identity(new, old))
    names = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
    code = {
        name: f"the code of the {name.removeprefix('code.')} has changed" for name in names if name.startswith("code.")
    }
    return "; ".join(
        code.get(name, f"{name} {before.get(name)!r} then, {now.get(name)!r} now")
        for name in sorted(names, key=lambda name: name not in code)[:3]
    )


def _identity(settings: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The settings that identify a run. A hash of code counts if the other settings have it, too. Settings
    that do not say how orders are requested mean text."""
    plain: dict[str, Any] = without_addresses(settings)
    system, theirs = plain.get("system"), other.get("system")
    if isinstance(system, dict) and isinstance(theirs, dict) and "orders" in theirs:
        plain["system"] = {"orders": "text", **system}
    known, others = plain.get(CODE_HASHES) or {}, other.get(CODE_HASHES) or {}
    kept = {
        name: value
        for name, value in plain.items()
        if name not in {_FILE, SERVED, SIGHT, CODE_HASHES, UNSUPPORTED, REPEATS}
    }
    return kept | {CODE_HASHES: {name: one for name, one in known.items() if name in others}}


def without_addresses(value: Any) -> Any:
    """Settings without addresses of servers, at any depth."""
    if isinstance(value, dict):
        kept = {name: one for name, one in value.items() if name not in {_ADDRESS, _SERVERS}}
        return {name: without_addresses(one) for name, one in kept.items()}
    return [without_addresses(one) for one in value] if isinstance(value, list) else value


def servers_of(settings: Any) -> list[str]:
    """All addresses of servers in settings, at any depth.

    >>> servers_of({"system": {"planner": {"base_url": "http://a/v1"}}, "servers": ["http://b/v1"]})
    ['http://b/v1', 'http://a/v1']
    """
    own = [settings.get(_ADDRESS), *(settings.get(_SERVERS) or ())] if isinstance(settings, dict) else []
    inside = settings.values() if isinstance(settings, dict) else settings if isinstance(settings, list) else ()
    found = [one for one in own if isinstance(one, str)] + [each for one in inside for each in servers_of(one)]
    return list(dict.fromkeys(found))


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


@runtime_checkable
class HasSettings(Protocol):
    """A scorer with settings."""

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes its scores: models, prompts, dimensions …"""


def refuse_other_metrics(store: Store, benchmark: str, metrics: Sequence[Metric], scorer: str) -> None:
    """Raises `InputError` if the benchmark has one of these metrics with another range or direction."""
    known = {one.name: one for one in store.card(benchmark).metrics}
    for metric in metrics:
        before = known.get(metric.name, metric)
        if other := _differences(before, metric):
            expected = f"the same range and direction ({scorer}: {other}), or another name"
            expected += _way_out(store, benchmark, metric.name)
            raise InputError(store.shown, f"metric {metric.name}", found="another declaration", expected=expected)


def declare_scorer(
    store: Store, benchmark: str, scorer: Scorer, scheme: RatingScheme | None = None, *, repeats: int = 1
) -> None:
    """Records a scorer's settings before it scores, and declares its metrics; a `scheme` becomes the benchmark's rating
    scheme. The largest number of its `repeats` is recorded, too, and changes nothing of what it is.

    Raises `InputError`, and changes nothing, if the store has scores under the same name with other settings (addresses
    of servers aside), and as `refuse_other_metrics`. Imported scores under the name, which have no
    settings, count as the scorer's.
    """
    from proctor.judges import UNRESOLVED

    core.admit_scorer(scorer)
    refuse_other_metrics(store, benchmark, scorer.metrics, scorer.name)
    now = scorer_settings(scorer)
    before = store.card(benchmark).scorers.get(scorer.name, now)
    if not same_run(before, now) and store.scorers(benchmark).get(scorer.name, set()) - {UNRESOLVED.name}:
        raise InputError(
            store.shown,
            f"scores by {scorer.name}",
            found=f"other settings ({changed_settings(before, now)})",
            expected=f"the same settings, another --store, or none of these scores: {delete_command(store, benchmark, scorer.name)}",
        )

    def declared(card: BenchmarkCard) -> BenchmarkCard:
        gives = {scorer.name: tuple(metric.name for metric in scorer.metrics)}
        most = max(repeats, repeats_of(card.scorers.get(scorer.name, {})))
        now.update({REPEATS: most} if most > 1 else {})
        update: dict[str, Any] = {"scorers": card.scorers | {scorer.name: now}, "gives": card.gives | gives}
        return card.with_metrics(scorer.metrics).model_copy(update=update | ({"rating": scheme} if scheme else {}))

    store.change_card(benchmark, declared)


def scorer_settings(scorer: Scorer) -> dict[str, Any]:
    """The recorded settings of a scorer: its own, without addresses of servers, and the hash of its code if that is not
    Proctor's."""
    own = core.admit_settings(scorer, scorer.settings) if isinstance(scorer, HasSettings) else {}
    code = core.code_hash(scorer)
    plain: dict[str, Any] = without_addresses(json.loads(json.dumps(own)))
    return plain | ({CODE_HASHES: {"scorer": code}} if code else {})


def refuse_out_of_range(store: Store, benchmark: str, metric: Metric, scorer: str, low: float, high: float) -> None:
    """Raises `InputError`, with a remedy, if a scorer's lowest or highest score is out of the metric's range."""
    if low < metric.low or high > metric.high:
        found = f"{low if low < metric.low else high:g}"
        expected = f"a number from {metric.low:g} to {metric.high:g}; to be rid of these scores: "
        expected += delete_command(store, benchmark, scorer)
        raise InputError(store.shown, f"{metric.name} by {scorer}", found=found, expected=expected)


def _differences(before: Metric, now: Metric) -> str:
    """The differences of two declarations, apart from label, formats and chance level."""
    old, new = asdict(before), asdict(now)
    names = [name for name in old if old[name] != new[name] and name not in {"label", "formats", "chance"}]
    return ", ".join(f"{name} {new[name]}, in the store {old[name]}" for name in names)


def _way_out(store: Store, benchmark: str, metric: str) -> str:
    """How to free the metric's name, if it is not the benchmark's own and one scorer has given all its scores."""
    owners = [name for name, metrics in store.scorers(benchmark).items() if metric in metrics]
    if metric in store.card(benchmark).own or len(owners) != 1 or owners[0].startswith(HUMAN):
        return ""
    return f", or none of the old scores: {delete_command(store, benchmark, owners[0])}"


def delete_command(store: Store, benchmark: str, scorer: str) -> str:
    return f"proctor store change delete {shell_word(benchmark)} --scorer {shell_word(scorer)} --store {store_word(store.shown)}"


_MAX_LISTED = 5

CODE = "code"
"""The name of scorers without a model."""

BASELINES = ("random", "majority", "longest-option", "shortest-option", "text-similarity")
"""The built-in baselines; they run under `text-only`."""


def chosen_runs(store: Store, benchmark: str, systems: Sequence[str] = (), conditions: Sequence[str] = ()) -> list[Run]:
    """The runs of a benchmark, of these systems and conditions (none named: all). Raises `InputError` for unknown names."""
    runs = store.runs(benchmark)
    for what, names, known in (
        ("system", systems, {run.system for run in runs}),
        ("condition", conditions, {run.condition for run in runs}),
    ):
        for name in names:
            if name not in known:
                raise InputError(
                    store.shown, found=f"no run with the {what} {name!r}", expected=one_of(sorted(known), name)
                )
    return [
        run
        for run in runs
        if (not systems or run.system in systems) and (not conditions or run.condition in conditions)
    ]


def run_name(run: Run, runs: Sequence[Run], *, short: bool) -> str:
    """The name of a run among others: its system's, with the condition unless it is the system's only run and `short`."""
    once = sum(one.system == run.system for one in runs) == 1
    return run.system if short and once else f"{run.system} / {run.condition}"


def known_items(store: Store, benchmark: str, needed: Sequence[str] = ()) -> dict[str, Item]:
    """The items of a benchmark by id. Raises `InputError`, with the nearest id, if a `needed` one is missing."""
    items = {item.id: item for item in store.items(benchmark)}
    for name in needed:
        if name not in items:
            raise InputError(store.shown, f"item of {benchmark}", found=repr(name), expected=_ids(items, name))
    return items


def _ids(items: dict[str, Item], found: str) -> str:
    """Some known ids: those that contain the input, else the first ones."""
    alike = [name for name in items if found and found in name]
    shown = (alike or list(items))[:_MAX_LISTED]
    hint = "" if alike else one_of(items, found).partition("; ")[2]
    more = f" … ({len(items)} in all)" if len(items) > len(shown) else ""
    return f"one of {', '.join(shown)}{more}" + (f"; {hint}" if hint else "")
