"""BiaSwap, lighter: each loss against one written out by hand, and who has a gradient in what."""

import numpy as np
import pytest
import torch
from plain_patches import plain_boxes, plain_patches, plain_weights
from torch import Tensor, nn

from unskew.data.partition import Partition
from unskew.engine.fit import decide
from unskew.engine.method import Batch, Samples
from unskew.methods.biaswap import PATCHES, BiaSwapLite, discriminator_loss, generator_loss, with_penalty
from unskew.methods.patches import NUMBERS, cam_weights, crop, draw_boxes
from unskew.models.swapping import Discriminator
from unskew.testing import TinyBackbone, tiny_data

DATA = tiny_data()
assert DATA.aligned is not None
ALIGNED = DATA.aligned
PARTS = ("swapping", "discriminator", "patch_discriminator", "biased", "model")


def built(**options) -> BiaSwapLite:
    torch.manual_seed(0)
    job = decide("biaswap-lite", BiaSwapLite, DATA, {"width": 4, **options}, TinyBackbone())
    partition = Partition.of(DATA, ~ALIGNED, (~ALIGNED).float(), "oracle")
    return BiaSwapLite(DATA, partition, job.make_model, job.config)


def a_batch(pairs: int = 5) -> Batch:
    random = torch.Generator().manual_seed(1)
    guiding, contrary = ALIGNED.nonzero().flatten()[:pairs], (~ALIGNED).nonzero().flatten()[:pairs]
    rows = {"all": torch.arange(7, 7 + pairs), "guiding": guiding, "contrary": contrary}
    numbers = {"all": 0, "guiding": PATCHES * NUMBERS, "contrary": 2 * PATCHES * NUMBERS}
    streams = {
        name: Samples(
            DATA.images[index].float() / 255, DATA.labels[index], index,
            torch.rand(pairs, numbers[name], generator=random),
        )
        for name, index in rows.items()
    }  # fmt: skip
    return Batch(streams, torch.zeros(0))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def test_adversarial_losses():
    real, fake = (torch.randn(40, generator=torch.Generator().manual_seed(k)) * 3 for k in (0, 1))
    r, f = real.double().numpy(), fake.double().numpy()
    assert generator_loss(fake).item() == pytest.approx(np.mean(-np.log(sigmoid(f))), rel=1e-5)
    expected = np.mean(-np.log(sigmoid(r))) + np.mean(-np.log(1 - sigmoid(f)))
    assert discriminator_loss(real, fake).item() == pytest.approx(expected, rel=1e-5)


def test_gradient_penalty_by_finite_differences():
    torch.manual_seed(0)
    discriminator, images = Discriminator(8, 4).double(), torch.rand(3, 3, 8, 8, dtype=torch.float64)
    out, penalty = with_penalty(discriminator, images)
    assert torch.equal(out, discriminator(images))
    squares = torch.zeros(3, dtype=torch.float64)
    with torch.no_grad():
        for place in range(images[0].numel()):
            nudge = torch.zeros(images[0].numel(), dtype=torch.float64)
            nudge[place] = 1e-6
            up, down = (discriminator(images + sign * nudge.view_as(images[0])) for sign in (1, -1))
            squares += ((up - down) / 2e-6) ** 2
    assert penalty.item() == pytest.approx(squares.mean().item(), rel=1e-5)
    penalty.backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in discriminator.parameters())


def terms_of(method: BiaSwapLite, batch: Batch) -> dict[str, Tensor]:
    """Every term of the loss, unweighted; patches and their places by the plain code above."""
    every, guiding, contrary = (batch[name] for name in ("all", "guiding", "contrary"))
    with torch.no_grad():
        codes = [method.swapping.encoder(samples.x) for samples in (guiding, contrary)]
        rebuilt = [method.swapping.decoder(*code) for code in codes]
        swaps = method.swapping.decoder(codes[0][0], codes[1][1])
        boxes = [
            plain_boxes(
                plain_weights(method.biased.activations(samples.x).double().numpy(), 0.1),
                samples.noise.double().numpy().reshape(len(samples.y), -1, 4),
            )
            for samples in (guiding, contrary)
        ]
        fake = plain_patches(swaps, boxes[0])
        real, reference = (plain_patches(contrary.x, boxes[1][:, some]) for some in (slice(0, 4), slice(4, 8)))
        judge = method.patch_discriminator

    def mean_log_sigmoid(x: Tensor) -> Tensor:
        return (1 / (1 + (-x).exp())).log().mean()

    def truth(logits: Tensor, y: Tensor) -> Tensor:
        return (logits.exp() / logits.exp().sum(1, keepdim=True))[torch.arange(len(y)), y]

    p = truth(method.biased(every.x), every.y)
    images = torch.cat([guiding.x, contrary.x])
    return {
        "l1": torch.cat([rebuilt[0] - guiding.x, rebuilt[1] - contrary.x]).abs().mean(),
        "fool": -mean_log_sigmoid(method.discriminator(swaps)),
        "patch_fool": -mean_log_sigmoid(judge(fake, reference)),
        "tell": -mean_log_sigmoid(method.discriminator(images)) - mean_log_sigmoid(-method.discriminator(swaps)),
        "patch_tell": -mean_log_sigmoid(judge(real, reference)) - mean_log_sigmoid(-judge(fake, reference)),
        "biased": (p.detach() ** 0.7 * -p.log()).mean(),
        "classifier": -truth(method.model(every.x), every.y).log().mean()
        - 2.0 * truth(method.model(swaps), guiding.y).log().mean(),
    }


