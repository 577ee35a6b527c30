"""A review folder as a running server: its studies are brought up to date, then pages are served."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import select

from proctor.core import InputError, ProctorError, UsageError
from proctor.media import MediaLibrary
from proctor.runs import Store
from proctor.web.forms import form_named
from proctor.web.review import LOCAL_NAMES, ReviewSite, open_store, signing_key
from proctor.web.schema import accounts
from proctor.web.settings import ReviewSettings, StudySettings, read_review
from proctor.web.sources import NewItem, items_of_file, items_of_project, items_of_runs
from proctor.web.studies import ItemTally, add_study, deal_study, import_items


@dataclass(frozen=True)
class Listening:
    """Where the server listens. With a certificate and its key browsers reach it by https; `proxy` is the address of a
    program before it that ends TLS, whose word on the visitor's address is taken."""

    host: str = "127.0.0.1"
    port: int = 8000
    tls_cert: Path | None = None
    tls_key: Path | None = None
    proxy: str = ""


@dataclass(frozen=True)
class StudyUpdate:
    """What became of a study when its review was opened: its items, and how many were assigned to somebody."""

    name: str
    items: ItemTally
    assigned: int


def open_review(
    folder: Path, store: str | None = None, listening: Listening | None = None
) -> tuple[ReviewSite, list[StudyUpdate]]:
    """Reads `review.yaml`, brings the studies up to date, and says what changed. Raises `InputError` for what does not
    fit, and `UsageError` for a server that would take passwords without TLS from other machines."""
    at = listening or Listening()
    settings = read_review(folder)
    tls = _tls(settings, at)
    engine = open_store(folder, store)
    try:
        with engine.begin() as connection:
            roles = {row.name: row.role for row in connection.execute(select(accounts.c.name, accounts.c.role))}
        settings = read_review(folder, roles)
        review = ReviewSite(
            folder=folder,
            title=settings.title or folder.resolve().name,
            engine=engine,
            key=signing_key(folder),
            media=folder / settings.media,
            address=settings.address,
            hosts=_names(settings, at),
            tls=tls,
        )
        known = store or str(engine.url.database)
        return review, [_up_to_date(review, study, known) for study in settings.studies]
    except ProctorError:
        engine.dispose()
        raise


def serve(review: ReviewSite, listening: Listening, sockets: Sequence[socket.socket]) -> None:
    """Serves the review until the process is told to stop; requests that have begun are answered."""
    import uvicorn

    from proctor.web.app import create_app

    config = uvicorn.Config(
        create_app(review),
        access_log=False,  # addresses hold the secrets of invitations
        log_level="warning",
        server_header=False,
        proxy_headers=bool(listening.proxy),
        forwarded_allow_ips=listening.proxy or None,
        ssl_certfile=listening.tls_cert,
        ssl_keyfile=listening.tls_key,
        timeout_keep_alive=75,  # a page saves every few seconds: its connection stays
        timeout_graceful_shutdown=10,
        lifespan="off",
    )
    # What the living item needs takes a second to load: the first who writes a question does not wait for it.
    threading.Thread(target=import_module, args=("sklearn.linear_model",), daemon=True).start()
    try:
        uvicorn.Server(config).run(sockets=list(sockets))
    finally:
        review.engine.dispose()


def bound(listening: Listening) -> socket.socket:
    """The socket to listen on. Raises `InputError` where the address is another program's, or none of this machine."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    # By this protocol asyncio knows that it may send at once (TCP_NODELAY): without it a page waits 40 ms for an answer
    # to its headers.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((listening.host, listening.port))
        opened.listen(2048)  # who comes before the server is ready waits
    except OSError as error:
        opened.close()
        found = f"{listening.host} port {listening.port}: {error.strerror or error}"
        raise InputError("--host, --port", found=found, expected="an address of this machine that is free") from error
    return opened


def _up_to_date(review: ReviewSite, study: StudySettings, store: str) -> StudyUpdate:
    items = _items(review, study, store)
    with review.writing() as connection:
        number = add_study(connection, study, review.now())
        tally = import_items(connection, number, items, review.now())
        return StudyUpdate(study.name, tally, deal_study(connection, number, study.plan, review.now()))


def _items(review: ReviewSite, study: StudySettings, store: str) -> list[NewItem]:
    library = MediaLibrary(review.media)
    if study.project:
        items = items_of_project(review.folder / study.project, review.media)
    elif study.benchmark:
        opened = Store(store, create=False)
        try:
            items = [item for item, _ in items_of_runs(opened, study, library)]
        finally:
            opened.close()
    else:
        items = items_of_file(review.folder / study.items, form_named(study.form), library)
    if not study.plan.gold:
        return items
    gold = items_of_file(review.folder / study.plan.gold, form_named(study.form), library, gold=True)
    both = {one.key for one in items} & {one.key for one in gold}
    if both:
        expected = "keys that no other item of the study has"
        raise InputError(review.folder / study.plan.gold, found=f"the id {min(both)!r}", expected=expected)
    return [*items, *gold]


def _tls(settings: ReviewSettings, at: Listening) -> bool:
    if (at.tls_cert is None) != (at.tls_key is None):
        raise UsageError("--tls-cert, --tls-key", "both, the certificate and its key", found="one of them")
    for name, file in (("--tls-cert", at.tls_cert), ("--tls-key", at.tls_key)):
        if file is not None and not file.is_file():
            raise InputError(file, found="no such file", expected=f"a file in PEM form ({name})")
    https = settings.address.startswith("https://")
    if at.proxy and not https:
        expected = "an address: https://… in review.yaml, where browsers find the proxy"
        raise UsageError("--proxy", expected, found=repr(settings.address))
    if at.tls_cert is None and not at.proxy and not _is_loopback(at.host):
        expected = "--tls-cert and --tls-key, or --proxy: passwords don't go through a network unencrypted"
        raise UsageError("--host", expected, found=at.host)
    return at.tls_cert is not None or bool(at.proxy)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _names(settings: ReviewSettings, at: Listening) -> tuple[str, ...]:
    """Under which it answers: this machine's own, that of its address, and the one it listens on."""
    anywhere = {"0.0.0.0", "[::]"}  # noqa: S104 (asked about, not listened on)
    own = f"[{at.host}]" if ":" in at.host else at.host
    named = urlsplit(settings.address).hostname
    return tuple(dict.fromkeys((*LOCAL_NAMES, *([named] if named else []), *({own} - anywhere))))
