"""python examples/own_method.py: a method of your own in the loop, checked and trained on digits."""

import torch

import unskew
from unskew.testing import check_method


class Reweighted(unskew.Method):
    """ERM in which the conflicting samples weigh as much as the aligned ones together."""

    needs = frozenset({"partition"})
    recordable = True
    partition: unskew.Partition
    weights: torch.Tensor

    def __init__(self, *given) -> None:
        super().__init__(*given)
        share = self.partition.conflicting_share
        weights = torch.where(self.partition.conflicting, 0.5 / share, 0.5 / (1 - share))
        self.register_buffer("weights", weights)

    def forward(self, batch: unskew.Batch):
        samples = batch["all"]
        each = unskew.losses(self.model(samples.x), samples.y)
        return (self.weights[samples.index] * each).mean(), {}


if __name__ == "__main__":
    check_method(Reweighted)
    data, test = unskew.load("digits"), unskew.load("digits", split="test")
    print(unskew.train(data, method=Reweighted, test=test, epochs=20).result.scores)
