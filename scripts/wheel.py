"""Builds a wheel that carries compiled kernels: `python scripts/wheel.py FOLDER`.

The wheel is the pure one of this checkout, for the Python and the kind of machine that this runs on, with
kernels in `twinsieve/kernels`: for x86-64-v3 and for any x86-64, or on other machines for any of their kind.
Kernels fit one Numba, so Numba and llvmlite are pinned to the versions that compiled them. Where the wheel is
installed nothing is compiled.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_PINNED = ("numba", "llvmlite")
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def main(folder: Path) -> None:
    """Build the wheel into the folder and print its path."""
    with tempfile.TemporaryDirectory() as temporary:
        pure, tree = Path(temporary) / "pure", Path(temporary) / "tree"
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "-w", str(pure), str(_ROOT)], check=True)
        (built,) = pure.glob("*.whl")
        with zipfile.ZipFile(built) as archive:
            archive.extractall(tree)
        compile_kernels(tree)
        pins = {name: version(name) for name in _PINNED}
        print(pack(tree, folder, tag_of_this_machine(), pins))


def compile_kernels(tree: Path) -> None:
    """Compile all kernels of an unpacked wheel into its `twinsieve/kernels`."""
    others = {name: text for name, text in os.environ.items() if not name.startswith("NUMBA_")}
    kernels = tree / "twinsieve" / "kernels"
    subprocess.run(
        [sys.executable, "-P", "-m", "twinsieve", "warm-up", "--portable"],
        cwd=tree,
        env={
            **others,
            "PYTHONPATH": str(tree),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": str(kernels),
        },
        check=True,
    )


def tag_of_this_machine() -> str:
    """Python, ABI and platform of a wheel, as in `cp312-cp312-linux_x86_64`.

    Not `manylinux`: nothing here is linked, but which machines may take it is up to whoever publishes it.
    """
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    return f"{python}-{python}{getattr(sys, 'abiflags', '')}-{platform}"


def pack(tree: Path, folder: Path, tag: str, pins: dict[str, str]) -> Path:
    """The wheel with everything in the tree; its metadata name that tag and these versions.

    A pin takes the place of the requirement of that name, or stands beside the others where there is none:
    llvmlite comes with Numba. The same tree gives the same bytes.
    raises: ValueError for a tree whose metadata name no requirement
    """
    (info,) = tree.glob("*.dist-info")
    metadata = (info / "METADATA").read_text("utf-8")
    for name in pins:
        metadata = re.sub(rf"^Requires-Dist: {name}(?![\w.-]).*\n", "", metadata, flags=re.MULTILINE)
    first = metadata.find("Requires-Dist: ")
    if first < 0:
        raise ValueError(f"{info.name} names no requirement")
    pinned = "".join(f"Requires-Dist: {name}=={version}\n" for name, version in pins.items())
    metadata = metadata[:first] + pinned + metadata[first:]
    (info / "METADATA").write_text(metadata, "utf-8")
    wheel = (info / "WHEEL").read_text("utf-8")
    wheel = re.sub(r"^Root-Is-Purelib: .*$", "Root-Is-Purelib: false", wheel, flags=re.MULTILINE)
    (info / "WHEEL").write_text(re.sub(r"^Tag: .*$", f"Tag: {tag}", wheel, flags=re.MULTILINE), "utf-8")
    record = info / "RECORD"
    paths = sorted(path for path in tree.rglob("*") if path.is_file() and path != record)
    lines = [f"{path.relative_to(tree).as_posix()},{_sum(path)},{path.stat().st_size}" for path in paths]
    record.write_text("\n".join([*lines, f"{record.relative_to(tree).as_posix()},,"]) + "\n", "utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{info.name.removesuffix('.dist-info')}-{tag}.whl"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in [*paths, record]:
            entry = zipfile.ZipInfo(path.relative_to(tree).as_posix(), _LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, path.read_bytes())
    return made


def _sum(path: Path) -> str:
    digest = hashlib.sha256(path.read_bytes()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
