import numpy as np
import pytest
from PIL import Image

from unskew.data.decode import decode, square, working_size
from unskew.data.listing import Encoded


def centre(path, size=16):
    pixels = decode(path, size)
    assert isinstance(pixels, np.ndarray), pixels
    assert pixels.shape == (size, size, 3)
    return pixels[size // 2, size // 2].tolist()


def test_short_side_is_fitted_and_the_centre_kept():
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, :10], wide[:, 10:20], wide[:, 20:] = (255, 0, 0), (0, 255, 0), (0, 0, 255)
    assert (square(Image.fromarray(wide), 10) == (0, 255, 0)).all()
    assert (square(Image.fromarray(wide.transpose(1, 0, 2)), 10) == (0, 255, 0)).all()


def test_shrinking_averages_instead_of_picking():
    board = np.indices((64, 64)).sum(0) % 2 * 255
    small = square(Image.fromarray(board.astype(np.uint8)), 8)
    assert abs(small.astype(int) - 127).max() <= 2


@pytest.mark.parametrize("kind", ["png", "bmp", "gif", "tif", "webp", "jpg"])
def test_formats(tmp_path, save, kind):
    path = save(tmp_path / f"a.{kind}", colour=(200, 40, 90))
    assert np.abs(np.array(centre(path)) - (200, 40, 90)).max() <= 6


def test_exif_rotation(tmp_path):
    top_red = Image.new("RGB", (40, 40), (0, 0, 255))
    top_red.paste((255, 0, 0), (0, 0, 40, 20))
    exif = Image.Exif()
    exif[0x0112] = 6  # turn a quarter clockwise to show it
    top_red.save(tmp_path / "a.jpg", exif=exif, quality=95)
    pixels = decode(tmp_path / "a.jpg", 20)
    assert isinstance(pixels, np.ndarray)
    assert pixels[10, 16, 0] > 200  # the top went to the right
    assert pixels[10, 3, 2] > 200


def test_greyscale(tmp_path):
    Image.new("L", (20, 20), 77).save(tmp_path / "a.png")
    assert centre(tmp_path / "a.png") == [77, 77, 77]


@pytest.mark.parametrize(("deep", "shallow"), [(0, 0), (257 * 100, 100), (65535, 255)])
def test_16_bit_grey_is_scaled_not_clipped(tmp_path, deep, shallow):
    Image.fromarray(np.full((20, 20), deep, np.uint16)).save(tmp_path / "a.png")
    assert centre(tmp_path / "a.png") == [shallow] * 3


def test_rgba_lies_on_white(tmp_path):
    Image.new("RGBA", (20, 20), (200, 0, 0, 0)).save(tmp_path / "clear.png")
    Image.new("RGBA", (20, 20), (200, 0, 0, 255)).save(tmp_path / "solid.png")
    Image.new("LA", (20, 20), (0, 0)).save(tmp_path / "grey.png")
    assert centre(tmp_path / "clear.png") == [255, 255, 255]
    assert centre(tmp_path / "solid.png") == [200, 0, 0]
    assert centre(tmp_path / "grey.png") == [255, 255, 255]


def test_palette_with_and_without_transparency(tmp_path):
    image = Image.new("P", (20, 20), 1)
    image.putpalette([0, 0, 0, 10, 200, 30])
    image.save(tmp_path / "plain.png")
    image.save(tmp_path / "clear.png", transparency=1)
    assert centre(tmp_path / "plain.png") == [10, 200, 30]
    assert centre(tmp_path / "clear.png") == [255, 255, 255]


def test_cmyk(tmp_path):
    Image.new("CMYK", (20, 20), (0, 255, 255, 0)).save(tmp_path / "a.jpg", quality=95)
    red, green, blue = centre(tmp_path / "a.jpg")
    assert red > 240
    assert max(green, blue) < 15


def test_floating_point_images_are_refused_with_a_reason(tmp_path):
    Image.fromarray(np.ones((20, 20), np.float32)).save(tmp_path / "a.tif")
    assert "floating-point" in decode(tmp_path / "a.tif", 8)


def test_broken_files_give_a_reason(tmp_path, save):
    whole = save(tmp_path / "a.jpg", size=(200, 200)).read_bytes()
    noise = np.random.default_rng(0).integers(0, 256, (200, 200, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    (tmp_path / "empty.png").touch()
    (tmp_path / "text.png").write_text("hello")
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "cut.png").write_bytes((tmp_path / "noise.png").read_bytes()[:5000])
    assert "not an image" in decode(tmp_path / "empty.png", 8)
    assert "not an image" in decode(tmp_path / "text.png", 8)
    assert "truncated" in decode(tmp_path / "cut.jpg", 8)
    assert "truncated" in decode(tmp_path / "cut.png", 8)
    assert decode(tmp_path / "gone.png", 8) == "No such file or directory"


def test_working_size_is_small_only_if_no_image_is_large(tmp_path, save):
    small = [save(tmp_path / "a.png", size=(64, 20)), save(tmp_path / "b.png", size=(8, 8))]
    assert working_size(small) == 32
    assert working_size([*small, save(tmp_path / "c.png", size=(20, 65))]) == 224


def test_bytes_decode_like_files(tmp_path, save):
    path = save(tmp_path / "a.png")
    pixels = decode(Encoded("a", path.read_bytes), 16)
    assert isinstance(pixels, np.ndarray)
    assert (pixels == decode(path, 16)).all()
