"""Which files kernels are compiled from: a change in any of them makes compiled objects stale."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
MARKS = ("compiled", "inlined")
_TOOLS = ("_compile.py", "_numba.py", "_objects.py", "silo/kernels/intrinsics.py", "silo/kernels/simd.py")


def kernel_modules() -> list[str]:
    """Every module of the package that declares a kernel with its kinds."""
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "@compiled(" in text and any(_marked(ast.parse(text), ("compiled",))):
            found.append(".".join(("dpfda", *file.relative_to(PACKAGE).with_suffix("").parts)))
    return found


def source_files() -> list[Path]:
    """What kernels and their parts are written in, the modules that they take constants from, and the tools."""
    found = {PACKAGE / name for name in _TOOLS} | set(Path(__file__).parent.glob("*.py"))
    waiting = [_file_of(module) for module in kernel_modules()]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += map(_file_of, _used_modules(ast.parse(file.read_text(encoding="utf-8"))))
    return sorted(found)


def _file_of(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _used_modules(tree: ast.Module) -> Iterator[str]:
    """Modules from which a name is imported that compiled code of this one uses."""
    used = {node.id for function in _marked(tree, MARKS) for node in ast.walk(function) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        ours = isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpfda.")
        if isinstance(node, ast.ImportFrom) and ours and used & {alias.asname or alias.name for alias in node.names}:
            yield str(node.module)


def _marked(tree: ast.Module, marks: tuple[str, ...]) -> Iterator[ast.FunctionDef]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names = [ast.unparse(mark.func if isinstance(mark, ast.Call) else mark) for mark in node.decorator_list]
            if set(names) & set(marks):
                yield node
