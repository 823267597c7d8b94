"""Read a YAML file as text values, each with its line and column.

Scalars stay text, whatever their YAML tag, because the type of their key decides what `off`, `1e-6` or `010`
mean (`values.py`). Size, depth and number of nodes are limited, also after aliases are resolved, so that a
small file cannot make a huge tree.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from twinsieve.pipeline.settings.examples import example_meant
from twinsieve.pipeline.settings.tree import Finding, KeyPath, Location, Raw, Tree, dotted

_TOO_LARGE_BYTES = 1 << 20
_MAX_DEPTH = 20
_MAX_NODES = 20_000

_Mark = Any


def _advice(error: OSError, name: str) -> str:
    """What to do about a settings file that cannot be opened."""
    meant = example_meant(name) if isinstance(error, FileNotFoundError) else None
    if meant is None:
        return "name a readable file"
    return f"to get the example: twinsieve config show {meant} > {meant}.yaml"


def read_yaml(path: Path) -> Tree:
    """The file as a tree. Its problems are in `findings`; the tree has all values that could be read."""
    tree = Tree(path.parent)
    name = str(path)
    top = Location(name, 1, 1)
    try:
        with path.open("rb") as stream:
            content = stream.read(_TOO_LARGE_BYTES)
    except OSError as error:
        tree.find(top, f"cannot be read ({error.strerror}); {_advice(error, name)}")
        return tree
    if len(content) == _TOO_LARGE_BYTES:
        tree.find(top, "has 1 MiB or more; settings are a page or two")
        return tree
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        place = Location(name, before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        tree.find(place, "is not UTF-8; save the file as UTF-8")
        return tree
    _read_text(text, name, tree)
    return tree


def read_flow(text: str, source: str) -> Tree:
    """A list `[a, b]` or a mapping `{8: 3}`, written as in a file, as a tree with the only key `value`."""
    tree = Tree()
    _read_text(f"value: {text}", source, tree)
    tree.findings = [Finding(Location(source), finding.message) for finding in tree.findings]
    return tree


def _read_text(text: str, name: str, tree: Tree) -> None:
    try:
        problem = _too_much(text, name)
        if problem is not None:
            tree.findings.append(problem)
            return
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        tree.find(_place(name, mark) if mark is not None else Location(name, 1, 1), _syntax_problem(error))
        return
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = Location(name, before.count("\n") + 1, error.position - before.rfind("\n"))
        code = ord(text[error.position])
        tree.find(place, f"YAML forbids the character U+{code:04X}; remove it")
        return
    if isinstance(node, yaml.MappingNode):
        tree.values = _Walk(name, tree).mapping(node, ())
    elif node is not None:
        tree.find(_place(name, node.start_mark), "is not a mapping; write settings as `key: value` lines")


def _too_much(text: str, name: str) -> Finding | None:
    """A finding if the text has too many levels or nodes, else None. No node is built meanwhile."""
    depth = nodes = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        nodes += isinstance(event, yaml.NodeEvent)
        if nodes > _MAX_NODES:
            return Finding(_place(name, event.start_mark), f"has more than {_MAX_NODES} keys and values")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                place = _place(name, event.start_mark)
                return Finding(place, f"is nested deeper than {_MAX_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


def _place(name: str, mark: _Mark) -> Location:
    return Location(name, mark.line + 1, mark.column + 1)


def _syntax_problem(error: yaml.MarkedYAMLError) -> str:
    said = error.problem or error.context or "cannot be parsed"
    if "'\\t'" in said:
        return "a tab stands where blanks belong; indent with blanks"
    if "<block end>" in said and "<block mapping start>" in said:
        return "the line is not indented like the others of its section; give keys of one section one indent"
    return f"is not YAML: {said}; correct this line or the one above"


class _Walk:
    """Converts nodes to text values. It counts every visit of a node and stops at _MAX_NODES, because aliases
    of aliases can stand for a huge number of nodes."""

    def __init__(self, name: str, tree: Tree) -> None:
        self._name = name
        self._tree = tree
        self._visits = 0

    def mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Raw]:
        values: dict[str, Raw] = {}
        for key_node, value_node in node.value:
            place = _place(self._name, key_node.start_mark)
            if not isinstance(key_node, yaml.ScalarNode):
                self._tree.find(place, "a key is a single word")
                continue
            key = key_node.value
            below = (*path, key)
            if key == "<<":
                self._tree.find(place, "merge keys are not read; write the settings out")
            elif key in values:
                first = self._tree.key_places[below].line
                self._tree.find(place, f"{dotted(below)} is given twice, first in line {first}; remove one")
            else:
                self._tree.key_places[below] = place
                self._tree.places[below] = _place(self._name, value_node.start_mark)
                if self._may_visit(value_node, below):
                    values[key] = self._value(value_node, below)
        return values

    def _value(self, node: yaml.Node, path: KeyPath) -> Raw:
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            items: list[Raw] = []
            for number, item in enumerate(node.value):
                below = (*path, number)
                if self._may_visit(item, below):
                    self._tree.places[below] = _place(self._name, item.start_mark)
                    items.append(self._value(item, below))
            return items
        if isinstance(node, yaml.ScalarNode) and node.style is None and node.value in ("", "~", "null"):
            return None
        return str(node.value)

    def _may_visit(self, node: yaml.Node, path: KeyPath) -> bool:
        self._visits += 1
        place = _place(self._name, node.start_mark)
        if self._visits == _MAX_NODES:
            self._tree.find(place, f"has more than {_MAX_NODES} values, aliases counted")
        if len(path) > _MAX_DEPTH:
            self._tree.find(place, "an alias stands for something that contains the alias itself; remove it")
        return self._visits < _MAX_NODES and len(path) <= _MAX_DEPTH
