"""Serving an application: connections within their limits, what is refused counted, running requests completed."""

from __future__ import annotations

import logging
import socket
import sys
from collections import Counter
from collections.abc import Callable, Sequence

import uvicorn
from starlette.types import ASGIApp

from proctor_web.connections import ConnectionLimits, Guard, GuardedServer, NoiseFilter, raise_descriptor_limit
from proctor_web.proxies import behind, proxy_addresses
from proctor_web.site import Listening, proxy_networks

_SWITCH_S = 0.0005  # a thread that comes back from a query waits for as long until the next one lets it go on


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
