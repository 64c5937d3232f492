import math

import pytest
import torch

import unskew
from unskew.data.dataset import Dataset
from unskew.data.partition_file import load_partition
from unskew.engine.engine import Engine
from unskew.engine.fit import decide, fit
from unskew.engine.judgement import Judgement
from unskew.errors import UnskewError
from unskew.identifiers.history import PH, PredictionHistory, folds_of
from unskew.pages.verdict import verdict
from unskew.testing import TinyBackbone, check_method

LABELS = torch.tensor([0, 1, 2, 0, 1, 2])


def feed(history: PredictionHistory, right: list[list[bool]]) -> None:
    """One list a sample, one entry an epoch."""
    for epoch in range(len(right[0])):
        answer = [y if r[epoch] else (y + 1) % 3 for y, r in zip(LABELS.tolist(), right)]
        history.record(torch.arange(6), torch.tensor(answer))
        history.end_epoch()


@pytest.mark.parametrize(("times", "change"), [(0, -0.8), (1, -0.6), (2, -0.4), (3, -0.2), (4, 0.0), (5, 0.2)])
def test_the_update_for_each_number_of_right_answers(times, change):
    """c − (1 − (Σ + 1)/5), from c = .8, which two windows of 3 right (1 − .2) or of 5 lead to."""
    history = PredictionHistory(LABELS)
    feed(history, [[True] * 3 + [False] * 2] * 6)
    assert history.weights.tolist() == pytest.approx([0.8] * 6)
    feed(history, [[True] * times + [False] * (5 - times)] * 6)
    assert history.weights.tolist() == pytest.approx([max(0.8 + change, 0.0)] * 6, abs=1e-6)


def test_weights_stay_between_zero_and_one():
    history = PredictionHistory(LABELS)
    for _ in range(3):
        feed(history, [[True] * 5] * 3 + [[False] * 5] * 3)
    assert history.weights.tolist() == [1, 1, 1, 0, 0, 0]


def test_weights_do_not_move_within_a_window():
    history = PredictionHistory(LABELS)
    feed(history, [[False] * 4] * 6)
    assert history.weights.tolist() == [1] * 6


def test_each_sample_has_its_own_weight():
    history = PredictionHistory(LABELS, window=2)
    feed(history, [[True, True], [True, False], [False, False], [True, True], [False, True], [False, False]])
    assert history.weights.tolist() == pytest.approx([1, 1, 0.5, 1, 1, 0.5])
    assert history.times_right().tolist() == [2, 1, 0, 2, 1, 0]


def test_recording_in_pieces_and_in_any_order_is_the_same():
    whole, pieces = PredictionHistory(LABELS), PredictionHistory(LABELS)
    answers = torch.tensor([0, 0, 2, 1, 1, 0])
    whole.record(torch.arange(6), answers)
    for index in ([5, 1], [0, 3], [4, 2]):
        pieces.record(torch.tensor(index), answers[index])
    whole.end_epoch(), pieces.end_epoch()  # type: ignore[func-returns-value]
    assert torch.equal(whole.predictions[0], pieces.predictions[0])


def test_samples_that_were_not_looked_at_are_neither_right_nor_mistaken(tmp_path):
    history = PredictionHistory(torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]), class_names=["a", "b"])
    for _ in range(3):
        history.record(torch.arange(7), torch.tensor([1, 1, 1, 1, 1, 1, 0]))  # the last one is left out
        history.end_epoch()
    partition = history.partition()
    assert partition.times_right.tolist() == [0, 0, 0, 3, 3, 3, 0, 0]
    assert partition.usual_wrong_class.tolist() == [1, 1, 1, -1, -1, -1, 0, -1]
    partition.save(tmp_path / "partition.csv")
    images = torch.zeros(8, 3, 8, 8, dtype=torch.uint8)
    data = Dataset(images, partition.labels, partition.ids, partition.class_names)
    again = load_partition(tmp_path / "partition.csv", data)
    assert torch.equal(again.predictions, partition.predictions)


