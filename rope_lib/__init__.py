"""Rotary position embedding, small enough to read at one sitting: the library of the book "Rotate, Don't Add"."""

from rope_lib.config import frequencies_from_config, rotation_from_config
from rope_lib.device import default_device
from rope_lib.frequencies import axial_cos_sin, cos_sin, inverse_frequencies, sectioned_cos_sin
from rope_lib.layouts import half_split_to_interleaved, interleaved_to_half_split
from rope_lib.linear import linear_attention
from rope_lib.rotary import RotaryEmbedding, apply_rotary_emb, apply_rotary_pos_emb
from rope_lib.softmax import attention

__all__ = [
    "RotaryEmbedding",
    "apply_rotary_emb",
    "apply_rotary_pos_emb",
    "attention",
    "axial_cos_sin",
    "cos_sin",
    "default_device",
    "frequencies_from_config",
    "half_split_to_interleaved",
    "interleaved_to_half_split",
    "inverse_frequencies",
    "linear_attention",
    "rotation_from_config",
    "sectioned_cos_sin",
]
__version__ = "1.0.0"
