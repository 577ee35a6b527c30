"""A view and its server: who may reach it, and by which address."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from proctor.core import InputError, UsageError
from proctor.runs import Store
from proctor_web.site import Listening, is_loopback
from proctor_web.view.site import TOKEN, View


@dataclass(frozen=True)
class OpenView:
    """A view that can be served: its `token` is "" where none is needed."""

    view: View
    listening: Listening
    token: str

    @property
    def title(self) -> str:
        """The store's name."""
        return self.view.name

    def address(self, port: int) -> str:
        """The address to open, with the token."""
        host = self.listening.host
        shown = "127.0.0.1" if host == "localhost" else f"[{host}]" if ":" in host else host
        scheme = "http" if self.listening.tls_cert is None else "https"
        return f"{scheme}://{shown}:{port}/" + (f"?{TOKEN}={self.token}" if self.token else "")


def open_view(
    store: str | Path, listening: Listening | None = None, *, media: str | Path | None = None, ask_token: bool = False
) -> OpenView:
    """Opens a store to be shown, for reading alone, and reads it once. `media` is the folder of the media (default: the
    one that the store remembers). On another address than this machine's own the token is needed always, on this machine
    with `ask_token`. The command is `proctor view`.

    Raises `InputError` where there is no store, or no such folder of media; `UsageError` for another address without TLS.
    """
    listening = listening or Listening(port=0)
    _check(listening)
    if media is not None and "://" not in str(media) and not Path(media).is_dir():
        raise InputError(media, found="no such folder", expected="the folder of the benchmark's media")
    view = View(Store(store, create=False, read_only=True), media)
    with ThreadPoolExecutor(1) as pool:  # the database reads while Python imports what serves pages
        looking = pool.submit(view.watch.look)
        import_module("proctor_web.view.app")
        looking.result()
    if view.watch.fault:
        raise InputError(view.store.shown, found=view.watch.fault, expected="a store that can be read")
    local = is_loopback(listening.host)
    return OpenView(view, listening, "" if local and not ask_token else secrets.token_urlsafe(24))


def _check(listening: Listening) -> None:
    if (listening.tls_cert is None) != (listening.tls_key is None):
        raise UsageError("--tls-cert, --tls-key", "both, the certificate and its key", found="one of them")
    for name, file in (("--tls-cert", listening.tls_cert), ("--tls-key", listening.tls_key)):
        if file is not None and not file.is_file():
            raise InputError(file, found="no such file", expected=f"a file in PEM form ({name})")
    if listening.tls_cert is None and not is_loopback(listening.host):
        expected = (
            "--tls-cert and --tls-key, or an SSH tunnel to 127.0.0.1: answers don't go through a network unencrypted"
        )
        raise UsageError("--host", expected, found=listening.host)


def serve_view(opened: OpenView, sockets: Sequence[socket.socket]) -> None:
    """Serves a view until the process is stopped."""
    from proctor_web.serving import serve_app
    from proctor_web.view.app import create_view

    view, listening = opened.view, opened.listening
    app = create_view(view, opened.token, listening.names(""), tls=listening.tls_cert is not None)
    view.watch.start()
    threading.Thread(target=_warm, args=(view,), name="proctor-warm", daemon=True).start()
    try:
        serve_app(app, app.state.tally, listening, sockets)
    finally:
        view.close()


def _warm(view: View) -> None:
    """Reads what the first search and the first opened answer need, once the first page is sent: it has the processor to
    itself. All but what every opened answer needs waits until no other page follows at once."""
    view.first_sent.wait()
    if view.closed:
        return
    from proctor_web.view.app import prepare_templates

    import_module("proctor.systems")
    prepare_templates()
    view.wait_for_quiet()
    for module in ("proctor.runs.reproduction", "proctor.reports.headline", "proctor.reports.summary"):
        import_module(module)
    for state in view.watch.states.values():
        state.index.read_texts(view.store)
