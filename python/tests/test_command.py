from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ndls

BIG = "synthetic:nodes=200000,edges=2000000,features=64,classes=8,seed=1"


def children() -> str:
    """Returns the ids of the processes that this one has started and that have not ended."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


def runs(process: str) -> bool:
    """Says whether a process has not ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes() != b""
    except FileNotFoundError:
        return False


def test_results_are_returned_and_lines_go_to_the_callback(tmp_path: Path) -> None:
    lines: list[str] = []
    printed = ndls.command("partition", progress=lines.append, dataset="karate:", run=tmp_path / "run", memory="512MiB", json=True)
    assert json.loads(printed.splitlines()[-1])["run"] == str(tmp_path / "run")
    assert lines
    assert not any(line.endswith("\n") for line in lines)


def test_progress_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ndls.command("partition", dataset="karate:", run=tmp_path / "a", memory="512MiB")
    assert "level=" in capsys.readouterr().err
    ndls.command("partition", progress=False, dataset="karate:", run=tmp_path / "b", memory="512MiB")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ({"dataset": "karate:", "epsilon": -1}, 2, "epsilon"),
        ({"dataset": "karate:", "no_such_flag": 1}, 2, "no-such-flag"),
        ({"dataset": "karate:", "memory": "1MiB"}, 3, "memory"),
        ({"dataset": "edges:/nowhere/edges.csv"}, 1, "/nowhere/edges.csv"),
    ],
)
def test_errors_have_message_and_status(tmp_path: Path, options: dict[str, object], status: int, message: str) -> None:
    with pytest.raises(ndls.Error, match=message) as caught:
        ndls.command("run", progress=False, run=tmp_path / "run", **options)
    assert caught.value.status == status
    assert not str(caught.value).startswith("ndls")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.status) == (str(caught.value), status)


def test_other_options_are_refused(run: ndls.Run) -> None:
    with pytest.raises(ndls.Error, match="epsilon") as caught:
        ndls.command("lsi", progress=False, run=run.path, epsilon=0.5)
    assert caught.value.status == 5


def test_ctrl_c_stops_the_program_and_the_same_call_continues(tmp_path: Path) -> None:
    seen: list[str] = []

    def interrupt(line: str) -> None:
        if not seen:
            signal.raise_signal(signal.SIGINT)
        seen.append(line)

    out = tmp_path / "run"
    options = {"dataset": BIG, "run": out, "memory": "512MiB"}
    # A shell that runs the tests in the background has them ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ndls.command("partition", progress=interrupt, **options)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not children()
    ndls.command("partition", progress=False, **options)
    assert ndls.open(out).graph["nodes"] == 200000


def test_an_error_of_the_callback_stops_the_program(tmp_path: Path) -> None:
    def fail(line: str) -> None:
        raise ZeroDivisionError(line)

    with pytest.raises(ZeroDivisionError):
        ndls.command("partition", progress=fail, dataset=BIG, run=tmp_path / "run", memory="512MiB")
    assert not children()


def test_the_package_is_a_program() -> None:
    printed = subprocess.run([sys.executable, "-m", "ndls", "version"], capture_output=True, text=True, check=True).stdout
    assert printed == ndls.command("version")
    refused = subprocess.run([sys.executable, "-m", "ndls", "no-such-verb"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "no-such-verb" in refused.stderr


def test_the_program_ends_when_nobody_reads_it(tmp_path: Path) -> None:
    # The process of Python is killed in the middle of a training that would take minutes.
    options = f"dataset='karate:', run={str(tmp_path / 'run')!r}, rule='fastrp', split='random:2,5', memory='512MiB'"
    code = f"import ndls; ndls.command('run', {options}, epochs=10_000_000, patience=0)"
    python = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    assert python.stderr
    for line in python.stderr:
        if "stage=train" in line:
            break
    (program,) = Path(f"/proc/{python.pid}/task/{python.pid}/children").read_text().split()
    python.kill()
    python.wait()
    python.stderr.close()
    deadline = time.monotonic() + 30
    while runs(program) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not runs(program)


def test_the_program_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if Path(ndls.__file__).with_name("bin").exists():
        pytest.skip("this package holds the program, so nothing else is looked for")
    program = tmp_path / "ndls"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NDLS_BINARY", raising=False)
    assert ndls.binary() == str(program)
    monkeypatch.setenv("NDLS_BINARY", str(tmp_path / "other"))
    with pytest.raises(ndls.Error, match="NDLS_BINARY"):
        ndls.binary()
    monkeypatch.delenv("NDLS_BINARY")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ndls.Error, match="make wheel"):
        ndls.binary()