def test_conflicting_is_never_once_right():
    labels = torch.zeros(12, dtype=torch.int64)
    history = PredictionHistory(labels, class_names=["a", "b"])
    for epoch in range(3):
        answer = torch.ones(12, dtype=torch.int64)
        answer[:5] = 0
        answer[5 + epoch] = 0  # 5, 6 and 7 once each
        history.record(torch.arange(12), answer)
        history.end_epoch()
    partition = history.partition(cut="never")
    assert partition.conflicting.nonzero().flatten().tolist() == [8, 9, 10, 11]
    assert partition.score.tolist() == pytest.approx([0] * 5 + [2 / 3] * 3 + [1] * 4)
    assert partition.times_right.tolist() == [3] * 5 + [1] * 3 + [0] * 4
    assert partition.usual_wrong_class.tolist() == [-1] * 5 + [1] * 7
    assert partition.notes == ()


def test_too_few_are_widened_by_whole_bins_and_said_so():
    labels = torch.zeros(12, dtype=torch.int64)
    history = PredictionHistory(labels, class_names=["a", "b"])
    for epoch in range(2):
        answer = torch.zeros(12, dtype=torch.int64)
        answer[0] = 1  # never right
        answer[1 + 3 * epoch : 4 + 3 * epoch] = 1  # six samples wrong once
        history.record(torch.arange(12), answer)
        history.end_epoch()
    partition = history.partition(cut="never")  # two classes: at least 4
    assert partition.conflicting.nonzero().flatten().tolist() == list(range(7))
    assert "only 1 samples" in partition.notes[0]


def judged(answer: int) -> PredictionHistory:
    history = PredictionHistory(torch.zeros(8, dtype=torch.int64), class_names=["a", "b"])
    history.record(torch.arange(8), torch.full((8,), answer))
    history.end_epoch()
    return history


def test_what_cannot_be_told_apart_is_an_error():
    with pytest.raises(UnskewError, match="every sample was found"):
        judged(1).partition()


def test_trust_is_the_mean_probability_of_the_label_in_the_later_half():
    history = PredictionHistory(torch.tensor([0, 1]))
    for epoch, (one, two) in enumerate([(9.0, 9.0), (9.0, 9.0), (0.0, 1.0), (2.0, 1.0)]):
        history.record(torch.tensor([0, 1]), torch.tensor([0, epoch % 2]), torch.tensor([one, two]))
        history.end_epoch()
    assert history.trust().tolist() == pytest.approx([(1 + math.exp(-2)) / 2, math.exp(-1)], abs=1e-3)
    history.losses = []
    assert history.trust().tolist() == [1.0, 0.5], "without losses, the share of right answers"


def test_the_valley_takes_more_than_those_never_right():
    """Ten samples that are right now and then, forty that are right nearly always."""
    labels = torch.zeros(50, dtype=torch.int64)
    history = PredictionHistory(labels, class_names=["a", "b"])
    for epoch in range(10):
        answer = torch.zeros(50, dtype=torch.int64)
        answer[:10] = 1
        answer[epoch] = 0
        answer[10 + epoch] = 1
        history.record(torch.arange(50), answer)
        history.end_epoch()
    assert history.conflicting("valley")[0].tolist() == [True] * 10 + [False] * 40
    assert not history.conflicting("never")[0].any()
    assert history.partition().score.tolist() == pytest.approx((1 - history.trust()).tolist())


def test_without_a_valley_it_is_those_never_right():
    """Trust falls off evenly from 1 to 0: no place to cut, but for the one sample that was never right."""
    history = PredictionHistory(torch.zeros(21, dtype=torch.int64), class_names=["a", "b"])
    for epoch in range(20):
        history.record(torch.arange(21), (torch.arange(21) <= epoch).logical_not().long())
        history.end_epoch()
    assert history.conflicting("valley")[0].tolist() == [False] * 20 + [True]


