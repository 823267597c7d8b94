"""Read settings from a file, the environment and flags, and report all problems at once, each with its place.

Environment variables override the file, and flags override both. `TWINSIEVE_NEAR__SIMILARITY=0.9` sets
`near.similarity`. In variables and flags a list is written `a,b` and a mapping `8:3,64:5`, or both as in the
file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.checks import cross_check
from twinsieve.pipeline.settings.client_options import unused_options
from twinsieve.pipeline.settings.examples import example_names
from twinsieve.pipeline.settings.model import AUTO, PROFILES, ExactSettings, NearSettings, Section, Settings
from twinsieve.pipeline.settings.named_files import read_referenced
from twinsieve.pipeline.settings.schema import (
    FORMER,
    SECRETS,
    did_you_mean,
    literals,
    schema,
)
from twinsieve.pipeline.settings.tree import Finding, KeyPath, Location, Raw, Tree, dotted
from twinsieve.stages.errors import shown

_PREFIX = "TWINSIEVE_"


class Override(NamedTuple):
    """A value from outside the file. key: dotted key; source: the variable or flag that sets it"""

    key: str
    text: str
    source: str


def load_settings(
    path: Path | None,
    environ: Mapping[str, str] | None = None,
    flags: Iterable[Override] = (),
    *,
    on_files: bool = False,
) -> Settings:
    """The settings from file, environment and flags.

    path: a YAML file; None: no file, only defaults
    environ: environment variables; only `TWINSIEVE_*` are used
    on_files: whether the input is files; then a window has no age limit unless one is set
    raises: ConfigError with all findings
    """
    settings, findings = check_tree(tree_of_file(path), environ, flags, on_files=on_files)
    if findings or settings is None:
        raise ConfigError([str(finding) for finding in findings])
    return settings


def tree_of_file(path: Path | None) -> Tree:
    """The values of the file, without environment and flags; an empty tree if `path` is None."""
    tree = Tree()
    if path is not None:
        # Only now, because runs without a file do not need yaml.
        from twinsieve.pipeline.settings.yaml_tree import read_yaml

        tree = read_yaml(path)
    for key in sorted(SECRETS):
        place = tree.key_places.get(tuple(key.split(".")))
        if place is not None:
            tree.find(place, f"{key} is a secret; {_elsewhere(key)}")
    return tree


def check_tree(
    tree: Tree,
    environ: Mapping[str, str] | None = None,
    flags: Iterable[Override] = (),
    *,
    on_files: bool = False,
) -> tuple[Settings | None, list[Finding]]:
    """The settings and all findings, in the order of their places.

    A value with a finding has its default in the settings. The settings are None if they are still not
    valid then.

    tree: values from a file or a mapping. Afterwards it also holds those of environment and flags, and the
        place from which each value came
    """
    overrides, misspelt = _from_environment(environ or {})
    flags = list(flags)
    tree.findings += [*misspelt, *_flag_findings(flags)]
    for override in [*overrides, *flags]:
        _put(tree, override)
    _leave_out_auto(tree)
    warnings = _leave_out_former(tree)
    settings = _validate(tree)
    if settings is not None:
        settings = _near_off_with_fields(_of_profile(settings), tree.values)
        if on_files:
            settings = _no_age_unless_set(settings)
        settings, problems = read_referenced(settings, tree.base, _in_file(tree))
        problems += cross_check(settings, tree.values)
        broken = {dotted(path) for path in _broken_paths(tree)}
        for key, message in problems:
            if key not in broken:
                tree.find(place_of_key(tree, key), f"{key} {message}")
        for name in unused_options(settings.kafka):
            key = f"kafka.options.{name}"
            said = "has no effect: it is an option of librdkafka that kafka-python does not have; remove it"
            warnings.append(Finding(_place_of(tree, ("kafka", "options", name)), f"{key} {said}"))
        settings = settings.with_warnings(tuple(map(str, warnings)))
    return settings, sorted(set(tree.findings))


def _leave_out_auto(tree: Tree) -> None:
    """Remove the keys of AUTO that have the value `auto`, because `auto` means the same as no value."""
    for key in AUTO:
        *above, name = key.split(".")
        section = _mapping_at(tree, above)
        if section.get(name) == "auto":
            del section[name]


def _leave_out_former(tree: Tree) -> list[Finding]:
    """Remove the keys of FORMER that have an accepted value; returns the warnings about them."""
    warnings = []
    for key, accepted in FORMER.items():
        *above, name = key.split(".")
        section = _mapping_at(tree, above)
        value = section.get(name)
        if isinstance(value, str) and value in accepted:
            del section[name]
            if accepted[value]:
                warnings.append(Finding(place_of_key(tree, key), f"{key} {accepted[value]}"))
    return warnings


def _mapping_at(tree: Tree, names: Sequence[str]) -> dict[str, Raw]:
    """The mapping below these names; an empty one if there is none."""
    section: Raw = tree.values
    for name in names:
        section = section.get(name) if isinstance(section, dict) else None
    return section if isinstance(section, dict) else {}


def _of_profile(settings: Settings) -> Settings:
    """The settings with the profile's values for the near stage, except for keys that are set explicitly."""
    near = settings.near
    own: dict[str, object] = {}
    for name, value in PROFILES[settings.profile].items():
        if name not in near.model_fields_set:
            own[name] = value
        elif isinstance(value, Section):
            # Below a section, only the keys that are set explicitly override the profile's.
            section = getattr(near, name)
            own[name] = value.model_copy(update=section.model_dump(include=section.model_fields_set))
    return settings.model_copy(update={"near": near.model_copy(update=own)})


