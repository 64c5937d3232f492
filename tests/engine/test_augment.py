import pytest
import torch
import torch.nn.functional as F

from unskew.engine.augment import PAD, batch_of

PIXELS = torch.randint(0, 256, (6, 9, 9, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
INDEX = torch.tensor([4, 0, 2])


def reference(pixels, down, right, flip):
    """torchvision's order: pad with zeros, crop, then mirror the crop's own columns."""
    image = pixels.permute(2, 0, 1).float() / 255
    padded = F.pad(image, (PAD,) * 4)
    if flip:
        padded = padded.flip(2)
    return padded[:, PAD + down : PAD + down + 9, PAD + right : PAD + right + 9]


def test_none_is_the_image_itself():
    out = batch_of(PIXELS, INDEX, "none", torch.empty(0))
    assert torch.equal(out, PIXELS[INDEX].permute(0, 3, 1, 2).float() / 255)
    assert out.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("kind", ["crop", "crop-flip"])
def test_crop_and_flip_against_padding_and_slicing(kind):
    draws = torch.tensor([[0.0, 0.99, 0.1, 0, 0], [0.5, 0.5, 0.9, 0, 0], [0.8, 0.2, 0.2, 0, 0]])
    out = batch_of(PIXELS, INDEX, kind, draws)
    for row, (down, right) in enumerate([(-4, 4), (0, 0), (3, -3)]):
        flipped = kind == "crop-flip" and draws[row, 2] < 0.5
        expected = reference(PIXELS[INDEX[row]], down, right if not flipped else -right, flipped)
        assert torch.equal(out[row], expected), row


def test_every_shift_occurs():
    draws = torch.rand(4000, 5, generator=torch.Generator().manual_seed(0))
    white = torch.full((1, 9, 9, 3), 255, dtype=torch.uint8)
    out = batch_of(white, torch.zeros(4000, dtype=torch.int64), "crop", draws)
    assert len({tuple(image[0].flatten().tolist()) for image in out}) == 81


def test_a_resized_crop_of_everything_is_the_image():
    draws = torch.tensor([[0.3, 0.3, 0.9, 1.0, 0.5], [0.3, 0.3, 0.1, 1.0, 0.5]])
    out = batch_of(PIXELS, INDEX[:2], "resized-crop", draws)
    plain = PIXELS[INDEX[:2]].permute(0, 3, 1, 2).float() / 255
    assert torch.allclose(out[0], plain[0], atol=1e-4)
    assert torch.allclose(out[1], plain[1].flip(2), atol=1e-4)


def test_a_resized_crop_stays_inside_the_image():
    ramp = torch.arange(32, dtype=torch.uint8).view(1, 1, 32, 1).expand(1, 32, 32, 3) * 8
    draws = torch.rand(200, 5, generator=torch.Generator().manual_seed(0))
    draws[:, 2] = 0.9  # unmirrored
    out = batch_of(ramp, torch.zeros(200, dtype=torch.int64), "resized-crop", draws)[:, 0, 0]
    span = (out[:, -1] - out[:, 0]) * 255 / 8 / 31
    assert (out.diff(dim=1) >= -1e-6).all(), "left to right stays left to right"
    assert span.min() < 0.8
    assert span.max() <= 1.001


def test_of_a_larger_image_the_centre_is_seen():
    out = batch_of(PIXELS, INDEX, "none", torch.empty(0), 5)
    assert torch.equal(out, PIXELS[INDEX, 2:7, 2:7].permute(0, 3, 1, 2).float() / 255)
    assert out.is_contiguous(memory_format=torch.channels_last)


def test_a_smaller_image_is_enlarged():
    out = batch_of(PIXELS, INDEX, "none", torch.empty(0), 18)
    plain = PIXELS[INDEX].permute(0, 3, 1, 2).float() / 255
    assert out.shape == (3, 3, 18, 18)
    assert torch.allclose(out, F.interpolate(plain, scale_factor=2, mode="bilinear"))


def test_a_crop_moves_about_the_centre_and_needs_no_padding_there():
    draws = torch.tensor([[0.0, 0.99, 0.9, 0, 0], [0.5, 0.5, 0.1, 0, 0], [0.5, 0.5, 0.9, 0, 0]])
    out = batch_of(PIXELS, INDEX, "crop-flip", draws, 1)
    at = [(0, 8), (4, 4), (4, 4)]
    for row, (down, right) in enumerate(at):
        assert torch.equal(out[row, :, 0, 0], PIXELS[INDEX[row], down, right].float() / 255)


def test_a_resized_crop_is_taken_from_all_of_a_larger_image():
    draws = torch.tensor([[0.5, 0.5, 0.9, 1.0, 0.5]])
    smooth = torch.arange(0, 256, 2, dtype=torch.uint8).view(1, 1, 128, 1).expand(1, 128, 128, 3)
    out = batch_of(smooth, torch.tensor([0]), "resized-crop", draws, 64)
    shrunk = F.avg_pool2d(smooth.permute(0, 3, 1, 2).float() / 255, 2)
    assert out.shape == (1, 3, 64, 64)
    assert torch.allclose(out, shrunk, atol=1e-4)
