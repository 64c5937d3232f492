"""Each loss against the equation, written out by hand on a tiny network and batch."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Beta, kl_divergence

import unskew
from plain_looks import with_look
from unskew.data.partition import Partition
from unskew.engine.fit import decide
from unskew.engine.looks import with_looks
from unskew.engine.method import Batch, Samples
from unskew.errors import UnskewError
from unskew.methods import METHODS
from unskew.methods.learnable import LearnableMix, reverse_gradient, spread_lost
from unskew.methods.mixing import donors
from unskew.methods.sampling import NUMBERS, sample_beta
from unskew.testing import TinyBackbone, tiny_data

DATA = tiny_data()
assert DATA.aligned is not None
ORACLE = Partition.of(DATA, ~DATA.aligned, (~DATA.aligned).float(), "oracle")
PAIRS = 6


def build(name: str, **options):
    torch.manual_seed(0)
    job = decide(name, METHODS[name], DATA, options, TinyBackbone())
    return job.method(DATA, ORACLE, job.make_model, job.config)


def samples(rows: Tensor, seed: int) -> Samples:
    noise = torch.rand(len(rows), NUMBERS, generator=torch.Generator().manual_seed(seed))
    return Samples(DATA.images[rows].float() / 255, DATA.labels[rows], rows, noise)


def pair_batch() -> Batch:
    aligned, conflicting = (~ORACLE.conflicting).nonzero().flatten(), ORACLE.conflicting.nonzero().flatten()
    streams = {"x1": samples(aligned[:PAIRS], 1), "x2": samples(conflicting[:PAIRS], 2)}
    return Batch(streams, torch.rand(NUMBERS, generator=torch.Generator().manual_seed(3)))


def soft_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    return -(target * logits.log_softmax(1)).sum(1).mean()


def one_hot(y: Tensor) -> Tensor:
    return torch.eye(DATA.num_classes)[y]


def mixed(batch: Batch, lam: Tensor) -> tuple[Tensor, Tensor]:
    x1, x2 = batch["x1"], batch["x2"]
    x = torch.stack([w * a + (1 - w) * b for w, a, b in zip(lam, x1.x, x2.x)])
    y = torch.stack([w * a + (1 - w) * b for w, a, b in zip(lam, one_hot(x1.y), one_hot(x2.y))])
    return x, y


def test_erm():
    method = build("erm")
    batch = Batch({"all": samples(torch.arange(8), 0)}, torch.empty(0))
    expected = soft_cross_entropy(method.model(batch["all"].x), one_hot(batch["all"].y))
    assert torch.allclose(method(batch)[0], expected)


def test_mixup_has_one_lambda_a_batch():
    method, batch = build("mixup"), pair_batch()
    one = torch.ones(1)
    lam = sample_beta(one, one, batch.noise[None]).expand(PAIRS)
    x, y = mixed(batch, lam)
    assert torch.allclose(method(batch)[0], soft_cross_entropy(method.model(x), y))


@pytest.mark.parametrize("gamma", [None, 0.7])
@pytest.mark.parametrize("zeta", [10.0, 1.0])
def test_smix_weighs_its_three_terms(gamma, zeta):
    method, batch = build("smix", gamma=gamma, zeta=zeta, beta_a=0.5, beta_b=2.0), pair_batch()
    x1, x2 = batch["x1"], batch["x2"]
    lam = sample_beta(torch.full((PAIRS,), 0.5), torch.full((PAIRS,), 2.0), x1.noise)
    x, y = mixed(batch, lam)
    g = 40 / 48 if gamma is None else gamma  # 8 of the 48 samples conflict
    expected = (
        (1 - g) * soft_cross_entropy(method.model(x1.x), one_hot(x1.y))
        + g * soft_cross_entropy(method.model(x2.x), one_hot(x2.y))
        + zeta * soft_cross_entropy(method.model(x), y)
    )
    assert torch.allclose(method(batch)[0], expected)


def test_a_look_comes_from_another_pair():
    both = torch.tensor([1, 2, 3, -1, -2, -3])
    assert donors(both, "other").tolist() == [-3, -1, -2, 3, 1, 2]
    assert donors(both, "aligned").tolist() == [3, 1, 2, 2, 3, 1]


def relooked(batch: Batch, shares: Tensor) -> Batch:
    """Every image with the look of the one before it on the other side, one by one."""
    x1, x2 = batch["x1"], batch["x2"]
    turned = []
    for own, other, share in zip((x1, x2), (x2, x1), shares.chunk(2)):
        images = [with_look(own.x[i], other.x[i - 1], share[i].item()) for i in range(PAIRS)]
        turned.append(replace(own, x=torch.stack(images)))
    return Batch(dict(zip(("x1", "x2"), turned)), batch.noise)


def with_noise(batch: Batch, numbers: int) -> Batch:
    noise = torch.rand(PAIRS, numbers, generator=torch.Generator().manual_seed(4))
    return Batch({"x1": replace(batch["x1"], noise=noise), "x2": batch["x2"]}, batch.noise)


def test_smix_with_looks():
    method = build("smix", looks=0.5, donors="other", weighted_erm=False, zeta=1.0, beta_a=0.5, beta_b=2.0)
    batch = with_noise(pair_batch(), method.streams().streams["x1"].noise)
    noise = batch["x1"].noise
    lam = sample_beta(torch.full((PAIRS,), 0.5), torch.full((PAIRS,), 2.0), noise[:, :NUMBERS])
    shares = 0.5 * torch.cat([noise[:, NUMBERS], noise[:, NUMBERS + 1]])
    x, y = mixed(relooked(batch, shares), lam)
    assert torch.allclose(method(batch)[0], soft_cross_entropy(method.model(x), y), atol=1e-4)


def shares_of(method, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """μ of x1 and of x2, and the parameters they come from."""
    x1, x2 = batch["x1"], batch["x2"]
    with torch.no_grad():
        f1, f2 = method.model.features(x1.x), method.model.features(x2.x)
    found = []
    for own, other, k in ((f1, f2, 1), (f2, f1, 2)):
        donor = torch.stack([other[i - 1] for i in range(PAIRS)])
        alpha, beta = method.mixer.mixer(own, donor)
        found.append((sample_beta(alpha, beta, x1.noise[:, k * NUMBERS : (k + 1) * NUMBERS]), alpha, beta))
    share, alpha, beta = (torch.cat(each) for each in zip(*found))
    return share, alpha, beta


def test_lmix_learns_looks_for_the_classifiers_error():
    """θ and φ descend the CE of mixes with learned looks; ψ ascends it, and descends τ·KL(Beta ‖ uniform)."""
    method = build("lmix", seeks="error", donors="other", tau=0.3, beta_a=0.5, beta_b=2.0)
    batch = with_noise(pair_batch(), 3 * NUMBERS)
    loss, told = method(batch)
    share, alpha, beta = shares_of(method, batch)
    lam = sample_beta(torch.full((PAIRS,), 0.5), torch.full((PAIRS,), 2.0), batch["x1"].noise[:, :NUMBERS])
    kl = kl_divergence(Beta(alpha, beta), Beta(torch.ones_like(alpha), torch.ones_like(beta))).mean()
    x, y = mixed(relooked(batch, share.detach()), lam)
    ce = soft_cross_entropy(method.model(x), y)
    assert torch.allclose(loss, ce + 0.3 * kl, atol=1e-4)
    assert torch.allclose(told["share"], share.mean())
    for got, plain in zip(gradients(loss, method.model), gradients(ce, method.model)):
        assert torch.allclose(got, plain, atol=1e-3)

    def through_shares(values: Tensor) -> Tensor:
        both = torch.cat([batch["x1"].x, batch["x2"].x])
        images = with_looks(both, donors(both, "other"), values)
        turned = Batch({n: replace(batch[n], x=each) for n, each in zip(("x1", "x2"), images.chunk(2))}, batch.noise)
        mix_, target = mixed(turned, lam)
        return soft_cross_entropy(method.model(mix_), target)

    up, down = gradients(through_shares(share), method.mixer), gradients(kl, method.mixer)
    for got, a, b in zip(gradients(loss, method.mixer), up, down):
        assert torch.allclose(got, -a + 0.3 * b, rtol=1e-2, atol=1e-5)
    assert any(g.abs().max() > 1e-6 for g in up), "the adversary has something to ascend"


class Passes:
    """In place of the engine: the gradients that a step leaves, before it is taken."""

    def __init__(self, method) -> None:
        self.method = method
        self.left: dict[str, list[Tensor]] = {}

    def forward(self, batch: Batch):
        return self.method(batch)

    def backward(self, loss: Tensor, only=None, again: bool = False) -> None:
        loss.backward(inputs=None if only is None else list(only), retain_graph=again)

    def step(self) -> None:
        for name in ("model", "mixer"):
            self.left[name] = [p.grad.clone() for p in getattr(self.method, name).parameters()]


def test_lmix_learns_looks_for_how_far_they_are_believed():
    """θ and φ descend the CE of the mixes alone; ψ ascends the probability of the looks' classes, less τ·KL."""
    method: Any = build("lmix", tau=0.3, beta_a=0.5, beta_b=2.0)
    batch = with_noise(pair_batch(), 3 * NUMBERS)
    x1, x2 = batch["x1"], batch["x2"]
    donor = {"x1": [i - 1 for i in range(PAIRS)], "x2": [i - 2 for i in range(PAIRS)]}  # all of them aligned
    with torch.no_grad():
        features = {name: method.model.features(batch[name].x) for name in donor}
    pairs = [(features[name][i], features["x1"][d]) for name, rows in donor.items() for i, d in enumerate(rows)]
    alpha, beta = method.mixer.mixer(*(torch.stack(each) for each in zip(*pairs)))
    noise = torch.cat([x1.noise[:, NUMBERS : 2 * NUMBERS], x1.noise[:, 2 * NUMBERS :]])
    share = sample_beta(alpha, beta, noise)
    lam = sample_beta(torch.full((PAIRS,), 0.5), torch.full((PAIRS,), 2.0), x1.noise[:, :NUMBERS])
    kl = kl_divergence(Beta(alpha, beta), Beta(torch.ones_like(alpha), torch.ones_like(beta))).mean()
    both = torch.cat([x1.x, x2.x])
    lent = torch.stack([x1.x[d] for rows in donor.values() for d in rows])
    images = with_looks(both, lent, share)
    turned = Batch({n: replace(batch[n], x=each) for n, each in zip(donor, images.chunk(2))}, batch.noise)
    x, y = mixed(turned, lam)
    logits = method.model(x)
    believed = torch.zeros(())
    for i in range(PAIRS):
        for weight, d in ((lam[i], donor["x1"][i]), (1 - lam[i], donor["x2"][i])):
            look = int(x1.y[d])
            if look not in (int(x1.y[i]), int(x2.y[i])):
                believed = believed + weight * logits[i].softmax(0)[look] / PAIRS
    assert believed.item() > 0
    ce = soft_cross_entropy(logits, y)
    passes = Passes(method)
    loss, told = method.train_step(passes, batch)
    assert torch.allclose(loss, ce, atol=1e-4)
    assert torch.allclose(told["believed"], believed, atol=1e-4)
    assert "of_h" not in told
    for got, plain in zip(passes.left["model"], gradients(ce, method.model)):
        assert torch.allclose(got, plain, atol=1e-3)
    up, down = gradients(believed, method.mixer), gradients(kl, method.mixer)
    for got, a, b in zip(passes.left["mixer"], up, down):
        assert torch.allclose(got, -a + 0.3 * b, rtol=1e-2, atol=1e-5)
    assert any(g.abs().max() > 1e-6 for g in up), "there is belief to look for"


