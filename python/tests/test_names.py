"""The stub, the documentation and the tests know the same names."""

from __future__ import annotations

import ast
import doctest
import inspect
import os
import re
from pathlib import Path

import lithify

HERE = Path(__file__).parent
STUB = ast.parse((HERE.parent / "lithify" / "_lithify.pyi").read_text())


def public(names: object) -> set[str]:
    assert isinstance(names, (list, set))
    return {name for name in names if not name.startswith("_")}


def test_the_stub_has_what_the_module_has() -> None:
    for node in STUB.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            real = public(dir(getattr(lithify, node.name)))
            stub = public([f.name for f in node.body if isinstance(f, ast.FunctionDef)])
            assert stub == real, node.name
    functions = {n.name for n in STUB.body if isinstance(n, ast.FunctionDef)}
    classes = {n.name for n in STUB.body if isinstance(n, ast.ClassDef) and n.name[0] != "_"}
    assert functions | classes | {"Error", "errors", "run"} == set(lithify.__all__)


def test_every_name_is_documented_and_tested() -> None:
    tests = "".join(p.read_text() for p in HERE.glob("test_*.py") if p.name != "test_names.py")
    for name in lithify.__all__:
        thing = getattr(lithify, name)
        assert inspect.getdoc(thing), name
        assert re.search(rf"\b{name}\b", tests), name
        if not inspect.isclass(thing) or issubclass(thing, Exception):
            continue
        for part in public(dir(thing)):
            assert inspect.getdoc(getattr(thing, part)), f"{name}.{part}"
            assert re.search(rf"\.{part}\b", tests), f"{name}.{part}"


def test_the_examples_of_the_docs_run(tmp_path: Path) -> None:
    assert doctest.testmod(lithify).failed == 0
    pages = [HERE.parent / "README.md", HERE.parent.parent / "docs" / "python.md"]
    for page in pages:
        text = page.read_text()
        blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
        assert blocks, page
        place = tmp_path / page.stem
        place.mkdir()
        names: dict[str, object] = {}


        back = os.getcwd()
        os.chdir(place)
        try:
            for block in blocks:
                exec(compile(block, str(page), "exec"), names)
        finally:
            os.chdir(back)
