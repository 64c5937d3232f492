"""BiaSwap, lighter (Kim et al., ICCV 2021, arXiv 2108.10008): put the bias of contrary samples on guiding ones."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from unskew.data.partition import Partition
from unskew.engine.engine import Engine
from unskew.engine.method import Batch, Loss, Method, Samples, gce_losses, losses
from unskew.engine.optim import load_optimizer, make_optimizer
from unskew.engine.settings import Settings
from unskew.engine.streams import Stream, Streams
from unskew.methods.mixing import pools
from unskew.methods.patches import NUMBERS, cam_weights, crop, draw_boxes
from unskew.models.swapping import CamNetwork, Discriminator, PatchDiscriminator, SwappingAutoEncoder
from unskew.options import option

PATCHES = 4  # drawn of a swap, of its texture's source, and of that again for reference


class BiaSwapLite(Method):
    """Learn all samples, and swaps: texture of a conflicting one on the structure of an aligned one, with its label.

    A swapping auto-encoder (Park et al. 2020) makes the swaps; aligned is what BiaSwap calls bias-guiding, conflicting
    bias-contrary. It pays for the L1 of reconstructions, for swaps that do not look real, and for patches of them that
    do not look like patches of the texture's source. Patches are drawn where the class activation map of a biased
    network, of the class that it predicts, is large.

    Departures, for which it is called lite, and readings (there is no release):

    - The auto-encoder has one convolution a level, no residual blocks, no noise, a structure map of 16 px or less and a
      texture code of 64; the mean over space is taken off the map.
    - The activation maps are those of a small network that learns along by generalised cross-entropy, not stage 1's.
    - Auto-encoder and discriminators step together, out of one backward pass, not in turns; only swaps are judged, not
      reconstructions; the gradient penalty (R1) is on whole images only, and in every step.
    - Swaps are made anew each step, by an auto-encoder that goes on learning; aligned and conflicting samples are drawn
      evenly, each from its part. While the auto-encoder learns alone, the classifier's loss weighs 0.
    - The weights of the losses are ours.
    """

    @dataclass(frozen=True)
    class Config:
        autoencoder_first: float = option(
            0.25, "share of the epochs, rounded down, before the classifier learns", least=0, below=1
        )
        swap_weight: float = option(1.0, "weight of the swaps in the classifier's loss", least=0)
        reconstruction: float = option(10.0, "weight of the auto-encoder's L1, of colours from 0 to 1", least=0)
        adversarial: float = option(0.5, "weight of swaps that look real", least=0)
        patch: float = option(1.0, "weight of their patches looking like the texture's source", least=0)
        r1: float = option(1.0, "γ of the discriminator's gradient penalty, γ/2·|∇|²", least=0)
        cam_floor: float = option(0.1, "where the activation map is 0, patches are drawn as if it had this", above=0)
        swap_lr: float = option(2e-3, "learning rate of all but the classifier, by Adam, constant", above=0)
        width: int = option(
            32, "channels of the auto-encoder at half size; at most four times as many further in", least=1
        )
        q: float = option(0.7, "q of the biased network's generalised cross-entropy", above=0, most=1)

    config: Config
    partition: Partition
    needs = frozenset({"partition"})
    stage1 = "gce"
    source = "Kim et al. 2021"
    cost = "2 to 5, the more the smaller the model"
    steps_done: Tensor
    classify: Tensor
    with_penalty: Callable[..., Any]

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        size, width = self.data.size, self.config.width
        self.swapping = SwappingAutoEncoder(size, width)
        self.discriminator = Discriminator(size, width)
        self.patch_discriminator = PatchDiscriminator(width)
        self.biased = CamNetwork(size, width, self.data.num_classes)
        # Not where the function is defined: that alone would load the compiler in every command.
        self.with_penalty = torch.compiler.disable(with_penalty)
        self.register_buffer("steps_done", torch.zeros((), dtype=torch.int64))
        self.register_buffer("classify", torch.ones(()))  # 0 while the auto-encoder learns alone

    def streams(self) -> Streams:
        pool = pools(self.partition)
        streams = {
            "all": Stream(pool["all"]),
            "guiding": Stream(pool["aligned"], noise=PATCHES * NUMBERS),
            "contrary": Stream(pool["conflicting"], replace=True, noise=2 * PATCHES * NUMBERS),
        }
        return Streams(streams, samples=len(self.data))

    def param_groups(self) -> list[dict[str, Any]]:
        return [{"params": list(self.model.parameters())}]

    @cached_property
    def adam(self) -> torch.optim.Optimizer:
        """Of all but the classifier, whatever that is trained by. Made when they are on their device."""
        parts = (self.swapping, self.discriminator, self.patch_discriminator)
        against = {"params": [p for part in parts for p in part.parameters()], "betas": (0.0, 0.99)}
        groups = [against, {"params": list(self.biased.parameters())}]
        device = self.classify.device
        return make_optimizer(groups, Settings(optimizer="adam", lr=self.config.swap_lr), device)

    def get_extra_state(self) -> dict[str, Any]:
        return {"adam": self.adam.state_dict()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        load_optimizer(self.adam, state["adam"])

    def train_step(self, engine: Engine, batch: Batch) -> Loss:
        alone = int(self.config.autoencoder_first * engine.epochs) * engine.steps
        self.classify.copy_(self.steps_done >= alone)
        loss, metrics = engine.forward(batch)
        engine.backward(loss)
        engine.step()
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        self.steps_done += 1
        return loss, metrics

    def forward(self, batch: Batch) -> Loss:
        every, guiding, contrary = batch["all"], batch["guiding"], batch["contrary"]
        biased = gce_losses(self.biased(every.x), every.y, self.config.q).mean()
        images = torch.cat([guiding.x, contrary.x])
        rebuilt, swaps = self.swapping(guiding.x, contrary.x)
        l1 = (rebuilt - images).abs().mean()
        fool, tell = self._whole_images(images, swaps)
        patch_fool, patch_tell = self._patches(batch, swaps)
        against = self.config.adversarial * fool + self.config.patch * patch_fool
        as_they_are, swapped = self.model(torch.cat([every.x, swaps.detach()])).chunk(2)
        debiased = losses(as_they_are, every.y).mean()
        debiased = debiased + self.config.swap_weight * losses(swapped, guiding.y).mean()
        loss = self.config.reconstruction * l1 + against + tell + patch_tell + biased + self.classify * debiased
        return loss, {"l1": l1, "fool": fool, "patch_fool": patch_fool, "classifier": debiased}

    def _whole_images(self, images: Tensor, swaps: Tensor) -> tuple[Tensor, Tensor]:
        """What the auto-encoder and what the discriminator pay; neither has a gradient in the other's."""
        fool = generator_loss(frozen(self.discriminator)(swaps))
        real, penalty = self.with_penalty(self.discriminator, images)
        tell = discriminator_loss(real, self.discriminator(swaps.detach()))
        return fool, tell + self.config.r1 / 2 * penalty

    def _patches(self, batch: Batch, swaps: Tensor) -> tuple[Tensor, Tensor]:
        """The same of patches, given patches of the texture's source."""
        guiding, contrary = batch["guiding"], batch["contrary"]
        here, there = (self._boxes(samples) for samples in (guiding, contrary))
        fake = crop(swaps, here)
        real, references = crop(contrary.x, there).chunk(2, 1)
        fool = generator_loss(frozen(self.patch_discriminator)(fake, references))
        told = self.patch_discriminator(torch.cat([real, fake.detach()], 1), references)
        return fool, discriminator_loss(*told.chunk(2, 1))

    @torch.no_grad()
    def _boxes(self, samples: Samples) -> Tensor:
        weights = cam_weights(self.biased.activations(samples.x), self.config.cam_floor)
        return draw_boxes(weights, samples.noise.unflatten(1, (-1, NUMBERS)))


def frozen(module: nn.Module) -> Callable[..., Tensor]:
    """The same function, whose weights have no gradient."""
    weights = {name: value.detach() for name, value in module.named_parameters()}
    return lambda *given: functional_call(module, weights, given)


def generator_loss(fake: Tensor) -> Tensor:
    """−log σ(D(fake)), a mean: non-saturating (Goodfellow et al. 2014)."""
    return F.softplus(-fake).mean()


def discriminator_loss(real: Tensor, fake: Tensor) -> Tensor:
    """−log σ(D(real)) − log(1 − σ(D(fake))), means."""
    return F.softplus(-real).mean() + F.softplus(fake).mean()


def with_penalty(discriminator: nn.Module, images: Tensor) -> tuple[Tensor, Tensor]:
    """D of real images, and the mean of |∇D|² at them (R1, Mescheder et al. 2018)."""
    images = images.detach().requires_grad_(True)
    out = discriminator(images)
    (gradient,) = torch.autograd.grad(out.sum(), images, create_graph=True)
    return out, gradient.square().sum((1, 2, 3)).mean()
