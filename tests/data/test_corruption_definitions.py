"""Each corruption against a slow reference for one image, written from its definition, with loops over pixels."""

import colorsys
import io
from math import ceil, cos, exp, radians, sin
from typing import Literal

import numpy as np
import pytest
from natural import natural
from PIL import Image
from scipy import ndimage

from unskew.data.corruptions import corrupt, water
from unskew.data.corruptions.streams import generator

SEVERITIES = range(1, 6)


def truncated(unit) -> np.ndarray:
    return (np.clip(unit, 0, 1) * 255).astype(np.uint8)


def correlated(image: np.ndarray, kernel: np.ndarray, mode: Literal["edge", "reflect"]) -> np.ndarray:
    reach = len(kernel) // 2
    padded = np.pad(image, ((reach, reach), (reach, reach), (0, 0)), mode=mode)
    height, width = image.shape[:2]
    out = np.zeros(image.shape)
    for i, row in enumerate(kernel):
        for j, weight in enumerate(row):
            out += weight * padded[i : i + height, j : j + width]
    return out


def gaussian_kernel(sigma: float, reach: int) -> np.ndarray:
    line = np.array([exp(-(i**2) / (2 * sigma**2)) for i in range(-reach, reach + 1)])
    return np.outer(line, line) / line.sum() ** 2


def blurred(image: np.ndarray, sigma: float) -> np.ndarray:
    return correlated(image, gaussian_kernel(sigma, int(4 * sigma + 0.5)), "edge")


def gaussian_blur(image, severity, random):
    return truncated(blurred(image / 255, (0.4, 0.6, 0.7, 0.8, 1)[severity - 1]))


def defocus_blur(image, severity, random):
    radius, sigma = ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))[severity - 1]
    disk = np.array([[float(x * x + y * y <= radius**2) for x in range(-8, 9)] for y in range(-8, 9)])
    soft = correlated((disk / disk.sum())[..., None], gaussian_kernel(sigma, 1), "reflect")[..., 0]
    return truncated(correlated(image / 255, soft, "reflect"))


def clipped_zoom(image, factor):
    side = len(image)
    kept = ceil(side / factor)
    top = (side - kept) // 2
    zoomed = ndimage.zoom(image[top : top + kept, top : top + kept], (factor, factor, 1), order=1)
    trim = (len(zoomed) - side) // 2
    return zoomed[trim : trim + side, trim : trim + side]


def zoom_blur(image, severity, random):
    factors = np.arange(1, (1.06, 1.11, 1.16, 1.21, 1.26)[severity - 1], 0.01)
    unit = image / 255
    return truncated((unit + sum(clipped_zoom(unit, factor) for factor in factors)) / (len(factors) + 1))


def in_hsv(image, change):
    out = np.empty(image.shape)
    for y, x in np.ndindex(image.shape[:2]):
        out[y, x] = colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*(image[y, x] / 255))))
    return truncated(out)


def brightness(image, severity, random):
    more = (0.05, 0.1, 0.15, 0.2, 0.3)[severity - 1]
    return in_hsv(image, lambda h, s, v: (h, s, min(v + more, 1)))


def saturate(image, severity, random):
    factor, more = ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2))[severity - 1]
    return in_hsv(image, lambda h, s, v: (h, min(max(s * factor + more, 0), 1), v))


def contrast(image, severity, random):
    left = (0.75, 0.5, 0.4, 0.3, 0.15)[severity - 1]
    means = [image[..., channel].mean() / 255 for channel in range(3)]
    return truncated((image / 255 - means) * left + means)


def pixelate(image, severity, random):
    side = int(32 * (0.95, 0.9, 0.85, 0.75, 0.65)[severity - 1])
    return np.asarray(Image.fromarray(image).resize((side, side), Image.BOX).resize((32, 32), Image.BOX))


def jpeg(image, severity, random):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=(80, 65, 58, 50, 40)[severity - 1])
    return np.asarray(Image.open(file))


def glass_blur(image, severity, random):
    sigma, rounds = ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))[severity - 1]
    pixels = (blurred(image / 255, sigma) * 255).astype(np.uint8)
    for _ in range(rounds):
        for h in range(31, 1, -1):
            for w in range(31, 1, -1):
                dx, dy = random.randint(-1, 1, size=(2,))
                # The definition's own line: the right side is two views, so this is no swap.
                pixels[h, w], pixels[h + dy, w + dx] = pixels[h + dy, w + dx], pixels[h, w]
    return truncated(blurred(pixels / 255, sigma))


def moved(image, radius, sigma, angle):
    """Half a Gaussian along a line, the edge repeated."""
    weights = [exp(-(i**2) / (2 * sigma**2)) for i in range(2 * radius + 1)]
    side = len(image)
    out = np.zeros(image.shape)
    for y, x in np.ndindex(side, side):
        for i, weight in enumerate(weights):
            down, right = ceil(i * sin(radians(angle)) - 0.5), ceil(i * cos(radians(angle)) - 0.5)
            out[y, x] += weight * image[min(max(y + down, 0), side - 1), min(max(x + right, 0), side - 1)]
    return (np.floor(out / sum(weights) * 257 + 0.5) // 257).astype(np.uint8)


def motion_blur(image, severity, random):
    radius, sigma = ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))[severity - 1]
    return moved(image.astype(float), radius, sigma, random.uniform(-45, 45))


