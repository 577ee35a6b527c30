"""A headless Chromium, spoken to by its DevTools protocol: what a page does, not what it should do."""

from __future__ import annotations

import asyncio
import atexit
import base64
import itertools
import json
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

_QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
)
_MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
_CODES = {
    "Backspace": 8, "Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37,
    "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Delete": 46,
}  # fmt: skip
_PATIENCE_S = 600.0  # a guard against a browser that hangs; no property of a page


def find_chromium() -> str | None:
    """The program's path, if it is installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@dataclass
class Page:
    """One open page. `requests` are the addresses that it asked for, `complaints` what its console and
    its security policy said."""

    socket: aiohttp.ClientWebSocketResponse
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    loads: int = 0
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command; events that come meanwhile are kept."""
        number = next(self._numbers)
        await self.socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            message = await self._next()
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return dict(message["result"])

    async def open(self, url: str) -> None:
        """Loads a page (another one than that which is open) and waits for its load event."""
        before = self.loads
        await self.call("Page.navigate", url=url)
        await self.loaded(before)

    async def loaded(self, before: int) -> None:
        """Waits for a load event after so many. Raises `TimeoutError` where none comes, whatever else the page does."""
        async with asyncio.timeout(_PATIENCE_S):
            while self.loads == before:
                await self._next()

    async def send(self, form: str, files: Mapping[str, Path] | None = None, **fields: str | bool) -> None:
        """Fills in the form with this selector, ticks its boxes, chooses its files, sends it, and waits for what
        comes."""
        for name, value in fields.items():
            kind = "checked" if isinstance(value, bool) else "value"
            location = f"document.querySelector({json.dumps(form)}).elements[{json.dumps(name)}]"
            await self.evaluate(f"{location}.{kind} = {json.dumps(value)}")
        for name, file in (files or {}).items():
            root = (await self.call("DOM.getDocument"))["root"]["nodeId"]
            selector = f'{form} [name="{name}"]'
            node = (await self.call("DOM.querySelector", nodeId=root, selector=selector))["nodeId"]
            await self.call("DOM.setFileInputFiles", nodeId=node, files=[str(file)])
        before = self.loads
        await self.evaluate(f"document.querySelector({json.dumps(form)}).requestSubmit()")
        await self.loaded(before)

    async def text(self) -> str:
        """What the page shows."""
        return str(await self.evaluate("document.body.innerText"))

    async def resize(self, width: int, height: int) -> None:
        """The viewport as a phone or a screen of that size has it."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"])[:2000])
        return found["result"].get("value")

    async def press(self, *keys: str) -> None:
        """Presses keys one after the other: a character, a name such as ArrowLeft, or one with modifiers
        (Shift+Tab)."""
        for key in keys:
            *held, name = key.split("+") if len(key) > 1 else [key]
            modifiers = sum(_MODIFIERS[one] for one in held)
            text = "\r" if name == "Enter" else name
            told = (
                {"text": text} if (len(name) == 1 or name == "Enter") and not modifiers & ~_MODIFIERS["Shift"] else {}
            )
            code = {"windowsVirtualKeyCode": _CODES[name]} if name in _CODES else {}
            for kind in ("keyDown", "keyUp"):
                more = told if kind == "keyDown" else {}
                await self.call("Input.dispatchKeyEvent", type=kind, key=name, modifiers=modifiers, **code, **more)

    async def drag(self, *points: tuple[float, float]) -> None:
        """Presses the left button at the first point (pixels of the viewport), moves over the others and lets go."""
        for kind, (x, y) in [("mousePressed", points[0]), *(("mouseMoved", at) for at in points[1:])]:
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
        x, y = points[-1]
        await self.call("Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y, button="left", clickCount=1)

    async def screenshot(self, *, dark: bool = False) -> bytes:
        """What is seen, as a PNG."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.call("Emulation.setEmulatedMedia", features=scheme)
        return base64.b64decode((await self.call("Page.captureScreenshot", format="png"))["data"])

    async def _next(self) -> dict[str, Any]:
        message: dict[str, Any] = await self.socket.receive_json(timeout=_PATIENCE_S)
        method, told = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self.loads += 1
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(told["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(told["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(told["args"]))
        return message


@asynccontextmanager
async def open_page(program: str, *more: str) -> AsyncIterator[Page]:
    """An empty page of a browser that knows nothing yet: neither cookies nor what others stored. It ends with the
    block; the program runs on for the pages after it."""
    address = await _running(program, *more)
    async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as control:
        browser = Page(control)
        context = (await browser.call("Target.createBrowserContext"))["browserContextId"]
        target = await browser.call("Target.createTarget", url="about:blank", browserContextId=context)
        there = f"{address.partition('/devtools/')[0]}/devtools/page/{target['targetId']}"
        async with session.ws_connect(there, max_msg_size=0) as socket:
            page = Page(socket)
            for domain in ("Page", "Network", "Log", "Runtime"):
                await page.call(f"{domain}.enable")
            yield page
        await browser.call("Target.disposeBrowserContext", browserContextId=context)


_STARTED: dict[tuple[str, ...], tuple[subprocess.Popen[bytes], str]] = {}


async def _running(program: str, *more: str) -> str:
    """Where a browser with these options takes commands: it is started once."""
    known = _STARTED.get((program, *more))
    if known is not None and known[0].poll() is None:
        return known[1]
    profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    process = _start([program, *_QUIET, *more, f"--user-data-dir={profile.name}", "about:blank"])
    atexit.register(_end, process, profile)
    address = await _address(Path(profile.name) / "DevToolsActivePort", process)
    _STARTED[program, *more] = process, address
    return address


def _end(process: subprocess.Popen[bytes], profile: tempfile.TemporaryDirectory[str]) -> None:
    process.terminate()
    process.wait(timeout=_PATIENCE_S)
    profile.cleanup()


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def _address(file: Path, process: subprocess.Popen[bytes]) -> str:
    for _ in range(int(_PATIENCE_S / 0.1)):
        address = _address_in(file)
        if address is not None:
            return address
        if process.poll() is not None:
            raise RuntimeError(f"the browser ended with {process.returncode} before it began")
        await asyncio.sleep(0.1)
    raise RuntimeError(f"the browser did not begin within {_PATIENCE_S:g} s")


def _address_in(file: Path) -> str | None:
    port, _, path = file.read_text().strip().partition("\n") if file.is_file() else ("", "", "")
    return f"ws://127.0.0.1:{port}{path}" if path else None
