"""The look of an image, and lending it: a batch in the amplitude spectra of another, each in its own shapes."""

import torch
from torch import Tensor

FAINT = 1e-6  # an amplitude below is rounding, and has no phase to speak of


def with_looks(images: Tensor, donors: Tensor, shares: Tensor) -> Tensor:
    """Images with the amplitude spectrum A^(1−μ)·D^μ of lightness and the two opponent colours, D being the donor's.

    The phases stay, and so the shapes: what follows a shortcut of brightness, colour or grain takes on the look of
    another sample, and is still of its class (after Xu et al. 2021, who mix amplitudes to generalise over domains).
    """
    with torch.autocast(images.device.type, enabled=False):
        own, lent = (torch.fft.rfft2(opponent(each.float())) for each in (images, donors))
        ratio = lent.abs().clamp(min=FAINT) / own.abs().clamp(min=FAINT)
        own = own * ratio ** shares.float()[:, None, None, None]
        changed = colours(torch.fft.irfft2(own, s=images.shape[-2:])).clamp(0, 1)
    return changed.to(images.dtype).contiguous(memory_format=torch.channels_last)


def opponent(images: Tensor) -> Tensor:
    """Lightness, red against green, and both against blue: an orthogonal turn of the colours."""
    red, green, blue = images.unbind(1)
    return torch.stack([(red + green + blue) / 3**0.5, (red - green) / 2**0.5, (red + green - 2 * blue) / 6**0.5], 1)


def colours(turned: Tensor) -> Tensor:
    """What :func:`opponent` was given."""
    light, one, two = turned.unbind(1)
    base = light / 3**0.5 + two / 6**0.5
    return torch.stack([base + one / 2**0.5, base - one / 2**0.5, light / 3**0.5 - 2 * two / 6**0.5], 1)
