"""Build hook of release wheels: puts compiled kernels into the wheel, see CONTRIBUTING.md.

It is off unless the environment variable HATCH_BUILD_HOOK_ENABLE_CUSTOM is set, so that a checkout or an
sdist is installed as a plain wheel.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles all kernels for each level of processors, and gives the wheel the tags of this machine."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is written."""
        if version == "editable":
            return
        self.folder = tempfile.TemporaryDirectory()
        environment = {**os.environ, "PYTHONPATH": str(Path(self.root, "src"))}
        command = [sys.executable, "-m", "damier.commands.pack", self.folder.name]
        subprocess.run(command, env=environment, cwd=self.folder.name, check=True)
        for path in sorted(Path(self.folder.name).glob("*.kernels")):
            build_data["force_include"][str(path)] = f"damier/search/compiled/{path.name}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what was compiled, now that it is in the wheel."""
        if version != "editable":
            self.folder.cleanup()
