"""The pictures of the book: every draw_* returns a matplotlib Figure and takes its parameters by keyword."""

from figures.book import draw_book_map
from figures.rotation import (
    draw_aliases,
    draw_basis_images,
    draw_not_relative,
    draw_relative_angle,
    draw_rotation_blocks,
    draw_solutions,
)
from figures.sinusoidal import (
    draw_binary_clock,
    draw_code_similarity,
    draw_nearest_twin,
    draw_projected_similarity,
    draw_sinusoidal_heatmap,
    draw_wavelengths,
)

__all__ = [
    "draw_aliases",
    "draw_basis_images",
    "draw_binary_clock",
    "draw_book_map",
    "draw_code_similarity",
    "draw_nearest_twin",
    "draw_not_relative",
    "draw_projected_similarity",
    "draw_relative_angle",
    "draw_rotation_blocks",
    "draw_sinusoidal_heatmap",
    "draw_solutions",
    "draw_wavelengths",
]
