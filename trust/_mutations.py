"""Changes of a source file, and how they are brought into a process that has imported it.

A mutant is one change in a function, in a default, or of a number with a name at the level of a module. Annotations,
decorators, strings, levels of stacks of warnings and bodies of classes stay as they are.
"""

import ast
import gc
import random
import sys
import types
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Site(NamedTuple):
    """A place in a tree and what to put there."""

    holder: Any  # list, or node
    key: Any  # index, or field
    old: ast.AST
    new: ast.AST
    functions: tuple[ast.AST, ...]  # around it, the outermost first
    lines: tuple[int, int]  # of the statement, or of the function if it is a default


class Mutant(NamedTuple):
    """A change of a file; `number` tells apart the same change at several places of a function."""

    file: str
    function: str
    before: str
    after: str
    number: int
    line: int
    reached_by: tuple[int, int]  # lines: the tests that reach one of them are those of the mutant
    compiled: bool
    place: int  # among all sites of the file

    @property
    def key(self) -> str:
        """What identifies it while the file is the same."""
        return f"{self.file} {self.function}: {self.before} -> {self.after} #{self.number}"


_COMPARE = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}  # fmt: skip
_ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}
_LEFT = {"annotation", "returns", "decorator_list", "format_spec", "type_comment", "names"}  # fields


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in place of a node."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            for other in _COMPARE[type(op)]:
                yield ast.Compare(left, [other()], [right])
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC and not _is_text(left):
            yield ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant({0: 1, 1: 0}.get(value, value + 1))
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield ast.Return(ast.Constant(None))
        case ast.AugAssign(target=target, op=op, value=value):
            if type(op) in _ARITHMETIC:
                yield ast.AugAssign(target, _ARITHMETIC[type(op)](), value)
            yield ast.Pass()
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.If(test=test, body=body, orelse=orelse) | ast.While(test=test, body=body, orelse=orelse):
            yield type(node)(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.IfExp(test=test, body=one, orelse=other):
            yield ast.IfExp(test, other, one)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args, keywords=named) if name in _NAMES:
            on = node.func.value if isinstance(node.func, ast.Attribute) else None
            other = ast.Attribute(on, _NAMES[name], ast.Load()) if on else ast.Name(_NAMES[name], ast.Load())
            yield ast.Call(other, args, named)
        case ast.Slice(lower=lower, upper=upper, step=step):
            if not isinstance(lower, ast.Constant):
                one = ast.Constant(1)
                yield ast.Slice(one if lower is None else ast.BinOp(lower, ast.Add(), one), upper, step)
            if upper is not None and not isinstance(upper, ast.Constant):
                yield ast.Slice(lower, ast.BinOp(upper, ast.Sub(), ast.Constant(1)), step)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def sites(node: ast.AST, functions: tuple[ast.AST, ...] = (), lines: tuple[int, int] = (1, 10**6)) -> Iterator[Site]:
    """Yield all sites in functions, their defaults, and numbers with a name at the level of the module."""
    for field, value in ast.iter_fields(node):
        if field in _LEFT:
            continue
        is_default = isinstance(node, ast.arguments) and field.endswith("defaults")
        for key, child in enumerate(value) if isinstance(value, list) else [(field, value)]:
            if not isinstance(child, ast.AST) or (isinstance(child, ast.keyword) and child.arg == "stacklevel"):
                continue
            is_number = isinstance(child, ast.Constant)
            if is_number if is_default or _is_named(node, field, functions) else functions:
                of = (functions[0].lineno, functions[0].end_lineno) if is_default else _lines(child, lines, functions)
                for new in changes(child):
                    yield Site(value if isinstance(value, list) else node, key, child, new, functions, of)
            if not is_default and (functions or not isinstance(child, ast.If)):  # `if TYPE_CHECKING` stays
                inside = (*functions, child) if isinstance(child, ast.FunctionDef) else functions
                yield from sites(child, inside, _lines(child, lines, functions))


def _is_named(node: ast.AST, field: str, functions: tuple[ast.AST, ...]) -> bool:
    return not functions and isinstance(node, ast.Assign) and field == "value" and isinstance(node.targets[0], ast.Name)


