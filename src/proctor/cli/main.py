"""The program `proctor`: its commands, and what becomes of errors at the edge of the process."""

from __future__ import annotations

import asyncio
import errno
import sys
from collections.abc import Callable
from functools import cache

import typer

from proctor import __version__
from proctor.cli.former import ReplacedError
from proctor.cli.tree import Group, add, new_group, spread_settings
from proctor.core import ProctorError, UsageError

_OF_THE_MACHINE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENAMETOOLONG,
    errno.EIO,
}
"""A full or read-only disk, a file that this user may not touch, a name that no file can have: nothing that a command
could do better, wherever it happens."""

RUN, OWN, READ, CHALLENGE = "Run", "Your own questions", "Read results", "Challenges"
JUDGE, BUILD, REVIEW, MEDIA, STORE = "Judges", "Build and check items", "Review in the browser", "Media", "Store"

GROUPS = {
    "judge": "Tune judges on ratings; index documents.",
    "train": "Train judges and answerers.",
    "build": "Build benchmarks and convert tracks.",
    "items": "Check a benchmark's items.",
    "challenge": "Host a challenge: phases, boards, packs.",
    "review": "Studies: progress, agreement, exports, CSV.",
    "users": "Say who may review, and as what.",
    "media": "Decode frames, find duplicates, detect poses.",
    "store": "Check and change a store of answers.",
}
PANELS = {
    CHALLENGE: ("challenge",),
    JUDGE: ("judge", "train"),
    BUILD: ("build", "items"),
    REVIEW: ("review", "users"),
    MEDIA: ("media",),
    STORE: ("store",),
}

app = typer.Typer(
    cls=Group,
    name="proctor",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Evaluate models on clinical procedures: run benchmarks, score answers, rank systems.",
)


@cache
def commands() -> typer.Typer:
    """The program with all its commands, which are imported here and not before."""
    from proctor.cli import (
        audit,
        challenge,
        challenge_demo,
        challenge_pack,
        challenge_try,
        choose,
        demo,
        fetch,
        inventory,
        items,
        judge,
        media,
        plugins,
        pool,
        proofs,
        report,
        results,
        review,
        run,
        score,
        serve,
        store,
        train,
        users,
        worker,
    )

    tree: dict[str, dict[str, Callable[..., None]]] = {
        RUN: {
            "demo": demo.demo,
            "list": inventory.list_things,
            "fetch": fetch.fetch,
            "run": run.run,
            "choose": choose.choose,
            "import": run.import_recorded,
            "merge": store.merge,
            "score": score.score,
        },
        READ: {
            "results": results.results,
            "show": items.show_item,
            "compare": results.compare,
            "analyze": results.analyze,
            "report": report.report,
            "export": report.export,
            "reproduce": proofs.reproduce,
            "verify": proofs.verify,
            "pool": pool.pool,
        },
        CHALLENGE: {
            "rank": results.rank,
            "validate": plugins.validate,
            "challenge new": challenge.new,
            "challenge check": challenge.check,
            "challenge open": challenge.open_phase,
            "challenge close": challenge.close_phase,
            "challenge status": challenge.status,
            "challenge submit": challenge_demo.submit,
            "challenge boards": challenge_demo.boards,
            "challenge verify": challenge.verify,
            "challenge demo": challenge_demo.demo,
            "challenge pack": challenge_pack.pack,
            "challenge rerun": worker.rerun,
            "worker": worker.worker,
            "challenge try": challenge_try.try_image,
            "challenge doctor": challenge_try.doctor,
        },
        JUDGE: {
            "judge fit": judge.fit,
            "judge compare": judge.compare,
            "judge grid": judge.grid,
            "judge index": judge.index,
            "train answerer": train.answerer,
            "train generative-judge": train.generative_judge,
            "audit": audit.audit,
            "train check-parity": train.check_parity,
            "train classifier-judge": train.classifier_judge,
        },
        BUILD: {"items audit": items.audit_items},
        REVIEW: {
            "serve": serve.serve,
            "review update": review.update,
            "review status": review.status,
            "review agreement": review.agreement,
            "review export": review.export,
            "review scores": review.scores,
            "review sheet": review.sheet,
            "review decisions": review.decisions,
            "review reassign": review.reassign,
            "users add": users.add,
            "users invite": users.invite,
            "users list": users.list_users,
            "users role": users.set_role,
            "users disable": users.disable,
            "users trail": users.show_trail,
        },
        MEDIA: {"media frames": media.frames, "media cache": media.cached, "media duplicates": media.duplicates},
        STORE: {
            "store check": store.check,
            "store rename": store.rename,
            "store delete": store.delete,
            "store disqualify": store.disqualify,
            "store decide": store.decide,
        },
    }
    groups = {name: new_group(summary) for name, summary in GROUPS.items()}
    for name, group in groups.items():
        plugins.add_plugins(group, name)
    for panel, own in tree.items():
        for words, function in own.items():
            name, _, below = words.partition(" ")
            if not below:
                add(app, name, function, panel)
            else:
                add(groups[name], below, function)
    taken = {words.partition(" ")[0] for own in tree.values() for words in own} | groups.keys()
    plugins.add_top_commands(app, taken, OWN)
    for panel, names in PANELS.items():
        for name in names:
            app.add_typer(groups[name], name=name, rich_help_panel=panel)
    return app


@cache
def _program() -> Callable[..., object]:
    """All commands as they are called, which takes a while to make of their signatures."""
    return typer.main.get_command(commands())


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and stop.", is_eager=True)) -> None:
    if version:
        typer.echo(f"proctor {__version__}")
        raise typer.Exit


def main() -> None:
    """Runs the program. Exit code 0: done; 1: bad input, in one line on standard error; 2: wrong usage;
    3: some answers stayed failed; 130: stopped by hand."""
    try:
        _program()(args=spread_settings(sys.argv[1:]), prog_name="proctor")
    except ReplacedError as replaced:
        sys.stderr.write(f"proctor: {replaced}\n")
        sys.exit(2)
    except ProctorError as error:
        for line in getattr(error, "__notes__", ()):
            sys.stderr.write(f"{line}\n")
        sys.stderr.write(f"proctor: {error}\n")
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.stderr.write("proctor: stopped\n")
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        if error.errno not in _OF_THE_MACHINE:
            raise
        sys.stderr.write(f"proctor: {_place(error)}{error.strerror}\n")
        sys.exit(1)


def _place(error: OSError) -> str:
    """The file that an error names, as it can be printed on one line."""
    name = "".join(char if char.isprintable() else "\ufffd" for char in str(error.filename or ""))
    return f"{name}: " if name else ""
