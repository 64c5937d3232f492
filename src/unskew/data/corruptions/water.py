"""The light on drops of water, from how far each pixel is from the edge of its drop.

CIFAR-10-C takes this from OpenCV, whose whole-number arithmetic is kept here, for a batch at once.
"""

import numpy as np

FAR = 20.0  # distances count up to here
RELIEF = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])
STEPS = {1.0: ((0, 1),), 1.4: ((1, 1),), 2.1969: ((1, 2), (2, 1))}  # OpenCV's lengths of moves on the grid
FAINT, STRONG = 50, 150  # a gradient above FAINT is an edge where it hangs together with one above STRONG
TANGENT = 13573  # of 22.5°, times 2¹⁵


def light(liquid: np.ndarray) -> np.ndarray:
    """From liquid, N×H×W in [0, 1], to its light, which is 1 at the brightest place of each image."""
    from scipy.ndimage import correlate

    liquid = (liquid * 255).astype(np.uint8)
    distance = _box(_distance(_edges(liquid)))
    distance = distance.astype(np.float32).astype(np.uint8)  # in two steps, so that 19.999999999 is 20
    relief = correlate(_equalised(distance).astype(int), RELIEF[None], mode="mirror").clip(0, 255)
    shine = np.rint(_box(relief)) * liquid
    brightest = shine.max(axis=(1, 2), keepdims=True)
    return shine / np.where(brightest > 0, brightest, 1)


def _box(values: np.ndarray) -> np.ndarray:
    """The mean of each 3×3 pixels."""
    from scipy.ndimage import uniform_filter

    return uniform_filter(values.astype(np.float64), 3, mode="mirror", axes=(1, 2))


def _edges(grey: np.ndarray) -> np.ndarray:
    """Canny's edges: crests of the gradient, faint ones only where they touch strong ones."""
    from scipy.ndimage import correlate1d, label

    grey = grey.astype(int)

    def slope(axis: int) -> np.ndarray:
        across = correlate1d(grey, [1, 2, 1], axis=3 - axis, mode="nearest")
        return np.asarray(correlate1d(across, [-1, 0, 1], axis=axis, mode="nearest"), np.int64)

    dx, dy = slope(2), slope(1)
    size = abs(dx) + abs(dy)
    around = np.pad(size, ((0, 0), (1, 1), (1, 1)))

    def beside(down: int, right: int) -> np.ndarray:
        return around[:, 1 + down : around.shape[1] - 1 + down, 1 + right : around.shape[2] - 1 + right]

    steepness, flat = abs(dy) * 2**15, abs(dx) * TANGENT
    sideways, upright = steepness < flat, steepness > flat + abs(dx) * 2**16
    falling = (dx ^ dy) < 0
    crest = np.select(
        [sideways, upright, falling],
        [
            (size > beside(0, -1)) & (size >= beside(0, 1)),
            (size > beside(-1, 0)) & (size >= beside(1, 0)),
            (size > beside(-1, 1)) & (size > beside(1, -1)),
        ],
        (size > beside(-1, -1)) & (size > beside(1, 1)),
    )
    faint = crest & (size > FAINT)
    within = np.zeros((3, 3, 3), int)
    within[1] = 1  # edges hang together within an image, corners included, and never across images
    parts = np.zeros(faint.shape, np.int32)
    strong = np.zeros(int(label(faint, within, output=parts)) + 1, bool)  # pyright: ignore[reportArgumentType]
    strong[parts[faint & (size > STRONG)]] = True
    return strong[parts]


def _distance(edges: np.ndarray) -> np.ndarray:
    """How far the nearest edge is, by moves on the grid, up to FAR."""
    height, width = edges.shape[1:]
    distance = np.where(edges, 0.0, FAR)
    moves = [
        (length, sign_y * y, sign_x * x)
        for length, kinds in STEPS.items()
        for y, x in {*kinds, *((x, y) for y, x in kinds)}
        for sign_y in ((-1, 1) if y else (1,))
        for sign_x in ((-1, 1) if x else (1,))
    ]
    while True:
        around = np.pad(distance, ((0, 0), (2, 2), (2, 2)), constant_values=FAR)
        nearer = distance.copy()
        for length, down, right in moves:
            there = around[:, 2 + down : 2 + down + height, 2 + right : 2 + right + width]
            np.minimum(nearer, there + length, out=nearer)
        if (nearer == distance).all():
            return distance
        distance = nearer


def _equalised(grey: np.ndarray) -> np.ndarray:
    """Grey levels moved so that each image uses the whole range evenly."""
    count, pixels = len(grey), grey[0].size
    flat = grey.reshape(count, pixels).astype(int)
    levels = np.arange(count)[:, None] * 256
    histogram = np.bincount((levels + flat).ravel(), minlength=256 * count).reshape(count, 256)
    darkest = flat.min(axis=1)
    others = pixels - histogram[np.arange(count), darkest]
    above = histogram.cumsum(axis=1) - (pixels - others)[:, None]
    table = np.rint(above * (255 / np.where(others > 0, others, 1)).astype(np.float32)[:, None])
    return table[np.arange(count)[:, None], flat].clip(0, 255).astype(np.uint8).reshape(grey.shape)
