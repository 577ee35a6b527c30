"""Which model answered a run, beside the one that was asked for: servers answer by whatever is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue
from sqlalchemy import select, update

from proctor.core import ConfigurationError
from proctor.runs import schema

if TYPE_CHECKING:
    from proctor.runs.store import Run, Store

SERVED = "answered_by"
"""The key of a run's settings for the names by which servers answered, in order."""

SIGHT = "sight"
"""The key of a run's settings for what the sight test of its model found; it says nothing of what the run is."""

_PROVIDERS = {
    "anthropic", "azure", "bedrock", "cerebras", "cohere", "deepseek", "fireworks", "gateway", "github", "google",
    "google-gla", "google-vertex", "grok", "groq", "heroku", "huggingface", "litellm", "mistral", "moonshotai", "nebius",
    "ollama", "openai", "openai-chat", "openai-responses", "openrouter", "outlines", "ovhcloud", "sambanova", "together",
    "transformers", "vercel", "xai",
}  # fmt: skip
"""What stands before the colon of a model's name when it names a provider; elsewhere it is part of the name."""

_FILE = re.compile(r"(-\d{5}-of-\d{5})?\.(gguf|safetensors|bin)$")
_BEDROCK = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|amazon|meta|mistral|cohere|ai21|deepseek|openai|qwen|google)\.")
_REVISION = re.compile(r"-v\d+(:\d+)?$|:(latest|free|beta|extended|nitro|floor|\d)$")
_VERSION = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{2}-\d{4}|\d{2}-\d{2}|\d{3,4}|latest)")
"""What a provider adds to a name for one of its snapshots."""

_ROUTERS = {"auto", "router", "any"}


def served_by(settings: Mapping[str, Any]) -> list[str]:
    """The names by which servers answered, in order."""
    names = settings.get(SERVED)
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def asked_for(settings: Mapping[str, Any]) -> str:
    """The model that was asked for; "" where a run has no single one."""
    system = settings.get("system")
    name = system.get("model") if isinstance(system, dict) else None
    return name if isinstance(name, str) else ""


def is_same_model(asked: str, answered: str) -> bool:
    """Whether a server's name for a model is that of the one asked for, apart from provider, path, ending of a file, case,
    and the snapshot's date or number where none was asked for.

    >>> is_same_model("openai:gpt-5.2", "gpt-5.2-2026-01-01"), is_same_model("qwen3-vl", "/models/Qwen3-VL.gguf")
    (True, True)
    >>> is_same_model("medical-vlm-72b", "tiny-model-1b"), is_same_model("gpt-4-0613", "gpt-4-1106")
    (False, False)
    """
    wanted, got = _plain(asked), _plain(answered)
    if wanted == got:
        return True
    stem = wanted.removesuffix("-latest")
    return got.startswith(stem) and _VERSION.fullmatch(got[len(stem) :]) is not None


def served_note(settings: Mapping[str, Any]) -> str:
    """One line where a model that answered has another name than the one asked for, or where several snapshots answered;
    else "".

    >>> served_note({"system": {"model": "medical-vlm-72b"}, "answered_by": ["tiny-model-1b"]})
    'asked medical-vlm-72b, answered by tiny-model-1b'
    """
    asked = asked_for(settings)
    known = {_plain(name): name for name in served_by(settings)}
    other = [name for name in known.values() if not is_same_model(asked, name)]
    told = other if other and len(known) == len(other) else [*known.values()] if len(known) > 1 else other
    return f"asked {asked}, answered by {' and '.join(told)}" if asked and told else ""


def served_notes(runs: Sequence[Run]) -> tuple[str, ...]:
    """The notes (`served_note`) of runs, each with the system, and with the condition where those of a system differ."""
    return _by_system(runs, served_note)


def model_notes(runs: Sequence[Run]) -> tuple[str, ...]:
    """`served_notes`, and what the sight tests of the models found that were kept with the runs (`proctor sight`)."""
    return (*served_notes(runs), *_by_system(runs, _sight_note))


