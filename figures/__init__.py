"""The pictures of the book, by module: draw_* returns a matplotlib Figure, explore_* a piece to play with."""
