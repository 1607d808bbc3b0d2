"""Rules that kernels keep, read from their source."""

import ast
from pathlib import Path

import pytest

import damier.search

SOURCES = sorted(Path(damier.search.__file__).parent.rglob("*.py"))
SCALARS = {"None", "int", "float", "bool", "Any", "np.uint64", "np.int64", "np.float32"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_kernels_without_counted_references_return_numbers_alone(path):
    """An array returned by a function that counts no references would be freed while it is used."""
    for function in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        decorators = {getattr(decorator, "id", None) for decorator in function.decorator_list}
        if decorators & {"inner", "bare_kernel"}:
            assert function.returns is not None, function.name
            returned = ast.unparse(function.returns).removeprefix("tuple[").removesuffix("]")
            assert set(returned.split(", ")) <= SCALARS, f"{function.name} returns {returned}"
