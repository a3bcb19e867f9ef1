"""The pictures of the book: draw_* returns a matplotlib Figure, explore_* a piece to play with."""

from figures.book import draw_book_map
from figures.decay import (
    draw_any_distance,
    draw_bound_and_score,
    draw_cosine_decay,
    draw_decay_bound,
    draw_decay_families,
    draw_decay_long,
    explore_decay,
)
from figures.family import draw_clipping_bleu, draw_score_family, draw_t5_buckets, explore_family
from figures.layouts import draw_layouts, explore_layouts
from figures.linear import draw_linear_weights, draw_row_sums, explore_linear
from figures.order import draw_prefix_orders, draw_shuffled_attention, draw_three_scores, explore_order
from figures.precision import draw_angle_errors
from figures.rotation import (
    draw_aliases,
    draw_basis_images,
    draw_not_relative,
    draw_relative_angle,
    draw_rotation_blocks,
    draw_solutions,
    explore_blocks,
    explore_rotation,
)
from figures.sinusoidal import (
    draw_binary_clock,
    draw_code_similarity,
    draw_nearest_twin,
    draw_projected_similarity,
    draw_sinusoidal_heatmap,
    draw_wavelengths,
    explore_code,
)
from figures.speed import draw_linear_attention_speed, draw_rotation_speed

__all__ = [
    "draw_aliases",
    "draw_angle_errors",
    "draw_any_distance",
    "draw_basis_images",
    "draw_binary_clock",
    "draw_book_map",
    "draw_bound_and_score",
    "draw_clipping_bleu",
    "draw_code_similarity",
    "draw_cosine_decay",
    "draw_decay_bound",
    "draw_decay_families",
    "draw_decay_long",
    "draw_layouts",
    "draw_linear_attention_speed",
    "draw_linear_weights",
    "draw_nearest_twin",
    "draw_not_relative",
    "draw_prefix_orders",
    "draw_projected_similarity",
    "draw_relative_angle",
    "draw_rotation_blocks",
    "draw_rotation_speed",
    "draw_row_sums",
    "draw_score_family",
    "draw_shuffled_attention",
    "draw_sinusoidal_heatmap",
    "draw_solutions",
    "draw_t5_buckets",
    "draw_three_scores",
    "draw_wavelengths",
    "explore_blocks",
    "explore_code",
    "explore_decay",
    "explore_family",
    "explore_layouts",
    "explore_linear",
    "explore_order",
    "explore_rotation",
]
