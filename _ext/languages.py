"""Chinese words say that they are Chinese: another voice reads them, and other glyphs show them."""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from _ext.statements import open_texts

CHINESE = re.compile(r"[\u4e00-\u9fff][\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]*")  # with its punctuation


class MarkChinese(SphinxPostTransform):
    """Give each run of Chinese words in a text its language."""

    default_priority = 910
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for text in list(open_texts(self.document)):
            parts, done = [], 0
            for words in CHINESE.finditer(text):
                parts += [nodes.Text(text[done : words.start()]), nodes.inline("", words[0], classes=["language-zh"])]
                done = words.end()
            if parts:
                text.parent.replace(text, [*parts, nodes.Text(text[done:])])


def setup(app: Sphinx) -> None:
    app.add_post_transform(MarkChinese)