def test_the_loss_is_the_weighted_sum_of_its_terms():
    method, batch = built(swap_weight=2.0, reconstruction=3.0, adversarial=0.25, patch=0.7, r1=0.0), a_batch()
    loss, metrics = method(batch)
    term = terms_of(method, batch)
    parts = 3 * term["l1"] + 0.25 * term["fool"] + 0.7 * term["patch_fool"] + term["tell"] + term["patch_tell"]
    assert loss.item() == pytest.approx((parts + term["biased"] + term["classifier"]).item(), rel=1e-4)
    for name in ("l1", "fool", "patch_fool", "classifier"):
        assert metrics[name].item() == pytest.approx(term[name].item(), rel=1e-4)
    method.classify.zero_()
    assert method(batch)[0].item() == pytest.approx((parts + term["biased"]).item(), rel=1e-4)
    method.config = type(method.config)(**{**vars(method.config), "r1": 5.0})
    _, penalty = with_penalty(method.discriminator, torch.cat([batch["guiding"].x, batch["contrary"].x]))
    assert method(batch)[0].item() == pytest.approx((parts + term["biased"] + 2.5 * penalty).item(), rel=1e-4)


def gradients(method: BiaSwapLite, loss: Tensor) -> dict[str, Tensor]:
    method.zero_grad()
    loss.backward()
    return {
        part: torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten()
                         for p in getattr(method, part).parameters()])
        for part in PARTS
    }  # fmt: skip


OWN = {"discriminator": "tell", "patch_discriminator": "patch_tell", "biased": "biased", "model": "classifier"}


def test_each_part_descends_its_own_terms_only():
    method, batch = built(r1=0.0, swap_weight=2.0), a_batch()
    every = gradients(method, method(batch)[0])
    for part, term in OWN.items():
        own = gradients(method, terms_of(method, batch)[term])[part]
        assert own.abs().max() > 0
        torch.testing.assert_close(every[part], own, rtol=1e-3, atol=1e-6, msg=part)


def test_the_auto_encoder_descends_its_three_terms_through_judges_that_stand_still():
    method, batch = built(reconstruction=3.0, adversarial=0.25, patch=0.7), a_batch()
    every = gradients(method, method(batch)[0])["swapping"]
    guiding, contrary = batch["guiding"], batch["contrary"]
    boxes = [draw_boxes(cam_weights(method.biased.activations(s.x), 0.1), s.noise.reshape(len(s.y), -1, NUMBERS))
             for s in (guiding, contrary)]  # fmt: skip
    rebuilt, swaps = method.swapping(guiding.x, contrary.x)
    fake, reference = crop(swaps, boxes[0]), crop(contrary.x, boxes[1])[:, PATCHES:]
    paid = (
        3 * (rebuilt - torch.cat([guiding.x, contrary.x])).abs().mean()
        - 0.25 * method.discriminator(swaps).sigmoid().log().mean()
        - 0.7 * method.patch_discriminator(fake, reference).sigmoid().log().mean()
    )
    torch.testing.assert_close(every, gradients(method, paid)["swapping"], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("judge", ["discriminator", "patch_discriminator"])
def test_the_two_sides_pull_against_each_other(judge):
    """A small step down the joint loss: the judge's widens the gap, the auto-encoder's makes swaps seem more real."""
    weights = {"adversarial": 1.0, "patch": 0.0} if judge == "discriminator" else {"adversarial": 0.0, "patch": 1.0}
    method, batch = built(r1=0.0, reconstruction=0.0, **weights), a_batch()
    prefix = "" if judge == "discriminator" else "patch_"

    def seen() -> tuple[float, float]:
        term = terms_of(method, batch)
        return term[f"{prefix}fool"].item(), term[f"{prefix}tell"].item()

    fool, tell = seen()
    gradients(method, method(batch)[0])
    step(getattr(method, judge), 1)
    assert seen()[1] < tell - 1e-6
    step(getattr(method, judge), -1)
    step(method.swapping, 1)
    assert seen()[0] < fool - 1e-7
    assert seen()[1] > tell + 1e-7  # what fools the judge is harder to tell


@torch.no_grad()
def step(module: nn.Module, sign: int) -> None:
    norm = torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None]).norm()
    for p in module.parameters():
        if p.grad is not None:
            p -= sign * 1e-3 * p.grad / norm
