"""Imports go one way: commands, roles, ports and stages; only `pipeline/kafka/` knows a Kafka client."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
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
_PROGRAM = ("stages", "pipeline", "twinsieve")
_PUBLIC = frozenset({"twinsieve.api", *(f"twinsieve.{name}" for name in twinsieve.__all__)})

_KEPT_FROM: dict[str, tuple[tuple[str, ...], frozenset[str], frozenset[str]]] = {
    "stages know nothing of the world": (
        ("stages",),
        _WORLD | {"twinsieve.pipeline"},
        # Compiled kernels need a folder; lists of words are text in YAML; threads that release the interpreter
        # are arithmetic.
        frozenset({"stages/kernel/", "stages/differ/word_lists.py: yaml", "stages/: concurrent.futures"}),
    ),
    "what compiles and keeps kernels knows no other module": (
        ("stages/kernel",),
        frozenset({"twinsieve"}),
        frozenset({"stages/kernel/: twinsieve.stages.kernel"}),
    ),
    # Data of a package is fixed by its version: reading it is no look at the world.
    "data of packages is read in named places": (
        ("stages",),
        frozenset({"importlib.resources", "pkgutil"}),
        frozenset(
            {
                "stages/text/unicode.py",  # the frozen Unicode database
                "stages/judge/scheme.py",  # jieba's dictionaries, whose hashes the scheme id covers
                "stages/fingerprint/idf.py",  # one of them
                "stages/fingerprint/segmenter.py",  # jieba's stop words
                "stages/differ/word_lists.py",  # the lists of words
            }
        ),
    ),
    "only the Kafka folder imports a Kafka client": (
        _PROGRAM,
        frozenset({"kafka"}),
        frozenset({"pipeline/kafka/"}),
    ),
    # The client of a schema registry comes with another one of a broker.
    "the program uses of confluent-kafka what speaks to a registry": (
        _PROGRAM,
        frozenset({"confluent_kafka"}),
        frozenset({"pipeline/registry/: confluent_kafka.schema_registry"}),
    ),
    "other people's clients stand behind one helper": (
        ("tests", "bench"),
        frozenset({"confluent_kafka"}),
        frozenset({"tests/broker/stranger.py", "tests/registry/"}),
    ),
    "only the command line imports commands": (
        ("pipeline", "twinsieve"),
        frozenset({"twinsieve.pipeline.commands"}),
        frozenset({"pipeline/commands/", "twinsieve/__main__.py"}),
    ),
    "nothing below knows the reports, and nothing else draws, renders or asks a database": (
        _PROGRAM,
        frozenset(
            {"twinsieve.pipeline.tools", "twinsieve.pipeline.status_pages", "duckdb", "jinja2", "matplotlib"}
        ),
        frozenset({"pipeline/tools/", "pipeline/status_pages/", "pipeline/pages/", "pipeline/commands/"}),
    ),
    "the program needs no tests and no benchmarks": (
        _PROGRAM,
        frozenset({"tests", "bench", "hypothesis", "pytest", "rapidfuzz", "rensa"}),
        frozenset(),
    ),
    "nothing stands on the public face": (("stages", "pipeline"), _PUBLIC | {"twinsieve$"}, frozenset()),
    # `import stages` would load every module a second time, from a checkout alone.
    "modules have one name": ((*_PROGRAM, "tests", "bench"), frozenset({"stages", "pipeline"}), frozenset()),
}
"""Claim -> (where, what is not imported there, but in these: a file, a folder with / at its end, or those of one name)."""

_BROUGHT_BY = {"llvmlite": "numba"}
"""A package that another one requires in exactly one version: bounds of our own could only contradict."""


def _modules(root: Path, package: str) -> list[Path]:
    return [root / package] if package.endswith(".py") else sorted((root / package).rglob("*.py"))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import; name the module in full"
            if node.module == "twinsieve":
                yield from ((node.lineno, f"twinsieve.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module or ""


def _of(name: str, wanted: frozenset[str]) -> bool:
    """Whether a name, or what it lies in, is wanted; one that ends in "$" stands for itself alone."""
    return f"{name}$" in wanted or any(name == one or name.startswith(one + ".") for one in wanted)


@pytest.mark.parametrize("claim", _KEPT_FROM)
def test_no_import_breaks_this(root: Path, claim: str) -> None:
    places, kept_from, allowed = _KEPT_FROM[claim]
    unused, wrong = set(allowed), []
    for path in [path for place in places for path in _modules(root, place)]:
        for line, name in _imports(path):
            if _of(name, kept_from):
                file = str(path.relative_to(root))
                by = {one for one in allowed if _covers(one, file, name)}
                unused -= by
                wrong += [] if by else [f"{file}:{line}: {name}"]
    assert (wrong, unused) == ([], set())


def _covers(allowed: str, file: str, name: str) -> bool:
    place, _, names = allowed.partition(": ")
    return (file == place or (place.endswith("/") and file.startswith(place))) and names in ("", name)


def test_kernels_are_decorated_in_one_way(root: Path) -> None:
    """A plain `njit(cache=True)` would keep a kernel beside its source, and load it when a callee has changed."""
    users = {
        str(path.relative_to(root))
        for package in ("stages", "pipeline")
        for path in _modules(root, package)
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ImportFrom) and node.module == "numba"
        if {alias.name for alias in node.names} & {"jit", "njit"}
    }
    assert users == {"stages/kernel/__init__.py"}


def test_stages_open_print_and_ask_for_nothing(root: Path) -> None:
    wrong = [
        f"{path.relative_to(root)}:{node.lineno}: {node.func.id}"
        for path in _modules(root, "stages")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"open", "print", "input"}
    ]
    assert not wrong, "\n".join(wrong)


_FOLLOWS_THE_PYTHON = frozenset(
    {
        *("casefold", "lower", "upper", "title", "swapcase", "capitalize"),
        *("isalnum", "isalpha", "isdecimal", "isdigit", "isnumeric", "isspace"),
    }
)


_ONLY_SHOWS = ("pipeline/basics/printable.py", "pipeline/pages/differing.py")


def test_no_verdict_follows_the_unicode_version_of_the_python(root: Path) -> None:
    """What texts become is decided by the frozen tables alone; names of our own are ASCII."""
    wrong = [
        f"{path.relative_to(root)}:{line}: {name}"
        for package in ("stages", "pipeline")
        for path in _modules(root, package)
        for line, name in _imports(path)
        if _of(name, frozenset({"unicodedata"})) and str(path.relative_to(root)) not in _ONLY_SHOWS
    ]
    wrong += [
        f"{path.relative_to(root)}:{node.lineno}: {node.attr}"
        for path in _modules(root, "stages")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Attribute)
        and (node.attr in _FOLLOWS_THE_PYTHON or (node.attr == "strings" and "np" in ast.unparse(node)))
        and not (isinstance(node.value, ast.Attribute) and node.value.attr == "name")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", ["stages", "pipeline", "twinsieve"])
def test_every_import_is_ours_pythons_or_a_stated_dependency(root: Path, package: str) -> None:
    import tomllib
    from importlib.metadata import packages_distributions

    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    stated = {
        text.split(">=")[0].partition("[")[0].lower().replace("_", "-")
        for text in [
            *project["dependencies"],
            *(text for name in extras if name != "dev" for text in extras[name]),
        ]
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
        name = re.escape(text.split(">=")[0].partition("[")[0].lower().replace("_", "-"))
        # A pin may name extras that another dependency asks for.
        assert re.search(rf"^{name}(\[[^]]+\])?==", pins, re.MULTILINE), text


def _private_names_of_others(root: Path, path: Path) -> list[str]:
    """Attributes in lower case behind one underscore, of anything but `self`; those of named tuples are public."""
    return [
        f"{path.relative_to(root)}:{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Attribute)
        and re.match(r"_(?!fields\b|replace\b|asdict\b)[a-z]", node.attr)
        and ast.unparse(node.value) not in ("self", "super()")
    ]


def test_what_the_kafka_client_keeps_private_is_touched_in_one_file(root: Path) -> None:
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
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_what_numba_keeps_private_is_touched_in_one_folder(root: Path) -> None:
    """Its classes, whose methods could be replaced, lie in modules that its manual does not show."""
    wrong = []
    for path in (path for package in ("stages", "pipeline", "twinsieve") for path in _modules(root, package)):
        if path.parent == root / "stages" / "kernel":
            continue
        names = [name for name in _names_imported(path) if _of(name, _COMPILERS)]
        wrong += [f"{path.relative_to(root)}: {name}" for name in names if not _OPEN_TO_ALL.fullmatch(name)]
        wrong += _private_names_of_others(root, path) if names else []
        wrong += [
            f"{path.relative_to(root)}:{node.lineno}: {node.value}"
            for node in ast.walk(_tree(path))
            if isinstance(node, ast.Constant) and re.match(r"_(nrt|numba)", str(node.value))
        ]
    assert not wrong, "\n".join(wrong)
