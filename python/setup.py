"""Puts into the package what CMake builds: libkiln.so.0, the program with its configurations, and kiln.h.

KILN_BUILD names a build folder that has them; else they are built here, from the sources beside this file."""
import os
import re
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
SOURCE = HERE if (HERE / "CMakeLists.txt").exists() else HERE.parent


class BuildKiln(build_py):
    def run(self):
        super().run()
        build = os.environ.get("KILN_BUILD")
        if build is None:
            build = SOURCE / "build-python"
            subprocess.run(["cmake", "-S", SOURCE, "-B", build, "-DKILN_BUILD_TESTS=OFF"], check=True)
            subprocess.run(["cmake", "--build", build, "--parallel", "--target", "kiln_shared", "kiln_program"], check=True)
        package, build = Path(self.build_lib) / "kiln", Path(build)
        for source, place in ((build / "libkiln.so.0", "libkiln.so.0"), (build / "kiln", "program/bin/kiln"),
                              (SOURCE / "include/kiln/kiln.h", "kiln.h"), (HERE / "kiln/py.typed", "py.typed")):
            (package / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, package / place)
        shutil.copytree(SOURCE / "configs", package / "program/share/kiln/configs", dirs_exist_ok=True)


class Binary(Distribution):
    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    """A wheel of any Python 3, of this system's processor."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(version=re.search(r"project\(kiln VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text())[1],
      distclass=Binary, cmdclass={"build_py": BuildKiln, "bdist_wheel": Wheel})
