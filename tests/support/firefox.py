"""A headless Firefox, spoken to by WebDriver BiDi, which it speaks by itself: pages are opened and asked, keys
pressed."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

_QUIET = 'user_pref("app.normandy.enabled", false);\nuser_pref("browser.aboutConfig.showWarning", false);\n'
_KEYS = {"Tab": "\ue004", "Enter": "\ue006", "Escape": "\ue00c"}
_SHIFT = "\ue008"
_PATIENCE_S = 600.0  # a guard against a browser that hangs; no property of a page


def find_firefox() -> str | None:
    """The program's path, if it is installed."""
    return next((path for name in ("firefox-esr", "firefox") if (path := shutil.which(name))), None)


@dataclass
class FirefoxPage:
    """One open page."""

    socket: aiohttp.ClientWebSocketResponse
    context: str = ""
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command; events that come meanwhile are passed over."""
        number = next(self._numbers)
        await self.socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            message = await self.socket.receive_json(timeout=_PATIENCE_S)
            if message.get("id") == number:
                if message["type"] == "error":
                    raise RuntimeError(f"{method}: {message['message']}")
                return dict(message["result"])

    async def open(self, url: str) -> None:
        """Loads a page and waits for its load event."""
        await self.call("browsingContext.navigate", context=self.context, url=url, wait="complete")

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        target = {"context": self.context}
        found = await self.call("script.evaluate", expression=expression, target=target, awaitPromise=True)
        if found["type"] != "success":
            raise RuntimeError(json.dumps(found["exceptionDetails"])[:2000])
        return _plain(found["result"])

    async def press(self, *keys: str, shift: bool = False) -> None:
        """Presses and releases keys by name, one after the other; also what a text is typed with."""
        steps = [{"type": f"key{way}", "value": _KEYS.get(key, key)} for key in keys for way in ("Down", "Up")]
        held = [{"type": "keyDown", "value": _SHIFT}, *steps, {"type": "keyUp", "value": _SHIFT}] if shift else steps
        await self.call(
            "input.performActions", context=self.context, actions=[{"type": "key", "id": "keyboard", "actions": held}]
        )


def _plain(value: dict[str, Any]) -> Any:
    """What the protocol tells of a value, as the value."""
    if value["type"] == "array":
        return [_plain(one) for one in value["value"]]
    return value.get("value")


@asynccontextmanager
async def open_firefox(program: str) -> AsyncIterator[FirefoxPage]:
    """A browser with one empty page; both end with the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = _start(program, Path(profile))
        try:
            port = await _port(Path(profile) / "WebDriverBiDiServer.json", process)
            address = f"ws://127.0.0.1:{port}/session"
            async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
                page = FirefoxPage(socket)
                await page.call("session.new", capabilities={})
                tree = await page.call("browsingContext.getTree")
                page.context = tree["contexts"][0]["context"]
                yield page
        finally:
            process.terminate()
            process.wait(timeout=_PATIENCE_S)


def _start(program: str, profile: Path) -> subprocess.Popen[bytes]:
    (profile / "user.js").write_text(_QUIET)
    command = [program, "--headless", "--remote-debugging-port=0", "--profile", str(profile), "about:blank"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def _port(file: Path, process: subprocess.Popen[bytes]) -> int:
    for _ in range(int(_PATIENCE_S / 0.1)):
        port = _port_in(file)
        if port is not None:
            return port
        if process.poll() is not None:
            raise RuntimeError(f"the browser ended with {process.returncode} before it began")
        await asyncio.sleep(0.1)
    raise RuntimeError(f"the browser did not begin within {_PATIENCE_S:g} s")


def _port_in(file: Path) -> int | None:
    try:
        return int(json.loads(file.read_text())["ws_port"])
    except (FileNotFoundError, json.JSONDecodeError):
        return None  # not yet, or not yet whole
