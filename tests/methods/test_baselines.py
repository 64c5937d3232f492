"""Each baseline against its published formulas, written out here in numpy."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from lookup import Lookup, batch, numbered, softmax
from torch import nn

import unskew
from unskew.engine.fit import decide, fit
from unskew.engine.method import Samples, gce_losses
from unskew.engine.streams import make_plan
from unskew.errors import UnskewError
from unskew.identifiers.errors import ErrorSet
from unskew.identifiers.repair import RepairOptions, repair, step_gradients
from unskew.methods.cvar_dro import CVaRDRO, worst_weights
from unskew.methods.group_dro import GroupDRO
from unskew.methods.jtt import JTT
from unskew.methods.lff import LfF
from unskew.methods.repair import Repair
from unskew.methods.selecmix import SelecMix, choose_partners, contrastive_loss
from unskew.methods.smoothing import SmoothedLosses
from unskew.testing import TinyBackbone, tiny_data

RANDOM = np.random.default_rng(0)


def test_generalised_cross_entropy_has_the_gradient_of_its_formula():
    logits = RANDOM.normal(size=(5, 3))
    labels, q, h = np.array([0, 1, 2, 1, 0]), 0.7, 1e-6
    given = torch.tensor(logits, requires_grad=True)
    gce_losses(given, torch.tensor(labels), q).sum().backward()

    def formula(values):
        return ((1 - softmax(values)[np.arange(5), labels] ** q) / q).sum()

    for i, k in itertools.product(range(5), range(3)):
        step = np.zeros_like(logits)
        step[i, k] = h
        expected = (formula(logits + step) - formula(logits - step)) / (2 * h)
        assert given.grad is not None
        assert given.grad[i, k].item() == pytest.approx(expected, abs=1e-7)


def test_lff_over_several_steps():
    """Smoothed losses, the maximum over the whole class, the weights and both networks' updates."""
    labels = [0, 1, 2, 0, 1, 2, 0, 0, 1, 2]
    data, q, decay, lr = numbered(labels), 0.7, 0.7, 2.0
    b, d = RANDOM.normal(size=(10, 3)), RANDOM.normal(size=(10, 3))
    tables = iter([Lookup(d), Lookup(b)])  # the debiased model is made first
    method = LfF(data, None, lambda: next(tables), LfF.Config())
    optimizer = torch.optim.SGD(method.parameters(), lr=lr)
    smooth_b, smooth_d = np.full(10, np.nan), np.full(10, np.nan)
    y = np.array(labels)
    for rows in ([0, 1, 2, 3], [3, 4, 5, 6, 0], [7, 8, 9, 1], [0, 3, 6, 2]):
        loss, _ = method(batch(data, rows))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        r = np.array(rows)
        p_b, p_d = softmax(b[r]), softmax(d[r])
        chosen_b, chosen_d = p_b[np.arange(len(r)), y[r]], p_d[np.arange(len(r)), y[r]]
        for smooth, p in ((smooth_b, chosen_b), (smooth_d, chosen_d)):
            smooth[r] = np.where(np.isnan(smooth[r]), -np.log(p), decay * smooth[r] + (1 - decay) * -np.log(p))
        largest_b = np.array([np.nanmax(smooth_b[y == k]) for k in y[r]])
        largest_d = np.array([np.nanmax(smooth_d[y == k]) for k in y[r]])
        n_b, n_d = smooth_b[r] / largest_b, smooth_d[r] / largest_d
        w = n_b / (n_b + n_d + 1e-8)
        onehot = np.eye(3)[y[r]]
        expected = (chosen_b**q * -np.log(chosen_b)).mean() + (w * -np.log(chosen_d)).mean()
        assert loss.item() == pytest.approx(expected, rel=1e-5)
        b[r] -= lr * chosen_b[:, None] ** q * (p_b - onehot) / len(r)
        d[r] -= lr * w[:, None] * (p_d - onehot) / len(r)
    assert isinstance(method.model, Lookup)
    assert isinstance(method.biased, Lookup)
    np.testing.assert_allclose(method.biased.table.detach().numpy(), b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(method.model.table.detach().numpy(), d, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [3, 64, 65, 9000])
def test_the_maximum_of_a_class_is_exact(count):
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (count,), generator=random)
    smoothed = SmoothedLosses(labels, 4, decay=0.5)
    known = torch.full((count,), -1.0)
    for _ in range(40):
        index = torch.randperm(count, generator=random)[:50]
        given = torch.rand(len(index), generator=random)
        after, largest = smoothed.update(index, given)
        known[index] = torch.where(known[index] < 0, given, 0.5 * known[index] + 0.5 * given)
        assert torch.allclose(after, known[index])
        assert torch.allclose(largest, torch.stack([known[labels == k].max() for k in labels[index]]))