def _lines(node: ast.AST, lines: tuple[int, int], functions: tuple[ast.AST, ...]) -> tuple[int, int]:
    """Return the lines of a statement, without its body."""
    if not functions or not isinstance(node, ast.stmt):
        return lines
    body = getattr(node, "body", None)
    return node.lineno, max(node.lineno, body[0].lineno - 1) if body else node.end_lineno


def mutants_of(file: Path, root: Path) -> list[Mutant]:
    """Return all mutants of a file."""
    found, seen = [], defaultdict(int)
    source = file.read_text(encoding="utf-8")
    for place, site in enumerate(sites(ast.parse(source))):
        function = ".".join(each.name for each in site.functions)
        before, after = _text(site.old), _text(site.new)
        seen[function, before, after] += 1
        marks = [ast.unparse(mark) for each in site.functions[:1] for mark in each.decorator_list]
        compiled = any("jit(" in mark for mark in (marks if site.functions else [source]))  # numbers are compiled in
        found.append(
            Mutant(
                file.relative_to(root).as_posix(), function, before, after, seen[function, before, after],
                site.old.lineno, site.lines, compiled, place,
            )
        )  # fmt: skip
    return found


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.If | ast.While):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    return ast.unparse(ast.fix_missing_locations(ast.copy_location(node, node)))


def sample_order(mutants: Sequence[Mutant], seed: int = 1) -> list[Mutant]:
    """Return mutants in a random order of which every beginning has files by their share of all mutants."""
    by_file = defaultdict(list)
    for mutant in mutants:
        by_file[mutant.file].append(mutant)
    ranked = []
    for file, own in by_file.items():
        rng = random.Random(f"{seed} {file}")
        rng.shuffle(own)
        start = rng.random()
        ranked += [((k + start) / len(own), mutant.key, mutant) for k, mutant in enumerate(own)]
    return [mutant for *_, mutant in sorted(ranked, key=lambda each: each[:2])]


# -- replacing code in a process that has imported it
def functions_by_code() -> dict[tuple[str, str, int], list[types.FunctionType]]:
    """Return the functions of this process by file, name and line."""
    found = defaultdict(list)
    gc.unfreeze()
    for each in gc.get_objects():
        if isinstance(each, types.FunctionType):
            code = each.__code__
            found[code.co_filename, code.co_qualname, code.co_firstlineno].append(each)
    return found


def apply(mutant: Mutant, file: Path, functions: dict[tuple[str, str, int], list[types.FunctionType]]) -> None:
    """Replace the code of a function, a default, or a number of a module; ValueError if that is not possible."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    site = next(site for place, site in enumerate(sites(tree)) if place == mutant.place)
    new = ast.copy_location(site.new, site.old)
    if isinstance(site.holder, list):
        site.holder[site.key] = new
    else:
        setattr(site.holder, site.key, new)
    if not site.functions:
        return _set_number(site, file)
    outer = site.functions[0]
    start = min(node.lineno for node in (outer, *outer.decorator_list))
    code = compile(ast.fix_missing_locations(tree), str(file), "exec", dont_inherit=True)
    replaced = 0
    for each in _codes(code):
        if start <= each.co_firstlineno <= outer.end_lineno:
            for function in functions.get((str(file), each.co_qualname, each.co_firstlineno), ()):
                is_outer = each.co_name == outer.name and each.co_firstlineno == start
                if is_outer and (site.holder is outer.args.defaults or site.holder is outer.args.kw_defaults):
                    _set_default(function, outer.args, site)
                function.__code__ = each
                replaced += 1
    if not replaced:
        raise ValueError(f"No function {mutant.function} is loaded.")


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            yield from _codes(each)


def _set_default(function: types.FunctionType, args: ast.arguments, site: Site) -> None:
    value = site.new.value  # defaults that are numbers alone are changed
    if site.holder is args.defaults:
        defaults = list(function.__defaults__)
        defaults[site.key] = value
        function.__defaults__ = tuple(defaults)
    else:
        function.__kwdefaults__ = {**function.__kwdefaults__, args.kwonlyargs[site.key].arg: value}


def _set_number(site: Site, file: Path) -> None:
    name = site.holder.targets[0].id
    own = next(module for module in sys.modules.values() if getattr(module, "__file__", None) == str(file))
    old = vars(own)[name]
    for module in list(sys.modules.values()):
        if vars(module).get(name) is old and module.__name__.split(".")[0] == own.__name__.split(".")[0]:
            setattr(module, name, site.new.value)
