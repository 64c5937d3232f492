"""Training from a memory map, in small."""

import json

import pytest

from benchmarks import scale
from unskew.engine import memory


@pytest.mark.skipif(not memory.STATUS.exists(), reason="this system does not tell")
@pytest.mark.parametrize(("size", "stored"), [(16, 16), (112, 128)])
def test_it_reports_memory_by_epoch(size, stored, tmp_path, capsys):
    scale.main(["--samples", "300", "--size", str(size), "--epochs", "2", "--folder", str(tmp_path)])
    found = json.loads(capsys.readouterr().out)
    assert found["images_gb"] == pytest.approx(300 * stored**2 * 3 / 1e9)
    assert len(found["most_in_epoch"]) == len(found["epoch_seconds"]) == 2
    assert all(0 < epoch["RssAnon"] < 100 for epoch in found["most_in_epoch"])
    assert list(tmp_path.iterdir()) == [], "the images are gone"
