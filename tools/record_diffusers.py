"""Record how diffusion transformers turn the tokens of an image or a video: writes tests/data/diffusers.json anew.

Run it from the root of the project, in the environment that `make bench` makes:

    .venv-bench/bin/python -m tools.record_diffusers

Each model's own class makes its tables, in float32. Of each pair the cosine and the sine are kept, for a few tokens.
"""

import json
from pathlib import Path

import diffusers
import torch
from diffusers.models.embeddings import get_2d_rotary_pos_embed, get_3d_rotary_pos_embed
from diffusers.models.transformers.transformer_cogview4 import CogView4RotaryPosEmbed
from diffusers.models.transformers.transformer_cosmos import CosmosRotaryPosEmbed
from diffusers.models.transformers.transformer_flux import FluxPosEmbed
from diffusers.models.transformers.transformer_flux2 import Flux2PosEmbed
from diffusers.models.transformers.transformer_glm_image import GlmImageRotaryPosEmbed
from diffusers.models.transformers.transformer_hunyuan_video import HunyuanVideoRotaryPosEmbed
from diffusers.models.transformers.transformer_qwenimage import QwenEmbedRope
from diffusers.models.transformers.transformer_wan import WanRotaryPosEmbed
from diffusers.pipelines.cogvideo.pipeline_cogvideox import get_resize_crop_region_for_grid
from torch import Tensor

from lab.experiments import as_text

DATA = Path(__file__).parent.parent / "tests" / "data" / "diffusers.json"
FRAMES, ROWS, COLUMNS = 3, 6, 10
KEPT = slice(7, None, 40)  # of the 180 tokens, in the order frame, row, column


def of_neighbours(tables: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Tables in which each angle stands twice, side by side."""
    return tables[0][..., ::2], tables[1][..., ::2]


def of_halves(tables: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Tables in which the angles stand twice, one half after the other."""
    return tables[0].chunk(2, dim=-1)[0], tables[1].chunk(2, dim=-1)[0]


def crops() -> dict[str, tuple[tuple[int, int], tuple[int, int]]]:
    """Where these models lay the image on the grid that they were trained with: first and last row and column."""
    widths = {"CogVideoX": (45, 30), "HunyuanDiT": (32, 32)}
    return {name: get_resize_crop_region_for_grid((ROWS, COLUMNS), *of) for name, of in widths.items()}


def record() -> dict[str, tuple[Tensor, Tensor]]:
    """The tables of each model, (tokens, pairs)."""
    crop, hunyuan_crop = crops().values()
    places = torch.cartesian_prod(*(torch.arange(n) for n in (FRAMES, ROWS, COLUMNS)))
    video = torch.zeros(1, 16, FRAMES, 2 * ROWS, 2 * COLUMNS)  # its patches have two rows and two columns
    wan = [table[0, :, 0] for table in WanRotaryPosEmbed(128, (1, 2, 2), 1024)(video)]
    image, _ = QwenEmbedRope(theta=10000, axes_dim=[16, 56, 56], scale_rope=True)(
        [[(FRAMES, ROWS, COLUMNS)]], torch.device("cpu"), max_txt_seq_len=1
    )
    patches = {"max_size": (300, 300), "grid_type": "slice"}
    cosmos = CosmosRotaryPosEmbed(128, (128, 240, 240), (1, 2, 2), rope_scale=(2.0, 1.0, 1.0))
    still = video[:, :, 0]  # one image
    four = torch.cat((places, places[:, :1]), dim=-1)
    return {
        "Flux": of_neighbours(FluxPosEmbed(10000, [16, 56, 56])(places)),
        "Flux 2": of_neighbours(Flux2PosEmbed(2000, [32] * 4)(four)),
        "HunyuanVideo": of_neighbours(HunyuanVideoRotaryPosEmbed(2, 1, [16, 56, 56], 256.0)(video)),
        "Wan": of_neighbours(wan),
        "Qwen-Image": (image.real, image.imag),
        "CogVideoX": of_neighbours(get_3d_rotary_pos_embed(64, crop, (ROWS, COLUMNS), FRAMES)),
        "CogVideoX 1.5": of_neighbours(get_3d_rotary_pos_embed(64, None, (ROWS, COLUMNS), FRAMES, **patches)),
        "HunyuanDiT": of_neighbours(get_2d_rotary_pos_embed(88, hunyuan_crop, (ROWS, COLUMNS))),
        "Cosmos": of_halves(cosmos(video, fps=30)),
        "CogView 4": of_halves(CogView4RotaryPosEmbed(128, 2, (256, 256))(still)),
        "GLM-Image": of_halves(GlmImageRotaryPosEmbed(128, 2)(still)),
    }


def rows(table: Tensor) -> list[list[float]]:
    """The tokens that are kept, with eight digits."""
    return [[float(f"{x:.8g}") for x in row] for row in table.double()[KEPT].tolist()]


if __name__ == "__main__":
    models = {name: {"cos": rows(cos), "sin": rows(sin)} for name, (cos, sin) in record().items()}
    kept = [KEPT.start, KEPT.step]
    sizes = {"grid": [FRAMES, ROWS, COLUMNS], "first_token": kept[0], "every": kept[1], "crops": crops()}
    DATA.write_bytes(as_text({"source": f"diffusers {diffusers.__version__}, float32", **sizes, "models": models}))
    print(json.dumps({name: len(model["cos"]) for name, model in models.items()}))
