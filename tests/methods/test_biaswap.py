"""BiaSwap, lighter: the contract, its two phases, and what a swap looks like."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.fit import decide, fit
from unskew.methods.biaswap import BiaSwapLite
from unskew.testing import TinyBackbone, check_method, tiny_data

DATA = tiny_data()
PARTS = ("swapping", "discriminator", "patch_discriminator", "biased", "model")


def oracle(data: Dataset) -> Partition:
    assert data.aligned is not None
    return Partition.of(data, ~data.aligned, (~data.aligned).float(), "oracle")


def job_of(data: Dataset = DATA, **options):
    given = {"batch_size": 16, "device": "cpu", "augment": "none", "width": 4, **options}
    return decide("biaswap-lite", BiaSwapLite, data, given, TinyBackbone())


class Recorded(BiaSwapLite):
    recordable = True


@pytest.mark.parametrize("options", [{}, {"optimizer": "sgd", "lr": 0.01, "schedule": "one-cycle"}, {"ema": 0.9}])
def test_keeps_the_contract(options):
    check_method(BiaSwapLite, width=4, **options)


def test_a_step_leaves_nothing_in_python():
    check_method(Recorded, width=4)


class Stop(Exception):
    pass


class StopAt:
    """A listener that ends a run after so many steps, as a kill would."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def start(self, *given) -> None: ...
    def epoch(self, *given) -> None: ...
    def end(self) -> None: ...
    def step(self) -> None:
        self.left -= 1
        if self.left <= 0:
            raise Stop


@pytest.mark.parametrize("steps", [5, 10])  # of 12: with the auto-encoder alone, and after
def test_killed_in_either_phase_and_resumed_ends_with_the_same_bits(tmp_path, steps):
    job = job_of(epochs=4, autoencoder_first=0.5)
    whole, _ = fit(job, DATA, oracle(DATA))
    with pytest.raises(Stop):
        fit(job, DATA, oracle(DATA), tmp_path / "c.pt", listeners=[StopAt(steps)])
    resumed, _ = fit(job, DATA, oracle(DATA), tmp_path / "c.pt", resume=True)
    for (name, a), b in zip(whole.state_dict().items(), resumed.state_dict().values()):
        if isinstance(a, Tensor):
            assert torch.equal(a, b), name
    moments = [method.adam.state_dict()["state"] for method in (whole, resumed)]
    assert len(moments[0]) == sum(1 for part in PARTS[:4] for _ in getattr(whole, part).parameters())
    for key, state in moments[0].items():
        assert all(torch.equal(value, moments[1][key][name]) for name, value in state.items())


class Watched(BiaSwapLite):
    """Keeps what its parts are at the start and after every epoch."""

    def __init__(self, *given) -> None:
        super().__init__(*given)
        self.seen = [self.now()]

    def now(self) -> dict[str, Tensor]:
        return {part: torch.cat([p.detach().flatten() for p in getattr(self, part).parameters()]) for part in PARTS}

    def epoch_end(self, engine) -> None:
        self.seen.append(self.now())

    def moved(self) -> list[dict[str, bool]]:
        return [{part: not torch.equal(a[part], b[part]) for part in PARTS} for a, b in pairwise(self.seen)]


@pytest.mark.parametrize(
    ("epochs", "share", "waits"),
    [(4, 0.5, [True, True, False, False]), (2, 0.4, [False, False]), (1, 0.9, [False]), (3, 0.0, [False] * 3)],
)
def test_the_classifier_waits_so_many_whole_epochs_for_the_auto_encoder(epochs, share, waits):
    job = decide("b", Watched, DATA, {"epochs": epochs, "autoencoder_first": share, "width": 4}, TinyBackbone())
    method, _ = fit(job, DATA, oracle(DATA))
    assert isinstance(method, Watched)
    others = dict.fromkeys(PARTS[:4], True)
    assert method.moved() == [others | {"model": not wait} for wait in waits]


def test_every_weight_has_one_optimizer():
    job = job_of(optimizer="sgd")
    method = BiaSwapLite(DATA, oracle(DATA), job.make_model, job.config)
    ours = [p for group in method.adam.param_groups for p in group["params"]]
    theirs = [p for group in method.param_groups() for p in group["params"]]
    assert {id(p) for p in ours + theirs} == {id(p) for p in method.parameters()}
    assert len(ours + theirs) == len(list(method.parameters()))
    assert [group["betas"] for group in method.adam.param_groups] == [(0.0, 0.99), (0.9, 0.999)]


# What a swap looks like


def bars(samples: int = 120, size: int = 16) -> Dataset:
    """A white bar, upright or lying, on a ground whose colour goes with that four times in six."""
    random = torch.Generator().manual_seed(0)
    labels, conflicting = torch.arange(samples) % 2, torch.arange(samples) % 6 >= 4
    colour = torch.where(conflicting, 1 - labels, labels)
    grounds = torch.tensor([[200.0, 40, 40], [40, 80, 220]])[colour] + torch.randn(samples, 3, generator=random) * 15
    images = grounds.clamp(0, 255)[:, :, None, None].expand(-1, -1, size, size).clone()
    for i, where in enumerate(torch.randint(2, size - 6, (samples,), generator=random).tolist()):
        across, along = slice(where, where + 4), slice(2, size - 2)
        images[(i, slice(None), along, across) if labels[i] == 0 else (i, slice(None), across, along)] = 255
    ids = [str(i) for i in range(samples)]
    names = ["upright", "lying"]
    return Dataset(images.byte(), labels, ids, names, bias=colour, aligned=~conflicting, name="bars")


def test_a_swap_has_the_shape_of_one_and_the_colour_of_the_other():
    data = bars()
    assert data.aligned is not None
    job = job_of(data, epochs=40, batch_size=20, width=8, autoencoder_first=0.9)
    method, _ = fit(job, data, oracle(data))
    assert isinstance(method, BiaSwapLite)
    guiding, contrary = data.aligned.nonzero().flatten()[:40], (~data.aligned).nonzero().flatten()[:40]
    differ = data.bias[guiding] != data.bias[contrary]
    content, style = (data.images[rows[differ]].float() / 255 for rows in (guiding, contrary))
    with torch.no_grad():
        swaps = method.swapping.swap(content, style)

    def ground(images: Tensor) -> Tensor:
        """The colour of the outermost pixels, which no bar covers."""
        rim = torch.ones(16, 16, dtype=torch.bool)
        rim[2:-2, 2:-2] = False
        return images[:, :, rim].mean(2)

    def ink(images: Tensor) -> Tensor:
        """How green each pixel is, centred: both grounds are dark there."""
        green = images[:, 1, 2:-2, 2:-2].flatten(1)
        green = green - green.mean(1, keepdim=True)
        return green / green.norm(dim=1, keepdim=True)

    to_style = (ground(swaps) - ground(style)).norm(dim=1)
    to_content = (ground(swaps) - ground(content)).norm(dim=1)
    assert (to_style < to_content / 2).float().mean() > 0.9
    like_content, like_style = ((ink(swaps) * ink(of)).sum(1) for of in (content, style))
    assert like_content.mean() > 0.8
    assert like_content.mean() > like_style.mean() + 0.3
