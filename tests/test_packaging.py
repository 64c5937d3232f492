"""The wheel, and the examples in docstrings."""

import doctest
import importlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WITH_EXAMPLES = [
    "unskew.identifiers",
    "unskew.identifiers.history",
    "unskew.methods.learnable",
    "unskew.testing",
    "unskew.training",
]


def test_the_wheel_holds_what_the_package_needs(tmp_path):
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("unskew-*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        metadata = file.read(next(n for n in names if n.endswith("METADATA"))).decode()
        scripts = file.read(next(n for n in names if n.endswith("entry_points.txt"))).decode()
    kinds = (".py", ".j2", ".css", ".js", ".html")
    sources = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src").rglob("*") if p.suffix in kinds}
    assert sources | {"unskew/py.typed"} <= names
    assert "unskew = unskew.cli:main" in scripts
    for extra in ("vision", "sweep", "hf", "parquet", "view", "export", "cluster", "frost"):
        assert f"Provides-Extra: {extra}" in metadata
    assert "Apache-2.0" in metadata


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_in_docstrings(module):
    import unskew

    results = doctest.testmod(importlib.import_module(module), extraglobs={"unskew": unskew})
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("example", ["own_loop.py"])
def test_examples_run(example, environment):
    command = [sys.executable, str(ROOT / "examples" / example)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("module", "method"), [("own_method", "Reweighted")])
def test_the_methods_in_the_examples_keep_the_contract(module, method, monkeypatch):
    from unskew.testing import check_method

    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    check_method(getattr(importlib.import_module(module), method))


def test_every_public_name_is_there():
    import unskew

    for name in unskew.__all__:
        assert getattr(unskew, name) is not None
    assert set(unskew.__all__) <= set(dir(unskew))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = unskew.nothing