def test_belief_needs_donors_whose_label_their_look_stands_for():
    with pytest.raises(UnskewError, match="aligned donors"):
        build("lmix", donors="other")


def test_tau_follows_what_h_seeks():
    assert [build("lmix", seeks=what).tau for what in ("belief", "error")] == [0.03, 0.1]
    assert build("lmix", tau=0.5).tau == 0.5


def test_spread_lost_is_the_divergence_from_the_uniform():
    alpha, beta = torch.tensor([1.0, 0.3, 5.0]), torch.tensor([1.0, 4.0, 5.0])
    expected = kl_divergence(Beta(alpha, beta), Beta(torch.ones(3), torch.ones(3)))
    assert torch.allclose(spread_lost(alpha, beta), expected, atol=1e-5)
    assert spread_lost(alpha, beta)[0].abs() < 1e-6


def test_smix_without_mixing_is_weighted_erm():
    method = build("smix", zeta=0.0)
    batch = pair_batch()
    batch = Batch({"aligned": batch["x1"], "conflicting": batch["x2"]}, batch.noise)
    g = 40 / 48
    expected = (1 - g) * soft_cross_entropy(method.model(batch["aligned"].x), one_hot(batch["aligned"].y))
    expected += g * soft_cross_entropy(method.model(batch["conflicting"].x), one_hot(batch["conflicting"].y))
    assert torch.allclose(method(batch)[0], expected)