def test_jtt_takes_the_answer_given_before_the_step_that_learns_it():
    labels = [0, 1, 0, 1]
    logits = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])  # rows 1 and 2 are wrong
    data = numbered(labels)
    method = ErrorSet(data, None, lambda: Lookup(logits), ErrorSet.Config(fewest=1))
    optimizer = torch.optim.SGD(method.parameters(), lr=100.0)
    for rows in ([0, 1], [2, 3]):
        optimizer.zero_grad()
        method(batch(data, rows))[0].backward()
        optimizer.step()
    partition = method.result()
    assert partition.conflicting.tolist() == [False, True, True, False]
    np.testing.assert_allclose(partition.score.numpy(), 1 - softmax(logits)[range(4), labels], rtol=1e-5)


@pytest.mark.parametrize("up", [0, 3])
def test_jtt_adds_copies_of_the_errors(up):
    data = numbered([0, 1, 0, 1, 0, 1], bias=[0, 1, 0, 0, 0, 1])
    method = JTT(data, unskew.identify(data, "oracle"), lambda: Lookup(np.zeros((6, 2))), JTT.Config(up=up))
    plan = make_plan(method.streams(), batch_size=1, seed=0, epoch=0)
    seen = plan.streams["all"].index.flatten().bincount(minlength=6).tolist()
    assert seen == [1, 1, 1, 1 + up, 1, 1]


def test_group_dro_over_several_steps():
    labels, bias = [0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 0]
    group = np.array([0, 0, 1, 3, 3, 3, 2])
    data, table = numbered(labels, bias), RANDOM.normal(size=(7, 2))
    options = GroupDRO.Config(step=0.5, adjustment=2.0)
    method = GroupDRO(data, None, lambda: Lookup(table), options)
    optimizer, lr = torch.optim.SGD(method.parameters(), lr=1.0), 1.0
    q, sizes, y = np.full(4, 0.25), np.array([2, 1, 1, 3]), np.array(labels)
    for rows in ([0, 2, 3, 4], [1, 6, 5], [2, 3]):
        loss, _ = method(batch(data, rows))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        r = np.array(rows)
        p = softmax(table[r])
        each = -np.log(p[np.arange(len(r)), y[r]])
        means = np.array([each[group[r] == g].mean() if (group[r] == g).any() else 0.0 for g in range(4)])
        q = q * np.exp(0.5 * (means + 2.0 / np.sqrt(sizes)))
        q /= q.sum()
        assert loss.item() == pytest.approx((q * means).sum(), rel=1e-5)
        inside = np.array([(group[r] == g).sum() for g in group[r]])
        table[r] -= lr * (q[group[r]] / inside)[:, None] * (p - np.eye(2)[y[r]])
    np.testing.assert_allclose(method.q.numpy(), q, rtol=1e-5)
    assert isinstance(method.model, Lookup)
    np.testing.assert_allclose(method.model.table.detach().numpy(), table, rtol=1e-5, atol=1e-6)


def test_group_dro_draws_every_group_equally_often():
    data = numbered([0] * 90 + [1] * 10, bias=[0] * 80 + [1] * 10 + [1] * 10)
    method = GroupDRO(data, None, lambda: Lookup(np.zeros((100, 2))), GroupDRO.Config())
    drawn = torch.cat([make_plan(method.streams(), 10, 0, epoch).streams["all"].index.flatten() for epoch in range(60)])
    shares = [(drawn < 80).float().mean(), ((drawn >= 80) & (drawn < 90)).float().mean(), (drawn >= 90).float().mean()]
    assert [float(s) for s in shares] == pytest.approx([1 / 3] * 3, abs=0.03)


@pytest.mark.parametrize(("count", "share"), [(10, 0.1), (10, 0.25), (7, 0.5), (4, 1.0), (3, 0.1)])
def test_cvar_weights(count, share):
    weights = worst_weights(count, share).numpy()
    whole = math.floor(share * count)
    expected = np.zeros(count)
    expected[:whole] = 1 / (share * count)
    if whole < count:
        expected[whole] = 1 - expected.sum()
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    assert weights.sum() == pytest.approx(1)


