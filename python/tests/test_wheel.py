"""Installs a wheel in an environment of its own."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest


def test_wheel_installs_the_command(tmp_path: Path) -> None:
    """A wheel with the program has the command ndls, which runs it without the packages that the library needs."""
    pytest.importorskip("hatchling")
    (tmp_path / "licences").mkdir()
    (tmp_path / "licences" / "LICENSE").write_text("")
    environment = {
        **os.environ,
        "NDLS_WHEEL_BINARY": os.environ["NDLS_BINARY"],
        "NDLS_WHEEL_LICENCES": str(tmp_path / "licences"),
        "NDLS_WHEEL_PLATFORM": f"linux_{platform.machine()}",
    }
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=Path(__file__).parents[1], env=environment, check=True, capture_output=True)
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", *tmp_path.glob("*.whl")], check=True)
    (tmp_path / "ndls").mkdir()  # a folder of that name in the working folder is not the package
    done = subprocess.run([programs / "ndls", "version"], cwd=tmp_path, env={"PATH": str(programs)}, check=True, capture_output=True, text=True)
    assert "ndls" in done.stdout
    # What is imported finds its version by the name of the distribution, which is another one.
    (site,) = (tmp_path / "venv" / "lib").glob("python3*/site-packages")
    show = [sys.executable, "-c", "import ndls; print(ndls.__version__, ndls.__file__)"]
    said = subprocess.run(show, cwd=site, env={"PYTHONPATH": str(site)}, check=True, capture_output=True, text=True).stdout.split()
    assert said[0] == done.stdout.split()[1]
    assert said[1].startswith(str(site))


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_wheel_takes_what_it_needs(tmp_path: Path) -> None:
    """One architecture is built where one is asked for, and hatchling alone is fetched for that."""
    root = Path(__file__).parents[2]
    line = ["make", "--dry-run", "--no-print-directory", "wheel", "ARCHITECTURES=amd64", f"TOOLS={tmp_path}"]
    printed = subprocess.run(line, cwd=root, check=True, capture_output=True, text=True).stdout
    assert "grep '^hatchling=='" in printed
    assert "pip install --quiet --disable-pip-version-check -r" not in printed
    assert "for platform in amd64:x86_64; do" in printed
    assert "arm64" not in printed
