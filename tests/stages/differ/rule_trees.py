"""A digest of the code of each rule, with the version that the rule had then: `rule_trees.json`.

    python -m tests.stages.differ.rule_trees

writes the file after a rule has changed and its `version` in `stages/differ/rules.py` was raised; before that
it says whose to raise. What a digest covers is the syntax tree of the rule's function and of all that it calls
in the folders of `stages/`, with the values of constants. Comments, annotations, names of functions and
variables, and the files that they are in, are not part of it.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twinsieve.stages.differ.amounts import measured
from twinsieve.stages.differ.corrections import corrects
from twinsieve.stages.differ.denials import denials_of, may_deny
from twinsieve.stages.differ.difference import _any_marked_apart
from twinsieve.stages.differ.elsewhere import each_has_a_number, each_has_a_numeral, sense_elsewhere
from twinsieve.stages.differ.events import tells_other_stage
from twinsieve.stages.differ.numbers import number_rules
from twinsieve.stages.differ.operators import other_operator
from twinsieve.stages.differ.repeated import are_repeated
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.senses import may_exclude, sense_rules
from twinsieve.stages.differ.tails import tails_differ
from twinsieve.stages.differ.tokens import other_reference
from twinsieve.stages.judge.decide import _better
from twinsieve.stages.near.hamming import compare_bits
from twinsieve.stages.near.one_number import differ_in_a_number
from twinsieve.stages.near.signatures import compare_parts
from twinsieve.stages.near.verify import _cards_differ, compare, same_id
from twinsieve.stages.text.signs import signs_differ

FILE = Path(__file__).with_suffix(".json")

CODE: dict[tuple[Rule, ...], tuple[Callable[..., Any], ...]] = {
    (Rule.NONE,): (compare, compare_bits, compare_parts, _better),
    (Rule.SAME_ID,): (same_id,),
    (Rule.NUMBER, Rule.NUMERAL, Rule.NUMBER_ADDED): (
        *(number_rules, differ_in_a_number, each_has_a_number, each_has_a_numeral),
    ),
    (Rule.CALENDAR, Rule.OPPOSITE): (sense_rules, may_exclude, sense_elsewhere),
    (Rule.OPPOSITE,): (denials_of, may_deny, _any_marked_apart, other_operator),
    (Rule.STAGE,): (tells_other_stage,),
    (Rule.REPEATED,): (are_repeated,),
    (Rule.CORRECTION,): (corrects,),
    (Rule.LINK, Rule.MENTION, Rule.TAG): (other_reference,),
    (
        *(Rule.REPLACED, Rule.BOTH_SAY_MORE, Rule.LONG_REPLACEMENT, Rule.IN_ITS_PLACE, Rule.OWN_WORDS),
        *(Rule.ADDED_INSIDE, Rule.WORD_ADDED),
    ): (measured,),
    (Rule.TAIL,): (tails_differ,),
    (Rule.CARD,): (_cards_differ,),
    (Rule.SIGN,): (signs_differ,),
}
"""The functions that decide rules, beside what they call. The code of NONE is all that rules share: it ends
where the code of another rule begins."""


class Tree(NamedTuple):
    """What the file has for some rules. versions: by number of a rule"""

    digest: str
    versions: dict[str, int]


def trees() -> dict[str, Tree]:
    """The trees of today's code, by the names of their rules."""
    ends = {_place(function): names_of(rules) for rules, code in CODE.items() for function in code}
    found = {}
    for rules, code in CODE.items():
        others = ends if rules == (Rule.NONE,) else {}
        written = json.dumps([tree_of(*_place(function), others) for function in code])
        digest = blake2b(written.encode(), digest_size=8).hexdigest()
        found[names_of(rules)] = Tree(digest, {str(int(rule)): rule.version for rule in (Rule.NONE, *rules)})
    return found


def names_of(rules: Iterable[Rule]) -> str:
    return ", ".join(rule.words for rule in rules)


