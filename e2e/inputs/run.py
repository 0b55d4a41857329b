"""Builds every kind of input, lets ndls inspect and import it, and compares.

python run.py NDLS [--only WORDS] [--keep FOLDER] [--list]
"""

import argparse
import concurrent.futures
import pathlib
import sys
import tempfile
import time
import traceback
import warnings

import judge

warnings.simplefilter("ignore")


def one(program, name, write, folder):
    folder.mkdir()
    try:
        said = judge.check(program, write(folder), folder)
    except judge.Wrong as wrong:
        return name, str(wrong), ""
    except Exception:
        return name, "the driver failed: " + " | ".join(traceback.format_exc(limit=-2).split("\n")[-5:]), ""
    return name, "", said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ndls")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    parser.add_argument("--list", action="store_true", help="say of each kind what ndls said")
    options = parser.parse_args()
    for module in ("columns", "text", "arrays"):
        __import__(module)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        top = pathlib.Path(options.keep or scratch)
        top.mkdir(exist_ok=True)
        jobs = [pool.submit(one, options.ndls, name, write, top / f"{i:03}") for i, (name, write) in enumerate(judge.KINDS) if options.only in name]
        wrong = 0
        for i, job in enumerate(jobs):
            name, problem, said = job.result()
            if problem:
                wrong += 1
                print(f"WRONG {i:03} {name}: {problem}")
            elif options.list:
                print(f"      {i:03} {name}: {said}")
    print(f"{len(jobs)} kinds of input, {wrong} wrong, {time.monotonic() - start:.0f} s")
    sys.exit(wrong > 0)


main()
