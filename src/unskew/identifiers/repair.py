"""REPAIR's stage 1 (Li and Vasconcelos, CVPR 2019): weights under which the bias label says least about the class."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from unskew.data.dataset import Dataset
from unskew.data.partition import FEWEST, Partition, at_least
from unskew.engine.random import generator
from unskew.errors import UnskewError
from unskew.options import option

MOMENTUM = 0.9
LARGEST = 15.0  # of v: beyond, a class could lose all its weight in float32


@dataclass(frozen=True)
class RepairOptions:
    epochs: int | None = option(None, "passes over the labels; by default 200, up to 1000 for a small set", least=1)
    lr: float = option(1e-3, "learning rate of the linear classifier", above=0)
    weight_lr: float = option(10.0, "learning rate of the weights", above=0)
    batch_size: int = option(128, "samples a step", least=1)
    seed: int = option(0, "order of the samples")


def repair(data: Dataset, options: RepairOptions) -> Partition:
    """A linear classifier reads the class off the bias label, minimising its weighted loss; the weights w = sigmoid(v)
    ascend that loss over the classes' weighted entropy. Conflicting is w > ½; the score is w.

    No image is looked at. As in the release: SGD with momentum for the classifier, plain SGD for v, which begins at 0.
    """
    if data.bias is None:
        raise UnskewError(f"repair needs bias labels, and {data.name} has none: use --identify ph.")
    bias = F.one_hot(data.bias).float()
    member = F.one_hot(data.labels, data.num_classes).float()
    random = generator(options.seed, "repair")
    bound = bias.shape[1] ** -0.5
    layer = [torch.empty(data.num_classes, bias.shape[1]), torch.empty(data.num_classes)]
    layer = [t.uniform_(-bound, bound, generator=random) for t in layer]
    moving = [torch.zeros_like(t) for t in layer]
    v = torch.zeros(len(data))
    # The classifier must have learnt the shortcut, which takes some 10,000 steps, before the weights can undo it.
    for _ in range(options.epochs or min(max(200, 10_000 * options.batch_size // len(data)), 1000)):
        for rows in torch.randperm(len(data), generator=random).split(options.batch_size):
            gradients = step_gradients(layer, v, bias[rows], data.labels[rows], rows, member)
            for t, moved, gradient in zip(layer, moving, gradients[:2]):
                t -= options.lr * moved.mul_(MOMENTUM).add_(gradient)
            v.sub_(gradients[2], alpha=options.weight_lr).clamp_(-LARGEST, LARGEST)
    score = torch.sigmoid(v)
    conflicting, note = at_least(score > 0.5, score, minimum=FEWEST * data.num_classes)
    return Partition.of(data, conflicting, score, "repair", notes=(note,) if note else ())


def step_gradients(layer, v, bias, labels, rows, member) -> list[torch.Tensor]:
    """Of the weighted loss for the classifier; of 1 − loss / entropy for v."""
    matrix, offset, v = (t.detach().requires_grad_(True) for t in (*layer, v))
    w = torch.sigmoid(v)
    z = w[rows] / w.mean()
    share = member.T @ w
    share = share / share.sum()
    loss = (F.cross_entropy(bias @ matrix.T + offset, labels, reduction="none") * z).mean()
    entropy = -(share[labels].log() * z).mean()
    first = torch.autograd.grad(loss, (matrix, offset), retain_graph=True)
    return [*first, *torch.autograd.grad(1 - loss / entropy, v)]
