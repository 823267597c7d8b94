"""Imports go one way: commands, roles, ports and stages; only `pipeline/kafka/` knows a Kafka client."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import twinsieve

_WORLD = frozenset(
    [
        "asyncio",
        "builtins.open",
        "concurrent.futures",
        "confluent_kafka",
        "fsspec",
        "glob",
        "http",
        "io.open",
        "kafka",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "prometheus_client",
        "pydantic",
        "random",
        "requests",
        "rich",
        "click",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "subprocess",
        "tempfile",
        "time",
        "urllib",
        "yaml",
    ]
)
_ALLOWED_IN_STAGES = frozenset({"concurrent.futures"})
"""Threads that release the interpreter are arithmetic, not the world."""

_READS_LISTS = (Path("stages/differ/word_lists.py"), "yaml")
"""Lists of words, ours and a user's, are text in YAML: to parse it is no look at the world."""

_KEEPS_KERNELS = Path("stages/compiled.py")
"""The one module of `stages/` that touches the world: compiled kernels need a folder."""

_READS_PACKAGE_DATA = frozenset({"importlib.resources", "pkgutil"})
_MAY_READ_PACKAGE_DATA = {
    Path("stages/text/unicode.py"),  # the frozen Unicode database
    Path("stages/judge/scheme.py"),  # jieba's dictionaries, whose hashes the scheme id covers
    Path("stages/fingerprint/idf.py"),  # one of them
    Path("stages/differ/word_lists.py"),  # the lists of words
}
"""Data of a package is fixed by its version: reading it is no look at the world."""

_KAFKA_CLIENTS = frozenset({"kafka", "confluent_kafka"})

_BROUGHT_BY = {"llvmlite": "numba"}
"""A package that another one requires in exactly one version: bounds of our own could only contradict."""


def _modules(root: Path, package: str) -> list[Path]:
    return sorted((root / package).rglob("*.py"))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import; name the module in full"
            if node.module == "twinsieve":
                yield from ((node.lineno, f"twinsieve.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module or ""


def _of(name: str, wanted: frozenset[str]) -> bool:
    return any(name == one or name.startswith(one + ".") for one in wanted)


def test_stages_import_nothing_of_the_pipeline_and_nothing_of_the_world(root: Path) -> None:
    wrong = [
        f"{path.relative_to(root)}:{line}: {name}"
        for path in _modules(root, "stages")
        if path != root / _KEEPS_KERNELS
        for line, name in _imports(path)
        if _of(name, _WORLD | {"twinsieve.pipeline", "tests", "bench"})
        and not _of(name, _ALLOWED_IN_STAGES)
        and (path.relative_to(root), name) != _READS_LISTS
    ]
    assert not wrong, "\n".join(wrong)


def test_kernels_are_kept_on_disk_by_one_module(root: Path) -> None:
    users = {
        path.relative_to(root)
        for path in _modules(root, "stages")
        for _, name in _imports(path)
        if name == "twinsieve.stages.compiled"
    }
    assert users == {Path("stages/kernel.py")}
    own = {name for _, name in _imports(root / _KEEPS_KERNELS) if _of(name, frozenset({"twinsieve"}))}
    assert own == {"twinsieve.stages.numba_private"}


def test_kernels_are_decorated_in_one_way(root: Path) -> None:
    """A plain `njit(cache=True)` would keep a kernel beside its source, and load it when a callee has changed."""
    users = {
        str(path.relative_to(root))
        for package in ("stages", "pipeline")
        for path in _modules(root, package)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "numba"
        if {alias.name for alias in node.names} & {"jit", "njit"}
    }
    assert users == {"stages/kernel.py"}


def test_stages_open_print_and_ask_for_nothing(root: Path) -> None:
    wrong = [
        f"{path.relative_to(root)}:{node.lineno}: {node.func.id}"
        for path in _modules(root, "stages")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"open", "print", "input"}
    ]
    assert not wrong, "\n".join(wrong)


def test_stages_read_the_data_of_packages_in_named_places_alone(root: Path) -> None:
    users = {
        path.relative_to(root)
        for path in _modules(root, "stages")
        for _, name in _imports(path)
        if _of(name, _READS_PACKAGE_DATA)
    }
    assert users == _MAY_READ_PACKAGE_DATA


_FOLLOWS_THE_PYTHON = frozenset(
    {
        *("casefold", "lower", "upper", "title", "swapcase", "capitalize"),
        *("isalnum", "isalpha", "isdecimal", "isdigit", "isnumeric", "isspace"),
    }
)


def test_no_verdict_follows_the_unicode_version_of_the_python(root: Path) -> None:
    """What texts become is decided by the frozen tables alone; names of our own are ASCII."""
    wrong = [
        f"{path.relative_to(root)}:{line}: {name}"
        for package in ("stages", "pipeline")
        for path in _modules(root, package)
        for line, name in _imports(path)
        if _of(name, frozenset({"unicodedata"})) and path != root / "pipeline" / "commands" / "terminal.py"
    ]
    wrong += [
        f"{path.relative_to(root)}:{node.lineno}: {node.attr}"
        for path in _modules(root, "stages")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute)
        and (node.attr in _FOLLOWS_THE_PYTHON or (node.attr == "strings" and "np" in ast.unparse(node)))
        and not (isinstance(node.value, ast.Attribute) and node.value.attr == "name")
    ]
    assert not wrong, "\n".join(wrong)


