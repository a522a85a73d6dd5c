"""Reads the modules that Inductor generates: kernels with their source, and the calls of them."""

import ast
import functools
import re
from dataclasses import dataclass
from pathlib import Path

_SIGNATURE = re.compile(r'extern "C"[^(]*\((?P<arguments>[^)]*)\)', re.DOTALL)
_HANDLE = re.compile(r"^\s*# \[Provenance debug handles\] (?P<handle>\S+:\d+)\s*$")
_BOOKKEEPING = re.compile(r"^\s*($|#|del |assert_|(raw_)?stream\w* = )|= empty_strided|# reuse$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """A pointer argument of a C++ function; one that is not const is written."""

    name: str
    is_const: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedKernel:
    """A kernel of a generated module.

    Attributes:
        name: The module's global that is called.
        language: ``triton`` or ``cpp``.
        source: Its source.
        arguments: Of a C++ function, in call order; None stands for a number.
    """

    name: str
    language: str
    source: str
    arguments: tuple[Pointer | None, ...] = ()


@dataclass(frozen=True, slots=True)
class GeneratedModule:
    """A generated module as text, read once."""

    kernels: dict[str, GeneratedKernel]
    handles: dict[int, str]
    """Debug handle by line number; it speaks of the call that follows."""
    lines: tuple[str, ...]

    def handle_above(self, line: int) -> str | None:
        """The debug handle nearest above a call, None if another line calls a kernel between."""
        for number in range(line - 1, 0, -1):
            if number in self.handles:
                return self.handles[number]
            if not _is_bookkeeping(self.lines[number - 1]):
                return None
        return None

    def argument_names(self, line: int) -> tuple[str | None, ...]:
        """The variables that the call on a line passes, by position; views are seen through."""
        try:
            [statement] = ast.parse(self.lines[line - 1].strip()).body
        except (SyntaxError, ValueError, IndexError):
            return ()
        call = getattr(statement, "value", None)
        if not isinstance(call, ast.Call):
            return ()
        return tuple(_variable(argument) for argument in call.args)


@functools.lru_cache(maxsize=1024)
def read_module(path: str) -> GeneratedModule:
    """Read a generated module; its name is a hash of its text, so that it never changes."""
    text = Path(path).read_text(encoding="utf-8")
    lines = tuple(text.splitlines())
    handles = {
        number: match["handle"]
        for number, line in enumerate(lines, start=1)
        if (match := _HANDLE.match(line))
    }
    found = (_kernel(statement) for statement in ast.parse(text).body)
    kernels = {kernel.name: kernel for kernel in found if kernel is not None}
    return GeneratedModule(kernels=kernels, handles=handles, lines=lines)


def _kernel(statement: ast.stmt) -> GeneratedKernel | None:
    """The kernel that ``name = async_compile.triton(...)`` or ``.cpp_pybinding(...)`` defines."""
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(func=ast.Attribute(attr="triton"), args=[_, ast.Constant(value=source)]),
        ) if isinstance(source, str):
            return GeneratedKernel(name=name, language="triton", source=source)
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(
                func=ast.Attribute(attr="cpp_pybinding"),
                args=[ast.List(elts=types), ast.Constant(value=source)],
            ),
        ) if isinstance(source, str):
            arguments = _pointers(source)
            if len(arguments) != len(types):
                return None
            return GeneratedKernel(name=name, language="cpp", source=source, arguments=arguments)
    return None


def _pointers(source: str) -> tuple[Pointer | None, ...]:
    match = _SIGNATURE.search(source)
    if match is None:
        return ()
    arguments: list[Pointer | None] = []
    for declaration in match["arguments"].split(","):
        kind, _, name = declaration.strip().rpartition(" ")
        is_pointer = kind.endswith("*")
        arguments.append(
            Pointer(name=name, is_const=kind.startswith("const ")) if is_pointer else None
        )
    return tuple(arguments)


def _is_bookkeeping(line: str) -> bool:
    """Whether a line only makes room for a launch: comments, allocations, the stream."""
    return _BOOKKEEPING.search(line) is not None


def _variable(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Call(func=ast.Name(id="reinterpret_tensor"), args=[ast.Name(id=name), *_]):
            return name
    return None