def test_data_without_a_shortcut_is_not_accused():
    data = unskew.load("digits:0.1")  # every colour in every class alike
    partition = unskew.identify(data, progress=False)
    assert partition.conflicting_share < 0.1
    assert not verdict(data, partition).clear


def test_the_suspects_of_every_epoch_are_kept():
    history = PredictionHistory(torch.tensor([0, 0, 0, 1, 1, 1]))
    for answer in ([0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 0]):
        history.record(torch.arange(6), torch.tensor(answer))
        history.end_epoch()
    partition = history.partition(cut="never", fewest=1)
    assert partition.suspects.int().T.tolist() == [[0, 0, 1, 0, 1, 1], [0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 1]]


def test_nothing_conflicting_is_an_answer():
    partition = judged(0).partition()
    assert not partition.conflicting.any()
    assert "no sign of a shortcut" in partition.notes[0]


def test_losses_are_kept_where_they_are_given_in_every_epoch():
    history = PredictionHistory(torch.tensor([0, 1]))
    for epoch in range(2):
        history.record(torch.tensor([1, 0]), torch.tensor([0, 0]), torch.tensor([1e9, 0.5 + epoch]))
        history.end_epoch()
    partition = history.partition(cut="never")
    assert partition.losses.tolist() == [[0.5, 1.5], [60000, 60000]]
    again = PredictionHistory(torch.tensor([0, 1]))
    again.load_state_dict(history.state_dict())
    assert torch.equal(again.partition(cut="never").losses, partition.losses)
    again.record(torch.tensor([0, 1]), torch.tensor([0, 0]))
    again.end_epoch()
    assert again.partition(cut="never").losses is None


def test_state_goes_on_where_it_stopped():
    right = [[True, False, False, True, False, True]] * 6
    whole, first, second = (PredictionHistory(LABELS, window=3) for _ in range(3))
    feed(whole, right)
    feed(first, [r[:2] for r in right])
    second.load_state_dict(first.state_dict())
    feed(second, [r[2:] for r in right])
    assert torch.equal(whole.weights, second.weights)
    assert torch.equal(torch.stack(whole.predictions), torch.stack(second.predictions))


def coloured(samples: int = 240) -> Dataset:
    """Two classes told apart by colour, which one sample in twelve has wrong; a faint shape tells the truth."""
    random = torch.Generator().manual_seed(1)
    labels = torch.arange(samples) % 2
    conflicting = torch.arange(samples) % 12 >= 11
    conflicting |= torch.arange(samples) % 12 == 6
    bias = torch.where(conflicting, 1 - labels, labels)
    pixels = torch.randint(60, 90, (samples, 16, 16, 3), generator=random, dtype=torch.uint8)
    pixels[torch.arange(samples), :, :, bias * 2] = 220
    pixels[labels == 1, 4:8, 4:8] += 20
    ids = [str(i) for i in range(samples)]
    images = pixels.permute(0, 3, 1, 2)
    return Dataset(images, labels, ids, ["a", "b"], bias=bias, aligned=~conflicting, name="coloured")


def test_ph_finds_the_samples_of_the_wrong_colour():
    data = coloured()
    partition = unskew.identify(data, model=TinyBackbone(), epochs=6, device="cpu", augment="none", lr=3e-3)
    quality = partition.quality(data.aligned)
    assert partition.predictions.shape == (240, 6)
    assert quality.precision > 0.9
    assert quality.recall > 0.9


def test_no_network_learns_the_fold_that_it_judges(monkeypatch):
    data = coloured()
    method = PH(data, None, lambda: torch.nn.Linear(1, 2), PH.Config(folds=3))
    for k, stream in enumerate(method.streams().streams.values()):
        assert set(stream.pool.tolist()) == set((method.fold != k).nonzero().flatten().tolist())
    monkeypatch.setattr(Engine, "judge", lambda self, model: judgement(method.networks.index(model)))
    predictions, _ = method._judged(Engine.__new__(Engine))
    assert torch.equal(predictions, method.fold)


