"""Where to cut between two kinds of samples, without being told how many of each there are."""

import torch
import torch.nn.functional as F
from torch import Tensor

BINS = 20
MOST = 1000  # times to smooth: 62 were ever needed, and evenly spaced equal hills never become two
DEEP = 2 / 3  # of the lower hill's height; on digits .05 to .5 with a shortcut, .9 to 1 without


def valley(values: Tensor) -> float:
    """The emptiest place between the two hills of a histogram of numbers in [0, 1].

    Counts of 20 bins are smoothed over three until there are two hills (Prewitt and Mendelsohn 1966). Where only one is
    left, or the two hardly part, there is one kind, and the cut is 0.

    Examples
    --------
    >>> import torch
    >>> few, many = 0.1 * torch.rand(100), 1 - 0.5 * torch.rand(1000)
    >>> 0.1 < valley(torch.cat([few, many])) < 0.5
    True
    """
    counts, tops = torch.histc(values.double().cpu(), BINS, 0, 1), []
    for _ in range(MOST):
        counts = F.avg_pool1d(F.pad(counts[None, None], (1, 1), "replicate"), 3, stride=1).flatten()
        tops = _tops(counts)
        if len(tops) <= 2:
            break
    if len(tops) != 2:
        return 0.0
    between = counts[tops[0] : tops[1]]
    if between.min() > DEEP * min(counts[tops[0]], counts[tops[1]]):
        return 0.0
    return (tops[0] + int(between.argmin()) + 0.5) / BINS


def _tops(counts: Tensor) -> list[int]:
    """The last bin of each hill's top."""
    rising, tops = True, []
    for at, (here, after) in enumerate(zip(counts.tolist(), [*counts[1:].tolist(), -1.0])):
        if after > here:
            rising = True
        elif after < here:
            if rising:
                tops.append(at)
            rising = False
    return tops
