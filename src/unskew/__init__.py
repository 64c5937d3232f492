"""unskew: find the shortcut in a labelled image set, and train a model that does not take it."""

__version__ = "0.1.0"
