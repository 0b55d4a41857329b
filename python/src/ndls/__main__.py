"""Runs the program with the arguments of the command line: ``python -m ndls run --help``."""

import os
import sys

from ndls._command import Error, binary

try:
    os.execv(binary(), ["ndls", *sys.argv[1:]])
except Error as error:
    sys.exit(f"ndls: {error}")