def sight_found(settings: Mapping[str, Any], cache: str | Path | None) -> dict[str, JsonValue]:
    """What the last sight test of a system's model found, as a run keeps it; nothing without a model or such a test."""
    if "model" not in settings:
        return {}
    from proctor.sight import kept_result

    tested = kept_result(settings, cache)
    return {} if tested is None else {SIGHT: tested.note()}


def _sight_note(settings: Mapping[str, Any]) -> str:
    """One line on the sight test of the model behind a run, of which the run's settings tell; "" if they tell of none."""
    told = settings.get(SIGHT)
    if not isinstance(told, dict):
        return ""
    from proctor.sight import sight_note

    return sight_note(told, settings.get("media"))


def _by_system(runs: Sequence[Run], note_of: Callable[[Mapping[str, Any]], str]) -> tuple[str, ...]:
    found: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        if note := note_of(run.settings):
            found.setdefault(run.system, {}).setdefault(note, []).append(run.condition)
    told = []
    for system, notes in found.items():
        for note, conditions in notes.items():
            told.append(f"{system}{' under ' + ', '.join(conditions) if len(notes) > 1 else ''}: {note}")
    return tuple(told)


def other_model(settings: Mapping[str, Any]) -> str:
    """The model that answered, without a path on its machine, if it is not the one asked for; else ""."""
    asked = asked_for(settings)
    other = next((name for name in served_by(settings) if asked and not is_same_model(asked, name)), "")
    return re.sub(r"^(?:[/\\~.]|[A-Za-z]:[/\\]).*[/\\]", "", other)


def refuse_another(location: str, settings: Mapping[str, Any], name: str) -> None:
    """Raises `ConfigurationError` if a model answers a run that another one has answered: a run is one system.

    Snapshots of the model that was asked for may alternate, as providers roll them out. So may the models of a router that
    was asked for by its name (`openrouter/auto`, `model-router`), and those of the setting `models`.
    """
    asked, known = asked_for(settings), served_by(settings)
    if not known or any(_plain(one) == _plain(name) for one in known):
        return
    allowed = [asked, *_fallbacks(settings)]
    if _ROUTERS & set(re.split(r"[^a-z]+", asked.lower())) or all(
        any(is_same_model(one, answered) for one in allowed) for answered in (*known, name)
    ):
        return
    raise ConfigurationError(
        f"{location}: asked {asked}, answered by {' and '.join(known)} so far and now by {name}: a run is one system. "
        "Load the model again that answered before, or give the run another name (--name)"
    )


def note_served(store: Store, run: Run, name: str) -> None:
    """Records in a run's settings that a model of this name answered. Raises `ConfigurationError` for another model than
    before (see `refuse_another`)."""
    table = schema.runs
    own = table.c.id == run.id
    with store.writing() as connection:
        connection.execute(update(table).where(own).values(owner=table.c.owner))  # locks the row before it is read
        settings = connection.execute(select(table.c.settings).where(own)).scalar_one()
        refuse_another(f"{run.system} under {run.condition}", settings, name)
        if name not in (names := served_by(settings)):
            connection.execute(update(table).where(own).values(settings={**settings, SERVED: [*names, name]}))


def _fallbacks(settings: Mapping[str, Any]) -> list[str]:
    value: Any = settings
    for key in ("system", "model_settings", "extra_body", "models"):
        value = value.get(key) if isinstance(value, dict) else None
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _plain(model: str) -> str:
    """A model's name without provider, path and ending of a file, in small letters.

    >>> _plain("bedrock:us.anthropic.claude-sonnet-4-20250514-v1:0"), _plain("models/Gemini-3_Pro"), _plain("qwen3:8b")
    ('claude-sonnet-4-20250514', 'gemini-3-pro', 'qwen3:8b')
    """
    name = model.strip().lower().replace("\\", "/")
    provider, _, rest = name.partition(":")
    name = (rest if rest and provider in _PROVIDERS else name).rstrip("/").rpartition("/")[2]
    name = _REVISION.sub("", _BEDROCK.sub("", _FILE.sub("", name)))
    return re.sub(r"[._@\s]+", "-", name)
