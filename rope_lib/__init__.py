"""Rotary position embedding, small enough to read at one sitting: the library of the book "Rotate, Don't Add"."""

from rope_lib.device import default_device
from rope_lib.frequencies import cos_sin, inverse_frequencies
from rope_lib.layouts import half_split_to_interleaved, interleaved_to_half_split
from rope_lib.matrices import rotation_matrix, shift_matrix
from rope_lib.rotary import RotaryEmbedding, apply_rotary_emb, apply_rotary_pos_emb
from rope_lib.sinusoidal import sinusoidal_encoding

__all__ = [
    "RotaryEmbedding",
    "apply_rotary_emb",
    "apply_rotary_pos_emb",
    "cos_sin",
    "default_device",
    "half_split_to_interleaved",
    "interleaved_to_half_split",
    "inverse_frequencies",
    "rotation_matrix",
    "shift_matrix",
    "sinusoidal_encoding",
]
__version__ = "0.1.0"
