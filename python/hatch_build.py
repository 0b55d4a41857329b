"""Puts the program into a wheel.

NDLS_WHEEL_BINARY names the program, NDLS_WHEEL_LICENCES the folder with the licences of what is in
it, and NDLS_WHEEL_PLATFORM the platform of the wheel, such as manylinux_2_17_x86_64. Without them
the wheel is one for any platform, which has no program.
"""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):  # type: ignore[misc, type-arg]
    """Adds ndls/bin/ndls, the command that runs it, and the licences."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Is called before the wheel is written."""
        files = build_data["force_include"]
        files[os.path.join(self.root, "..", "LICENSE")] = "ndls/LICENSE"
        if version == "editable" or "NDLS_WHEEL_BINARY" not in os.environ:
            return
        files[os.environ["NDLS_WHEEL_BINARY"]] = "ndls/bin/ndls"
        files[os.environ["NDLS_WHEEL_LICENCES"]] = "ndls/licences"
        build_data["shared_scripts"][os.path.join(self.root, "scripts", "ndls")] = "ndls"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['NDLS_WHEEL_PLATFORM']}"
