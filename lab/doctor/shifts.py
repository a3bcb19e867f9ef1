"""What a server drops when its cache is full."""

import math

from lab.doctor.names import NotUnderstood, naming_of
from lab.doctor.servers import Server, places

BEFORE, WRITTEN = 32, 96  # tokens before the border, and in all
SINK_LOST = "half was dropped, and the first token with it"
SHIFTS = {
    "nothing was dropped": lambda n: (0, 0),
    SINK_LOST: lambda n: (0, n // 2),
    "half was dropped, and the first token kept": lambda n: (1, 1 + n // 2),
}


def over_the_border(server: Server, context: int, **settings: int) -> tuple[list[int], list[tuple[int, float]]]:
    """A prompt that nearly fills the context, and what the engine wrote behind it, with its log-probabilities."""
    from lab.opened import model, texts

    prompt = texts()["book"][: context - BEFORE].tolist()
    read = places(server.completion(prompt, max_tokens=WRITTEN, logprobs=1, **settings))
    naming = naming_of([read], {number: model().text([number]) for number in range(len(model().vocabulary))})
    written = []
    for place in read:
        tokens = [*naming.numbers(place.name)]
        if len(tokens) != 1 or not math.isfinite(place.logarithm):
            raise NotUnderstood("it cannot be said which token it wrote", f"{place.name!r}, {place.logarithm}")
        written.append((tokens[0], place.logarithm))
    return prompt, written


def distances_of_shifts(prompt: list[int], written: list[tuple[int, float]], context: int) -> dict[str, float]:
    """For each of SHIFTS how far what was written is from it, in nats; empty if the engine stopped at the border."""
    import torch

    from lab.opened import dropped

    filled = context - 1
    if len(prompt) + len(written) < context + 16:
        return {}
    text = torch.tensor([prompt + [token for token, _ in written]])
    said = torch.tensor([x for _, x in written])[filled + 1 - len(prompt) :]
    return {
        name: (dropped(text, *ends(filled), filled=filled)[0] + said).abs().mean().item()
        for name, ends in SHIFTS.items()
    }


def shift_report(apart: dict[str, float], context: int) -> str:
    """What was dropped when the context was full."""
    if not apart:
        return f"It stopped writing: it does not shift at {context:,} tokens."
    nearest, *others = sorted(apart, key=apart.get)
    lines = [f"  {apart[name]:5.3f} nats from: {name}" for name in (nearest, *others)]
    lines.append(f"Found behind {context:,} tokens: {nearest}.")
    if nearest == SINK_LOST:
        lines.append("Keep it (llama.cpp: --keep 1): many heads of this model rest on it.")
    return "\n".join(lines)