def snow(image, severity, random):
    mean, deviation, factor, threshold, radius, sigma, weight = (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    )[severity - 1]
    flakes = clipped_zoom(random.normal(size=(32, 32), loc=mean, scale=deviation)[..., None], factor)
    flakes[flakes < threshold] = 0
    falling = moved(truncated(flakes).astype(float), radius, sigma, random.uniform(-135, -45)) / 255
    unit = image / 255
    grey = (0.299 * unit[..., 0] + 0.587 * unit[..., 1] + 0.114 * unit[..., 2])[..., None]
    white = weight * unit + (1 - weight) * np.maximum(unit, grey * 1.5 + 0.5)
    return truncated(white + falling + np.rot90(falling, k=2))


def fog(image, severity, random):
    amount, decay = ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75))[severity - 1]
    heights = np.zeros((32, 32))
    step, wibble = 32, 100

    def fill(first_y, first_x, offsets):
        """All points of a kind: the mean of four others, and noise in the order of rows."""
        values = {}
        for y in range(first_y, 32, step):
            for x in range(first_x, 32, step):
                mean = sum(heights[(y + dy) % 32, (x + dx) % 32] for dy, dx in offsets) / 4
                values[y, x] = mean + wibble * random.uniform(-wibble, wibble)
        for place, value in values.items():
            heights[place] = value

    while step >= 2:
        half = step // 2
        fill(half, half, [(-half, -half), (-half, half), (half, -half), (half, half)])
        beside = [(-half, 0), (half, 0), (0, -half), (0, half)]
        fill(0, half, beside)
        fill(half, 0, beside)
        step, wibble = half, wibble / decay
    heights -= heights.min()
    unit = image / 255
    hazy = unit + amount * (heights / heights.max())[..., None]
    return truncated(hazy * unit.max() / (unit.max() + amount))


def elastic(image, severity, random):
    size, smoothness, reach = (
        32 * np.array([(0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)])
    )[severity - 1]
    corners = np.array([(26.0, 26.0), (26.0, 6.0), (6.0, 6.0)])
    places = corners + random.uniform(-reach, reach, size=(3, 2))
    forward = np.linalg.solve(np.c_[corners, np.ones(3)], places).T  # 2×3, from image to result
    y, x = np.mgrid[:32, :32]
    back_x, back_y = np.linalg.inv(forward[:, :2]) @ (np.stack([x.ravel(), y.ravel()]) - forward[:, 2:])
    dx, dy = (
        ndimage.gaussian_filter(random.uniform(-1, 1, size=(32, 32)), smoothness, mode="reflect", truncate=3) * size
        for _ in range(2)
    )
    out = np.empty(image.shape)
    for channel in range(3):
        warped = ndimage.map_coordinates(image[..., channel] / 255, [back_y, back_x], order=1, mode="mirror")
        out[..., channel] = ndimage.map_coordinates(warped.reshape(32, 32), [y + dy, x + dx], order=1, mode="reflect")
    return truncated(out)


def mud(image, severity, random):
    mean, deviation, sigma, threshold, edge = {4: (0.65, 0.1, 0.7, 0.69, 0.6), 5: (0.65, 0.1, 0.5, 0.68, 0.6)}[severity]
    liquid = blurred(random.normal(size=(32, 32), loc=mean, scale=deviation)[..., None], sigma)
    cover = blurred((liquid > threshold).astype(float), edge)
    cover[cover < 0.8] = 0
    return truncated(image / 255 * (1 - cover) + np.array([63, 42, 20]) / 255 * cover)


REFERENCES = [
    gaussian_blur, defocus_blur, zoom_blur, brightness, saturate, contrast, pixelate, jpeg, glass_blur, motion_blur,
    snow, fog, elastic,
]  # fmt: skip


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("reference", REFERENCES, ids=lambda function: function.__name__)
def test_same_as_the_definition(reference, severity):
    compare(reference, reference.__name__, severity)


@pytest.mark.parametrize("severity", [4, 5])
def test_mud_is_as_defined(severity):
    compare(mud, "spatter", severity)


def compare(reference, name: str, severity: int) -> None:
    images = natural(2, seed=7)
    images[0, :6, :6] = 90  # grey, black and white have no hue
    images[0, 8:12], images[0, 20:22] = 0, 255
    out = corrupt(images, name, severity, seed=1, start=20)
    for i, image in enumerate(images):
        expected = reference(image, severity, generator(1, name, 20 + i))
        difference = np.abs(out[i].astype(int) - expected)
        assert difference.max() <= 1, "by rounding only"
        assert difference.mean() < 0.1


def test_water_follows_opencv():
    """The rows of the light on this liquid, from OpenCV's Canny, distanceTransform, equalizeHist and filter2D."""
    liquid = blurred(np.random.RandomState(3).normal(0.65, 0.3, (32, 32))[..., None], 1)[..., 0]
    liquid[liquid < 0.69] = 0
    rows = water.light(liquid[None])[0].mean(1)[::4]
    assert rows == pytest.approx([0.1116, 0.0728, 0.0698, 0.0057, 0.0159, 0.0951, 0.0422, 0.0725], abs=2e-4)


def test_no_water_no_light():
    assert (water.light(np.zeros((2, 32, 32))) == 0).all()


def test_distance_to_the_nearest_edge():
    edges = np.zeros((2, 32, 32), bool)
    edges[0, 10, 10] = True
    distance = water._distance(edges)
    assert distance[0, 10, 13] == pytest.approx(3)
    assert distance[0, 13, 13] == pytest.approx(4.2)
    assert distance[0, 12, 11] == pytest.approx(2.1969)
    assert distance[0, 31, 31] == 20, "no further than this"
    assert (distance[1] == 20).all(), "no edge at all, and none from the image before"
