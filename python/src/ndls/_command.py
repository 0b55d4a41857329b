"""Finds the program ndls and runs its commands."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

# Called with each line of progress and log. False shows nothing, None prints to sys.stderr.
Progress = Callable[[str], object] | bool | None

# KEPT is how many lines of the end of the log are searched for the message of an error.
KEPT = 1000

# MESSAGE begins the line in which the program says what was wrong.
MESSAGE = "ndls: "


class Error(Exception):
    """The program ndls could not do what it was asked for, or a run lacks what was asked of it.

    ``status`` is the exit status of the program: 1 for an error, 2 for wrong usage, 3 where the
    memory limit or the disk is too small, 4 for corrupt data, 5 for a run directory that was made
    with other options, 75 or 130 where a signal interrupted the program, and a negative number -N
    where signal N killed it. Errors of this package have status 1.
    """

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        return Error, (str(self), self.status)


def binary() -> str:
    """Returns the path of the program ndls.

    It is the one in the folder of this package, or else the one that the environment variable
    ``NDLS_BINARY`` names, or else the first one on ``PATH``.

    Raises:
        Error: none of the three is there.
    """
    own = Path(__file__).parent / "bin" / "ndls"
    if own.is_file():
        return str(own)
    if named := os.environ.get("NDLS_BINARY"):
        if not os.access(named, os.X_OK):
            raise Error(f"NDLS_BINARY is {named}, which is no program that can be executed")
        return named
    if found := shutil.which("ndls"):
        return found
    raise Error(
        "the program ndls is not there: install a wheel that holds it (make wheel), "
        "or name it in the environment variable NDLS_BINARY, or put it on PATH"
    )


def command(verb: str, *, progress: Progress = None, **options: object) -> str:
    """Runs ``ndls VERB`` with options, and returns what it prints to standard output.

    Args:
        verb: A verb such as ``"smooth"`` or ``"inspect"``; ``ndls help`` lists them.
        progress: Is called with each line of progress and log. ``None`` prints the lines to
            ``sys.stderr``, and ``False`` shows nothing.
        options: The flags of the verb, with underscores in place of hyphens:
            ``keep_hops="0..3"`` is ``--keep-hops=0..3``. True and False are written as such, lists
            with commas between their values, and an option that is None is left out.

    Ctrl-C lets the program stop at a state from which the same command continues. Then
    ``KeyboardInterrupt`` is raised. A second Ctrl-C kills the program.

    Raises:
        Error: The program has ended with another exit status than 0.
    """
    return execute(verb, options, progress)


def execute(
    verb: str,
    options: Mapping[str, object],
    progress: Progress,
    started: Callable[[subprocess.Popen[str]], object] = lambda _: None,
    words: Sequence[str] = (),
    accept: int = 0,
) -> str:
    """Is command. It calls started with the process of the program when that has begun.

    words stand behind the options. accept is an exit status that is no error where the program says nothing with it.
    """
    arguments = [binary(), *verb.split(), *_flags(options), *(["--", *words] if words else [])]
    last: deque[str] = deque(maxlen=KEPT)
    with tempfile.TemporaryFile() as results:
        # In a session of its own the program does not see the Ctrl-C of the terminal, but the one
        # signal that it is sent here: a second one would kill it.
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=results,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        assert process.stderr is not None
        try:
            started(process)
            for line in process.stderr:
                line = line.rstrip("\n")
                last.append(line)
                _show(progress, line)
            status = process.wait()
        except BaseException:  # Ctrl-C, or an error of the callback
            _stop(process)
            raise
        finally:
            process.stderr.close()
        silent = status == accept and not any(line.startswith(MESSAGE) for line in last)
        if status != 0 and not silent:
            raise Error(_message(verb, last, status), status)
        results.seek(0)
        return results.read().decode("utf-8", errors="replace")


def _flags(options: Mapping[str, object]) -> list[str]:
    flags = []
    for name, value in options.items():
        if value is None:
            continue
        flags.append(f"--{name.replace('_', '-')}={_text(value)}")
    return flags


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, (list, tuple, range)):
        return ",".join(_text(v) for v in value)
    return str(value)


def _show(progress: Progress, line: str) -> None:
    if callable(progress):
        progress(line)
    elif progress is not False:
        print(line, file=sys.stderr, flush=True)


def _stop(process: subprocess.Popen[str]) -> None:
    """Lets the program stop, and waits until it has."""
    process.send_signal(signal.SIGINT)
    try:
        process.communicate()
    except BaseException:  # a second Ctrl-C
        process.kill()
        process.wait()
        raise


def _message(verb: str, lines: Iterable[str], status: int) -> str:
    """Finds the program's message: the last line that begins with its name, and what follows."""
    message: list[str] = []
    for line in lines:
        if line.startswith(MESSAGE):
            message = [line.removeprefix(MESSAGE)]
        elif message:
            message.append(line)
    if message:
        return "\n".join(message)
    if status < 0:
        return f"ndls {verb} was killed by signal {-status}; the same call continues it"
    return f"ndls {verb} ended with status {status}"
