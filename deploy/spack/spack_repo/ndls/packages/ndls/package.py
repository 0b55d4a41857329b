# The recipe of Spack 1.0 and later. From a copy of the repository:
#
#   spack repo add deploy/spack/spack_repo/ndls
#   spack install ndls@develop dev_path=$PWD
#
# It runs `make install`, which fetches Go modules.

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Ndls(MakefilePackage):
    """Node dependent local smoothing of graphs that do not fit in memory,
    on one machine or on many."""

    license("Apache-2.0")

    # Its source is the folder that dev_path names.
    version("develop")

    depends_on("go@1.26:", type="build")
    depends_on("bash", type="build")

    build_targets = ["build"]

    @property
    def install_targets(self):
        return ["install", f"PREFIX={self.prefix}"]

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        env.set("CGO_ENABLED", "0")
        env.set("GOTOOLCHAIN", "local")
        env.set("GOFLAGS", "-modcacherw")
        env.set("GOPATH", join_path(self.stage.path, "go"))

    def test_version(self):
        """the program starts and names its version"""
        out = Executable(self.prefix.bin.ndls)("--version", output=str.split, error=str.split)
        assert "ndls version" in out
