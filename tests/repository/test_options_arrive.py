"""Every option that a command takes arrives, under its name and with its value, at the function that does the work.

Each command is called once for each of its options, with a value that is not the default; the functions behind it only
write down what they were called with. An option that is dropped or passed on under another name shows here whatever it
does.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Literal, NamedTuple, get_args, get_origin, is_typeddict
from unittest.mock import MagicMock

import pytest
import typer

from proctor import shell
from proctor.cli import store, workers
from proctor.cli.main import commands
from proctor.core import is_own
from proctor.shell import declared

FORMAT = {"output": "how it is printed"}
TABLES = {"form": "how it is printed", "figure": "drawn afterwards"}
ASKED = {"yes": "nobody is asked first", "store": "the store itself"}


class Way(NamedTuple):
    """One way through a command: the arguments that it needs, the functions that it calls, of which the last one ends
    it, and the options that have no part in it, with the reason."""

    command: str
    needed: str
    functions: str
    without: Mapping[str, str] = {}
    named: Mapping[str, str] = {}


STORE = "api:open_store shell:name_in"
ASKING = ("base_url", "settings", "timeout_s", "retries", "price", "structured", "model")
GRID = (
    "model prompts references reason images documents media limit concurrency base_url settings timeout_s retries price "
    "structured"
)
TEAM = "institution country agreed not_eligible not_listed member why"
USER = "name role language address"


def others(names: str) -> dict[str, str]:
    """Options that have no part in a way, since they say which way it is or belong to another one."""
    return dict.fromkeys(names.split(), "of another way, or which way it is")


WAYS = (
    Way("view", "runs.db", "proctor_web:Listening proctor_web:open_view"),
    Way("serve site", "folder", "proctor_web:Listening proctor_web:open_review", {"same_user": "of a challenge"}),
    Way("serve site", "folder", "proctor_web:Listening proctor_challenge.pages.site_kind:KIND.open"),
    Way("challenge new", "folder focus --data d", "proctor_challenge:NewChallenge proctor_challenge:new_challenge"),
    Way("challenge check", "folder", "proctor_challenge:check_challenge", {**FORMAT, **others("machine gpu executor")}),
    Way(
        "challenge check",
        "folder --machine",
        "proctor_challenge.containers:executor_of proctor_challenge:examine_machine",
        {**FORMAT, **others("machine")},
        {"executor": "name"},
    ),
    Way(
        "challenge phase",
        "open folder test",
        "proctor_challenge:Challenge.open proctor_challenge.containers:executor_of proctor_challenge:open_phase",
        {"no_oracle": "nothing is named instead of an executor", "action": "which function"},
        {"executor": "name", "name": "phase"},
    ),
    Way(
        "challenge phase",
        "close folder test",
        "proctor_challenge:Challenge.open proctor_challenge:close_phase",
        others("action no_oracle executor"),
        {"name": "phase"},
    ),
    Way(
        "challenge phase",
        "questions folder test",
        "proctor_challenge:write_public_questions",
        others("action no_oracle executor store"),
        {"name": "phase"},
    ),
    Way(
        "challenge status",
        "folder",
        "proctor_challenge:Challenge.open proctor_challenge:phase_rows",
        {**FORMAT, **others("phase out audience prizes")},
    ),
    Way(
        "challenge status",
        "folder test --prizes",
        "proctor_challenge:Challenge.open proctor_challenge:prizes_of",
        {**FORMAT, **others("out audience prizes")},
    ),
    Way(
        "challenge status",
        "folder test --out b.html",
        "proctor_challenge:Challenge.open proctor_challenge:seen_boards proctor_challenge:write_boards",
        {**FORMAT, **others("prizes")},
        {"audience": "visitor"},
    ),
    Way(
        "challenge team",
        "list folder",
        "proctor_challenge:Challenge.open proctor_challenge:team_rows",
        {**FORMAT, **others(f"action name {TEAM} phase file")},
    ),
    Way(
        "challenge team",
        "add folder t",
        "proctor_challenge:Challenge.open proctor_challenge:TeamChange proctor_challenge:change_team",
        {**FORMAT, **others("phase file")},
    ),
    Way(
        "challenge team",
        "describe folder t --phase p --file a.pdf",
        "proctor_challenge:Challenge.open proctor_challenge:change_description",
        {**FORMAT, **others(f"action {TEAM}")} | {},
        {"name": "team"},
    ),
    Way(
        "challenge submission",
        "list folder",
        "proctor_challenge:Challenge.open proctor_challenge:submission_rows",
        {**FORMAT, **others("action name why out file again")},
    ),
    Way(
        "challenge submission",
        "add folder test t --file a.json",
        "proctor_challenge:Challenge.open proctor_challenge:submit_file",
        {**FORMAT, **others("action why team state out")},
        {"name": "team"},
    ),
    Way(
        "challenge submission",
        "cancel folder test t#1",
        "proctor_challenge:Challenge.open proctor_challenge:change_submission",
        {**FORMAT, **others("team state out action file again")},
    ),
    Way(
        "challenge submission",
        "receipt folder test t#1",
        "proctor_challenge:Challenge.open proctor_challenge:signed_receipt",
        {**FORMAT, "out": "where it is written", **others("action why team state file again")},
    ),
    Way(
        "challenge submission",
        "rescore folder --why w",
        "proctor_challenge:rerun",
        {**FORMAT, **others("action phase name team state out file again")},
    ),
    Way("worker", "", "shell:work_async", dict.fromkeys(("folder", "executor", "gpu"), "of a challenge")),
    Way(
        "worker",
        "folder",
        "proctor_challenge.worker:work_on_folder",
        dict.fromkeys(("media", "cache", "base_url", "concurrency"), "of a store's runs"),
    ),
    Way(
        "challenge pack",
        "codabench folder",
        "proctor_challenge:pack_folder proctor_challenge:write_pack",
        {"platform": "one of a list, which is looked at first", "check": "what it compares is tested with the packs"},
    ),
    Way(
        "challenge try",
        "image folder",
        "proctor_challenge:Trial proctor_challenge.containers:executor_of proctor_challenge:try_image",
        FORMAT,
        {"executor": "name"},
    ),
    Way("review update", "folder", "proctor_web:open_review", others("reassign study submit reader")),
    Way(
        "review update",
        "folder --reassign anna --study q",
        "proctor_web:reassign_work",
        others("submit reader"),
        {"reassign": "name"},
    ),
    Way(
        "review update",
        "folder --submit a.csv --study q --reader anna",
        "proctor_web:decisions_from",
        others("reassign"),
        {"reader": "name", "submit": "file"},
    ),
    Way("review status", "folder", "proctor_web:progress_tables", {**FORMAT, **others("study")}),
    Way("review status", "folder q", "proctor_web:agreement_of", FORMAT),
    Way("review export", "folder q --out r.csv", "proctor_web:export_study", {**FORMAT, **others("reader")}),
    Way(
        "review export",
        "folder q --what sheet --reader anna --out a.csv",
        "proctor_web:sheet_for",
        {**FORMAT, **others("what")},
        {"reader": "name"},
    ),
    Way(
        "review export",
        "folder q --what scores",
        "proctor_web:ratings_to_scores",
        {**FORMAT, **others("what out reader")},
    ),
    Way(
        "review sample",
        "s.db b --judge j --out folder",
        "proctor_web:sample_study",
        {},
        {"system": "systems", "reader": "readers"},
    ),
    Way(
        "serve users",
        "add folder anna",
        "proctor_web:review_accounts proctor_web:add_person",
        {**FORMAT, "address": "checked, then part of the location of accounts", **others("action")},
    ),
    Way(
        "serve users",
        "invite folder anna",
        "proctor_web:review_accounts proctor_web:invite_person",
        {**FORMAT, "address": "checked, then part of the location of accounts", **others("action role language")},
    ),
    Way(
        "serve users",
        "list folder",
        "proctor_web:review_accounts proctor_web:people_table",
        {**FORMAT, **others(f"action {USER}")},
    ),
    Way(
        "serve users",
        "trail folder",
        "proctor_web:review_accounts proctor_web:read_trail",
        {**FORMAT, **others(f"action {USER}")},
    ),
    Way(
        "serve users",
        "role folder anna --role organiser",
        "proctor_web:review_accounts proctor_web:change_role",
        {**FORMAT, **others("action language address")},
    ),
    Way(
        "serve users",
        "disable folder anna",
        "proctor_web:review_accounts proctor_web:disable_person",
        {**FORMAT, **others("action role language address")},
    ),
    Way(
        "serve users",
        "enable folder anna",
        "proctor_web:review_accounts proctor_web:disable_person",
        {**FORMAT, **others("action role language address")},
    ),
    Way(
        "run",
        "bench",
        "shell:arrange",
        {"dry_run": "asks nothing", "workers": "processes of the same command", "on": "where these are"},
        {"systems": "system"},
    ),
    Way("sight", "m", "shell:arrange_sight", FORMAT),
    Way("choose", "bench --out folder", "shell:arrange_choice", FORMAT),
    Way("import", "bench file", "api:import_answers", others("decided_by")),
    Way(
        "import",
        "bench file --decided-by me",
        f"{STORE} runs:decide",
        others(
            "data track name condition answers_only scorer columns seed form id_column answer_column epoch dimensions "
            "submission"
        ),
        {"decided_by": "by", "path": "file"},
    ),
    Way("store merge", "a.db", "shell:join_stores", {**FORMAT, **others("whole")}),
    Way(
        "store merge",
        "a.db --whole --store b.db",
        "proctor_challenge.copying:copy_store",
        {**FORMAT, **others("whole sources")},
        {"store": "target"},
    ),
    Way(
        "score",
        "bench",
        "shell:prepare_scorers",
        {
            **FORMAT,
            **dict.fromkeys(("predictions", "references"), "of a file"),
            **dict.fromkeys(("draws", "seed"), "after"),
        },
        {"store": "source"},
    ),
    Way(
        "results",
        "bench",
        f"{STORE} api:results",
        {
            **TABLES,
            "flags": "a list instead",
            "protocol": "a summary instead",
            "content_hash": "a hash instead",
            "pool": "of sites instead",
            **others("corrected plan confidence"),
            "critical": "limits instead",
        },
    ),
    Way(
        "results",
        "bench --critical topic",
        f"{STORE} api:critical",
        {
            **TABLES,
            "flags": "a list instead",
            "protocol": "a summary instead",
            "content_hash": "a hash instead",
            "pool": "of sites instead",
            **others("corrected plan confidence"),
        },
        {"critical": "facet"},
    ),
    Way(
        "results",
        "bench --confidence",
        f"{STORE} api:confidence",
        {**TABLES, **others("corrected plan confidence flags protocol content_hash pool critical")},
    ),
    Way(
        "results",
        "bench --corrected file",
        f"{STORE} api:corrected",
        {
            **TABLES,
            **others(
                "flags protocol content_hash pool critical systems conditions failed all_items by two_level scorer draws seed confidence"
            ),
        },
        {"corrected": "sample", "metrics": "dimensions"},
    ),
    Way(
        "results",
        "--pool a.json",
        "shell:pool",
        {
            **TABLES,
            **others(
                "benchmark systems conditions failed all_items by metrics two_level store protocol flags content_hash critical "
                "corrected plan confidence"
            ),
        },
        {"pool": "files"},
    ),
    Way(
        "results",
        "bench --protocol official",
        f"{STORE} shell:official_summary",
        {
            **TABLES,
            "flags": "a list instead",
            "content_hash": "a hash instead",
            "pool": "of sites instead",
            **others("corrected plan confidence"),
            "critical": "limits instead",
        },
    ),
    Way("plan", "bench", "api:plan", {**FORMAT, "figure": "drawn afterwards"}, {"pilot": "source"}),
    Way("compare", "bench", f"{STORE} api:compare", TABLES),
    Way("explain", "a b", "api:explain", {**FORMAT, "out": "written afterwards"}),
    Way(
        "rank",
        "bench",
        f"{STORE} results:public_copy api:rank",
        {
            **FORMAT,
            "publish": "another store",
            "figure": "drawn afterwards",
            **dict.fromkeys(("mine", "two_level", "detail"), "after ranking"),
            **dict.fromkeys(("metric", "scorer"), "another ranking"),
        },
    ),
    Way(
        "analyze",
        "bench",
        f"{STORE} results:public_copy api:analyze",
        {**FORMAT, "publish": "another store", "out": "after", "pictures": "after"},
    ),
    Way("report", "bench", f"{STORE} api:report"),
    Way("export", "bench --out x.csv", f"{STORE} api:export"),
    Way("reproduce", "bench", f"{STORE} api:reproduce", {**FORMAT, **others("published benchmarks")}),
    Way(
        "reproduce",
        "--published folder",
        "api:verify",
        {**FORMAT, **others("benchmark data track systems conditions media media_as items limit store")},
        {"published": "folder"},
    ),
    Way("fetch", "bench", "api:fetch", FORMAT),
    Way("check", "bench file", "api:validate", {**FORMAT, **others("columns out")}, {"what": "benchmark"}),
    Way(
        "check",
        "folder",
        "cli.check:existing shell:media_at cli.check:check_path",
        {**FORMAT, "store": "of a submission", **others("file data track options budget_s latency")},
        {"what": "path", "media": "location"},
    ),
    Way(
        "audit judges",
        "bench",
        f"{STORE} api:audit",
        {
            **FORMAT,
            **dict.fromkeys(("scores", "ratings"), "go together"),
            **dict.fromkeys(("report", "media", "dimensions", "protocol"), "how it is shown"),
        },
    ),
    Way("judge perturb", "bench", "shell:prepare_probes", {**FORMAT}, {"store": "source"}),
    Way(
        "train classifier-judge",
        "bench --out folder",
        "api:open_store proctor_train:train_classifier_judge",
        {"encoders": "as a table by language"},
    ),
    Way(
        "train answerer",
        "bench --base weights --out folder",
        "proctor_train:arrange_answerer",
        {**FORMAT, "dry_run": "trains nothing"},
    ),
    Way("train generative-judge", "bench --base b --out folder", f"{STORE} proctor_train:train_generative_judge"),
    Way("judge fit", "bench --method choice --out x.json", f"{STORE} proctor_train:prepare_fit"),
    Way(
        "judge compare",
        "bench --model m",
        "api:open_store api:judge_grid_async",
        others("out scorer learned lead_over repeats curve quick keep"),
    ),
    Way("judge compare", "bench", "api:open_store proctor_train:judge_agreement", others(f"out {GRID}")),
    Way(
        "audit items",
        "bench",
        f"{STORE} results:items_to_audit audits.items:audit_items",
        {
            **FORMAT,
            "top": "how many are shown",
            "embeddings": "an encoder",
            **dict.fromkeys(("data", "track"), "of files"),
            **dict.fromkeys(ASKING, "of a model"),
        },
    ),
    Way(
        "audit items",
        "bench --data folder",
        "api:load audits.items:audit_items",
        {
            **FORMAT,
            "top": "how many are shown",
            "embeddings": "an encoder",
            "store": "is flagged afterwards",
            **dict.fromkeys(ASKING, "of a model"),
        },
    ),
    Way(
        "audit items",
        "bench --data folder --store s --model m",
        "api:load api:open_store shell:ask_option_auditors",
        {**FORMAT, **dict.fromkeys(("top", "embeddings", "draws"), "of the audit that follows")},
        {"model": "models"},
    ),
    Way(
        "show",
        "bench",
        f"{STORE} results:composition",
        {
            **FORMAT,
            "item": "another way",
            **dict.fromkeys(("systems", "conditions", "prompt", "pictures", "media"), "of one item"),
        },
    ),
    Way(
        "show",
        "bench item --pictures folder",
        f"{STORE} results:item_history shell:write_shown",
        {**FORMAT, **dict.fromkeys(("by", "all_items"), "of all items"), "prompt": "what is shown"},
        {"pictures": "folder"},
    ),
    Way(
        "media frames",
        "clip.mp4",
        "media:MediaSettings media:MediaLibrary core:VideoClip cli.media:_decoded",
        {
            **FORMAT,
            "out": "afterwards",
            "region": "as four fractions",
            "scan": "as its parts",
            "videos": "one after another",
        },
        {"cache": "cache_dir"},
    ),
    Way(
        "media duplicates",
        "a b",
        "media:look_at media:Tolerance media:find_leaks",
        {**FORMAT, "out": "afterwards", "first": "two calls", "second": "two calls"},
        {"cache": "cache_dir"},
    ),
    Way(
        "store change",
        "delete bench --system one",
        f"{STORE} runs:chosen_runs",
        {**ASKED, **others("action everything scorer to reason item")},
    ),
    Way(
        "store change",
        "delete bench --scorer one",
        f"{STORE} runs:count_scores",
        {**ASKED, **others("action everything systems conditions to reason item")},
    ),
    Way(
        "store change",
        "rename bench --system one --to two --yes",
        f"{STORE} runs:chosen_runs runs:rename_system",
        {**ASKED, **others("action everything systems conditions scorer reason item")},
        {"to": "name"},
    ),
    Way(
        "store change",
        "disqualify bench --system one --reason why",
        f"{STORE} runs:disqualify",
        {**ASKED, **others("action everything systems conditions scorer to item")},
    ),
    Way(
        "store change",
        "readmit bench --system one --reason why",
        f"{STORE} runs:reinstate",
        {**ASKED, **others("action everything systems conditions scorer to item")},
    ),
    Way(
        "store change",
        "pause bench --system one",
        f"{STORE} runs:chosen_runs runs:pause_runs",
        {**ASKED, **others("action everything scorer item to")},
    ),
    Way(
        "store change",
        "requeue bench --item i --reason why --yes",
        f"{STORE} runs:chosen_runs runs:requeue",
        {**ASKED, **others("action everything scorer to")},
        {"item": "items"},
    ),
    Way("status", "", "api:status", {**FORMAT, "watch": "a function that prints each look"}),
    Way("mcp", "", "agents:serve", {"show": "a document instead"}),
    Way(
        "mcp",
        "--show skill",
        "agents:document",
        {"store": "served instead", "contents": "served instead"},
        {"show": "name"},
    ),
    Way("list", "runs", f"{STORE} runs:stored_runs", {**FORMAT, "kind": "which list"}),
)
TEXTS = {
    "FACET[,FACET]": ("one,two", ["one", "two"]),
    "ROUTE[,ROUTE]": ("one,two", ["one", "two"]),
    "FACET,FACET": ("one,two", ["one", "two"]),
    "KEY=VALUE": ("kind=fast", {"kind": "fast"}),
    "KEY=VALUE …": ("kind=fast", {"kind": "fast"}),
    "FIELD=COLUMN": ("question=Frage", {"question": ["Frage"]}),
}


RETURNED: dict[str, Any] = {"media:look_at": ([], [])}


class ReachedError(Exception):
    """The last function of a way was called."""


@cache
def root() -> Any:
    """The whole program."""
    return typer.main.get_command(commands())


def command_of(words: str) -> Any:
    found = root()
    for word in words.split():
        found = found.commands[word]
    return found


@cache
def callbacks() -> dict[str, Any]:
    """What each command calls, by its words."""
    found = {str(one.name): one.callback for one in commands().registered_commands}
    for group in commands().registered_groups:
        assert group.typer_instance is not None
        found |= {f"{group.name} {one.name}": one.callback for one in group.typer_instance.registered_commands}
    return found


def options() -> Iterator[Any]:
    """Each way with each of the options that have a part in it."""
    for number, way in enumerate(WAYS):
        for one in command_of(way.command).params:
            if one.name != "help" and one.name not in way.without:
                yield pytest.param(way, one, id=f"{number}-{way.command}-{one.name}")


def kind_of(way: Way, name: str) -> Any:
    """The type that an option is declared with, of several values that of each."""
    kind = callbacks()[way.command].__annotations__[name].__origin__
    inner = [each for each in get_args(kind) if each is not type(None)] if get_origin(kind) is not Literal else []
    while inner and get_origin(kind) is not Literal:
        kind = inner[0]
        inner = list(get_args(kind))
    return kind


def value_of(kind: Any, one: Any) -> tuple[list[str], Any]:
    """Words of the shell for a value that is not the default, and the value."""
    default = one.default
    if getattr(one, "is_flag", False):
        return [], True
    if get_origin(kind) is Literal or (inspect.isclass(kind) and issubclass(kind, Enum)):
        choices = get_args(kind) or [each.value for each in kind]
        chosen = next(each for each in choices if each != getattr(default, "value", default))
        return [chosen], [chosen] if one.multiple else chosen
    if one.metavar in TEXTS:
        word, value = TEXTS[one.metavar]
        return [word], value
    if kind is int and one.multiple:
        return ["2", "3"], ["2", "3"]
    if kind is int:
        number = int(default or one.min or 1) + 1
        return [str(number)], number
    if kind is float:
        return ["0.25"], 0.25
    assert kind in {str, Path}, (one.name, kind)
    if one.multiple or one.nargs == -1:
        return ["one", "two"], ["one", "two"]
    return ["given"], "given"


def same(found: Any, wanted: Any) -> bool:
    """Whether a value is the one that was written; paths, enumerations and sequences as they are written."""
    if isinstance(wanted, list):
        return isinstance(found, list | tuple) and [str(each) for each in found] == wanted
    if isinstance(wanted, bool | dict):
        return type(found) is type(wanted) and bool(found == wanted)
    if isinstance(wanted, str):
        return isinstance(found, str | Path) and str(getattr(found, "value", found)) == wanted
    return bool(found == wanted)


def brought(name: str, *_: str) -> Any:
    """What another package brings to a command, as it is now: a registry would keep the first stand-in."""
    (found,) = entry_points(group="proctor.extensions", name=name)
    return found.load()


def recorded(way: Way, words: list[str], monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The names and values that the functions of a way are called with."""
    pairs: list[tuple[str, Any]] = []
    stands_in = MagicMock()
    stands_in.is_still.return_value = False
    functions = way.functions.split()
    for function in functions:
        module, _, name = function.partition(":")
        owner: Any = importlib.import_module(module if module.startswith("proctor_") else f"proctor.{module}")
        *owners, name = name.split(".")
        for each in owners:
            owner = getattr(owner, each)
        signature = inspect.signature(getattr(owner, name))

        def called(*given: Any, _signature: Any = signature, _function: str = function, **more: Any) -> Any:
            bound = _signature.bind(*given, **more).arguments
            for key, value in bound.items():
                gathered = _signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD
                pairs.extend([] if gathered or value is stands_in else [(key, value)])
                pairs.extend(value.items() if isinstance(value, Mapping) else ())
            if _function == functions[-1]:
                raise ReachedError
            return bound["benchmark"] if _function == "shell:name_in" else RETURNED.get(_function, stands_in)

        monkeypatch.setattr(owner, name, called)
    with pytest.raises(ReachedError):
        root().main([*way.command.split(), *words], standalone_mode=False)
    return pairs + [pair for call in stands_in.mock_calls for pair in call.kwargs.items()]


