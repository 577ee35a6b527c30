"""Podman and docker by their command line: lists of arguments, bounded output, a limit of time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from proctor.core import ConfigurationError, InfrastructureError

_PATIENCE_S = 120.0
_MOST_OUTPUT = 2**20


async def engine(
    command: str, *arguments: str, patience_s: float = _PATIENCE_S, folder: Path | None = None
) -> tuple[int, str, str]:
    """Runs podman or docker, in a folder where podman leaves a file when memory ran out: exit code, standard output and
    errors, of which no more than a megabyte each is kept. Raises `ConfigurationError` where it is not installed,
    `InfrastructureError` where it does not come back."""
    try:
        process = await asyncio.create_subprocess_exec(
            command,
            *arguments,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError as error:
        raise ConfigurationError(f"{command}: found no such program, expected it to be installed") from error
    try:
        async with asyncio.timeout(patience_s):
            out, told = await asyncio.gather(_kept(process.stdout), _kept(process.stderr))
            return await process.wait(), out, told
    except TimeoutError:
        raise InfrastructureError(f"{command} {arguments[0]}: no reply after {patience_s:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def succeeded(command: str, *arguments: str, patience_s: float = _PATIENCE_S) -> str:
    """Its standard output. Raises `InfrastructureError` where it fails."""
    code, out, told = await engine(command, *arguments, patience_s=patience_s)
    if code:
        raise InfrastructureError(f"{command} {arguments[0]}: {last_line(told)}")
    return out


async def _kept(stream: asyncio.StreamReader | None) -> str:
    kept = bytearray()
    while stream is not None and (piece := await stream.read(2**16)):
        kept += piece
        del kept[: max(0, len(kept) - _MOST_OUTPUT)]
    return kept.decode(errors="replace")


def last_line(told: str) -> str:
    """The last line of what it said, for a message."""
    lines = told.strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"
