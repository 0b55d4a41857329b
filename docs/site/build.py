"""Gathers the pages of the documentation in build/site/pages, and makes the site of them in build/site/html.

python docs/site/build.py NDLS, from the root of the repository. Pages keep their places, so that a link to another
page leads there, under the title of that page if its text is a name; a link to a file that is no page becomes its
name. The reference is made from the program NDLS, from files that it writes, from the Go packages and the Python
package.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import griffe
import pyarrow.ipc
import pyarrow.parquet

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "build" / "site" / "pages"
# What becomes pages: files by their place in the repository.
SOURCES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "docs/decisions/*.md", "bench/**/*.md", "examples/README.md", "examples/*/README.md"]
# The modules of the Python package, and how its page begins.
MODULES = ("ndls", "ndls.torch", "ndls.pyg", "ndls.ray", "ndls.dask", "ndls.spark")
PYTHON = "# Python package\n\nWhat the modules of package `ndls` have.\n\n"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def pages() -> dict[Path, Path]:
    """Returns the page that each file becomes."""
    found = {path.relative_to(ROOT): path.relative_to(ROOT) for pattern in SOURCES for path in sorted(ROOT.glob(pattern))}
    found[Path("README.md")] = Path("index.md")
    return found


def title(source: Path) -> str:
    """Returns the title of a page, which stands for its name where that is the text of a link."""
    found = re.search(r"^# (.+)$", (ROOT / source).read_text(), re.MULTILINE)
    return found[1] if found else source.name


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
            return words if "`" in words else f"`{wanted}`" if words == str(wanted) else f"{words} (`{wanted}`)"
        if words == wanted.name:
            words = title(wanted)
        up = "../" * len(page.parent.parts)
        return f"{picture}[{words}]({up}{becomes[wanted]}{'#' + part if part else ''})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(replace, part) for part in parts)


def output(*command: str) -> str:
    """Returns what a command prints."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def verbs(program: str) -> list[str]:
    """Returns the verbs that the help of the program lists."""
    listed = "".join(re.findall(r"^COMMANDS.*\n((?:  .*\n)+)", output(program, "--help"), re.MULTILINE))
    return [name for name in re.findall(r"^  ([a-z][a-z-]*) ", listed, re.MULTILINE) if name not in ("completion", "datasets")]


def commands(program: str) -> str:
    """Returns the page of the commands."""
    names = verbs(program)
    if len(names) < 20:
        raise SystemExit(f"the help of {program} lists {len(names)} verbs: {names}")
    text = "# Commands\n\nWhat `ndls VERB --help` prints. [Datasets](../docs/formats.md) describes what `--dataset` takes.\n"
    for name in names:
        text += f"\n## ndls {name}\n\n```text\n{output(program, name, '--help').rstrip()}\n```\n"
    return text


def schemas(program: str) -> str:
    """Returns the page of the columns of each file, as pyarrow reads them from a small run."""
    run = PAGES.parent / "run"
    output(program, "run", "--run", str(run), "--quiet", "--memory", "256MiB", "--runs", "1", "--epochs", "2", "--keep-hops", "0..1",
           "--dataset", "synthetic:nodes=500,edges=2000,features=4,classes=3,seed=1")  # fmt: skip
    found: dict[str, tuple[str, str]] = {}
    for entry in pyarrow.parquet.read_table(run / "catalog.parquet").to_pylist():
        path = re.sub(r"\d+", "N", entry["path"])
        if path.endswith((".parquet", ".arrow")) and path not in found:
            file = run / entry["path"]
            schema = pyarrow.parquet.read_schema(file) if file.suffix == ".parquet" else pyarrow.ipc.open_file(file).schema
            found[path] = (entry["stage"], "\n".join(f"| `{f.name}` | `{f.type}` |" for f in schema))
    found["catalog.parquet"] = ("every stage", "\n".join(f"| `{f.name}` | `{f.type}` |" for f in pyarrow.parquet.read_schema(run / "catalog.parquet")))
    for wanted in ("graph/nodes.parquet", "smoothed/", "predictions/", "hops/"):
        if not any(path.startswith(wanted) for path in found):
            raise SystemExit(f"a run has no {wanted} among {sorted(found)}")
    text = (
        "# File schemas\n\nColumns of the Parquet and Arrow files of a run, as pyarrow reads them from a run with 4 features, 3 classes and `--keep-hops 0..1`. "
        "[Files of a run](../docs/files.md) says what they mean; `N` stands for a number.\n"
    )
    for path, (stage, rows) in found.items():
        text += f"\n## {path}\n\nWritten by {stage}.\n\n| column | type |\n|---|---|\n{rows}\n"
    return text


