"""The server of a site."""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module

import uvicorn
from starlette.types import ASGIApp

from proctor_web.app import create_app
from proctor_web.connections import ConnectionLimits, Guard, GuardedServer, NoiseFilter, raise_descriptor_limit
from proctor_web.pages import prepare_pages
from proctor_web.proxies import behind, proxy_addresses
from proctor_web.site import Listening, Site, proxy_networks, upload_limit

_SWITCH_S = 0.0005  # a thread that comes back from a query waits for as long until the next one lets it go on


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


def serve_app(
    app: ASGIApp,
    tally: Counter[str],
    listening: Listening,
    sockets: Sequence[socket.socket],
    takes_files: Callable[[str], bool] = lambda _: False,
) -> None:
    """Serves an application until the process is stopped. `tally` counts what was refused; `takes_files` says which paths
    may be sent files."""
    raise_descriptor_limit()
    sys.setswitchinterval(_SWITCH_S)
    limits = ConnectionLimits.of_process()
    proxies = proxy_networks(listening.proxy)
    config = uvicorn.Config(
        behind(proxies, app, limits.per_address, tally),
        access_log=False,  # addresses hold the secrets of invitations
        log_level="warning",
        server_header=False,
        ws="none",
        proxy_headers=False,  # `behind` reads them
        ssl_certfile=listening.tls_cert,
        ssl_keyfile=listening.tls_key,
        timeout_keep_alive=limits.idle_s,  # a page saves every few seconds: its connection stays
        timeout_graceful_shutdown=10,
        lifespan="off",
    )
    config.load()
    logging.getLogger("uvicorn.error").addFilter(NoiseFilter(tally))
    guard = Guard(limits, tally, proxy_addresses(proxies))
    GuardedServer(config, guard, takes_files).run(sockets=list(sockets))
