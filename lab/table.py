"""A table that a cell can end with."""

import re


class Table:
    """Rows under heads: a table on a page, columns of text elsewhere."""

    def __init__(self, heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        self.heads, self.rows = heads, rows

    def _repr_html_(self) -> str:
        heads = "".join(f'<th scope="col">{head}</th>' for head in self.heads)
        lines = [f'<table class="dataframe"><thead><tr>{heads}</tr></thead><tbody>']
        for first, *others in self.rows:
            lines.append(f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>')
        return "\n".join([*lines, "</tbody></table>"])

    def __repr__(self) -> str:
        lines = [[re.sub("<[^>]*>", "", cell) for cell in line] for line in (self.heads, *self.rows)]  # without links
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = ("  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines)
        return "\n".join(line.rstrip() for line in padded)