def judgement(answer: int) -> Judgement:
    return Judgement(torch.full((240,), answer), torch.zeros(240))


def test_folds_deal_out_every_class_evenly():
    labels = torch.tensor([0] * 10 + [1] * 11 + [2])
    fold = folds_of(labels, 2)
    assert [(fold[labels == c] == 0).sum().item() for c in range(3)] == [5, 6, 1]
    assert torch.equal(fold, folds_of(labels, 2))
    assert not bool(folds_of(labels, 1).any())


def test_what_is_learnt_by_heart_is_still_found_out_of_fold():
    """Noise for images, and every label random: in sample a network comes to know them, out of fold it cannot."""
    random = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (64, 3, 16, 16), generator=random, dtype=torch.uint8)
    labels = torch.randint(0, 4, (64,), generator=random)
    data = Dataset(images, labels, [str(i) for i in range(64)], list("abcd"), name="noise")
    options = {"model": "cnn", "epochs": 40, "device": "cpu", "augment": "none", "lr": 3e-3, "window": 1000}
    right = {}
    for folds in (1, 2):
        method, _ = fit(decide("ph", PH, data, {**options, "folds": folds}), data)
        assert isinstance(method, PH)
        right[folds] = (method.history.predictions[-1] == labels).float().mean().item()
    assert right[1] > 0.9
    assert right[2] < 0.5


def test_folds_keep_the_contract():
    check_method(PH, folds=2)


def test_a_killed_run_with_folds_goes_on_to_the_same_partition(tiny, tmp_path):
    job = decide("ph", PH, tiny, {"epochs": 3, "device": "cpu", "folds": 2}, TinyBackbone(), stage1=True)
    whole, _ = fit(job, tiny)

    class Killed(Exception):
        pass

    class Killer:
        def start(self, *given) -> None: ...
        def step(self) -> None: ...
        def end(self) -> None: ...
        def epoch(self, stage, row) -> None:
            if row["epoch"] == 2:
                raise Killed

    with pytest.raises(Killed):
        fit(job, tiny, None, tmp_path / "checkpoint.pt", listeners=(Killer(),))
    method, _ = fit(job, tiny, None, tmp_path / "checkpoint.pt", resume=True)
    assert isinstance(method, PH)
    assert isinstance(whole, PH)
    assert torch.equal(method.result().predictions, whole.result().predictions)


def test_it_ends_when_the_suspects_have_settled():
    data = coloured()
    options = {
        "model": TinyBackbone(),
        "device": "cpu",
        "augment": "none",
        "lr": 3e-3,
        "window": 2,
        "epochs": 30,
        "cut": "never",
    }
    settled = unskew.identify(data, settled=0.2, **options)
    assert 4 <= settled.predictions.shape[1] < 30
    wrong = settled.predictions != data.labels[:, None]
    before, after = wrong[:, :-2].all(1).sum(), wrong.all(1).sum()
    assert 1 - after / before < 0.2
    assert settled.quality(data.aligned).f1 > 0.9


def test_the_share_of_the_suspects_that_was_cleared():
    history = PredictionHistory(LABELS, window=2)
    feed(history, [[False, False, False]] * 6)
    assert history.cleared("never") == 1
    feed(history, [[True], [False], [False], [False], [False], [False]])
    assert history.cleared("never") == pytest.approx(1 / 6)


def test_cleared_goes_by_the_cut():
    """Right once in passing, and still not trusted: the valley's suspects stay what they were."""
    labels, certain = torch.zeros(40, dtype=torch.int64), torch.arange(40) >= 8
    history = PredictionHistory(labels, window=2, class_names=("a", "b"))
    for epoch in range(8):
        right = certain | (torch.arange(40) == epoch)
        loss = torch.where(certain, 0.05, 2.5)
        history.record(torch.arange(40), (~right).long(), loss)
        history.end_epoch()
    assert history.cleared("valley") == 0
    assert history.cleared("never") > 0


