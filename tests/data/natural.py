"""Images with the colours, the contrast and the smoothness of photographs, the same everywhere."""

import numpy as np


def natural(count: int, height: int = 32, width: int = 32, seed: int = 0) -> np.ndarray:
    random = np.random.RandomState(seed)
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width))
    frequency[0, 0] = 1 / max(height, width)

    def field(channels: int) -> np.ndarray:
        waves = np.fft.rfft2(random.normal(size=(count, channels, height, width))) / frequency**1.7
        rough = np.fft.irfft2(waves, (height, width))
        return rough / rough.std(axis=(1, 2, 3), keepdims=True)

    values = 120 + 55 * field(1) + 25 * field(3)
    return np.rint(values.clip(0, 255)).astype(np.uint8).transpose(0, 2, 3, 1)
