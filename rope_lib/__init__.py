"""Rotary position embedding, small enough to read at one sitting: the library of the book "Rotate, Don't Add"."""

from rope_lib.device import default_device
from rope_lib.frequencies import cos_sin, inverse_frequencies
from rope_lib.rotary import RotaryEmbedding, apply_rotary_emb, apply_rotary_pos_emb, rotation_matrix
from rope_lib.sinusoidal import shift_matrix, sinusoidal_encoding

__all__ = [
    "RotaryEmbedding",
    "apply_rotary_emb",
    "apply_rotary_pos_emb",
    "cos_sin",
    "default_device",
    "inverse_frequencies",
    "rotation_matrix",
    "shift_matrix",
    "sinusoidal_encoding",
]
__version__ = "0.1.0"