@pytest.mark.parametrize(("way", "one"), list(options()))
def test_an_option_arrives(way: Way, one: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    if "site_kind:KIND" in way.functions:
        for folder in ("folder", "given"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "challenge.yaml").touch()
    for module in (workers, store):
        monkeypatch.setattr(module, "extension", brought)
    for name in ("PROCTOR_STORE", "PROCTOR_CACHE"):
        monkeypatch.delenv(name, raising=False)
    words, wanted = value_of(kind_of(way, one.name), one)
    needed = way.needed.split()
    if one.param_type_name == "argument":
        rows = [each.name for each in command_of(way.command).params if each.param_type_name == "argument"]
        row = rows.index(one.name)
        needed[row : row + 1] = words
    else:
        spelled = max(one.opts, key=len)
        if spelled in needed:  # it is needed: another value
            row = needed.index(spelled)
            needed[row : row + (1 if wanted is True else 2)] = []
        needed += [spelled] if wanted is True else [part for word in words for part in (spelled, word)]
    pairs = recorded(way, needed, monkeypatch)
    name = way.named.get(one.name, one.name)
    values = [value for key, value in pairs if key == name]
    wrong = [value for value in values if not same(value, wanted)]
    assert (bool(values), wrong) == (True, []), (name, wanted)


def test_every_command_has_a_way() -> None:
    """A new command is either gone through here or left out by name."""
    left_out = {"demo", "new", "media cache"}  # of these what they do is tested, option by option
    found = {name for name, one in callbacks().items() if own(one)}
    assert found == {way.command for way in WAYS} | left_out


@pytest.mark.parametrize(("name", "default"), [("draws", 2000), ("seed", 0), ("level", 0.95)])
def test_what_intervals_are_drawn_with_is_the_same_everywhere(name: str, default: float) -> None:
    typed = [one.default for command in callbacks() for one in command_of(command).params if one.name == name]
    modules = [importlib.import_module(f"proctor.shell.{one.name}") for one in iter_modules(shell.__path__)]
    tables = [kind for module in modules for kind in vars(module).values() if is_typeddict(kind)]
    python = [declared(kind)[name][1].default for kind in tables if name in kind.__annotations__]
    assert python
    assert {*typed, *python} == {default}


def test_no_flag_is_up_by_itself() -> None:
    """What a flag does, somebody asked for; but that capabilities are asked evenly, which `--any-capabilities` takes back."""
    up = {
        (command, one.name)
        for command in callbacks()
        for one in command_of(command).params
        if getattr(one, "is_flag", False) and one.default
    }
    assert up == {("build focus", "even")}


def own(callback: Any) -> bool:
    """Whether a command is declared in the room itself and not by a task."""
    inside = inspect.getclosurevars(callback).nonlocals
    function = inside.get("function")
    if function is None or not is_own(function.__module__) or "<" in function.__qualname__:
        return False
    return function.__annotations__.get("return") in {None, "None"} and not function.__module__.startswith(
        "proctor.tasks"
    )
