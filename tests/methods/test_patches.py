"""Patches against plain loops, and as often as the activation map says."""

import numpy as np
import torch
from plain_patches import plain_boxes, plain_patches, plain_weights

from unskew.methods.patches import cam_weights, crop, draw_boxes


def test_where_patches_are_drawn():
    random = np.random.default_rng(0)
    maps, uniforms = random.normal(size=(6, 3, 4, 5)), random.random((6, 9, 4))
    maps[0] = -1  # nothing speaks for the class: every cell alike
    weights = plain_weights(maps, 0.1)
    ours = cam_weights(torch.tensor(maps), 0.1)
    np.testing.assert_allclose(ours.numpy(), weights, rtol=1e-4)
    np.testing.assert_allclose(weights[0], 1 / 20)
    boxes = draw_boxes(ours, torch.tensor(uniforms, dtype=torch.float32))
    np.testing.assert_allclose(boxes.numpy(), plain_boxes(weights, uniforms), atol=1e-5)


def test_patches_come_as_often_as_the_map_says():
    weights = torch.tensor([[[0.7, 0.1], [0.05, 0.15]]])
    uniforms = torch.rand(1, 20000, 4, generator=torch.Generator().manual_seed(0))
    uniforms[..., 1:3] = 0.5  # the middle of the cell
    boxes = draw_boxes(weights, uniforms)
    cell = (boxes[0, :, 1] > 0.5).long() * 2 + (boxes[0, :, 0] > 0.5).long()
    np.testing.assert_allclose(cell.bincount(minlength=4) / 20000, weights.flatten(), atol=0.015)


def test_patches_lie_in_the_image_and_are_cut_from_there():
    random = torch.Generator().manual_seed(0)
    images, uniforms = torch.rand(3, 3, 16, 16, generator=random), torch.rand(3, 30, 4, generator=random)
    boxes = draw_boxes(torch.full((3, 8, 8), 1 / 64), uniforms)
    assert (boxes[..., :2] - boxes[..., 2:] / 2).min() >= -1e-6
    assert (boxes[..., :2] + boxes[..., 2:] / 2).max() <= 1 + 1e-6
    torch.testing.assert_close(crop(images, boxes), plain_patches(images, boxes.numpy()), rtol=1e-4, atol=1e-5)
