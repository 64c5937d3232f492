"""h, the mixing network of l-mix: from the features of a pair to the Beta distribution it is mixed with."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Mixer(nn.Module):
    """An MLP 2d→64→64→2, then softplus and a floor.

    Parameters
    ----------
    feature_width : int
        d, the width of the features of one image.
    floor : float
        Added to both: a Beta parameter near 0 gives samples at 0 and 1 only, and gradients without bound.
    """

    def __init__(self, feature_width: int, floor: float = 0.1) -> None:
        super().__init__()
        self.floor = floor
        self.layers = nn.Sequential(
            nn.Linear(2 * feature_width, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
        )

    def forward(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """Give (α, β), float32 and of length N, for two batches of N×d features.

        Autocast is off here: the Beta distribution is too delicate for 8 bits of mantissa.
        """
        with torch.autocast(first.device.type, enabled=False):
            pair = torch.cat((first, second), dim=1).float()
            alpha, beta = (F.softplus(self.layers(pair)) + self.floor).unbind(dim=1)
        return alpha, beta