def _near_off_with_fields(settings: Settings, written: dict[str, Raw]) -> Settings:
    """The settings, with the near stage switched off if `exact.fields` is set and `near.method` is not.
    Messages with different ids are different messages, however similar their texts."""
    near = written.get("near")
    if not settings.exact.fields or (isinstance(near, dict) and "method" in near):
        return settings
    return settings.model_copy(update={"near": settings.near.model_copy(update={"method": "none"})})


def _no_age_unless_set(settings: Settings) -> Settings:
    """The settings without the default age limits of windows. An endless stream needs an age limit, but on
    files equal rows with times far apart would all be kept."""
    stages: dict[str, ExactSettings | NearSettings] = {"exact": settings.exact, "near": settings.near}
    changed = {
        name: stage.model_copy(update={"window": stage.window.model_copy(update={"age_ms": None})})
        for name, stage in stages.items()
        if "age_ms" not in stage.window.model_fields_set
    }
    return settings.model_copy(update=changed)


def _flag_findings(flags: Sequence[Override]) -> Iterator[Finding]:
    """Findings on secrets in flags, and on flags that set one key to different values."""
    first: dict[str, Override] = {}
    for flag in flags:
        key, place, before = flag.key, Location(flag.source), first.setdefault(flag.key, flag)
        if key in SECRETS:
            # Other users can see flags in the list of processes, but not keyword arguments of `Sieve`.
            if flag.source.startswith("-"):
                seen = "other users can see command lines"
                yield Finding(place, f"{key} is a secret, and {seen}; {_elsewhere(key)}")
        elif before.text != flag.text:
            other = f"but {before.source} sets it to {_shown(before.text)}; leave one of the two out"
            yield Finding(place, f"sets {key} to {_shown(flag.text)}, {other}")


def _elsewhere(secret: str) -> str:
    return f"set {_variable(secret)} or name a file in {secret}_file"


def _from_environment(environ: Mapping[str, str]) -> tuple[list[Override], list[Finding]]:
    overrides, findings = [], []
    for name in sorted(environ):
        if not name.startswith(_PREFIX):
            continue
        key = name[len(_PREFIX) :].lower().replace("__", ".")
        if key not in schema() or schema()[key] == "section":
            problem = _stray(key)
            if problem is not None:
                findings.append(Finding(Location(name), problem))
                continue
            # Ignore a variable that names no key below a section: it may have another use, such as the
            # address of a service in Kubernetes.
            if "." not in key:
                continue
        overrides.append(Override(key, environ[name], name))
    return overrides, findings


def _stray(key: str) -> str | None:
    """Why a variable with the name of a section or of `-c` sets nothing; None for any other variable."""
    if key == "config":
        return "sets nothing; name the settings file with -c"
    if schema().get(key) == "section":
        return f"sets nothing; {key} holds other keys, as {_variable(next(iter(_values_below(key))))}"
    return None


def _values_below(section: str) -> list[str]:
    return [key for key, kind in schema().items() if kind != "section" and key.startswith(f"{section}.")]


def _variable(key: str) -> str:
    return _PREFIX + key.replace(".", "__").upper()


