"""Zoom into the centre of an image that keeps its size."""

from math import ceil

import numpy as np


def zoom_matrix(side: int, factor: float) -> np.ndarray:
    """side×side: one axis, with straight lines between the pixels. An image is zoomed by M @ image @ M.T.

    The matrix is what scipy makes of the unit vectors, so that its rounding of sizes and places is kept.
    """
    from scipy.ndimage import zoom

    kept = ceil(side / factor)
    first = (side - kept) // 2
    zoomed = np.asarray(zoom(np.eye(side)[first : first + kept], (factor, 1), order=1))
    extra = (len(zoomed) - side) // 2
    return zoomed[extra : extra + side]
