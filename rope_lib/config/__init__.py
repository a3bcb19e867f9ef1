"""How a published model rotates, from its config.json.

A file leaves out what the class of its model takes for granted, and some files have keys that their class does not
read. How the classes of transformers read was recorded by asking each of them (`classes.json`). A file is completed by
that, and refused where it contradicts it. Where nothing is recorded, what is missing is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

from rope_lib._checks import check_number
from rope_lib.config._reading import rotations_of
from rope_lib.config._spelling import KEYS, PARTS
from rope_lib.config.rotation import RotaryConfig

__all__ = ["KEYS", "PARTS", "RotaryConfig", "frequencies_from_config", "rotation_from_config"]


def frequencies_from_config(
    config: Mapping[str, Any],
    *,
    seq_len: int | None = None,
    layer_type: str | None = None,
    ignore: Iterable[str] = (),
) -> tuple[Tensor, float]:
    """Read the dictionary of a config.json: how fast do the pairs turn, and what are the tables multiplied by?

    `rotation_from_config` reads it, and says which keys count.

    Args:
        config: of the model, or of the part of a multimodal model that rotates.
        seq_len: the length in use, in tokens: "dynamic" grows with it, "longrope" has one set of factors up to the
            trained length and one beyond. None means the trained length.
        layer_type: which layers, for models whose layers differ, e.g. "full_attention".
        ignore: keys to set aside.

    Returns:
        inv_freq, (rotary_dim // 2,) float64 on the CPU, in rad per token, and attention_factor: what `RotaryEmbedding`
        takes.

    Raises:
        TypeError, ValueError: as `rotation_from_config`, or as the functions of `rope_lib.scaling`.

    Source: names, defaults and results are those of Hugging Face's transformers 5.24; the tests compare them.

    Example:
        >>> llama = {"head_dim": 128, "rope_theta": 500000.0}
        >>> inv_freq, attention_factor = frequencies_from_config(llama)
        >>> len(inv_freq), attention_factor
        (64, 1.0)
    """
    if seq_len is not None:
        seq_len = check_number(seq_len, "seq_len", above=0)
    return rotation_from_config(config, layer_type=layer_type, ignore=ignore).frequencies(seq_len)


def rotation_from_config(
    config: Mapping[str, Any], *, layer_type: str | None = None, ignore: Iterable[str] = ()
) -> RotaryConfig:
    """Read the dictionary of a config.json: what was understood of it. `print` shows it.

    These keys are read, each also by the older names that published files have (rope_scaling, rotary_pct, n_embd, su):

    `rope_theta`
        The base.
    `rope_parameters`
        The rope_type (or type), which is default, linear, dynamic, yarn, longrope, llama3 or proportional, with the
        keys that belong to it; or one such entry for each kind of layer.
    `head_dim`
        How many dimensions a head has: else it is hidden_size over num_attention_heads. Where a head of its own turns
        (DeepSeek), qk_rope_head_dim is read.
    `partial_rotary_factor`
        The share of a head that turns; or rotary_dim, as a number of dimensions.
    `max_position_embeddings`
        The length of the model.
    `original_max_position_embeddings`
        The length of its training, before it was stretched.

    What the file leaves out is what the class of its model_type takes. Of a model_type that is not recorded the base,
    the head and the share must be given; which layers turn is then not known. Without a model_type there is no class:
    the base is 10000 (but rope_parameters must give one), a head is the width over the heads, and all of it turns.

    It is an error if entries contradict each other, or the class of the model: if the class does not read a key whose
    value would change something. It is an error, too, if a key may by its words change the frequencies and is not known
    here, and if the model does not rotate. (Some files say so by a null in place of the base: OLMo Hybrid's.)

    `mrope_section` and `mrope_interleaved` are for `sectioned_cos_sin`. With `llama_4_scaling_beta` (Ministral 3) the
    rotated queries are also multiplied by a number that grows with the position.

    Args:
        config: of the model, or of the part of a multimodal model that rotates.
        layer_type: which layers, for models whose layers differ, e.g. "full_attention".
        ignore: keys to set aside, in the file or in its rope_parameters: those that do not matter, and those of which
            the class is to be believed and not the file.

    Raises:
        TypeError: config or its rope_scaling is no mapping; a size is no int, or another entry no number.
        ValueError: one of the errors above; layers differ and layer_type does not name one; ignore names a key that is
            not there.

    Source: as `frequencies_from_config`.

    Example:
        >>> file = {"model_type": "qwen3", "rope_theta": 1e6}
        >>> print(rotation_from_config(file))
        model_type: qwen3
        turn:       128 of 128 dimensions of a head, 64 pairs
        base:       1,000,000
        scaling:    none
        lengths:    model not said, trained not needed
        layout:     not said
        layers:     all
        read:       rope_theta
        set aside:  nothing
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config is a {type(config).__name__}; it must be a dict: json.load(...), or config.to_dict()")
    if not isinstance(layer_type, str | None):
        raise TypeError(f"layer_type is {layer_type!r:.60}; it must be one string")
    found = rotations_of(config, ignore)
    if (layer_type or "") not in found or layer_type == "":
        why = " (its layers turn differently: layer_types lists the type of each)" if layer_type is None else ""
        known = " or ".join(repr(kind or None) for kind in found)
        raise ValueError(f"layer_type is {layer_type!r}; for this model it must be {known}{why}")
    return found[layer_type or ""]
