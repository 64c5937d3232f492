"""python examples/why_lmix_collapses.py [--data digits] [--epochs 20] [--seeds 3] [--out FILE]: what pulls λ to ½.

l-mix's adversary ascends the cross-entropy of a mix by moving λ, which is in the image and in its label. Per epoch this
tells where λ is, and how hard each of the two ways pulls: the mean of ∂CE/∂λ through x_mix and through y_mix, each
towards ½ (positive) or away from it. One line of JSON a seed; docs/mixing.md reads them.
"""

import argparse
import json

import torch
from torch import Tensor

import unskew
from unskew.methods.lmix import LMix
from unskew.methods.mixing import mix, mixed_losses


class Watched(LMix):
    """l-mix as written, which says in each epoch's row what moves λ."""

    def forward(self, batch: unskew.Batch) -> tuple[Tensor, dict[str, Tensor]]:
        x1, x2 = batch["x1"], batch["x2"]
        features1, features2 = self._features(torch.cat([x1.x, x2.x])).chunk(2)
        lam, reg, alpha, beta = self.mixer.sample(features1, features2, x1.noise)
        in_image, in_label = (lam.detach().requires_grad_(True) for _ in range(2))
        each = mixed_losses(self.model(mix(in_image, x1.x, x2.x)), x1.y, x2.y, in_label)
        by_image, by_label = torch.autograd.grad(each.sum(), (in_image, in_label), retain_graph=True)
        loss = each.mean() + ((by_image + by_label) * (lam - lam.detach())).mean() + self.config.omega * reg
        to_half = torch.sign(0.5 - lam.detach())
        told = {"alpha": alpha.mean(), "beta": beta.mean(), "lambda": lam.mean(), "lambda_sd": lam.std()}
        return loss, {**told, "pull_image": (to_half * by_image).mean(), "pull_label": (to_half * by_label).mean()}


@torch.no_grad()
def by_lambda(model: torch.nn.Module, data: unskew.Dataset, partition: unskew.Partition, seed: int) -> list[dict]:
    """Of a network trained on a fixed, even mix: the loss of fresh mixes at each λ, and the entropy of their labels."""
    random = torch.Generator().manual_seed(seed)
    sides = [mask.nonzero().flatten() for mask in (~partition.conflicting, partition.conflicting)]
    one, two = (side[torch.randint(len(side), (2000,), generator=random)] for side in sides)
    images = data.images.float() / 255
    rows = []
    for value in (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.98):
        lam = torch.full((len(one),), value)
        logits = model(mix(lam, images[one], images[two]))
        loss = mixed_losses(logits, data.labels[one], data.labels[two], lam)
        entropy = torch.special.entr(lam) + torch.special.entr(1 - lam)
        entropy = torch.where(data.labels[one] == data.labels[two], 0.0, entropy)
        rows.append({"lambda": value, "loss": loss.mean().item(), "entropy": entropy.mean().item()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits")
    parser.add_argument("--data-dir")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", default="-", help="a file to add to; - prints")
    given = parser.parse_args()
    splits = unskew.load_splits(given.data, given.data_dir)
    how = {"epochs": given.epochs, "progress": False}
    for seed in range(given.seeds):
        partition = unskew.identify(splits.train, seed=seed, progress=False)
        learned = unskew.train(splits.train, partition, Watched, test=splits.test, seed=seed, learns="weight", **how)
        fixed = unskew.train(splits.train, partition, "smix", test=splits.test, seed=seed, **how)
        line = {
            "note": "what pulls l-mix's λ, and the loss of mixes at each λ under a network trained on an even mix",
            **json.loads(learned.result.to_json()),
            "metrics": learned.metrics,
            "by_lambda": by_lambda(fixed.model, splits.train, partition, seed),
        }
        text = json.dumps(line)
        if given.out == "-":
            print(text)
        else:
            with open(given.out, "a") as file:
                file.write(text + "\n")


if __name__ == "__main__":
    main()
