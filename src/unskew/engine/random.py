"""Randomness as a function of what it is for, so that workers, ranks and resuming do not change a result."""

import hashlib

import torch


def derive(*key: object) -> int:
    """A 63-bit seed from anything printable: (seed, purpose, epoch, …)."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def generator(*key: object) -> torch.Generator:
    return torch.Generator().manual_seed(derive(*key))
