"""The sdist as setuptools builds it, except that links of the package folder stay links."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from setuptools.command.sdist import sdist


class Sdist(sdist):
    """Write `twinsieve/stages` and its like into the archive as the links that they are in a checkout.

    setuptools follows them and writes copies. In an unpacked sdist the tests would then read `stages/` and
    import `twinsieve/stages`, and an edit of one would not be seen in the other. The links are relative and
    stay inside of the archive, as installers demand (PEP 721).
    """

    def make_release_tree(self, base_dir: str, files: Iterable[str]) -> None:
        """Fill the folder `base_dir`, which becomes the archive. files: paths from the project's folder"""
        names = list(files)
        links = {link for name in names for link in Path(name).parents if link.is_symlink()}
        kept = [name for name in names if not links.intersection(Path(name).parents)]
        super().make_release_tree(base_dir, kept)
        for link in links:
            (Path(base_dir) / link).symlink_to(link.readlink(), target_is_directory=True)
