import pytest
import torch

from plain_looks import with_look
from unskew.engine.looks import opponent, with_looks


@pytest.mark.parametrize("size", [8, 15])
def test_each_takes_a_share_of_its_donors_look(size):
    images, donors = torch.rand(2, 3, 3, size, size, generator=torch.Generator().manual_seed(0))
    shares = [0.0, 0.4, 1.0]
    found = with_looks(images, donors, torch.tensor(shares))
    for i, share in enumerate(shares):
        assert torch.allclose(found[i], with_look(images[i], donors[i], share), atol=1e-4)
    assert torch.allclose(found[0], images[0], atol=1e-5)
    assert not torch.allclose(found[1], images[1], atol=0.01)


def test_a_grey_image_has_only_lightness():
    grey = torch.rand(2, 1, 4, 4).expand(-1, 3, -1, -1)
    light, one, two = opponent(grey).unbind(1)
    assert torch.allclose(light, 3**0.5 * grey[:, 0])
    assert torch.allclose(one, torch.zeros(()), atol=1e-6)
    assert torch.allclose(two, torch.zeros(()), atol=1e-6)


def test_a_black_image_takes_no_amplitude_from_nowhere():
    assert torch.isfinite(with_looks(torch.zeros(1, 3, 8, 8), torch.rand(1, 3, 8, 8), torch.ones(1))).all()
