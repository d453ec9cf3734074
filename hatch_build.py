"""Compiles the loops of impasto.native while the package is built, once per kind of processor.

Where there is no compiler, one comes from the Python registry (ziglang) for the time of the
build. Where nothing compiles, the package is built without: it is slower then, not less.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/impasto/native")
WIDE = ["-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512dq", "-mprefer-vector-width=512"]
KINDS = {"avx2": ["-mavx2", "-mfma"], "avx512": ["-mavx2", "-mfma", *WIDE]}
FLAGS = ["-O3", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=fast"]


def compiler() -> list[str]:
    """The words that call one on this machine."""
    wanted = [os.environ.get("CC", ""), "cc", "gcc", "clang"]
    return next(([word] for word in wanted if word and shutil.which(word)), [])


class NativeHook(BuildHookInterface):
    """Called by hatchling."""

    def dependencies(self) -> list[str]:
        """What the build itself needs."""
        return [] if compiler() or self.target_name != "wheel" else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile what can be compiled."""
        if self.target_name != "wheel":
            return
        words = compiler() or [sys.executable, "-m", "ziglang", "cc"]
        kinds = KINDS if platform.machine() in ("x86_64", "AMD64") else {"plain": []}
        made = [name for name, flags in kinds.items() if self._compiled(words, name, flags)]
        if made:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{_platform()}"
            build_data["artifacts"] += [f"{FOLDER}/{name}.so" for name in made]

    def _compiled(self, words: list[str], name: str, flags: list[str]) -> bool:
        folder = Path(self.root) / FOLDER
        sources = sorted(map(str, folder.glob("*.c")))
        new, place = folder / f"{name}.so.new", folder / f"{name}.so"
        place.unlink(missing_ok=True)  # of other sources than these
        try:
            command = [*words, *FLAGS, *flags, *sources, "-o", str(new)]
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            self.app.display_warning(f"not compiled for {name}: {getattr(error, 'stderr', error)}")
            return False
        new.replace(place)  # a program that runs keeps what it has loaded
        return True


def _platform() -> str:
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
