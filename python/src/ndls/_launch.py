"""Runs the whole job with workers that an engine places on its nodes, and the coordinator beside the driver."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ._command import KEPT, Error, Progress, _message, binary, command, execute
from ._run import Run
from ._run import open as open_run

# PR_SET_PDEATHSIG of prctl(2): the kernel sends a signal when the parent is gone.
_PARENT_DEATH_SIGNAL = 1

# PATIENCE is how many seconds workers get to end by themselves once the run is complete.
PATIENCE = 60.0


@dataclass(frozen=True)
class Place:
    """What a worker is started with, on whatever node: the flags of ndls worker, and the certificates of the job."""

    run: str
    memory: str | None
    threads: int | None
    scratch: str | None
    keys: Mapping[str, bytes] = field(default_factory=lambda: make_keys(), repr=False)

    def __post_init__(self) -> None:
        # An engine may start workers in another folder than that of the caller.
        if not self.run.startswith("s3://"):
            object.__setattr__(self, "run", os.path.abspath(self.run))


class Tasks(Protocol):
    """The workers that an engine has placed."""

    def failed(self) -> tuple[int, BaseException | None]:
        """Returns how many workers have ended for good with an error, and the last of these errors. It does not wait."""

    def finish(self, patience: float) -> None:
        """Waits until all workers have ended, and cancels those that have not after so many seconds."""


def make_keys() -> dict[str, bytes]:
    """Makes the certificates of a job."""
    with tempfile.TemporaryDirectory(prefix="ndls-") as folder:
        keys = Path(folder) / "keys"
        command("cluster-keys", progress=False, out=keys)
        return {path.name: path.read_bytes() for path in keys.iterdir()}


def write_keys(folder: Path, keys: Mapping[str, bytes]) -> None:
    """Writes the certificates of a job into a folder, for this user alone."""
    folder.mkdir(mode=0o700)
    for name, data in keys.items():
        with open(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)


def address_towards(host: str, port: int) -> str:
    """Returns the address by which this host reaches another, and so by which the other reaches this one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((host, port))
        return str(s.getsockname()[0])


def work(place: Place, host: str) -> None:
    """Runs a worker until the run has ended. The engine calls it on a node whose address is host.

    The worker saves what it has, and ends, when the process that called this is gone.

    Raises:
        Error: The worker could not go on. A run goes on without it.
    """
    libc = ctypes.CDLL(None)
    last: deque[str] = deque(maxlen=KEPT)
    with tempfile.TemporaryDirectory(prefix="ndls-") as folder:
        keys = Path(folder) / "keys"
        write_keys(keys, place.keys)
        arguments = [binary(), "worker", f"--run={place.run}", f"--keys={keys}", f"--listen={host}:0"]
        for name in ("memory", "threads", "scratch"):
            value = getattr(place, name)
            if value is not None:
                arguments.append(f"--{name}={value}")
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            preexec_fn=lambda: libc.prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM),
        )
        assert process.stderr is not None
        try:
            for line in process.stderr:
                last.append(line.rstrip("\n"))
            status = process.wait()
        except BaseException:  # the engine cancels the task
            process.terminate()
            process.wait()
            raise
        finally:
            process.stderr.close()
    if status != 0:
        raise Error(f"a worker on {host}: {_message('worker', last, status)}", status)


def run(
    graph: object,
    place: Place,
    host: str,
    workers: int,
    start: Callable[[], Tasks],
    progress: Progress,
    options: Mapping[str, object],
) -> Run | None:
    """Runs the coordinator in this process, and start, which has the engine place so many workers.

    Returns:
        The run, or None where it is in an object store.

    Raises:
        Error: The program has refused something or could not go on, or every worker has ended with an error.
    """
    if workers < 1:
        raise Error(f"workers={workers}: give 1 or more", 2)
    with tempfile.TemporaryDirectory(prefix="ndls-") as folder:
        keys = Path(folder) / "keys"
        write_keys(keys, place.keys)
        tasks = start()
        over = threading.Event()
        causes: list[BaseException | None] = []

        def watch(process: subprocess.Popen[str]) -> None:
            while not over.wait(1):
                failed, cause = tasks.failed()
                if failed >= workers and not causes:
                    causes.append(cause)
                    process.send_signal(signal.SIGTERM)

        watcher: list[threading.Thread] = []

        def started(process: subprocess.Popen[str]) -> None:
            watcher.append(threading.Thread(target=watch, args=(process,), daemon=True))
            watcher[0].start()

        patience = 0.0
        try:
            given = {"dataset": str(graph), "run": place.run, "keys": keys, "listen": f"{host}:0", "gossip_listen": f"{host}:0", "workers": workers}
            execute("coordinator", {**given, **options}, progress, started)
            patience = PATIENCE
        except Error as error:
            if causes:
                raise Error(f"no worker is left: {causes[0]}") from error
            raise
        finally:
            over.set()
            for thread in watcher:
                thread.join()
            tasks.finish(patience)
    return None if place.run.startswith("s3://") else open_run(place.run)


def errors(results: Iterable[BaseException | None]) -> tuple[int, BaseException | None]:
    """Counts the errors among results, and returns the last of them."""
    found = [error for error in results if error is not None]
    return len(found), found[-1] if found else None