def test_only_the_kafka_folder_imports_a_kafka_client(root: Path) -> None:
    users = {
        path.relative_to(root)
        for package in ("stages", "pipeline", "twinsieve")
        for path in _modules(root, package)
        for _, name in _imports(path)
        if _of(name, _KAFKA_CLIENTS)
    }
    assert all(user.parts[:2] == ("pipeline", "kafka") for user in users), users


def test_commands_are_imported_by_the_command_line_alone(root: Path) -> None:
    allowed = {Path("pipeline/commands/cli.py"), Path("twinsieve/__main__.py")}
    users = {
        path.relative_to(root)
        for package in ("pipeline", "twinsieve")
        for path in _modules(root, package)
        for _, name in _imports(path)
        if _of(name, frozenset({"twinsieve.pipeline.commands", "twinsieve.pipeline.commands.cli"}))
    }
    assert all(user in allowed or user.parts[:2] == ("pipeline", "commands") for user in users), users


def test_the_program_imports_nothing_of_tests_and_benches(root: Path) -> None:
    wrong = [
        f"{path.relative_to(root)}:{line}: {name}"
        for package in ("stages", "pipeline", "twinsieve")
        for path in _modules(root, package)
        for line, name in _imports(path)
        if _of(name, frozenset({"tests", "bench", "hypothesis", "pytest", "rapidfuzz", "rensa"}))
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_imports_the_public_face_but_those_who_use_it(root: Path) -> None:
    """`twinsieve/api/` stands on the pipeline and the stages; they know nothing of it."""
    public = frozenset({"twinsieve.api", *(f"twinsieve.{name}" for name in twinsieve.__all__)})
    wrong = [
        f"{path.relative_to(root)}:{line}: {name}"
        for package in ("stages", "pipeline")
        for path in _modules(root, package)
        for line, name in _imports(path)
        if name == "twinsieve" or _of(name, public)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", ["stages", "pipeline", "twinsieve"])
def test_every_import_is_ours_pythons_or_a_stated_dependency(root: Path, package: str) -> None:
    import tomllib
    from importlib.metadata import packages_distributions

    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    stated = {
        text.split(">=")[0].lower().replace("_", "-")
        for text in [*project["dependencies"], *extras["arrow"], *extras["confluent"], *extras["opencc"]]
    }
    stated |= {name for name, owner in _BROUGHT_BY.items() if owner in stated and _requires(owner, name)}
    known = packages_distributions()
    wrong = [
        f"{path.relative_to(root)}:{line}: {name}"
        for path in _modules(root, package)
        for line, name in _imports(path)
        if (top := name.partition(".")[0]) not in sys.stdlib_module_names | {"twinsieve", "__future__"}
        and not {one.lower().replace("_", "-") for one in known.get(top, [])} & stated
    ]
    assert not wrong, "\n".join(wrong)


def _requires(owner: str, name: str) -> bool:
    from importlib.metadata import requires

    return any(re.match(rf"{re.escape(name)}\b", text) for text in requires(owner) or ())


def test_every_dependency_has_bounds_and_a_pin(root: Path) -> None:
    import tomllib

    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    pins = (root / "requirements-dev.lock").read_text("utf-8")
    everything = [
        *project["dependencies"],
        *(text for extra in project["optional-dependencies"].values() for text in extra),
    ]
    for text in everything:
        assert ">=" in text, text
        assert ",<" in text, text
        assert f"{text.split('>=')[0].lower().replace('_', '-')}==" in pins, text
    for name in ("requirements.lock", "requirements-dev.lock"):
        assert "://" not in (root / name).read_text("utf-8"), f"{name} names a host"


def test_one_import_name(root: Path) -> None:
    """`import stages` would load every module a second time, from a checkout alone."""
    wrong = [
        f"{path.relative_to(root)}:{line}: {name}"
        for package in ("stages", "pipeline", "twinsieve", "tests", "bench")
        for path in _modules(root, package)
        for line, name in _imports(path)
        if _of(name, frozenset({"stages", "pipeline"}))
    ]
    assert not wrong, "\n".join(wrong)


def test_links_of_the_package_lead_to_folders_at_the_top(root: Path) -> None:
    linked = {"stages": "stages", "pipeline": "pipeline", "examples": "config"}
    for name, folder in linked.items():
        assert (root / "twinsieve" / name).resolve() == (root / folder).resolve()
        assert (root / "twinsieve" / name).is_symlink(), "a second copy would go its own way"
    assert {path.name for path in (root / "twinsieve").iterdir() if path.is_symlink()} == set(linked)


def _private_names_of_others(root: Path, path: Path) -> list[str]:
    """Attributes in lower case behind one underscore, of anything but `self`; those of named tuples are public."""
    return [
        f"{path.relative_to(root)}:{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute)
        and re.match(r"_(?!fields\b|replace\b|asdict\b)[a-z]", node.attr)
        and ast.unparse(node.value) not in ("self", "super()")
    ]


def test_what_a_kafka_client_keeps_private_is_touched_in_one_file_a_client(root: Path) -> None:
    """Upper case is public in confluent-kafka: `KafkaError._FATAL` is librdkafka's name of an error."""
    wrong = [
        name
        for path in _modules(root, "pipeline/kafka")
        if path.name != "patches.py"
        for name in _private_names_of_others(root, path)
    ]
    assert not wrong, "\n".join(wrong)


_COMPILERS = frozenset({"numba", "llvmlite"})
_OPEN_TO_ALL = re.compile(
    r"numba(\.extending)?(\.(?!core)[a-z]\w*)?|numba\.core\.cgutils|llvmlite(\.(binding|ir))?(\.[A-Za-z]\w*)?"
)
"""What the manuals of Numba and llvmlite show; `cgutils` is there for intrinsics."""


def _names_imported(path: Path) -> Iterator[str]:
    """`package.module` and, of those that are imported from one, `package.module.name`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_what_numba_keeps_private_is_touched_in_one_file(root: Path) -> None:
    """Its classes, whose methods could be replaced, lie in modules that its manual does not show."""
    wrong = []
    for path in (path for package in ("stages", "pipeline", "twinsieve") for path in _modules(root, package)):
        if path == root / "stages" / "numba_private.py":
            continue
        names = [name for name in _names_imported(path) if _of(name, _COMPILERS)]
        wrong += [f"{path.relative_to(root)}: {name}" for name in names if not _OPEN_TO_ALL.fullmatch(name)]
        wrong += _private_names_of_others(root, path) if names else []
        wrong += [
            f"{path.relative_to(root)}:{node.lineno}: {node.value}"
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Constant) and re.match(r"_(nrt|numba)", str(node.value))
        ]
    assert not wrong, "\n".join(wrong)
