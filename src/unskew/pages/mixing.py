"""What mixing did: the Beta that λ comes from over time, its density, and mixed images with their labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import torch
from markupsafe import Markup

from unskew.data.dataset import Dataset
from unskew.data.partition import Partition
from unskew.engine.looks import with_looks
from unskew.engine.random import generator
from unskew.methods.mixing import Pairing, donors, fixed_beta, mix, pools
from unskew.methods.sampling import NUMBERS
from unskew.pages.accuracy import title
from unskew.pages.chart import line_chart
from unskew.pages.images import Encoder, encoder_for
from unskew.training import Run

MIXES = 12
BUDGET = 150_000
MOMENTS = 4  # epochs whose density is drawn
Betas = Sequence[tuple[int, float, float]]  # epoch, α, β
Share = float | tuple[float, float]  # of another's look: uniform up to, or the α and β of its Beta


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
    config = run.result.config
    pairing = config.get("pairing", "aligned+conflicting")
    if partition is None or pairing not in get_args(Pairing):
        return None
    learned = [
        (int(row["epoch"]), float(row["alpha"]), float(row["beta"]))
        for row in run.metrics
        if "alpha" in row and "beta" in row
    ]
    looks = config.get("learns") == "look"
    if not (learned or ("beta_a" in config and config.get("zeta", 1))):
        return None
    if not all(np.isfinite(values).all() for values in learned):
        return None
    weights = learned if learned and not looks else [(run.result.epoch, config["beta_a"], config["beta_b"])]
    _, alpha, beta = weights[-1]
    how = "α and β are learned, here averaged over the pairs of an epoch" if weights is learned else "fixed"
    about = f"λ ~ Beta({alpha:.3g}, {beta:.3g}), {how}. It weighs the aligned sample."
    share: Share = learned[-1][1:] if looks and learned else float(config.get("looks", 0))
    if isinstance(share, tuple):
        about += " Before that, each takes a learned share μ of the look (the amplitude spectrum) of another sample."
    elif share:
        about += f" Before that, each takes up to {share:.0%} of the look (the amplitude spectrum) of another sample."
    charts = _learned(run, learned, "μ" if looks else "λ") if len(learned) > 1 else []
    sides = "Left: the mix is mostly the conflicting sample. Right: mostly the aligned one."
    own = "Left: each keeps its own look. Right: it takes another's."
    charts += [_densities(weights, "λ", sides), *([_densities(learned, "μ", own)] if looks and learned else [])]
    return Mixing(title(run), about, charts, _mixes(data, partition, config, (alpha, beta), share, run.result.seed))


def density(alpha: float, beta: float, at: np.ndarray) -> np.ndarray:
    """Of Beta(α, β)."""
    from scipy.special import betaln  # scikit-learn brings it

    return np.exp((alpha - 1) * np.log(at) + (beta - 1) * np.log1p(-at) - betaln(alpha, beta))


def _learned(run: Run, betas: Betas, symbol: str) -> list[Markup]:
    lines = {"α": [a for _, a, _ in betas], "β": [b for _, _, b in betas]}
    far = max(map(max, lines.values())) > 20 * min(map(min, lines.values()))
    note = f"The larger both are, the less {symbol} varies." + (" Heights are logarithmic." if far else "")
    charts = [line_chart("Learned α and β", lines, log=far, note=note, colours=("c3", "c4"))]
    key, note = {
        "λ": ("lambda", "Mean share of the aligned sample: at 0.5 half of every mix still shows the shortcut."),
        "μ": ("share", "Mean share of another's look: the higher, the less a look tells of the class."),
    }[symbol]
    if key in run.metrics[0]:
        mean = {symbol: [float(row[key]) for row in run.metrics]}
        charts.append(line_chart(f"Mean of {symbol}", mean, note=note, colours=("c5",)))
    if "believed" in run.metrics[0]:
        belief = {"p": [float(row["believed"]) for row in run.metrics]}
        note = "Probability of the classes that the looks in a mix stand for: what is left of the shortcut in training."
        charts.append(line_chart("Belief in looks", belief, note=note, colours=("c6",)))
    return charts


def _densities(betas: Betas, symbol: str, note: str) -> Markup:
    at = (np.arange(100) + 0.5) / 100
    moments = sorted({round(i * (len(betas) - 1) / max(MOMENTS - 1, 1)) for i in range(MOMENTS)})
    lines = {}
    for i in moments:
        epoch, alpha, beta = betas[i]
        name = f"Beta({alpha:.3g}, {beta:.3g})" if len(betas) == 1 else f"epoch {epoch}: Beta({alpha:.3g}, {beta:.3g})"
        lines[name] = density(alpha, beta, at).tolist()
    return line_chart(f"Density of {symbol}", lines, xs=at.tolist(), across=(0, 1), x_label=symbol, note=note, top=12)


def _mixes(
    data: Dataset, partition: Partition, config: Mapping[str, Any], last: tuple[float, float], share: Share, seed: int
) -> list[Mix]:
    """Pairs drawn with the run's seed, mixed by the last epoch's Beta."""
    pairing, side = config["pairing"], config.get("donors", "other")  # in older runs it was the other side's
    pool = pools(partition)
    one, two = (pool[name] for name in pairing.split("+"))
    if not len(one) or not len(two):
        return []
    random = generator(seed, "mixes in the report")
    first, second = (p[torch.randint(len(p), (MIXES,), generator=random)] for p in (one, two))
    lam = fixed_beta(*last, torch.rand(MIXES, NUMBERS, generator=random))
    both = data.pixels[torch.cat([first, second])].permute(0, 3, 1, 2) / 255
    if isinstance(share, tuple):
        shares = fixed_beta(*share, torch.rand(2 * MIXES, NUMBERS, generator=random))
    else:
        shares = share * torch.rand(2 * MIXES, generator=random)
    if share:
        both = with_looks(both, donors(both, side), shares)
    mixed = (255 * mix(lam, *both.chunk(2))).round().to(torch.uint8).permute(0, 2, 3, 1)
    encode: Encoder = encoder_for(mixed, range(MIXES), BUDGET)
    names = data.class_names
    return [
        Mix(encode(mixed[i].numpy()), float(lam[i]), names[int(data.labels[a])], names[int(data.labels[b])])
        for i, (a, b) in enumerate(zip(first.tolist(), second.tolist()))
    ]
