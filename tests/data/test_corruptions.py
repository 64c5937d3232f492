import subprocess
import sys

import numpy as np
import pytest
from natural import natural
from PIL import Image

from unskew.data import parallel
from unskew.data.corruptions import CORRUPTIONS, corrupt, corrupt_numbered, frost, frost_source
from unskew.data.corruptions.streams import generator
from unskew.errors import UnskewError

NAMES = [name for name in CORRUPTIONS if name != "original"]
DETERMINISTIC = {
    "gaussian_blur", "defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg", "saturate",
}  # fmt: skip

# Measured once on natural(8) with the functions that CIFAR-10-C was made with (on scikit-image 0.26, OpenCV 5.0 and
# ImageMagick 6.9), each image with the stream it has here: the change at severity 1 to 5, projected on one random
# direction, so that no shift, flip or other kernel goes unseen.
PROJECTED = {
    "gaussian_noise": (8.36, 14.05, 18.97, 21.62, 24.36),
    "shot_noise": (-11.48, -17.32, 10.25, -19.79, -22.79),
    "impulse_noise": (-1.26, 34.75, 34.42, 71.88, 69.42),
    "speckle_noise": (6.62, 10.51, 13.43, 18.01, 22.42),
    "gaussian_blur": (-1.51, -1.66, -0.65, -0.20, 1.38),
    "glass_blur": (14.23, 12.88, 14.64, 52.16, 51.36),
    "defocus_blur": (-1.55, -1.30, -1.89, -3.78, -0.44),
    "motion_blur": (-12.83, -17.25, -16.50, -16.50, -13.40),
    "zoom_blur": (17.72, 12.85, 13.12, 12.49, 12.69),
    "snow": (3.97, 25.71, 16.66, 14.14, 55.18),
    "fog": (36.29, 73.24, 95.72, 115.78, 144.94),
    "brightness": (5.36, 13.50, 22.04, 34.87, 62.64),
    "contrast": (28.14, 57.25, 69.17, 80.80, 97.72),
    "elastic": (29.99, 27.46, 16.90, 8.92, 6.27),
    "pixelate": (-4.09, -2.40, 0.70, -11.65, 5.25),
    "jpeg": (-2.74, 10.55, -0.57, 8.16, -4.02),
    "spatter": (-14.47, 2.67, 17.81, 9.86, 12.75),
    "saturate": (28.12, 36.77, -20.15, -34.91, -38.40),
}
# Mean absolute change at severity 5 on the test images of CIFAR-10.
CHANGE = {
    "snow": 50.5, "frost": 41.7, "fog": 40.9, "brightness": 55.0, "contrast": 37.5, "spatter": 5.2, "elastic": 13.6,
    "jpeg": 8.1, "pixelate": 8.6, "saturate": 29.4, "gaussian_noise": 19.4, "shot_noise": 18.1, "impulse_noise": 8.9,
    "speckle_noise": 18.1, "gaussian_blur": 9.5, "defocus_blur": 9.3, "glass_blur": 17.6, "motion_blur": 15.5,
    "zoom_blur": 16.5,
}  # fmt: skip


@pytest.fixture
def drawn_frost(monkeypatch) -> None:
    """As if the photographs were not installed."""
    monkeypatch.setattr(frost, "PACKAGE", "not_a_package")


@pytest.mark.parametrize("name", PROJECTED)
def test_agrees_with_the_original_functions(name):
    images = natural(8)
    direction = np.random.RandomState(1).normal(size=images.shape) / np.sqrt(images.size)
    change = [corrupt(images, name, severity) - images.astype(float) for severity in range(1, 6)]
    assert np.tensordot(change, direction, 4) == pytest.approx(PROJECTED[name], abs=0.3)


@pytest.mark.usefixtures("drawn_frost")
@pytest.mark.parametrize("name", NAMES)
def test_changes_images_as_much_as_on_cifar(name):
    images = natural(100, seed=1)
    change = np.abs(corrupt(images, name) - images.astype(float)).mean()
    # The images here are like photographs, but not the same, and drops of mud are few.
    assert change == pytest.approx(CHANGE[name], rel=0.25)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_noise_hangs_on_seed_name_and_number_alone(name):
    images = natural(7)
    before = images.copy()
    whole = corrupt(images, name, seed=3, start=10)
    assert (images == before).all()
    assert whole.dtype == np.uint8
    assert whole.shape == images.shape
    assert (corrupt(images[2:5], name, seed=3, start=12) == whole[2:5]).all()
    order = np.array([6, 0, 3])
    assert (corrupt_numbered(images[order], name, 5, 3, 10 + order) == whole[order]).all()
    if name not in DETERMINISTIC | {"original"}:
        assert (corrupt(images, name, seed=4, start=10) != whole).any()
        same = corrupt(np.repeat(images[:1], 3, axis=0), name)
        assert len(np.unique(same, axis=0)) == 3, "three images, three kinds of noise"
    else:
        assert (corrupt(images, name, seed=4, start=0) == whole).all()


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_drops_of_water_stay_in_their_image(severity):
    """Their edges are followed from pixel to pixel, and images lie side by side in a batch."""
    images = natural(60)
    whole = corrupt(images, "spatter", severity)
    assert all((corrupt(images[i : i + 1], "spatter", severity, start=i) == whole[i]).all() for i in range(60))


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_global_generator_is_left_alone(name):
    np.random.seed(5)
    expected = np.random.RandomState(5).random_sample(3)
    corrupt(natural(2), name)
    assert (np.random.random_sample(3) == expected).all()


