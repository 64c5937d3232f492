"""What mixing did: the Beta that λ comes from over time, its density, and mixed images with their labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch
from markupsafe import Markup

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.random import generator
from unskew.methods.mixing import Pairing, mix, pools, swap_looks
from unskew.methods.sampling import NUMBERS, sample_beta
from unskew.pages.accuracy import title
from unskew.pages.chart import line_chart
from unskew.pages.images import Encoder, encoder_for
from unskew.training import Run

MIXES = 12
BUDGET = 150_000
MOMENTS = 4  # epochs whose density is drawn


@dataclass(frozen=True)
class Mix:
    src: str
    lam: float
    first: str
    second: str

    @property
    def shares(self) -> Sequence[tuple[float, str]]:
        """Its label, in percent: of the aligned sample's class, then of the conflicting one's."""
        return (100 * self.lam, self.first), (100 * (1 - self.lam), self.second)

    @property
    def said(self) -> str:
        return " and ".join(f"{share:.0f}% “{name}”" for share, name in self.shares)


@dataclass(frozen=True)
class Mixing:
    """Of one run."""

    method: str
    about: str
    charts: Sequence[Markup]
    mixes: Sequence[Mix]


def mixing(data: Dataset, partition: Partition | None, run: Run) -> Mixing | None:
    """None for a method that draws no λ from a Beta for pairs of an aligned and a conflicting sample."""
    learned = bool(run.metrics) and "alpha" in run.metrics[0] and "beta" in run.metrics[0]
    config = run.result.config
    pairing = config.get("pairing", "aligned+conflicting")
    if partition is None or pairing not in get_args(Pairing):
        return None
    if learned:
        betas = [(int(row["epoch"]), float(row["alpha"]), float(row["beta"])) for row in run.metrics]
        about = "λ weighs the aligned sample; α and β are learned, here averaged over the pairs of an epoch."
    elif "beta_a" in config and config.get("zeta", 1):
        betas = [(run.result.epoch, float(config["beta_a"]), float(config["beta_b"]))]
        about = f"λ weighs the aligned sample; λ ~ Beta({betas[0][1]:g}, {betas[0][2]:g}), fixed."
    else:
        return None
    if not all(np.isfinite(values).all() for values in betas):
        return None
    swapped = float(config.get("amplitude", 0))
    if swapped:
        about += f" Before that, each of a pair takes up to {swapped:.0%} of the other's amplitude spectrum."
    mixes = _mixes(data, partition, pairing, betas[-1], swapped, run.result.seed)
    return Mixing(title(run), about, _charts(run, betas, learned), mixes)


def density(alpha: float, beta: float, at: np.ndarray) -> np.ndarray:
    """Of Beta(α, β)."""
    from scipy.special import betaln  # scikit-learn brings it

    return np.exp((alpha - 1) * np.log(at) + (beta - 1) * np.log1p(-at) - betaln(alpha, beta))


def _charts(run: Run, betas: Sequence[tuple[int, float, float]], learned: bool) -> list[Markup]:
    charts = []
    if learned and len(betas) > 1:
        lines = {"α": [a for _, a, _ in betas], "β": [b for _, _, b in betas]}
        far = max(map(max, lines.values())) > 20 * min(map(min, lines.values()))
        note = "The larger both are, the less λ varies." + (" Heights are logarithmic." if far else "")
        charts.append(line_chart("Learned α and β", lines, log=far, note=note, colours=("c3", "c4")))
        if "lambda" in run.metrics[0]:
            mean = {"λ": [float(row["lambda"]) for row in run.metrics]}
            note = "Mean share of the aligned sample: at 0.5 half of every mix still shows the shortcut."
            charts.append(line_chart("Mean of λ", mean, note=note, colours=("c5",)))
    at = (np.arange(100) + 0.5) / 100
    moments = sorted({round(i * (len(betas) - 1) / max(MOMENTS - 1, 1)) for i in range(MOMENTS)})
    lines = {}
    for i in moments:
        epoch, alpha, beta = betas[i]
        name = f"epoch {epoch}: Beta({alpha:.3g}, {beta:.3g})" if learned else f"Beta({alpha:g}, {beta:g})"
        lines[name] = density(alpha, beta, at).tolist()
    note = "Left: the mix is mostly the conflicting sample. Right: mostly the aligned one."
    charts.append(line_chart("Density of λ", lines, xs=at.tolist(), across=(0, 1), x_label="λ", note=note, top=12))
    return charts


def _mixes(
    data: Dataset, partition: Partition, pairing: str, last: tuple[int, float, float], swapped: float, seed: int
) -> list[Mix]:
    """Pairs drawn with the run's seed, mixed by the last epoch's Beta."""
    pool = pools(partition)
    one, two = (pool[name] for name in pairing.split("+"))
    if not len(one) or not len(two):
        return []
    random = generator(seed, "mixes in the report")
    first, second = (p[torch.randint(len(p), (MIXES,), generator=random)] for p in (one, two))
    alpha, beta = (torch.full((MIXES,), value) for value in last[1:])
    lam = sample_beta(alpha, beta, torch.rand(MIXES, NUMBERS, generator=random))
    one, two = (data.pixels[rows].permute(0, 3, 1, 2) / 255 for rows in (first, second))
    if swapped:
        one, two = swap_looks(one, two, swapped * torch.rand(MIXES, 2, generator=random))
    mixed = (255 * mix(lam, one, two)).round().to(torch.uint8).permute(0, 2, 3, 1)
    encode: Encoder = encoder_for(mixed, range(MIXES), BUDGET)
    names = data.class_names
    return [
        Mix(encode(mixed[i].numpy()), float(lam[i]), names[int(data.labels[a])], names[int(data.labels[b])])
        for i, (a, b) in enumerate(zip(first.tolist(), second.tolist()))
    ]
