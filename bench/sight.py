"""The sight test of a server whose model really reads (`reading_server.py`), with what breaks on the way: is it named?

    python bench/sight.py --reader /path/to/python-with-rapidocr [--gateway /path/to/litellm]

The reader runs in an environment of its own: `pip install rapidocr-onnxruntime aiohttp av`, whose wheels have all weights.
With `--gateway`, requests go through LiteLLM's proxy (`pip install 'litellm[proxy]'`), started here. `--llama PYTHON` tests
llama.cpp's server with random weights instead (`llama_server.py`), with its vision part and without. The tables are those of
`docs/tasks/sight-test.md`. The exit code is 1 if something was named that was not planted, or was not named.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from proctor import api

READER = Path(__file__).with_name("reading_server.py")
LLAMA = Path(__file__).with_name("llama_server.py")
_STARTS_S = 120.0


@dataclass(frozen=True)
class Trial:
    """What is planted, the codes that are to be named, and the longest side that is sent."""

    fault: str
    named: tuple[str, ...] = ()
    side: int = 512


TRIALS = (
    Trial("none"),
    Trial("none", side=1024),
    Trial("nothing", ("blind",)),
    Trial("black", ("blind",)),
    Trial("first:16", ("first",)),
    Trial("last:8", ("last",)),
    Trial("every:2", ("dropped",)),
    Trial("reversed", ("order", "order")),
    Trial("shift:1", ("times",)),
    Trial("times", ("times", "times")),
    Trial("cached", ("cached",)),
    Trial("no-video", ("video",)),
    Trial("video-first:16", ("first",)),
    Trial("no-tools", ("tools",)),
    Trial("no-schema", ("schema",)),
    Trial("shrink:384"),
    Trial("shrink:224", ("shrunk",)),
    Trial("shrink:112", ("shrunk",)),
    Trial("shrink:768", side=1024),
    Trial("shrink:448", ("shrunk",), 1024),
    Trial("shrink:336", ("shrunk",), 1024),
    Trial("shrink:224", ("shrunk",), 1024),
)


@contextmanager
def _reader(python: str, fault: str) -> Iterator[str]:
    """The URL of a reading server."""
    command = [python, str(READER), "--fault", fault]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            if not port:
                raise SystemExit(f"{python} could not start {READER.name}: pip install rapidocr-onnxruntime aiohttp av")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def _llama(python: str) -> int:
    """llama.cpp's server, which can't pass: its weights are random."""
    wrong = 0
    for more in ([], ["--blind"]):
        command = [python, str(LLAMA), *more]
        with (
            tempfile.TemporaryDirectory() as cache,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process,
        ):
            assert process.stdout is not None
            url = next((line.strip() for line in process.stdout if line.startswith("http")), "")
            try:
                table = api.sight("tiny", base_url=url, cache=cache, redraw=1, settings={"max_tokens": 16})
            finally:
                process.terminate()
        print(f"llama.cpp {' '.join(more)}: {table.verdict}\n", flush=True)
        wrong += table.data.state == "sees"
    return wrong


@contextmanager
def _behind(gateway: str | None, url: str) -> Iterator[str]:
    """The URL under which a server is reached, through LiteLLM's proxy if there is one."""
    if gateway is None:
        yield url
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = {"model": "openai/reader", "api_base": url, "api_key": "none"}
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(json.dumps({"model_list": [{"model_name": "reader", "litellm_params": model}]}))
        command = [gateway, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
        # It listens on this machine alone, for as long as the trial takes: it needs no key.
        local = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
        offline = {**os.environ, **local}
        with subprocess.Popen(command, env=offline, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                _wait(f"http://127.0.0.1:{port}/health/liveliness", process)
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                process.terminate()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _STARTS_S
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.5)
    raise SystemExit(f"nothing answers at {url}")


def main() -> int:
    """Runs the trials and prints a table."""
    given = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    given.add_argument("--reader", default=sys.executable, help="The Python that has rapidocr-onnxruntime.")
    given.add_argument("--gateway", help="LiteLLM's command: requests go through its proxy.")
    given.add_argument("--only", action="append", default=[], help="Only this fault; may be repeated.")
    given.add_argument("--seed", type=int, default=1, help="Draws the pictures.")
    given.add_argument("--llama", help="The Python that has xllamacpp and gguf.")
    options = given.parse_args()
    if options.llama:
        return 1 if _llama(options.llama) else 0
    wrong = 0
    print("| What breaks | Sent | Named | Size | Calls | Seconds |\n| --- | --- | --- | --- | --- | --- |")
    for trial in TRIALS:
        if options.only and trial.fault not in options.only:
            continue
        with (
            tempfile.TemporaryDirectory() as cache,
            _reader(options.reader, trial.fault) as direct,
            _behind(options.gateway, direct) as url,
        ):
            # Twice the two minutes: a reader on a busy core is slow, and time is not what is tried here.
            found = api.sight(
                "reader", base_url=url, cache=cache, redraw=options.seed, max_side=trial.side, within_s=240.0
            ).data
        codes = tuple(finding.code for finding in found.findings)
        wrong += codes != trial.named or found.calls > 64
        others = [f"{name} {one.state}" for name, one in found.routes.items() if one.state != "sees"]
        said = ", ".join(f"{one.code} ({one.route})" for one in found.findings) or "; ".join([found.state, *others])
        sizes = re.findall(
            r"shrunk to about (\d+ \(\d+ to \d+\))", " ".join([*(one.text for one in found.findings), *found.notes])
        )
        size = sizes[0] if sizes else f"{found.digits_px or 'no'} px read"
        mark = "" if codes == trial.named else " **unexpected**"
        print(
            f"| {trial.fault} | {trial.side} | {said}{mark} | {size} | {found.calls} | {found.seconds:.0f} |",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
