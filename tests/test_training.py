import unskew
from unskew.testing import TinyBackbone


def test_a_run_prints_in_a_line(tiny):
    options = {"model": TinyBackbone(), "device": "cpu", "epochs": 1}
    run = unskew.train(tiny, unskew.identify(tiny, "oracle"), "smix", test=tiny, **options)
    scores = run.result.scores
    assert repr(run) == (
        f"<Run smix on tiny, epoch 1: {scores.all:.1%} of all right, {scores.unbiased:.1%} of the conflicting>"
    )
    assert repr(unskew.train(tiny, None, "erm", **options)) == "<Run erm on tiny, epoch 1: not evaluated>"
