"""Tables that the paper does not have: how its presets and ours were chosen, and what each part brings."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from unskew.paper.rows import Row, Table
from unskew.paper.tables import LOOKS, PAPER_PH, PH

LEARNED_WEIGHTS = {"learns": "weight", "mixer_lr": 1e-3, "weight_decay": 3e-3}
CHOSEN = (
    "Chosen by Validation: accuracy on the held-out part, by the sides that stage 1 sees, as it would be were looks "
    "spread evenly over the classes."
)
DIGITS = Table(
    "digits",
    "Every method on the digits that come with the install",
    tuple(
        Row(name, name, identify=stage1 and {"name": stage1})
        for name, stage1 in {
            "erm": None,
            "mixup": None,
            "smix": "ph",
            "lmix": "ph",
            "lff": None,
            "jtt": "jtt",
            "selecmix": None,
            "biaswap-lite": "gce",
            "cvar-dro": None,
            "group-dro": None,
            "repair": "repair",
        }.items()
    ),
    ratios=(0.95,),
    data="digits:{ratio:g}",
    note="`repair` and `group-dro` are given bias labels.",
)
_OF_MIXES = {"batch_norm": "trained"}
_MIX_ONLY = {"weighted_erm": False, "zeta": 1.0}
DIGITS_LOOKS = Table(
    "digits-looks",
    "Looks on digits: whose are lent, and whether their share is drawn or learned",
    tuple(
        Row(
            f"{name}{'' if batch_norm is None else ', statistics of mixes'}", method, {**more, **(batch_norm or {})}, PH
        )
        for batch_norm in (None, _OF_MIXES)
        for name, method, more in (
            ("no looks", "smix", {}),
            ("drawn, other side's", "smix", {**_MIX_ONLY, "looks": 1.0, "donors": "other"}),
            ("drawn, aligned donors", "smix", {**_MIX_ONLY, "looks": 1.0}),
            ("learned for error, other side's", "lmix", {"seeks": "error", "donors": "other"}),
            ("learned for error, aligned donors", "lmix", {"seeks": "error"}),
            ("learned for belief (lmix)", "lmix", {}),
        )
    ),
    ratios=(0.95,),
    data="digits:{ratio:g}",
    note="All with λ ~ Beta(1, 1). Statistics of mixes: BatchNorm's as they were trained, not made anew.",
)
_HISTORIES: Mapping[str, Mapping[str, Any]] = {
    f"{name} K={epochs}": {**PH, "cut": "never", "epochs": epochs, **more}
    for epochs in (10, 40)
    for name, more in {"in sample": {}, "2 folds": {"folds": 2}}.items()
}
DIGITS_FOLDS = Table(
    "digits-folds",
    "Stage 1 in sample and out of fold, and what s-mix makes of it",
    (
        *(Row(name, None, identify=stage1) for name, stage1 in _HISTORIES.items()),
        *(Row(f"smix, {name}", "smix", _OF_MIXES, stage1) for name, stage1 in _HISTORIES.items()),
    ),
    ratios=(0.9, 0.95, 0.98),
    data="digits:{ratio:g}",
)
_CUTS: Mapping[str, Mapping[str, Any]] = {
    **{f"{cut}, K={k}": {"cut": cut, "epochs": k} for cut in ("never", "valley") for k in (10, 20, 40)},
    "valley, K=40, 2 folds": {"cut": "valley", "epochs": 40, "folds": 2},
}
CUT = Table(
    "cut",
    "Stage 1 by its cut and its epochs",
    tuple(Row(name, None, identify={**PH, **options}) for name, options in _CUTS.items()),
    ratios=(0.95, 0.99),
)
DIGITS_CUT = replace(CUT, name="digits-cut", ratios=(0.1, 0.8, 0.9, 0.95, 0.98), data="digits:{ratio:g}")
# The next choice: what is drawn and what is learned has the same trials.
_BETAS = {"Beta(.5, 2)": (0.5, 2.0), "Beta(.5, 1)": (0.5, 1.0), "Beta(.25, .5)": (0.25, 0.5)}
_ALIGNED = {"donors": "aligned"}
_BELIEF = {"seeks": "belief", **_ALIGNED}
_RENEWED = {"weight_decay": 3e-3, "batch_norm": "renewed"}
_CANDIDATES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "smix-looks": ("smix", LOOKS),
    "smix-looks, aligned donors": ("smix", {**LOOKS, **_ALIGNED}),
    "lmix for error": ("lmix", {}),
    "lmix for belief": ("lmix", _BELIEF),
}
PRESETS = Table(
    "presets",
    "What the presets were chosen from, with a fifth of the training set to choose on",
    (
        *(Row(f"smix wd={decay:g}", "smix", {"weight_decay": decay}, PH) for decay in (3e-3, 1e-2)),
        *(
            Row(f"smix-looks wd={decay:g}", "smix", {**LOOKS, "weight_decay": decay}, PH)
            for decay in (1e-3, 3e-3, 1e-2)
        ),
        Row("smix-looks Beta(1, 1)", "smix", {**LOOKS, "beta_a": 1.0, "beta_b": 1.0}, PH),
        *(Row(f"lmix for error wd={decay:g}", "lmix", {"weight_decay": decay}, PH) for decay in (1e-3, 3e-3)),
        *(
            Row(f"{name}, {beta}, renewed", method, {**more, **_RENEWED, "beta_a": a, "beta_b": b}, PH)
            for name, (method, more) in _CANDIDATES.items()
            for beta, (a, b) in _BETAS.items()
        ),
    ),
    ratios=(0.95, 0.99),
    holdout=0.2,
    note=CHOSEN + " Renewed: BatchNorm's statistics are of images as they are; in the others of mixes.",
)
BAR_LR = Table(
    "bar-lr",
    "BAR against the learning rate, with a fifth of the training set to choose on",
    tuple(
        Row(f"{method} lr={lr:g}", method, {"lr": lr}, PH)
        for method in ("erm", "lff", "smix", "lmix")
        for lr in (1e-5, 1e-4, 1e-3)
    ),
    ratios=("bar",),
    holdout=0.2,
    note="Stage 1 is the same in all rows, at 1e-4. Chosen by Validation, which sees no bias label.",
)
TYPE1 = Table(
    "type1",
    "The same presets on the other ten corruptions",
    (Row("erm", "erm"), Row("smix", "smix", identify=PH), Row("lmix", "lmix", identify=PH)),
    ratios=(0.95,),
    data="corrupted-cifar10:{ratio:g}:type1",
)
TUNING = Table(
    "tuning",
    "Weight decay, chosen on a held-out fifth of the training set",
    tuple(
        Row(f"{method} wd={decay:g}", method, {**more, "weight_decay": decay}, PAPER_PH)
        for method, more in (("erm", {}), ("smix", {}), ("lmix", {"learns": "weight", "mixer_lr": 1e-3}))
        for decay in (5e-4, 3e-3, 1e-2)
    ),
    ratios=(0.95,),
    holdout=0.2,
    note=CHOSEN,
)
ABLATION = Table(
    "ablation",
    "What each part brings: stage 1's cut, looks, learning them",
    (
        Row("never right, Beta(.5, 2)", "smix", {"weight_decay": 3e-3}, PAPER_PH),
        Row("never right, learned weights", "lmix", LEARNED_WEIGHTS, PAPER_PH),
        Row("valley, Beta(.5, 2)", "smix", identify=PH),
        Row("valley, Beta(.5, 2), looks", "smix", LOOKS, PH),
        Row("valley, Beta(.5, 2), looks learned for error", "lmix", identify=PH),
        Row("valley, Beta(.5, 2), looks learned for belief, renewed", "lmix", {**_BELIEF, **_RENEWED}, PH),
        Row("valley, Beta(.5, 2), looks, renewed", "smix", {**LOOKS, **_RENEWED}, PH),
        Row("oracle, Beta(.5, 2), looks learned for error", "lmix", identify={"name": "oracle"}),
    ),
    note="The first two are cut as in the paper, after 6 epochs, the next five at the valley, after 20. Weight decay "
    "is 1e-2 in the third row and 3e-3 in the others. Renewed: BatchNorm's statistics are of images as they are.",
)

_TABLES = (BAR_LR, DIGITS, DIGITS_LOOKS, TYPE1, TUNING, CUT, DIGITS_CUT, DIGITS_FOLDS, PRESETS, ABLATION)
OURS: Mapping[str, Table] = {table.name: table for table in _TABLES}
