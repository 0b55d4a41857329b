"""GNU sort -u over the lines that convert.py writes, in order of bytes."""

import argparse
import os
import subprocess
from pathlib import Path

from peer import Phases, line

# LINE is the length of a line: two numbers of ten digits.
LINE = 22


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", required=True)
    parser.add_argument("--dir", type=Path, required=True, help="for temporary files and the result")
    parser.add_argument("--memory", type=int, required=True, help="-S in bytes")
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    phases, out = Phases(), args.dir / "sorted.txt"
    command = ["sort", "-u", "-S", f"{args.memory}b", f"--parallel={args.threads}", "-T", str(args.dir), "-o", str(out), args.edges]
    with phases("sort"):
        subprocess.run(command, check=True, env=os.environ | {"LC_ALL": "C"})
    version = subprocess.run(["sort", "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
    line(version=version, seconds=phases.seconds, edges=out.stat().st_size // LINE)


if __name__ == "__main__":
    main()