def test_streams_differ_and_never_change():
    drawn = {generator(seed, name, 4).random_sample() for seed in (0, 1) for name in ("snow", "fog")}
    assert len(drawn) == 4
    assert generator(0, "snow", 4).random_sample() == pytest.approx(0.5173013206)


@pytest.mark.usefixtures("drawn_frost")
@pytest.mark.parametrize("severity", [1, 4])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(24, 40), (40, 24), (64, 64)])
def test_other_sizes(name, severity, shape):
    images = natural(2, *shape)
    out = corrupt(images, name, severity)
    assert out.shape == images.shape
    assert 0.3 < np.abs(out - images.astype(float)).mean() < 70


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("grey", [0, 255])
def test_black_and_white_images(name, grey):
    out = corrupt(np.full((2, 32, 32, 3), grey, np.uint8), name)
    assert out.shape == (2, 32, 32, 3)
    if name in ("gaussian_blur", "contrast", "motion_blur", "pixelate", "jpeg", "elastic"):
        assert (np.abs(out.astype(int) - grey) <= 1).all()


def test_original_is_a_copy():
    images = natural(2)
    out = corrupt(images, "original")
    assert (out == images).all()
    assert not np.shares_memory(out, images)


def test_no_images():
    assert corrupt(natural(1)[:0], "snow").shape == (0, 32, 32, 3)


def test_bad_arguments():
    images = natural(1)
    with pytest.raises(UnskewError, match="unknown corruption 'frosty': did you mean frost"):
        corrupt(images, "frosty")
    for severity in (0, 6, 2.5, "5"):
        with pytest.raises(UnskewError, match="from 1 to 5"):
            corrupt(images, "snow", severity)
    for wrong in (images / 255, images[0], images[..., :1]):
        with pytest.raises(UnskewError, match="uint8 and N×H×W×3"):
            corrupt(wrong, "snow")


@pytest.fixture
def photographs(tmp_path, monkeypatch) -> list[np.ndarray]:
    """A package as imagecorruptions is one: photographs, and code that does not import."""
    package = tmp_path / "imagecorruptions"
    (package / "frost").mkdir(parents=True)
    (package / "__init__.py").write_text("import a_package_that_is_not_installed")
    made = []
    for i, name in enumerate((*frost.PHOTOGRAPHS, "frost6.jpg")):
        photograph = natural(1, 180 + 3 * i, 201, seed=i)[0]
        Image.fromarray(photograph).save(package / "frost" / name, quality=100)
        made.append(np.asarray(Image.open(package / "frost" / name)))
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("imagecorruptions", None)
    return made


def test_frost_from_photographs(photographs):
    assert frost_source() == "imagecorruptions"
    images = natural(20)
    out = corrupt(images, "frost", 5)
    for i, image in enumerate(images):
        random = generator(0, "frost", i)
        photograph = photographs[random.randint(5)]
        height, width = round(photograph.shape[0] * 0.2), round(photograph.shape[1] * 0.2)
        small = np.array([[photograph[5 * y + 2, 5 * x + 2] for x in range(width)] for y in range(height)])
        top, left = random.randint(0, height - 32), random.randint(0, width - 32)
        expected = 0.75 * image + 0.45 * small[top : top + 32, left : left + 32]
        assert (out[i] == expected.clip(0, 255).astype(np.uint8)).all()
    assert corrupt(natural(1, 224, 224), "frost").shape == (1, 224, 224, 3), "larger than the photographs"


def test_frost_without_all_photographs_is_drawn(photographs, tmp_path):
    (tmp_path / "imagecorruptions/frost/frost4.jpg").unlink()
    assert frost_source() == "procedural"


@pytest.mark.usefixtures("drawn_frost")
def test_drawn_frost_looks_like_the_photographs():
    assert frost_source() == "procedural"
    black = np.zeros((400, 32, 32, 3), np.uint8)
    ice = corrupt(black, "frost") / 0.45
    # The same numbers of 32 px squares of the five photographs.
    assert ice.mean((0, 1, 2)) == pytest.approx([143, 164, 176], rel=0.05)
    assert ice.mean((1, 2)).std(0) == pytest.approx([50, 36, 34], rel=0.1)
    assert ice.std((1, 2)).mean(0) == pytest.approx([24, 22, 22], rel=0.1)


def test_cores_change_nothing(monkeypatch):
    images = natural(30)
    whole = corrupt(images, "snow")
    for cores in (1, 3):
        monkeypatch.setattr(parallel, "_cores", lambda cores=cores: cores)
        pieces = parallel.each(lambda start: corrupt(images[start : start + 4], "snow", start=start), range(0, 30, 4))
        assert (np.concatenate(list(pieces)) == whole).all()


def test_importing_is_light():
    code = "import sys, unskew.data.corruptions; print([m for m in ('scipy', 'PIL.Image') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