def _place(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__module__, function.__name__


def unraised(now: Mapping[str, Tree], before: Mapping[str, Tree]) -> list[str]:
    """Names of rules whose code has changed, while neither their version nor that of NONE was raised."""
    return [
        names
        for names, tree in now.items()
        if names in before
        and tree.digest != before[names].digest
        and not any(tree.versions[number] > version for number, version in before[names].versions.items())
    ]


def stored() -> dict[str, Tree]:
    """The content of the file."""
    return {names: Tree(*tree) for names, tree in json.loads(FILE.read_text()).items()}


def tree_of(
    module: str,
    name: str,
    ends: Mapping[tuple[str, str], str],
    descends: Callable[[str], bool] = lambda module: module.count(".") > 2,
) -> Any:
    """The syntax tree of a function and of all functions that it calls, as lists of texts.

    ends: functions that are another's, with his name; a call of them is in the tree, their code is not
    descends: whether the code of the functions in a module counts. What stands directly in `stages/` are the
        tools that kernels are made with
    """
    return _Trees(ends, descends).of(module, name)


class _Trees:
    def __init__(self, ends: Mapping[tuple[str, str], str], descends: Callable[[str], bool]) -> None:
        self._ends = ends
        self._descends = descends
        self._seen: dict[tuple[str, str], int] = {}

    def of(self, module: str, name: str) -> Any:
        """A function that was met before is only a number, which also ends a recursion."""
        if (module, name) in self._seen:
            return self._seen[module, name]
        self._seen[module, name] = len(self._seen)
        function = _source(module)[0][name]
        local = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and _is_bound(node)}
        names: dict[str, int] = {}
        for argument in _arguments(function):
            names[argument] = len(names)
        return self._nodes([*function.args.defaults, *_body(function)], module, local | names.keys(), names)

    def _nodes(self, node: Any, module: str, local: set[str], names: dict[str, int]) -> Any:
        if isinstance(node, list):
            return [self._nodes(each, module, local, names) for each in node]
        if isinstance(node, ast.Name):
            if node.id in local:
                return names.setdefault(node.id, len(names))
            return self._global(module, node.id)
        if isinstance(node, ast.Constant):
            return repr(node.value)
        if not isinstance(node, ast.AST):
            return node
        parts = [
            self._nodes(value, module, local, names)
            for field, value in ast.iter_fields(node)
            if field not in ("ctx", "annotation", "kind", "type_comment") and value is not None
        ]
        return [type(node).__name__, *parts]

    def _global(self, module: str, name: str) -> Any:
        functions, imported = _source(module)
        if name in imported:
            return self._global(*imported[name])
        if (module, name) in self._ends:
            return self._ends[module, name]
        if name in functions:
            return self.of(module, name) if self._descends(module) else name
        value = getattr(import_module(module), name, None)
        if isinstance(value, np.ndarray | np.generic):
            return [str(value.dtype), value.tolist()]
        if isinstance(value, type) and hasattr(value, "_fields"):
            return list(value._fields)
        return name if value is None or callable(value) or isinstance(value, type(ast)) else repr(value)


def _is_bound(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _arguments(function: ast.FunctionDef) -> list[str]:
    return [
        argument.arg
        for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    ]


def _body(function: ast.FunctionDef) -> list[ast.stmt]:
    return function.body[1:] if ast.get_docstring(function) is not None else function.body


@cache
def _source(module: str) -> tuple[dict[str, ast.FunctionDef], dict[str, tuple[str, str]]]:
    """The functions of a module, and what it imports of ours: module and name, by its name here."""
    tree = ast.parse(Path(str(import_module(module).__file__)).read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    imported = {
        name.asname or name.name: (node.module, name.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module and _is_ours(node.module, module)
        for name in node.names
    }
    return functions, imported


def _is_ours(other: str, module: str) -> bool:
    return other.partition(".")[0] == module.partition(".")[0]


def main() -> None:
    """Write the file, or say which version to raise first."""
    now = trees()
    if FILE.exists() and (rules := unraised(now, stored())):
        sys.exit(
            "\n".join(
                f"{each}: the code has changed; raise the version in stages/differ/rules.py" for each in rules
            )
        )
    FILE.write_text(json.dumps(now, indent=1) + "\n")


if __name__ == "__main__":
    main()
