"""Stage 2: one file a method, found by name here."""

from unskew.engine.method import Method
from unskew.errors import UnskewError, nearest
from unskew.methods.biaswap import BiaSwapLite
from unskew.methods.cvar_dro import CVaRDRO
from unskew.methods.erm import ERM
from unskew.methods.group_dro import GroupDRO
from unskew.methods.jtt import JTT
from unskew.methods.lff import LfF
from unskew.methods.lmix import LMix
from unskew.methods.mixup import Mixup
from unskew.methods.repair import Repair
from unskew.methods.selecmix import SelecMix
from unskew.methods.smix import SMix

METHODS: dict[str, type[Method]] = {
    "erm": ERM,
    "mixup": Mixup,
    "smix": SMix,
    "lmix": LMix,
    "lff": LfF,
    "jtt": JTT,
    "selecmix": SelecMix,
    "biaswap-lite": BiaSwapLite,
    "cvar-dro": CVaRDRO,
    "group-dro": GroupDRO,
    "repair": Repair,
}


def method_named(method: str | type[Method]) -> tuple[str, type[Method]]:
    """Name and class; a class of the user's own is named after itself."""
    if isinstance(method, str):
        if method not in METHODS:
            raise UnskewError(f"there is no method {method!r}; {nearest(method, METHODS)}")
        return method, METHODS[method]
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise UnskewError(f"a method is a name or a subclass of unskew.Method, not {method!r}.")
    known = {cls: name for name, cls in METHODS.items()}
    return known.get(method, method.__name__.lower()), method
