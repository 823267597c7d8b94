"""Where the parts of the package lie. pyproject.toml holds all that does not depend on it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.sdist import sdist

PARTS = {"stages": "stages", "pipeline": "pipeline", "examples": "config"}
"""What `twinsieve` holds → the folder with its files.

In a checkout `twinsieve/` has a link for each of them. An archive may have lost it, so no link is read here.
"""


class Sdist(sdist):
    """An archive with the links of a checkout, so that tests which run in it read the files beside them.

    setuptools archives no link to a folder. These are relative and stay inside, as PEP 721 demands.
    """

    def make_release_tree(self, base_dir: str, files: Iterable[str]) -> None:
        """Fill the folder `base_dir`, which becomes the archive. files: paths from the project's folder"""
        super().make_release_tree(base_dir, files)
        for part, folder in PARTS.items():
            Path(base_dir, "twinsieve", part).symlink_to(f"../{folder}", target_is_directory=True)


_FOLDERS = {"twinsieve": "twinsieve"} | {f"twinsieve.{part}": folder for part, folder in PARTS.items()}

setup(
    cmdclass={"sdist": Sdist},
    package_dir=_FOLDERS,
    packages=sorted(
        set(_FOLDERS).union(
            f"{name}.{below}" for name, folder in _FOLDERS.items() for below in find_packages(folder)
        )
    ),
)
