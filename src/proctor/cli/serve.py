"""`proctor serve`: a review or a challenge, whichever a folder holds."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from proctor.cli.output import note, say
from proctor.core import ConfigurationError, Option, count_of, pip_install

if TYPE_CHECKING:
    from proctor.web import AccountsPlace, Listening, Site, StudyUpdate

ReviewFolder = Annotated[Path, Option("The folder with review.yaml or challenge.yaml.", metavar="DIR", argument=True)]
ReviewStore = Annotated[
    str | None,
    Option("An SQLAlchemy URL, such as PostgreSQL's. [default: a file in DIR]", "--store", env="PROCTOR_REVIEW_STORE"),
]

_PAGES = ("argon2", "fastapi", "itsdangerous", "python_multipart", "uvicorn")
_NEEDED = {"web": ("pages in the browser need", _PAGES), "challenge": ("challenges need", (*_PAGES, "cryptography"))}


def check_extra(extra: Literal["web", "challenge"] = "web") -> None:
    """Raises `ConfigurationError` where the extra is not installed."""
    what, names = _NEEDED[extra]
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise ConfigurationError(f"{what} {', '.join(missing)}: {pip_install(extra)}")


def accounts_of(folder: Path, store: str | None) -> AccountsPlace:
    """The accounts of the site that a folder holds."""
    check_extra()
    if holds_challenge(folder):
        from proctor.challenges import challenge_accounts

        return challenge_accounts(folder, store)
    from proctor.web import review_accounts

    return review_accounts(folder, store)


def holds_challenge(folder: Path) -> bool:
    """Whether it is a challenge's folder; a review's, where it has no `challenge.yaml`."""
    return (folder / "challenge.yaml").is_file()


def serve(
    folder: ReviewFolder,
    host: Annotated[str, Option("The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option("The port; 0 takes a free one.", low=0, high=65535)] = 8000,
    store: ReviewStore = None,
    tls_cert: Annotated[Path | None, Option("The certificate (PEM): pages by https.")] = None,
    tls_key: Annotated[Path | None, Option("The certificate's key (PEM).")] = None,
    proxy: Annotated[str, Option("The address of a proxy that ends TLS before it.")] = "",
    same_user: Annotated[bool, Option("Serve a challenge as the user who may open its sealed part.")] = False,
) -> None:
    """Serve a review or a challenge.

    Of a review (DIR/review.yaml) the studies are brought up to date first: new items come in and are dealt, what was
    said stays. A challenge (DIR/challenge.yaml) is not served by a user who can open its sealed part, unless
    --same-user says that it is for trying out. Other machines reach either by TLS alone.

    Example: proctor serve my-review --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    check_extra()
    from proctor.web import Listening, bound
    from proctor.web import serve as run

    listening = Listening(host, port, tls_cert, tls_key, proxy)
    site = _opened(folder, store, listening, same_user=same_user)
    with bound(listening) as opened:
        shown = f"[{host}]" if ":" in host else host
        scheme = "http" if tls_cert is None else "https"
        say(f"Serving {site.title} at {scheme}://{shown}:{opened.getsockname()[1]} (Ctrl+C stops)")
        run(site, listening, [opened])


def _opened(folder: Path, store: str | None, listening: Listening, *, same_user: bool) -> Site:
    if holds_challenge(folder):
        from proctor.challenges import open_challenge

        return open_challenge(folder, store, listening, same_user=same_user)
    from proctor.web import open_review

    review, updates = open_review(folder, store, listening)
    for one in updates:
        told_update(one)
    return review


def told_update(one: StudyUpdate) -> None:
    """Says what became of a study."""
    tally = one.items
    told = f"{count_of(tally.new, 'new item')}, {tally.changed} changed, {tally.same} as before"
    say(f"{one.name}: {told}, {count_of(one.assigned, 'assignment')} made")
    if tally.gone:
        gone = count_of(tally.gone, "item")
        note(f"{one.name}: {gone} no longer in the source, kept with all that was said about it")
    if one.disabled:
        out = f"no new work for {', '.join(one.disabled)} (disabled)"
        note(f"{one.name}: {out}; proctor review reassign DIR {one.name} NAME passes on what is open")
    if one.disabled and one.waiting:
        note(f"{one.name}: {count_of(one.waiting, 'item')} waiting until enough of the plan's people may log in")
