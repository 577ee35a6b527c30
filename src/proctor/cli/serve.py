"""`proctor serve`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from proctor.cli.output import note, say
from proctor.core import ConfigurationError, Option, pip_install

if TYPE_CHECKING:
    from proctor.web import AccountsPlace, StudyUpdate

ReviewFolder = Annotated[Path, Option("The folder with review.yaml.", metavar="DIR", argument=True)]
ReviewStore = Annotated[
    str | None,
    Option(
        "An SQLAlchemy URL, such as PostgreSQL's. [default: DIR/review.sqlite]", "--store", env="PROCTOR_REVIEW_STORE"
    ),
]

_NEEDED = ("argon2", "fastapi", "itsdangerous", "python_multipart", "uvicorn")


def check_extra() -> None:
    """Raises `ConfigurationError` where the extra `web` is not installed."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigurationError(f"review in the browser needs {', '.join(missing)}: {pip_install('web')}")


def accounts_of(folder: Path, store: str | None) -> AccountsPlace:
    """The accounts of the site that a folder holds."""
    check_extra()
    from proctor.web import review_accounts

    return review_accounts(folder, store)


def serve(
    folder: ReviewFolder,
    host: Annotated[str, Option("The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option("The port; 0 takes a free one.", low=0, high=65535)] = 8000,
    store: ReviewStore = None,
    tls_cert: Annotated[Path | None, Option("The certificate (PEM): pages by https.")] = None,
    tls_key: Annotated[Path | None, Option("The certificate's key (PEM).")] = None,
    proxy: Annotated[str, Option("The address of a proxy that ends TLS before it.")] = "",
) -> None:
    """Serve a review in the browser.

    The studies of DIR/review.yaml are brought up to date first: new items come in and are dealt, what was said stays.
    Other machines reach it by TLS alone.

    Example: proctor serve my-review --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    check_extra()
    from proctor.web import Listening, bound, open_review
    from proctor.web import serve as run

    listening = Listening(host, port, tls_cert, tls_key, proxy)
    review, updates = open_review(folder, store, listening)
    for one in updates:
        told_update(one)
    with bound(listening) as opened:
        shown = f"[{host}]" if ":" in host else host
        scheme = "http" if tls_cert is None else "https"
        say(f"Serving {review.title} at {scheme}://{shown}:{opened.getsockname()[1]} (Ctrl+C stops)")
        run(review, listening, [opened])


def told_update(one: StudyUpdate) -> None:
    """Says what became of a study."""
    tally = one.items
    told = f"{tally.new} new items, {tally.changed} changed, {tally.same} as before, {one.assigned} assignments made"
    say(f"{one.name}: {told}")
    if tally.gone:
        note(f"{one.name}: {tally.gone} items are no longer in the source; they stay, with what was said of them")
