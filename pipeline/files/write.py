"""Output files that get their name only when they are complete.

The content is written to a file without a name, or with a temporary name, and renamed at the end. For streams
this is impossible: on stdout, descriptors, pipes and devices written bytes are visible at once.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol, Self, cast

from twinsieve.pipeline.files import FileError, refused_output
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.named_files import named_files
from twinsieve.stages.errors import UsageError, is_address, shown

STDOUT = "-"
_STDOUT_DESCRIPTOR = 1
_DESCRIPTORS = "/proc/self/fd"


class ByteSink(Protocol):
    """Anything to which bytes can be written in order."""

    def write(self, data: bytes, /) -> object:
        """Write all bytes, or raise FileError."""


class Output:
    """One output file, plain or compressed by its ending; it gets its name only by `place` or `publish`.

    Until then, an existing file of that name stays unchanged.

    name: a path, `-` for stdout, or a descriptor of this process such as /dev/stderr or `>(...)`
    mode: permissions of a new file. A file that replaces an existing one gets that one's permissions, unless
        `mode` is 0600, and its owner and group if the system allows that
    packed: if True, the ending .gz, .zst, .bz2 or .xz means a compressed output
    is_stream: True for streams: written bytes are visible at once, and `place` does nothing
    raises: FileError if the file cannot be made, written or renamed; no partial file is left behind

    A symbolic link is followed: the file that it points to is replaced, the link stays. Other hard links to
    that file keep the old content. In a folder where everybody may write, a link that belongs to another user
    is refused.
    """

    def __init__(self, name: str, *, mode: int = 0o666, packed: bool = True) -> None:
        self.name = name
        self._shown = "stdout" if name == STDOUT else name
        self._mode = mode
        self._packed = packed
        self._packer: _Packer | None = None
        self._descriptor = descriptor_of(name, writes=True)
        self._target: Path | None = None
        self._part: Path | None = None
        self._named_already = False
        try:
            self._raw = self._open()
        except OSError as error:
            raise refused_output(self._shown, error, os.path.dirname(name)) from error
        self.is_stream = self._part is None
        self._plain = _Plain(self._raw)
        try:
            # Making a gzip writer already writes the gzip header, which fails if the disk is full.
            with self._named():
                self._packer = self._pack()
        except FileError:
            self.discard()
            raise

    def _pack(self) -> _Packer:
        return _packer(self.name, self._plain) if self._packed else self._plain

    def _open(self) -> BinaryIO:
        if self._descriptor is not None:
            return cast(BinaryIO, io.FileIO(self._descriptor, "wb", closefd=False))
        target = followed(self.name)
        try:
            status = os.stat(self.name)
        except FileNotFoundError:
            status = None
        if status is not None and stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, "is a directory")
        if status is not None and not stat.S_ISREG(status.st_mode):
            # Use the given name, not `target`: links in /proc point to texts such as `pipe:[7]`, which cannot
            # be opened.
            return cast(BinaryIO, io.FileIO(self.name, "wb"))
        if status is not None and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "Permission denied")
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        descriptor = _nameless(target.parent, self._mode)
        if descriptor is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(part, flags, self._mode)
            self._named_already = True
        self._part, self._target = part, target
        if status is not None:
            _give_owner(descriptor, status)
            if self._mode == 0o666:
                os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
        return cast(BinaryIO, io.FileIO(descriptor, "wb"))

    def write(self, data: bytes, /) -> None:
        """Append bytes.

        raises: FileError if the disk is full, or if the reader of a pipe has closed it; BrokenPipeError if
            the reader of stdout has closed it, as in `... | head`, because a program ends that way then
        """
        with self._named():
            if self._packer is None:
                self._packer = self._pack()
            self._packer.write(data)

    def stream(self) -> BinaryIO:
        """This output, typed as a binary stream, for functions that need one."""
        return cast(BinaryIO, self)

    def sync(self) -> None:
        """Put all content on disk, but do not give the file its name yet. Afterwards call only `place`."""
        with self._named():
            if self._packer is not None:
                self._packer.close()
            if not self.is_stream:
                os.fsync(self._raw.fileno())
            elif self._descriptor is None:
                self._raw.close()

    def rest(self) -> None:
        """Close the file descriptor after `sync`, to save descriptors. Afterwards call only `place`.

        The file gets a temporary name, because a file without a name would be lost.
        """
        with self._named():
            self._name_part()
        if not self.is_stream:
            self._raw.close()

    def place(self) -> None:
        """Give the file, which `sync` has put on disk, its final name."""
        with self._named():
            self._rename()
        if not self.is_stream:
            self._raw.close()

    def _name_part(self) -> None:
        if self._part is not None and not self._named_already:
            _give_name(self._raw.fileno(), self._part)
            self._named_already = True

    def _rename(self) -> None:
        self._name_part()
        if self._part is not None and self._target is not None:
            os.replace(self._part, self._target)
            self._part = None
            folder = os.open(self._target.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def publish(self) -> None:
        """Put everything written so far on disk under the final name; more writes may follow.

        A compressed output ends its current member (or frame), and the next write begins a new one.
        """
        with self._named():
            if self._packer is not None:
                self._packer.close()
                # The next write makes a new packer. Made here, it would write a header without an end, which
                # readers report as a damaged file.
                self._packer = None
            if not self.is_stream:
                os.fsync(self._raw.fileno())
            self._rename()

    def finish(self) -> None:
        """Put everything on disk under the final name: `sync`, then `place`."""
        self.sync()
        self.place()

    def discard(self) -> None:
        """Delete the unfinished file and close everything; does nothing to a file that has its final name."""
        part, self._part = self._part, None
        if part is not None and self._named_already:
            part.unlink(missing_ok=True)
        # Close the packer, with its writes ignored. If it were not closed, it would write its last bytes when
        # it is freed, and from Python 3.13 on warn on stderr that the file is closed.
        self._plain.is_given_up = True
        if self._packer is not None:
            self._packer.close()
        if self._descriptor is None:
            self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.discard()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError as error:
            if self._descriptor == _STDOUT_DESCRIPTOR:
                raise
            raise FileError(f"{self._shown}: the reader went away before the end") from error
        except OSError as error:
            outcome = "" if self._part is None else "; nothing was put in its place"
            raise FileError(f"{self._shown}: cannot be written: {error.strerror}{outcome}") from error


def followed(name: str) -> Path:
    """The path that a name leads to after all symbolic links are followed.

    raises: OSError for a link in a folder where everybody may write, unless the link belongs to this user, to
        root or to the owner of the folder. Linux has the same rule for sticky folders
        (`fs.protected_symlinks`)
    """
    here, links = "/", 0
    rest = [part for part in reversed(os.path.join(os.getcwd(), name).split("/")) if part not in ("", ".")]
    while rest:
        part = rest.pop()
        if part == "..":
            here = os.path.dirname(here)
            continue
        path = os.path.join(here, part)
        try:
            status = os.lstat(path)
        except OSError:
            # If the path does not exist or is not readable, stop following links here.
            here = path
            continue
        if not stat.S_ISLNK(status.st_mode):
            here = path
            continue
        folder, links = os.stat(here), links + 1
        if links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if folder.st_mode & stat.S_IWOTH and status.st_uid not in (os.geteuid(), 0, folder.st_uid):
            raise PermissionError(
                errno.EACCES, f"{path} is a link of another user in a shared folder; remove it"
            )
        to = os.readlink(path)
        here = "/" if to.startswith("/") else here
        rest += [part for part in reversed(to.split("/")) if part not in ("", ".")]
    return Path(here)


def _nameless(folder: Path, mode: int) -> int | None:
    """Descriptor of a new file without a name; None if the system has no such files.

    The system deletes this file when the process ends, even after kill -9.
    """
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir(_DESCRIPTORS):
        return None
    try:
        return os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            return None
        raise


def _give_owner(descriptor: int, status: os.stat_result) -> None:
    """Give the file the owner and group in `status`; if that is not allowed, only the group, if allowed."""
    for owner, group in ((status.st_uid, status.st_gid), (-1, status.st_gid)):
        try:
            os.fchown(descriptor, owner, group)
        except OSError:
            continue
        return


def _give_name(descriptor: int, path: Path) -> None:
    folder = os.open(_DESCRIPTORS, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Python follows the link in /proc only if `src_dir_fd` is passed.
        os.link(str(descriptor), path, src_dir_fd=folder)
    finally:
        os.close(folder)


class _Packer(Protocol):
    def write(self, data: bytes, /) -> object: ...

    def close(self) -> None: ...


def write_all(stream: BinaryIO, data: bytes) -> None:
    """Write all of the data; one `write` of a raw file may write only a part of it."""
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]


class _Plain:
    """Writes to the raw file of an `Output`, which closes that file.

    is_given_up: if True, writes are ignored
    """

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self.is_given_up = False

    def write(self, data: bytes, /) -> None:
        if not self.is_given_up:
            write_all(self._raw, data)

    def close(self) -> None:
        """Does nothing, because the `Output` closes the file."""


def _packer(name: str, plain: _Plain) -> _Packer:
    stream = cast(BinaryIO, plain)
    if name.endswith(".gz"):
        return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=stream, mtime=0)
    if name.endswith(".zst"):
        # Only now, because its import takes a part of each start.
        import zstandard

        packer = zstandard.ZstdCompressor(level=3, write_checksum=True)
        return packer.stream_writer(stream, closefd=False)
    if name.endswith(".bz2"):
        return bz2.BZ2File(stream, "wb")
    if name.endswith(".xz"):
        return lzma.LZMAFile(stream, "wb")
    return plain


def place_all(outputs: list[Output]) -> None:
    """Give all outputs their final names, in this order.

    outputs: `sync` was called on each, so only renaming can still fail
    raises: FileError that also lists the outputs already renamed
    """
    placed: list[str] = []
    for output in outputs:
        try:
            output.place()
        except FileError as error:
            if not placed:
                raise
            raise FileError(f"{error}; in place already: {', '.join(placed)}; run again") from error
        if output.name != STDOUT:
            placed.append(output.name)


class PythonFile(io.RawIOBase):
    """An output as a Python file object, for libraries that write to such objects only."""

    def __init__(self, output: ByteSink) -> None:
        self._output: ByteSink | None = output
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        content = bytes(data)
        if self._output is not None:
            self._output.write(content)
        self._written += len(content)
        return len(content)

    def tell(self) -> int:
        return self._written

    def let_go(self) -> None:
        """Ignore all later writes."""
        self._output = None


class RowWriter:
    """Writes rows as their exact bytes, each with its newline at once, so that a reader of a stream sees it.

    The last row of an input may have no newline. Then the newline is written only before the next row; if
    no row follows, none is written.
    """

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self._open = False

    def write(self, rows: list[bytes], *, bare: bool = False) -> None:
        """Append rows.

        rows: without their newlines; bare: the last row had no newline in the input
        """
        if not rows:
            return
        joined = b"\n".join(rows)
        head, tail = b"\n" if self._open else b"", b"" if bare else b"\n"
        self._sink.write(head + joined + tail if head or tail else joined)
        self._open = bare


_FOLDER = re.compile(r"/proc/(?P<process>\d+)(?:/task/\d+)?/fd|/dev/fd")
_MAX_LINKS = 40


def descriptor_of(name: str, *, writes: bool) -> int | None:
    """The file descriptor that a name such as `-` or /dev/fd/3 stands for; None for the name of a file.

    Symbolic links are followed.
    writes: True: `-` is stdout; False: `-` is stdin
    """
    if name == STDOUT:
        return 1 if writes else 0
    path = name
    for _ in range(_MAX_LINKS):
        folder, last = os.path.split(os.path.abspath(path))
        folder = os.path.realpath(folder)
        match = _FOLDER.fullmatch(folder)
        if match and last.isdecimal() and match["process"] in (None, str(os.getpid())):
            return int(last)
        try:
            path = os.path.join(folder, os.readlink(os.path.join(folder, last)))
        except OSError:
            return None
    return None


_SHARED_BY_NOBODY = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFIFO)
"""File types (regular file, folder, pipe) that two uses must not share, because their rows would be mixed."""


class FileUse(NamedTuple):
    """A file that a command reads or writes.

    use: the file's purpose in error texts: `an input`, a flag, or a settings key
    name: a path, or `-` for stdin or stdout
    folder: the use includes all files below this folder
    """

    use: str
    name: str
    folder: bool = False


def refuse_clashes(
    inputs: Iterable[str],
    outputs: Mapping[str, str | None],
    *,
    settings: Settings | None = None,
    config: str | None = None,
    state: Iterable[FileUse] = (),
) -> None:
    """Refuse to write a file that the command also reads, or writes for another use.

    inputs: names of the inputs
    outputs: name of the output for each flag, None if the flag was not used
    settings: the files named in the settings are read
    config: name of the settings file, which is read
    state: further files that the command writes

    Two names of the same file are recognised, also through links, hard links, descriptors and redirections.
    Devices may be shared.
    raises: UsageError naming both uses; also for an output with an empty name or an address
    """
    read = [FileUse("an input", name) for name in inputs]
    if config is not None:
        read.append(FileUse("the settings file", config))
    if settings is not None:
        read += [FileUse(key, name) for key, name in named_files(settings)]
    written = [FileUse(flag, name) for flag, name in outputs.items() if name is not None]
    taken = _Taken()
    for place in read:
        taken.add(place, _Identity(place, writes=False))
    for place in (*written, *state):
        if not place.name:
            raise UsageError(f"{place.use}: the name is empty; name a file, or `-` for stdout")
        if is_address(place.name):
            raise UsageError(
                f"{place.use} {shown(place.name)}: an output must be a local file; name one and copy it there"
            )
        identity = _Identity(place, writes=True)
        other = taken.same_as(identity)
        if other is not None:
            raise UsageError(
                f"{place.use} {place.name}: is also {other.use} ({shown(other.name)}); name another file"
            )
        taken.add(place, identity)


class _Taken:
    """The files in use, indexed by their marks, because there may be thousands of inputs and outputs."""

    def __init__(self) -> None:
        self._by_mark: dict[object, FileUse] = {}
        self._all: list[tuple[FileUse, _Identity]] = []
        self._folders: list[tuple[FileUse, _Identity]] = []

    def add(self, place: FileUse, identity: _Identity) -> None:
        for mark in identity.marks:
            self._by_mark.setdefault(mark, place)
        self._all.append((place, identity))
        if place.folder:
            self._folders.append((place, identity))

    def same_as(self, identity: _Identity) -> FileUse | None:
        """An earlier use of the same file, or of a folder that contains it or is below it; None without."""
        for mark in identity.marks:
            if mark in self._by_mark:
                return self._by_mark[mark]
        for other, other_identity in self._all if identity.folder else self._folders:
            if identity.holds(other_identity) or other_identity.holds(identity):
                return other
        return None


class _Identity:
    """Identifies the file that a name stands for.

    marks: two names of the same file share at least one of these: a descriptor, the device and inode, or the
        path with all links resolved; empty for a device
    """

    def __init__(self, place: FileUse, *, writes: bool) -> None:
        descriptor = descriptor_of(place.name, writes=writes)
        self.path = None if descriptor is not None else os.path.realpath(place.name)
        self.folder = place.folder
        self.marks: set[object] = {descriptor} if self.path is None else {self.path}
        with suppress(OSError, ValueError):
            status = os.stat(place.name) if descriptor is None else os.fstat(descriptor)
            if stat.S_IFMT(status.st_mode) in _SHARED_BY_NOBODY:
                self.marks.add((status.st_dev, status.st_ino))
            elif descriptor is None:
                self.marks.clear()

    def holds(self, other: _Identity) -> bool:
        return self.folder and other.path is not None and other.path.startswith(f"{self.path}{os.sep}")