def _put(tree: Tree, override: Override) -> None:
    place = Location(override.source)
    kind = schema().get(override.key)
    if kind is None and override.key not in FORMER:
        section, _, name = override.key.rpartition(".")
        advice = did_you_mean(section if section in schema() else "", name)
        tree.find(place, f"unknown key {override.key!r}; {advice}")
        return
    value: Raw = override.text
    if kind == "section" and not override.text.lstrip().startswith("{"):
        below = next(iter(_values_below(override.key))).removeprefix(f"{override.key}.")
        said = f"holds other keys; name one, as {override.key}.{below}, or write {{{below}: …}}"
        tree.find(place, f"{override.key} {said}")
        return
    if kind in ("list", "mapping", "section") and override.text.lstrip().startswith(("[", "{")):
        from twinsieve.pipeline.settings.yaml_tree import read_flow

        flow = read_flow(override.text, override.source)
        if flow.findings:
            tree.findings += flow.findings
            return
        value = flow.values.get("value")
    elif kind == "list":
        value = [part.strip() for part in override.text.split(",") if part.strip()]
    elif kind == "mapping":
        pairs = [part.partition(":") for part in override.text.split(",") if part.strip()]
        value = {left.strip(): right.strip() for left, _, right in pairs}
    elif not override.text:
        value = None
    _place_value(tree, override.key, value, place)


def _place_value(tree: Tree, key: str, value: Raw, place: Location) -> None:
    """Replace the value of a key. If the key is a section, replace only the keys that `value` contains."""
    if schema().get(key) == "section" and isinstance(value, dict):
        for name, below in value.items():
            if f"{key}.{name}" in schema():
                _place_value(tree, f"{key}.{name}", below, place)
            else:
                tree.find(place, f"unknown key '{key}.{name}'; {did_you_mean(key, str(name))}")
        return
    path = tuple(key.split("."))
    inside = _section(tree.values, path[:-1])
    if inside is None:
        return
    inside[path[-1]] = value
    for known in [known for known in tree.places if known[: len(path)] == path]:
        del tree.places[known]
    tree.places[path] = place


def _section(values: dict[str, Raw], names: Sequence[str]) -> dict[str, Raw] | None:
    """The mapping below these names, made if it is missing; None if one of the names has another value."""
    for name in names:
        if values.get(name) is None:
            values[name] = {}
        below = values[name]
        if not isinstance(below, dict):
            return None
        values = below
    return values


def _validate(tree: Tree) -> Settings | None:
    """The settings, in which every wrong value is replaced by its default and added to the findings. None if
    they are still not valid."""
    try:
        return Settings.model_validate(tree.values)
    except ValidationError as error:
        details = error.errors(include_url=False)
    for detail in details:
        path = _as_written(tree.values, _known_part(detail["loc"]))
        place = _place_of(tree, path, key=detail["type"] == "extra_forbidden")
        tree.find(place, _message(path, detail))
        _drop(tree.values, path)
    try:
        return Settings.model_validate(tree.values)
    except ValidationError:
        return None


def _in_file(tree: Tree) -> set[KeyPath]:
    """Paths of the values that come from the file and are not overridden."""
    return {path for path, place in tree.places.items() if place.line}


def _path(tree: Tree, key: str) -> KeyPath:
    """The path of a dotted key; a number in it is the place in a list, or else the key in a mapping."""
    path: KeyPath = ()
    for part in key.split("."):
        in_mapping = (*path, part)
        path = in_mapping if in_mapping in tree.places or not part.isdigit() else (*path, int(part))
    return path


def _known_part(loc: KeyPath) -> KeyPath:
    return tuple(part for part in loc if part != "[key]")


def _as_written(values: object, path: KeyPath) -> KeyPath:
    """The path of the value as the user wrote it: without the list index if the user wrote a single value
    instead of a list."""
    for depth, part in enumerate(path):
        if isinstance(values, dict):
            values = values.get(part)
        elif isinstance(values, list) and isinstance(part, int):
            values = values[part] if part < len(values) else None
        else:
            return path[:depth]
    return path


def place_of_key(tree: Tree, key: str) -> Location:
    """Where the value of a setting was written, or the section around it."""
    return _place_of(tree, _path(tree, key))


def _broken_paths(tree: Tree) -> list[KeyPath]:
    at = {finding.place for finding in tree.findings}
    return [path for path, place in tree.places.items() if place in at]


def _place_of(tree: Tree, path: KeyPath, *, key: bool = False) -> Location:
    places = tree.key_places if key else tree.places
    for length in range(len(path), 0, -1):
        place = places.get(path[:length]) or tree.places.get(path[:length])
        if place is not None:
            return place
    return Location("settings")