def test_cvar_dro_step():
    labels = [0, 1, 0, 1, 0]
    data, table = numbered(labels), RANDOM.normal(size=(5, 2))
    method = CVaRDRO(data, None, lambda: Lookup(table), CVaRDRO.Config(share=0.5))
    loss, _ = method(batch(data, [0, 1, 2, 3, 4]))
    loss.backward()
    p = softmax(table)
    each = -np.log(p[range(5), labels])
    order = np.argsort(-each)
    weights = np.zeros(5)
    weights[order[:2]], weights[order[2]] = 1 / 2.5, 1 - 2 / 2.5
    assert loss.item() == pytest.approx((weights * each).sum(), rel=1e-6)
    assert isinstance(method.model, Lookup)
    assert method.model.table.grad is not None
    np.testing.assert_allclose(method.model.table.grad.numpy(), weights[:, None] * (p - np.eye(2)[labels]), rtol=1e-5)


def test_repair_gradients():
    labels, bias = np.array([0, 0, 1, 1, 1, 0]), np.array([0, 0, 1, 1, 0, 1])
    rows = np.array([0, 2, 4])
    matrix, offset, v = RANDOM.normal(size=(2, 2)), RANDOM.normal(size=2), RANDOM.normal(size=6)
    onehot = np.eye(2)

    def weighted(v):
        w = 1 / (1 + np.exp(-v))
        z = w[rows] / w.mean()
        share = np.array([w[labels == k].sum() for k in range(2)]) / w.sum()
        p = softmax(onehot[bias[rows]] @ matrix.T + offset)
        each = -np.log(p[range(3), labels[rows]])
        return (each * z).mean(), -(np.log(share[labels[rows]]) * z).mean(), z, p

    def t(a):
        return torch.tensor(a, dtype=torch.float64)

    found = step_gradients(
        [t(matrix), t(offset)], t(v), t(onehot[bias[rows]]), torch.tensor(labels[rows]), torch.tensor(rows),
        t(onehot[labels]),
    )  # fmt: skip
    _, _, z, p = weighted(v)
    error = z[:, None] * (p - onehot[labels[rows]]) / 3
    np.testing.assert_allclose(found[0].numpy(), error.T @ onehot[bias[rows]], rtol=1e-6)
    np.testing.assert_allclose(found[1].numpy(), error.sum(0), rtol=1e-6)
    for i in range(6):
        high, low = v.copy(), v.copy()
        high[i] += 1e-6
        low[i] -= 1e-6
        (loss_h, entropy_h, *_), (loss_l, entropy_l, *_) = weighted(high), weighted(low)
        expected = ((1 - loss_h / entropy_h) - (1 - loss_l / entropy_l)) / 2e-6
        assert found[2][i].item() == pytest.approx(expected, abs=1e-7)