def test_smix_single_keeps_zeta_on_unmixed_samples():
    method = build("smix", pairing="single", weighted_erm=False, zeta=3.0)
    batch = Batch({"x1": samples(torch.arange(8), 0)}, torch.empty(0))
    expected = 3 * soft_cross_entropy(method.model(batch["x1"].x), one_hot(batch["x1"].y))
    assert torch.allclose(method(batch)[0], expected)


@pytest.mark.parametrize(
    ("pairing", "x1", "x2"),
    [
        ("aligned+conflicting", "aligned", "conflicting"),
        ("aligned+aligned", "aligned", "aligned"),
        ("conflicting+conflicting", "conflicting", "conflicting"),
        ("all+all", "all", "all"),
    ],
)
@pytest.mark.parametrize("name", ["smix", "lmix"])
def test_pairs_come_from_the_named_subsets(name, pairing, x1, x2):
    streams = build(name, pairing=pairing).streams().streams
    rows = {"aligned": ~ORACLE.conflicting, "conflicting": ORACLE.conflicting, "all": ORACLE.conflicting >= 0}
    for stream, subset in (("x1", x1), ("x2", x2)):
        assert streams[stream].pool.tolist() == rows[subset].nonzero().flatten().tolist()
        assert streams[stream].replace


def lmix_reference(method, batch: Batch) -> tuple[Tensor, Tensor]:
    """CE and Reg with no reversal anywhere."""
    x1, x2 = batch["x1"], batch["x2"]
    with torch.no_grad():
        f1, f2 = method.model.features(x1.x), method.model.features(x2.x)
    alpha, beta = method.mixer.mixer(f1, f2)
    lam = sample_beta(alpha, beta, x1.noise)
    x, y = mixed(batch, lam)
    reg = ((alpha / (alpha + beta) - 8 / 48) ** 2).mean()
    return soft_cross_entropy(method.model(x), y), reg