def _drop(values: dict[str, Raw], path: KeyPath) -> None:
    """Remove the value at `path`. If it is inside a list or mapping, remove the whole list or mapping."""
    for depth, part in enumerate(path, start=1):
        name = str(part)
        below = values.get(name)
        if not isinstance(below, dict) or schema().get(dotted(path[:depth])) != "section":
            values.pop(name, None)
            return
        values = below


def _message(path: KeyPath, detail: Mapping[str, Any]) -> str:
    key, kind, value = dotted(path), detail["type"], detail["input"]
    if kind == "extra_forbidden":
        return f"unknown key {key!r}; {did_you_mean(dotted(path[:-1]), str(path[-1]))}"
    if key in SECRETS:
        return f"{key} cannot be read; it is text without NUL, digest.seed a whole number below 2^64"
    if value is None:
        return f"{key} has no value; give it one or remove the key"
    if kind in ("model_type", "dict_type"):
        return f"{key} is {_shown(value)}; it needs keys below it"
    if kind == "tuple_type":
        return f"{key} is {_shown(value)}; it needs a list, as in [a, b]"
    if isinstance(value, (dict, list)) and value:
        return f"{key} is {_shown(value)}; it needs a single value"
    context = detail.get("ctx", {})
    if kind == "value_error":
        return f"{key} {context['error']}"
    if kind == "literal_error":
        words = literals(key)
        off = value in ("off", "false", "no") and "none" in words
        advice = "write none to switch it off" if off else f"choose {', '.join(words)}"
        if key == "profile" and value in example_names():
            advice += f"; {value} is a settings file: twinsieve config show {value} > {value}.yaml"
        return f"{key} is {_shown(value)}; {advice}"
    if kind == "string_pattern_mismatch":
        return f"{key} is {_shown(value)}; letters, digits, - and _ alone, at most 80 (no dots)"
    limits = {
        "greater_than_equal": "at least {ge}",
        "less_than_equal": "at most {le}",
        "less_than": "below {lt}",
        "string_too_long": "at most {max_length} characters",
        "too_long": "at most {max_length} characters",
    }
    if kind in limits:
        # With some versions of pydantic the value is the text in the file, with others the number.
        said = _shown(value) if "long" in kind else _shown(value).strip("'")
        return f"{key} is {said}; it is {limits[kind].format(**context)}"
    if kind in ("too_short", "string_too_short"):
        return f"{key} is empty; give it a value or remove the key"
    if kind in ("float_parsing", "finite_number"):
        return f"{key} is {_shown(value)}, which is not a number; write it as 8.4"
    return f"{key} is {_shown(value)}: {detail['msg']}"


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    # Hide secrets before the text is cut, because half an address would not be recognized.
    said = repr(shown(value) if isinstance(value, str) else value)
    return said if len(said) <= 80 else said[:77] + "…'"


SOURCE = "settings"
"""The name that findings show instead of a file's."""

_MAX_DEPTH = 20


def tree_of(mapping: Mapping[str, object]) -> Tree:
    """The mapping as a tree. Keys may be nested or dotted; None becomes `none`, a timedelta a duration.

    >>> tree_of({"near.similarity": 0.9, "near": {"window": {"age": None}}}).values
    {'near': {'similarity': '0.9', 'window': {'age': 'none'}}}
    """
    tree = Tree()
    _put_all(tree, tree.values, mapping, ())
    return tree


def _put_all(
    tree: Tree, inside: dict[str, Raw], mapping: Mapping[str, object], above: tuple[str, ...]
) -> None:
    for name, value in mapping.items():
        names = str(name).split(".")
        path = (*above, *names)
        place, shown = Location(SOURCE), ".".join(path[:4])
        if len(path) > _MAX_DEPTH:
            tree.find(place, f"{shown} is nested deeper than {_MAX_DEPTH} levels")
            continue
        is_section = isinstance(value, Mapping)
        below = _section(inside, names if is_section else names[:-1])
        if below is None or (names[-1] in below and not is_section):
            tree.find(place, f"{shown} is given twice; remove one of the two")
        elif isinstance(value, Mapping):
            _put_all(tree, below, value, path)
        else:
            below[names[-1]] = _raw(value)


def _raw(value: object) -> Raw:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return f"{value // timedelta(milliseconds=1)}ms"
    if isinstance(value, (list, tuple)):
        return [_raw(one) for one in value]
    return str(value)
