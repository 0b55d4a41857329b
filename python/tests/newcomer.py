"""What a new user does, as the pages say it, with the seconds of each step: python newcomer.py WHEEL.

It works in the present folder, which is empty, takes a new folder for the home, and ends at the first
step that fails. It needs Python, pip's index for what the package depends on, and bash with
bash-completion. Lines and blocks come from README.md, docs/tutorial.md, docs/python.md and docs/watching.md.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pages

ROOT = pages.DOCS.parent
LIMIT = 600
"""Seconds in which everything is done."""

TYPED = """import ndls

run = ndls.run("karate:", run="runs/karate", {option}=0.05)
smoother = ndls.NodeSmoother({option}=0.05)
"""


def printed(page: str, begin: str, count: int = 1) -> str:
    """The lines of a page that are set in, from the one that begins so, as they are printed."""
    lines = [line[4:] for line in (ROOT / page).read_text().splitlines() if line.startswith("    ")]
    at = next(i for i, line in enumerate(lines) if line.startswith(begin))
    return "\n".join(lines[at : at + count])


def shell(text: str, status: int = 0) -> str:
    """Runs lines in bash, and returns what they print. Another exit status is an error."""
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != status:
        sys.exit(f"status {done.returncode} of:\n{text}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def blocks(page: str, count: int | None = None) -> None:
    """Runs the first blocks of a page by the Python of the environment."""
    shell(f"python '{Path(pages.__file__)}' {page} {'' if count is None else count}")


def install() -> None:
    shell(printed("docs/tutorial.md", "python3 -m venv", 3))
    os.environ["PATH"] = f"{Path.cwd()}/venv/bin:{os.environ['PATH']}"


def demo() -> None:
    said = shell("ndls demo")
    if "accuracy" not in said or not Path("ndls-demo/report.html").exists():
        sys.exit(said)


def estimator() -> None:
    (line,) = re.findall(r"`(pip install scikit-learn)`", (pages.DOCS / "python.md").read_text())
    shell(line)
    blocks("python", 2)


def types() -> None:
    """Mypy takes an option, and names one that is misspelt."""
    shell("pip install mypy")
    Path("right.py").write_text(TYPED.format(option="epsilon"))
    Path("wrong.py").write_text(TYPED.format(option="epsilom"))
    shell("mypy right.py")
    said = shell("mypy wrong.py", status=1)
    if said.count('"epsilom"') < 2:
        sys.exit(said)


def complete() -> None:
    """Bash completes an option and a value on a terminal, behind the line of the page."""
    process, terminal = pty.fork()
    if not process:
        os.execvp("bash", ["bash", "--norc", "-i"])
    os.write(terminal, b"bind 'set enable-bracketed-paste off'; source /usr/share/bash-completion/bash_completion\n")
    os.write(terminal, printed("docs/watching.md", "source <(ndls").split("#")[0].encode() + b"\n")
    for typed, want in ((b"ndls run --dat\t", "ndls run --dataset "), (b"kar\t", "karate:"), (b" --depth no\t", "--depth node")):
        os.write(terminal, typed)
        said, end = "", time.monotonic() + 20
        while want not in said:
            if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
                sys.exit(f"{typed!r} gives {said!r}")
            said += os.read(terminal, 1 << 16).decode(errors="replace")
    os.write(terminal, b"\x03exit\n")
    os.close(terminal)
    os.waitpid(process, 0)


STEPS: dict[str, Callable[[], None]] = {
    "the wheel, in a new environment": install,
    "ndls demo": demo,
    "the tutorial": lambda: blocks("tutorial"),
    "NodeSmoother of docs/python.md, with scikit-learn": estimator,
    "mypy, on a right and a wrong option": types,
    "bash completes options and values": complete,
}


def main(wheel: str) -> None:
    shutil.copy(wheel, ".")
    Path("home").mkdir()
    # Nothing of the environment remains but how packages are fetched.
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_")) or name.lower().endswith("_proxy")}
    os.environ.clear()
    os.environ.update(kept, HOME=f"{Path.cwd()}/home", PATH="/usr/local/bin:/usr/bin:/bin", LANG="C.UTF-8", TERM="xterm")
    if found := next((name for name in ("go", "ndls") if shutil.which(name)), None):
        sys.exit(f"{found} is on the PATH: this is no new environment")
    start = time.monotonic()
    for name, step in STEPS.items():
        begun = time.monotonic()
        step()
        print(f"{time.monotonic() - begun:6.1f} s  {name}", flush=True)
    print(f"{time.monotonic() - start:6.1f} s  all")
    if time.monotonic() - start > LIMIT:
        sys.exit(f"more than {LIMIT} s")


if __name__ == "__main__":
    main(sys.argv[1])