def gradients(loss: Tensor, module) -> list[Tensor]:
    return list(torch.autograd.grad(loss, list(module.parameters()), retain_graph=True))


@pytest.mark.parametrize("reverse_reg", [False, True])
@pytest.mark.parametrize("omega", [0.0, 1e-3, 100.0])
def test_lmix_signs(omega, reverse_reg):
    """θ and φ (f, g) descend CE; ψ (h) ascends CE, and descends ω·Reg, or ascends it when read literally."""
    method, batch = build("lmix", learns="weight", omega=omega, reverse_reg=reverse_reg), pair_batch()
    loss, _ = method(batch)
    ce, reg = lmix_reference(method, batch)
    assert torch.allclose(loss, ce + omega * reg)
    for got, plain in zip(gradients(loss, method.model), gradients(ce, method.model)):
        assert torch.allclose(got, plain, atol=1e-6)
    sign = -1 if reverse_reg else 1
    h = method.mixer
    for got, up, down in zip(gradients(loss, h), gradients(ce, h), gradients(reg, h)):
        assert torch.allclose(got, -up + sign * omega * down, rtol=1e-3, atol=1e-5)
    assert any(g.abs().max() > 1e-6 for g in gradients(ce, h)), "the adversary has something to ascend"


def test_h_sees_detached_features():
    mixer = LearnableMix(4, target=0.1)
    features = torch.randn(5, 4, requires_grad=True)
    lam, reg = mixer(features, features)
    (lam.sum() + reg).backward()
    assert features.grad is None


def test_reg_by_hand():
    mixer = LearnableMix(2, target=0.25)
    _, reg, alpha, beta = mixer.sample(torch.randn(3, 2), torch.randn(3, 2))
    by_hand = sum((a / (a + b) - 0.25) ** 2 for a, b in zip(alpha.tolist(), beta.tolist())) / 3
    assert math.isclose(reg.item(), by_hand, rel_tol=1e-5)


def test_reversal_is_the_identity_with_minus_its_gradient():
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = reverse_gradient(x)
    assert torch.equal(y, x)
    (y * torch.tensor([3.0, 5.0])).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [-3.0, -5.0]


def test_lmix_feature_bn_eval_leaves_the_running_statistics_alone():
    torch.manual_seed(0)
    images = torch.rand(4, 3, 16, 16)
    for mode, moves in (("train", True), ("eval", False)):
        job = decide("lmix", METHODS["lmix"], DATA, {"feature_bn": mode}, "cnn")
        method = job.method(DATA, ORACLE, job.make_model, job.config)
        before = {k: v.clone() for k, v in method.model.named_buffers()}
        method._features(images)  # type: ignore[operator]
        moved = any(not torch.equal(before[k], v) for k, v in method.model.named_buffers())
        assert moved == moves
        assert method.model.training


def test_the_target_is_the_conflicting_share_unless_given():
    assert build("lmix").mixer.target == pytest.approx(8 / 48)
    assert build("lmix", target=0.4).mixer.target == 0.4


def test_a_method_of_the_users_own_runs(tiny):
    class Half(unskew.Method):
        def forward(self, batch):
            each = unskew.losses(self.model(batch["all"].x), batch["all"].y)
            return 0.5 * each.mean(), {}

    run = unskew.train(tiny, method=Half, test=tiny, epochs=1, model=TinyBackbone(), device="cpu")
    assert run.result.method == "half"
    assert 0 <= run.result.scores.all <= 1
