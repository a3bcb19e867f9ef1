"""What a format of floating-point numbers makes of an angle."""

import numpy as np
import torch
from matplotlib.figure import Figure

from figures.style import BLUE, GREEN, PURPLE, VERMILLION, sheet, styled
from lab.precision import angle_errors

LINES = {torch.bfloat16: VERMILLION, torch.float16: PURPLE, torch.float32: BLUE, torch.float64: GREEN}


@styled
def draw_angle_errors(*, reach: int = 10**6) -> Figure:
    """Largest error of an angle against the position, one line for each format."""
    figure = sheet(3.0)
    ax = figure.subplots()
    for dtype, colour in LINES.items():
        end = min(reach, torch.finfo(dtype).max)
        positions = np.unique(np.geomspace(10, end, 60).astype(int))
        errors = angle_errors(positions.tolist(), dtype)
        ax.plot(positions, errors, color=colour)
        name = str(dtype).removeprefix("torch.")
        ax.annotate(name, (positions[-1], errors[-1]), (5, 0), textcoords="offset points", color=colour, va="center")
    ax.axhline(np.pi, color="0.4", linestyle=":", linewidth=1)
    ax.annotate("half a turn", (10, np.pi), (0, 4), textcoords="offset points", color="0.4")
    ax.set(xscale="log", yscale="log", xlabel="position (tokens)", ylabel="largest error (rad)")
    return figure
