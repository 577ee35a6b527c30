"""The server of a site."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from importlib import import_module

from proctor_web.app import create_app
from proctor_web.pages import prepare_pages
from proctor_web.serving import serve_app
from proctor_web.site import Listening, Site, upload_limit


def serve(site: Site, listening: Listening, sockets: Sequence[socket.socket]) -> None:
    """Serves the site until the process is stopped; running requests are completed. Connections are limited in number
    and time (`ConnectionLimits`); what is refused is logged once a minute."""
    prepare_pages(site)
    app = create_app(site)
    takes_files = lambda path: upload_limit(site, path) is not None  # noqa: E731
    threading.Thread(target=lambda: [import_module(name) for name in site.slow_modules], daemon=True).start()
    try:
        serve_app(app, app.state.tally, listening, sockets, takes_files)
    finally:
        site.engine.dispose()
