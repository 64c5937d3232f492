"""Where a network looks: Grad-CAM (Selvaraju et al., 2017) on the last map of features that still has a place."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.models.network import Network


def gradcam(network: Network, images: Tensor) -> tuple[Tensor, Tensor] | None:
    """What speaks for the predicted class, and where.

    Parameters
    ----------
    network : Network
        In eval mode.
    images : float tensor, N×3×H×W

    Returns
    -------
    maps : float tensor, N×H×W
        Within [0, 1]; all 0 where nothing speaks for the class.
    predictions : int64 tensor, N
    None
        Where the backbone has no such map: its last layers are tokens, or flat.
    """
    outputs: list[Tensor] = []

    def keep(module: torch.nn.Module, given: Any, output: Any) -> None:
        if isinstance(output, Tensor) and output.ndim >= 3 and output[0, 0].numel() > 1:
            outputs.append(output)

    hooks = [module.register_forward_hook(keep) for module in network.backbone.modules()]
    try:
        with torch.enable_grad():
            logits = network(images.detach().requires_grad_())
    finally:
        for hook in hooks:
            hook.remove()
    predictions = logits.argmax(1)
    if not outputs or outputs[-1].ndim != 4 or outputs[-1].shape[2] != outputs[-1].shape[3]:
        return None
    features = outputs[-1]
    chosen = logits.gather(1, predictions[:, None]).sum()
    (slope,) = torch.autograd.grad(chosen, features, allow_unused=True)
    if slope is None:
        return None
    with torch.no_grad():
        maps = (slope.mean((2, 3), keepdim=True) * features).sum(1, keepdim=True).relu()
        maps = F.interpolate(maps.float(), images.shape[2:], mode="bilinear", align_corners=False)[:, 0]
        return maps / maps.amax((1, 2), keepdim=True).clamp(min=1e-12), predictions