def metrics() -> str:
    """Returns the page of the metrics, from the code that declares them."""
    declared = re.findall(r'family\((\w+), "(\w+)", "([^"]+)"((?:, "\w+")*)\)', (ROOT / "watch/metrics.go").read_text())
    described = (ROOT / "docs/watching.md").read_text()
    if not declared or any(f"`{name}`" not in described for _, name, _, _ in declared):
        raise SystemExit(f"docs/watching.md does not describe all metrics of watch/metrics.go: {[name for _, name, _, _ in declared]}")
    text = "# Metrics\n\nWhat `/metrics` and `--metrics-file` have ([Watch a run](../docs/watching.md#metrics)), beside `go_*` and `process_*` of the process that answers.\n"
    text += "\n| metric | type | labels | what it is |\n|---|---|---|---|\n"
    for kind, name, what, labels in declared:
        text += f"| `{name}` | {kind} | {labels.replace(chr(34), chr(96)).removeprefix(', ')} | {what} |\n"
    return text


def reference(program: str) -> None:
    """Writes the pages that are made from code."""
    folder = PAGES / "reference"
    folder.mkdir(parents=True)
    (folder / "commands.md").write_text(commands(program))
    (folder / "schemas.md").write_text(schemas(program))
    (folder / "metrics.md").write_text(metrics())
    for name, package in (("go", "."), ("go-tune", "./tune")):
        (folder / f"{name}.md").write_text(output("go", "run", "docs/site/_godoc/main.go", package))
    modules = "\n\n".join(f"::: {name}" for name in MODULES)
    (folder / "python.md").write_text(f"{PYTHON}{modules}\n")


def python() -> str:
    """Returns the reference of the Python package as Markdown: that of the site is made as HTML."""
    text = PYTHON
    for name in MODULES:
        module = griffe.load(name, search_paths=[ROOT / "python/src"], resolve_aliases=True)
        text += f"## {name}\n\n{module.docstring.value}\n\n"
        for part in (module[str(part)] for part in module.exports):
            described = part.final_target if part.is_alias else part
            for one in [described, *(m for m in described.members.values() if described.is_class and (m.is_public and m.docstring or m.name == "__init__"))]:
                call = one.signature() if one.is_function else one.name
                text += f"### {name}.{call}\n\n" if one is described else f"`{call}`: "
                text += (one.docstring.value if one.docstring else "") + "\n\n"
    return text


def first_sentence(text: str) -> str:
    """Returns the first sentence of a page that is neither a heading nor a picture, without links."""
    found = re.search(r"^(?![#!|<\s:-]|```)(?:\d+\. )?(.+?[.:])(?:\s|$)", text, re.MULTILINE)
    return LINK.sub(lambda m: m[2], found[1]).rstrip(":.") if found else ""


def for_models() -> None:
    """Writes pages as Markdown beside those of the site, and llms.txt, which lists them by the parts of the navigation."""
    html = PAGES.parent / "html"
    top, parts = ["# ndls", "", f"> {first_sentence((PAGES / 'index.md').read_text())}.", ""], []
    config = (ROOT / "docs/site/mkdocs.yml").read_text()
    for line in config[config.index("\nnav:") :].splitlines()[2:]:
        name, _, page = line.strip().removeprefix("- ").partition(": ")
        if not page:
            parts += ["", f"## {name.rstrip(':')}", ""]
            continue
        (top if line.startswith("  - ") else parts).append(f"- [{name}]({page}): {first_sentence((PAGES / page).read_text())}")
    for page in PAGES.rglob("*.md"):
        (html / page.relative_to(PAGES)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, html / page.relative_to(PAGES))
    (html / "reference/python.md").write_text(python())
    (html / "llms.txt").write_text("\n".join([*top, *parts]) + "\n")


def main() -> None:
    """Makes the site."""
    shutil.rmtree(PAGES.parent, ignore_errors=True)
    becomes = pages()
    for source, page in list(becomes.items()):
        (PAGES / page).parent.mkdir(parents=True, exist_ok=True)
        (PAGES / page).write_text(linked((ROOT / source).read_text(), source, becomes))
    reference(sys.argv[1])
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(ROOT / "docs/site/mkdocs.yml")], check=True)
    for_models()


main()
