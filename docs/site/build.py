"""Gathers the pages of the documentation in build/site/pages, and makes the site of them in build/site/html.

python docs/site/build.py NDLS, from the root of the repository. Pages keep their places, so that a link to another
page leads there; a link to a file that is no page becomes its name. The reference is made from the program NDLS, the
Go package and the Python package.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "build" / "site" / "pages"
# What becomes pages: files by their place in the repository.
SOURCES = ["README.md", "CONTRIBUTING.md", "docs/*.md", "docs/decisions/*.md", "bench/**/*.md", "examples/README.md", "examples/*/README.md"]
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def pages() -> dict[Path, Path]:
    """Returns the page that each file becomes."""
    found = {path.relative_to(ROOT): path.relative_to(ROOT) for pattern in SOURCES for path in sorted(ROOT.glob(pattern))}
    found[Path("README.md")] = Path("index.md")
    return found


def linked(text: str, source: Path, becomes: dict[Path, Path]) -> str:
    """Returns the text of a page with links to other pages."""
    page = becomes[source]

    def replace(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match.group(0)
        path, _, part = target.partition("#")
        wanted = (ROOT / source.parent / path).resolve()
        if not wanted.exists():
            raise SystemExit(f"{source}: there is no {target}")
        wanted = wanted.relative_to(ROOT)
        if wanted not in becomes and wanted / "README.md" in becomes:
            wanted /= "README.md"
        if picture:
            (PAGES / wanted).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / wanted, PAGES / wanted)
            becomes.setdefault(wanted, wanted)
        elif wanted not in becomes:
            return words if "`" in words else f"{words} (`{wanted}`)"
        up = "../" * len(page.parent.parts)
        return f"{picture}[{words}]({up}{becomes[wanted]}{'#' + part if part else ''})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(replace, part) for part in parts)


def output(*command: str) -> str:
    """Returns what a command prints."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def verbs(program: str) -> list[str]:
    """Returns the verbs that the help of the program lists."""
    listed = output(program, "--help").split("\nCOMMANDS\n")[1].split("\n\n")[0]
    return [name for name in re.findall(r"^  ([a-z][a-z-]*) ", listed, re.MULTILINE) if name not in ("completion", "datasets")]


def reference(program: str) -> None:
    """Writes the pages that are made from code."""
    folder = PAGES / "reference"
    folder.mkdir(parents=True)
    names = verbs(program)
    if len(names) < 20:
        raise SystemExit(f"the help of {program} lists {len(names)} verbs: {names}")
    text = "# Commands\n\nWhat `ndls VERB --help` prints. [Datasets](../docs/formats.md) describes what `--dataset` takes.\n"
    for name in names:
        text += f"\n## ndls {name}\n\n```text\n{output(program, name, '--help').rstrip()}\n```\n"
    (folder / "commands.md").write_text(text)
    go = output("go", "doc", "-all", ".")
    (folder / "go.md").write_text(f"# Go package\n\nWhat `go doc -all ndls` prints.\n\n```text\n{go.rstrip()}\n```\n")
    modules = "\n\n".join(f"::: {name}" for name in ("ndls", "ndls.torch"))
    (folder / "python.md").write_text(f"# Python package\n\n{modules}\n")


def main() -> None:
    """Makes the site."""
    shutil.rmtree(PAGES.parent, ignore_errors=True)
    becomes = pages()
    for source, page in list(becomes.items()):
        (PAGES / page).parent.mkdir(parents=True, exist_ok=True)
        (PAGES / page).write_text(linked((ROOT / source).read_text(), source, becomes))
    reference(sys.argv[1])
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(ROOT / "docs/site/mkdocs.yml")], check=True)


main()
