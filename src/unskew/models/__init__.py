"""The networks: f and g in one `Network`, h in `Mixer`, and how they come to be, are saved and read back."""

from unskew.models.factory import MODELS, ModelFactory, model_factory
from unskew.models.mixer import Mixer
from unskew.models.network import Network
from unskew.models.saved import ModelCard, load_model, save_model
from unskew.models.weights import load_weights

__all__ = [
    "MODELS",
    "Mixer",
    "ModelCard",
    "ModelFactory",
    "Network",
    "load_model",
    "load_weights",
    "model_factory",
    "save_model",
]