def test_under_repairs_weights_the_bias_says_little_about_the_class():
    labels = torch.arange(1200) % 4
    conflicting = torch.arange(1200) % 15 == 14
    bias = torch.where(conflicting, (labels + 1 + torch.arange(1200) // 60 % 3) % 4, labels)
    data = replace(numbered([0, 1, 2, 3] * 50), ids=[str(i) for i in range(1200)], labels=labels, bias=bias,
                   images=torch.zeros(1200, 3, 4, 4, dtype=torch.uint8), aligned=~conflicting)  # fmt: skip
    w = repair(data, RepairOptions(seed=1)).score
    assert (w[conflicting].sum() / w.sum()).item() > 0.3, "up from 1/15"
    assert w[conflicting].min() > w[~conflicting].median()


def kept(data, keep: str, score: list[float]) -> set[int]:
    conflicting = torch.tensor(score) > 0.5
    partition = unskew.Partition.of(data, conflicting, torch.tensor(score), "given")
    method = Repair(data, partition, lambda: nn.Linear(1, 1), Repair.Config(keep=keep))  # type: ignore[arg-type]
    return set(make_plan(method.streams(), 1, 0, 0).streams["all"].index.flatten().tolist())


def test_what_repair_keeps():
    data, score = numbered([0, 0, 0, 0, 1, 1]), [0.9, 0.8, 0.7, 0.1, 0.2, 0.3]
    assert kept(data, "threshold", score) == {0, 1, 2}
    assert kept(data, "rank", score) == {0, 1, 2}
    assert kept(data, "class-rank", score) == {0, 1, 5}
    assert kept(data, "sample", [1.0, 1.0, 1.0, 0.0, 0.0, 1.0]) == {0, 1, 2, 5}
    with pytest.raises(UnskewError, match="gives no sample the weight to be kept"):
        kept(data, "threshold", [0.0] * 6)


def test_repair_draws_in_proportion_to_the_weights():
    data = numbered([0, 1] * 50)
    score = torch.tensor([0.9, 0.1] * 50)
    partition = unskew.Partition.of(data, score > 0.5, score, "given")
    method = Repair(data, partition, lambda: nn.Linear(1, 1), Repair.Config())
    drawn = torch.cat([make_plan(method.streams(), 10, 0, e).streams["all"].index.flatten() for e in range(50)])
    assert (drawn % 2 == 0).float().mean().item() == pytest.approx(0.9, abs=0.02)


def test_selecmix_partners():
    labels = torch.tensor([0, 1, 0, 2, 1, 0])
    similarity = torch.tensor(RANDOM.normal(size=(6, 6)))
    for same in (True, False):
        expected = []
        for i in range(6):
            allowed = [j for j in range(6) if (labels[j] == labels[i]).item() is same]
            pick = min if same else max
            expected.append(pick(allowed, key=lambda j: similarity[i, j].item()))
        assert choose_partners(similarity, labels, torch.tensor(same)).tolist() == expected


def test_selecmix_without_another_label_pairs_a_sample_with_itself():
    found = choose_partners(torch.rand(3, 3), torch.zeros(3, dtype=torch.int64), torch.tensor(False))
    assert found.tolist() == [0, 1, 2]


def test_selecmix_contrastive_loss():
    z = RANDOM.normal(size=(5, 4))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    labels, tau, q = [0, 1, 0, 1, 0], 0.2, 0.7
    total = 0.0
    for i in range(5):
        others = [j for j in range(5) if j != i]
        bottom = sum(np.exp(z[i] @ z[j] / tau) for j in others)
        positives = [j for j in others if labels[j] == labels[i]]
        p = np.array([np.exp(z[i] @ z[j] / tau) / bottom for j in positives])
        total += -(p**q * np.log(p)).mean() / 5
    found = contrastive_loss(torch.tensor(z @ z.T), torch.tensor(labels), tau, q)
    assert found.item() == pytest.approx(total, rel=1e-6)


def test_selecmix_learns_the_mix_as_the_partners_label_in_several_updates():
    """One step of 8 samples in minibatches of 4: two updates, each on λ·x + (1 − λ)·partner."""
    data = tiny_data(samples=8)
    seen: list[tuple[torch.Tensor, torch.Tensor, Samples, Samples]] = []
    steps: list[int] = []

    class Watched(SelecMix):
        def forward(self, batch):
            own, partner = batch["all"], batch["partner"]
            with torch.no_grad():
                lam = own.noise[:, :1, None, None] / 2
                logits = self.model(lam * own.x + (1 - lam) * partner.x)
                picked = logits.log_softmax(1)[range(len(partner.y)), partner.y]
                z = nn.functional.normalize(self.auxiliary(own.x), dim=1)
            expected = -picked.mean() + contrastive_loss(z @ z.T, own.y, 0.2, 0.7)
            loss, metrics = super().forward(batch)
            seen.append((loss.detach(), expected, own, partner))
            return loss, metrics

        def train_step(self, engine, batch):
            before = engine.step
            engine.step = lambda: (steps.append(1), before())
            out = super().train_step(engine, batch)
            engine.step = before
            return out

    given = {"epochs": 1, "batch_size": 8, "minibatch": 4, "device": "cpu", "precision": "float32", "augment": "none"}
    fit(decide("selecmix", Watched, data, given, TinyBackbone()), data)
    assert (len(seen), len(steps)) == (2, 2)
    for loss, expected, own, partner in seen:
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
        same = own.y == partner.y
        assert bool(same.all()) or not bool(same.any()), "one coin for the whole batch"
    assert len({int(i) for _, _, own, _ in seen for i in own.index}) == 8


@pytest.mark.parametrize("identifier", ["jtt", "gce", "repair", "ph"])
@pytest.mark.parametrize("method", ["jtt", "repair", "lmix"])
def test_any_stage_1_feeds_any_stage_2(identifier, method):
    data = tiny_data(samples=96)
    options = {"epochs": 1, "batch_size": 16, "device": "cpu", "model": TinyBackbone()}
    run = unskew.train(data, method=method, identify={"name": identifier, "epochs": 2}, **options)
    assert run.partition is not None
    assert run.partition.how == identifier


@pytest.mark.parametrize("method", ["jtt", "repair"])
def test_a_method_brings_its_own_stage_1(method):
    run = unskew.train(
        tiny_data(samples=96), method=method, epochs=1, batch_size=16, device="cpu", model=TinyBackbone()
    )
    assert run.partition is not None
    assert run.partition.how == method


@pytest.mark.parametrize("method", ["group-dro", "repair"])
def test_bias_labels_that_are_not_there(method):
    data = replace(tiny_data(), bias=None, aligned=None)
    with pytest.raises(UnskewError, match="needs bias labels, and tiny has none"):
        unskew.train(data, method=method, epochs=1, device="cpu", model=TinyBackbone())
