"""What is best for a data set that has a name, in one place. ``*`` goes for every method."""

from collections.abc import Mapping
from typing import Any

RECIPES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "digits": {
        "*": {"augment": "crop"},  # a mirrored digit is another sign
        **{method: {"epochs": 20} for method in ("erm", "mixup", "smix", "lmix")},
    },
}


def recipe(data: str, method: str) -> dict[str, Any]:
    by_method = RECIPES.get(data.partition(":")[0], {})
    return {**by_method.get("*", {}), **by_method.get(method, {})}
