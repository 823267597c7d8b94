"""A folder of this machine under an address that counts as shared storage, for processes of one test."""

from __future__ import annotations

from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

PROTOCOL = "shared"


class _Shared(LocalFileSystem):  # type: ignore[misc]
    protocol = PROTOCOL

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        return super()._strip_protocol(str(path).removeprefix(f"{PROTOCOL}://"))


fsspec.register_implementation(PROTOCOL, _Shared, clobber=True)