def test_samples_that_some_epochs_did_not_see():
    """A loop of one's own that leaves out the last batch: what was seen decides, and no score is lost."""
    labels, conflicting = torch.zeros(100, dtype=torch.int64), torch.arange(100) < 10
    history = PredictionHistory(labels, class_names=("a", "b"))
    for epoch in range(6):
        seen = torch.arange(100).roll(20 * epoch)[:80]
        history.record(seen, conflicting[seen].long(), torch.where(conflicting[seen], 3.0, 0.1))
        history.end_epoch()
    partition = history.partition()
    assert not partition.score.isnan().any()
    assert torch.equal(partition.conflicting, conflicting)
    blind = PredictionHistory(labels, class_names=("a", "b"))
    blind.record(torch.arange(1, 100), conflicting[1:].long(), torch.full((99,), 0.1))
    blind.end_epoch()
    assert blind.trust()[0] == 0


def test_with_losses_too_what_was_always_right_is_no_suspect():
    """An ordinary end of training on data without a shortcut: everything right, and no two losses alike."""
    history = PredictionHistory(torch.arange(200) % 2)
    for epoch in range(6):
        loss = 0.01 * torch.rand(200, generator=torch.Generator().manual_seed(epoch))
        history.record(torch.arange(200), torch.arange(200) % 2, loss)
        history.end_epoch()
    partition = history.partition()
    assert not partition.conflicting.any()
    assert "no sign of a shortcut" in partition.notes[0]


def test_sp_stops_at_gamma_and_reports_the_real_share():
    data = coloured()
    partition = unskew.identify(data, "sp", model=TinyBackbone(), gamma=0.8, device="cpu", augment="none", lr=3e-3)
    assert partition.how == "sp"
    assert partition.predictions.shape == (240, 1)
    assert partition.conflicting_share <= 0.2
    assert partition.quality(data.aligned).recall > 0.9


def test_sp_that_never_gets_there_says_so(tiny):
    partition = unskew.identify(tiny, "sp", model=TinyBackbone(), gamma=0.999, epochs=1, device="cpu")
    assert any("below γ" in note for note in partition.notes)


def test_oracle_and_random(tiny):
    assert torch.equal(unskew.identify(tiny, "oracle").conflicting, ~tiny.aligned)
    coin, again = unskew.identify(tiny, "random", seed=1), unskew.identify(tiny, "random", seed=1)
    assert int(coin.conflicting.sum()) == len(tiny) // 2
    assert torch.equal(coin.conflicting, again.conflicting)
    assert not torch.equal(coin.conflicting, unskew.identify(tiny, "random", seed=2).conflicting)


def test_resuming_takes_a_finished_partition_only_if_it_was_this_one(tiny, tmp_path):
    options = {"model": TinyBackbone(), "device": "cpu", "epochs": 2, "out": tmp_path}
    first = unskew.identify(tiny, **options)
    again = unskew.identify(tiny, resume=True, **options)
    assert torch.equal(first.predictions, again.predictions)
    with pytest.raises(UnskewError, match="made by another stage 1"):
        unskew.identify(tiny, "sp", resume=True, **options)
    with pytest.raises(UnskewError, match="made by another stage 1"):
        unskew.identify(tiny, resume=True, **{**options, "epochs": 3})
    assert unskew.identify(tiny, "oracle", resume=True, out=tmp_path).how == "oracle"


def test_a_refused_continuation_changes_nothing(tiny, tmp_path):
    options = {"model": TinyBackbone(), "device": "cpu", "epochs": 1, "out": tmp_path}
    unskew.train(tiny, identify={"name": "ph", "epochs": 2}, **options)
    before = (tmp_path / "partition.csv").read_bytes()
    with pytest.raises(UnskewError, match="of another run"):
        unskew.train(tiny, identify="oracle", resume=True, **options)
    assert (tmp_path / "partition.csv").read_bytes() == before


def test_an_unknown_identifier_suggests_another(tiny):
    with pytest.raises(UnskewError, match="did you mean oracle"):
        unskew.identify(tiny, "orcale")
