"""The paper's tables as data: rows, what runs behind each, and the figure printed there.

Figures are from Morerio, Ragonesi, Murino, "Model Debiasing by Learnable Data Augmentation" (arXiv 2408.04955), in
percent, as (All, Unbiased); None where the paper prints none. On photos what it calls so is read as in ``SCORES``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from unskew.paper.rows import PHOTOS, RATIOS, Column, Printed, Row, Search, Table

# The scores behind All and Unbiased, where they are not those: the figures agree with JTT's, which are these.
SCORES: Mapping[Column, tuple[str, str]] = {
    "waterbirds": ("train_weighted", "worst_group"),
    "celeba": ("all", "worst_group"),
}

# The paper's own recipe of stage 2, at our number of epochs.
LITERAL = {"optimizer": "adam", "lr": 1e-3, "weight_decay": 0.0, "schedule": "constant"}
LITERAL_SMIX = {**LITERAL, "weighted_erm": True, "beta_a": 1.0, "beta_b": 1.0}
LITERAL_LMIX = {**LITERAL, "mixer_lr": 1e-3, "learns": "weight"}
LOOKS = {"looks": 1.0, "weight_decay": 3e-3}
PH: Mapping[str, Any] = {"name": "ph"}
# The paper's stage 1 at the few epochs that suit its rule.
PAPER_PH: Mapping[str, Any] = {**PH, "cut": "never", "epochs": 6}


def printed(all_: Sequence[float | None], unbiased: Sequence[float | None]) -> Printed:
    return dict(zip(RATIOS, zip(all_, unbiased)))


NONE4: Sequence[None] = (None,) * 4
LMIX = printed((64.7, 57.4, 50.8, 43.9), (64.6, 57.2, 50.6, 43.7))
MAIN = Table(
    "main",
    "Corrupted CIFAR-10, accuracy on all and on the bias-conflicting test images",
    (
        Row("erm", "erm", printed=printed((45.2, 30.2, 22.7, 17.9), (39.4, 22.6, 14.2, 10.5))),
        Row(
            "repair",
            "repair",
            identify={"name": "repair"},
            printed=printed((48.7, 37.9, 32.4, 26.3), (50.0, 38.9, 33.0, 26.5)),
        ),
        Row("group-dro", "group-dro", printed=printed((53.1, 40.2, 32.1, 29.3), (49.0, 35.1, 28.0, 24.4))),
        Row("lff", "lff", printed=printed((59.9, 49.4, 41.4, 31.7), (59.6, 48.7, 39.5, 28.6))),
        Row("selecmix", "selecmix", printed=printed((54.0, 47.7, 41.9, 38.1), (51.4, 44.2, 35.9, 31.3))),
        Row(
            "biaswap-lite",
            "biaswap-lite",
            identify={"name": "gce"},
            printed=printed((47.0, 41.2, 38.9, 35.9), (42.6, 35.3, 32.5, 29.1)),
        ),
        Row("jtt", "jtt", identify={"name": "jtt"}),
        Row("cvar-dro", "cvar-dro"),
        Row("smix", "smix", identify=PH, printed={0.95: (63.3, 63.3)}),
        Row("smix-looks", "smix", LOOKS, PH, {0.95: (63.3, 63.3)}),
        Row("lmix", "lmix", identify=PH, printed=LMIX),
        Row("smix-paper", "smix", {**LITERAL_SMIX, "zeta": 10.0}, PAPER_PH, {0.95: (63.3, 63.3)}),
        Row("lmix-paper", "lmix", LITERAL_LMIX, PAPER_PH, LMIX),
    ),
    note="`smix` and `lmix` are our presets, `smix-looks` draws the share of looks that `lmix` learns, `…-paper` is "
    "the paper's literal recipe. `repair` and `group-dro` are given bias labels. The paper's ERM, REPAIR, group DRO "
    "and LfF are LfF's, of a ResNet-20; its SelecMix another build's.",
)
PHOTO_SMIX: Printed = {"waterbirds": (94.3, 87.1), "celeba": (88.3, 81.6), "bar": (64.3, None)}
PHOTO_LMIX: Printed = {"waterbirds": (94.7, 87.7), "celeba": (89.1, 82.2), "bar": (64.8, None)}
PHOTO_LFF: Printed = {"waterbirds": (91.2, 78.0), "celeba": (85.1, 77.2), "bar": (62.9, None)}
PHOTO_ERM: Printed = {"waterbirds": (97.3, 72.6), "celeba": (95.6, 47.2), "bar": (53.5, None)}
WITH_GROUPS = ("waterbirds", "celeba")
PARTITION = Table(
    "partition",
    "l-mix with the partition of each stage 1",
    tuple(
        Row(name, "lmix", identify={"name": name}, printed=printed(NONE4, values))
        for name, values in {
            "oracle": (66.3, 59.4, 54.7, 49.0),
            "random": (50.3, 40.4, 29.7, 21.5),
            "sp": (60.9, 54.4, 49.3, 42.5),
            "ph": (64.6, 57.2, 50.6, 43.7),
        }.items()
    ),
    note="The paper calls these accuracies All, but its PH row is the Unbiased column of its main table: read so here.",
)
OMEGA = Table(
    "omega",
    "l-mix against ω",
    tuple(
        Row(
            f"omega={omega:g}",
            "lmix",
            {**LITERAL_LMIX, "omega": omega},
            PAPER_PH,
            dict(zip((0.95, "waterbirds", "celeba"), values)),
        )
        for omega, values in {
            0.0: ((61.8, 62.0), (91.6, 84.3), (85.4, 78.9)),
            1e-4: ((63.7, 63.8), (92.6, 86.2), (87.1, 80.6)),
            1e-3: ((64.7, 64.6), (94.7, 87.7), (89.1, 82.2)),
            1e-2: ((61.9, 62.2), (91.9, 85.1), (86.7, 80.1)),
            1e-1: ((60.6, 61.5), (89.6, 82.3), (83.8, 75.7)),
        }.items()
    ),
    ratios=(0.95, "waterbirds", "celeba"),
)
ZETA = Table(
    "zeta",
    "s-mix against ζ",
    tuple(
        Row(f"zeta={zeta:g}", "smix", {**LITERAL_SMIX, "zeta": zeta}, PAPER_PH)
        for zeta in (0.0, 0.1, 1.0, 10.0, 100.0, 1000.0)
    ),
    ratios=(0.95,),
    note="The paper has a curve, without figures: it rises, stays level, and falls near 1000.",
)
MIXING = Table(
    "mixing",
    "What is mixed with what (s-mix)",
    tuple(
        Row(pairing, "smix", {**LITERAL_SMIX, "zeta": 10.0, "pairing": pairing}, PAPER_PH, printed(*values))
        for pairing, values in {
            "single": ((58.8, 46.1, 40.0, 33.6), (55.3, 41.5, 34.8, 27.1)),
            "all+all": ((44.2, 39.4, 37.2, 35.2), (42.1, 36.7, 36.5, 34.4)),
            "aligned+aligned": ((35.2, 34.0, 32.9, 32.0), (29.7, 28.4, 26.7, 27.5)),
            "conflicting+conflicting": ((60.2, 54.1, 48.4, 40.4), (63.1, 55.3, 48.7, 42.5)),
            "aligned+conflicting": ((63.8, 56.4, 50.9, 43.1), (63.3, 55.9, 49.4, 42.7)),
        }.items()
    ),
    ratios=(0.95,),
)
SMIX_VS_LMIX = Table(
    "smix-vs-lmix",
    "Fixed against learned mixing",
    (
        Row("smix", "smix", identify=PH, printed={0.95: (63.3, 63.3), **PHOTO_SMIX}),
        Row("smix-looks", "smix", LOOKS, PH, only=(0.95,)),
        Row("lmix", "lmix", identify=PH, printed={0.95: (64.7, 64.6), **PHOTO_LMIX, "celeba": (89.1, 82.1)}),
    ),
    ratios=(0.95, *PHOTOS),
)
UNBIASED = Table(
    "unbiased",
    "Plain CIFAR-10: the method must not hurt data without a shortcut",
    (
        Row("erm", "erm", printed={1.0: (92.94, None)}),
        Row("smix", "smix", identify=PH, printed={1.0: (93.65, None)}),
        Row("lmix", "lmix", identify=PH, printed={1.0: (94.02, None)}),
    ),
    ratios=(1.0,),
    data="cifar10",
)
HISTORY_WINDOW = Table(
    "history-window",
    "Stage 1 against M, the window of the prediction history",
    tuple(Row(f"M={m}", None, identify={**PH, "cut": "never", "window": m, "epochs": 20}) for m in (2, 5, 10)),
    ratios=(0.95,),
    note="20 epochs; with M = 1 no weight can fall. The paper has curves: a larger M, less recall, more precision.",
)
# The prediction history whose window never ends is plain ERM, looked at after every epoch.
PLAIN = (Row("erm", None, identify={"name": "ph", "window": 1_000_000, "epochs": 20}),)
LOSSES = Table("losses", "Loss of aligned and conflicting samples under plain ERM", PLAIN, ratios=(0.95,))
CORRELATION = Table(
    "correlation", "Correlation of wrong answers, and of the loss, with the true split under plain ERM", PLAIN, (0.95,)
)
HISTOGRAM = Table("histogram", "How often samples were right (ŝ)", (Row("ph", None, identify=PH),), ratios=(0.95,))
BETA_PLANE = Table(
    "beta-plane",
    "s-mix over (α, β) with the true partition, chosen by a Gaussian process on held-out accuracy",
    (Row("smix", "smix", identify={"name": "oracle"}),),
    ratios=(0.95,),
    holdout=0.2,
    search=Search({"beta_a": (0.1, 10.0), "beta_b": (0.1, 10.0)}, trials=24),
)
EXAMPLES = Table("examples", "Aligned and conflicting training images of each class; needs no run", (), ratios=(0.95,))
PHOTO_TABLE = Table(
    "photos",
    "Waterbirds, CelebA and BAR",
    (
        Row("erm", "erm", printed=PHOTO_ERM),
        Row(
            "cvar-dro", "cvar-dro", printed={"waterbirds": (96.0, 75.9), "celeba": (82.5, 64.4)}, only=WITH_GROUPS
        ),
        Row("lff", "lff", printed=PHOTO_LFF),
        Row(
            "jtt", "jtt", identify={"name": "jtt"}, only=WITH_GROUPS,
            printed={"waterbirds": (93.3, 86.7), "celeba": (88.0, 81.1)},
        ),
        Row("smix", "smix", identify=PH, printed=PHOTO_SMIX),
        Row("lmix", "lmix", identify=PH, printed=PHOTO_LMIX),
        Row("group-dro", "group-dro", printed={"waterbirds": (93.7, 91.4), "celeba": (92.9, 88.9)}, only=WITH_GROUPS),
        # The paper's network on BAR, which has no validation split either.
        Row("erm-scratch", "erm", printed=PHOTO_ERM, only=("bar",), scratch=True),
        Row("lff-scratch", "lff", printed=PHOTO_LFF, only=("bar",), scratch=True),
        Row("smix-scratch", "smix", identify=PH, printed=PHOTO_SMIX, only=("bar",), scratch=True),
        Row("lmix-scratch", "lmix", identify=PH, printed=PHOTO_LMIX, only=("bar",), scratch=True),
        # The epoch chosen on the validation split, without bias labels.
        Row("erm-val", "erm", {"select": "val"}, PH, only=WITH_GROUPS),
        Row("lmix-val", "lmix", {"select": "val"}, PH, only=WITH_GROUPS),
    ),
    ratios=PHOTOS,
    note="On Waterbirds All is the groups' accuracy weighted by their share of training, Unbiased the worst group; on "
    "CelebA All is plain accuracy, Unbiased the worst group; on BAR All is plain accuracy. ResNet-50 (v1) from "
    "ImageNet weights; `…-scratch` is a ResNet-18 from scratch; `…-val` has the epoch chosen on the validation split, "
    "the others the last. group-dro sees bias labels.",
)  # fmt: skip

_TABLES = (MAIN, PARTITION, OMEGA, ZETA, MIXING, SMIX_VS_LMIX, UNBIASED, HISTORY_WINDOW, PHOTO_TABLE)
TABLES: Mapping[str, Table] = {table.name: table for table in _TABLES}
FIGURES: Mapping[str, Table] = {table.name: table for table in (LOSSES, CORRELATION, HISTOGRAM, BETA_PLANE, EXAMPLES)}
