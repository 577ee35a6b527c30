"""`proctor store`: the file that holds answers and scores."""

from __future__ import annotations

import typer

from proctor.cli.options import StoreUrl
from proctor.cli.results import DEFAULT_STORE

__all__ = ["group"]

_SHOWN = 100


def group() -> typer.Typer:
    """The group with its commands."""
    app = typer.Typer(no_args_is_help=True, help="Look after a store.")
    app.callback()(_store)
    app.command("check")(check)
    return app


def _store() -> None:
    """Look after a store."""


def check(store: StoreUrl = DEFAULT_STORE) -> None:
    """Check that every row can be read; change nothing.

    Exit code 1 where a row is damaged. Example: proctor store check --store runs.db
    """
    from proctor.runs import Store, check_store

    found = 0
    for line in check_store(Store(store, create=False)):
        found += 1
        if found <= _SHOWN:
            typer.echo(line)
    if found > _SHOWN:
        typer.echo(f"and {found - _SHOWN} more")
    typer.echo(
        f"{found} damaged: restore a copy, or run the affected items again into another --store"
        if found
        else "Every row can be read."
    )
    if found:
        raise typer.Exit(1)
