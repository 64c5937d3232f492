"""python examples/label_noise.py [--data digits] [--shares 0 .05 .1] [--seeds 3] [--out FILE]: what wrong labels do.

A mislabelled sample is never right either, and stage 1 cannot tell it from one that breaks the shortcut. This gives a
share of the training labels another class at random, and trains with the partition as it is found, without what
`check_labels` marks, and as if a person had gone through the suspects (`unskew view`) and taken the wrong labels out.
One line of JSON a run.
"""

import argparse
import json
from dataclasses import replace

import torch
from torch import Tensor

import unskew


def mislabelled(data: unskew.Dataset, share: float, seed: int) -> tuple[unskew.Dataset, Tensor]:
    """The same images with wrong labels, and which these are."""
    random, classes = torch.Generator().manual_seed(seed), len(data.class_names)
    wrong = torch.zeros(len(data), dtype=torch.bool)
    wrong[torch.randperm(len(data), generator=random)[: round(share * len(data))]] = True
    other = (data.labels + torch.randint(1, classes, (len(data),), generator=random)) % classes
    return replace(data, labels=torch.where(wrong, other, data.labels), name=f"{data.name}+noise:{share:g}"), wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits")
    parser.add_argument("--data-dir")
    parser.add_argument("--shares", type=float, nargs="+", default=[0, 0.05, 0.1])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", default="-", help="a file to add to; - prints")
    given = parser.parse_args()
    splits = unskew.load_splits(given.data, given.data_dir)
    for share in given.shares:
        for seed in range(given.seeds):
            data, wrong = mislabelled(splits.train, share, seed)
            partition = unskew.identify(data, seed=seed, progress=False)
            suspects = partition.conflicting
            breaking = ~data.aligned & ~wrong if data.aligned is not None else ~wrong
            found = {
                "suspects": int(suspects.sum()),
                "breaking": [int((suspects & breaking).sum()), int(breaking.sum())],
                "wrong_labels": [int((suspects & wrong).sum()), int(wrong.sum())],
            }
            check = unskew.check_labels(data, partition, seed=seed, progress=False)
            marked = check.wrong > 0.5
            found["checked"] = {
                "share": check.share,
                "wrong_labels": int((marked & wrong).sum()),
                "breaking": int((marked & breaking).sum()),
            }
            left_out = {"as found": torch.zeros_like(wrong), "checked": marked, "looked at": suspects & wrong}
            for looked, out in left_out.items():
                if looked == "looked at" and not share:
                    continue
                learnt = data.subset((~out).nonzero().flatten())
                sides = partition.matched_to(learnt)
                for method in ("erm", "smix", "lmix"):
                    more = {"test": splits.test, "seed": seed, "epochs": 20, "progress": False}
                    result = unskew.train(learnt, None if method == "erm" else sides, method, **more).result
                    line = {"note": f"labels wrong at random: {share:g}; {looked}", "found": found}
                    text = json.dumps({**line, **json.loads(result.to_json())})
                    if given.out == "-":
                        print(text)
                        continue
                    with open(given.out, "a") as file:
                        file.write(text + "\n")


if __name__ == "__main__":
    main()
