"""Predict first: one switch at the head of a chapter covers the outputs that are worth a guess.

Their cells have the tag `predict`. A page without such a cell gets no switch, no script and no style; without a script
nothing is covered. The covers are part of the page: predict.css shows them, predict.js takes them away and remembers.
"""

from docutils import nodes
from sphinx.application import Sphinx

from _ext.folds import BEFORE

# The short script shows the switch, and covers at once what was covered on the last page, before it can be seen.
SWITCH = """<div class="rb-predict" hidden>
<label><input type="checkbox" role="switch" autocomplete="off" aria-describedby="rb-predict"> Predict first</label>
<span id="rb-predict">Covers {what} until you ask for {each}; remembered in all chapters.</span>
<script>document.currentScript.parentNode.hidden = false;
try {{ document.documentElement.classList.toggle("rb-predicting", localStorage.predict === "on") }} catch {{}}</script>
</div>"""
COVER = '<button type="button" class="rb-cover">What will come out? <span>Show</span></button>'


def add_switch(app: Sphinx, doctree: nodes.document) -> None:
    """Covers for the marked outputs, a class for sentences that tell them, the switch behind the fold or the title."""
    marked = [cell for cell in doctree.findall(nodes.container) if "tag_predict" in cell["classes"]]
    if marked:
        app.env.metadata[app.env.docname].setdefault("scripts", []).append("predict.js")
        what, each = (f"{len(marked)} results", "each") if len(marked) > 1 else ("one result", "it")
        fold = next((raw for raw in doctree.findall(nodes.raw) if BEFORE in raw.astext()), None)
        end = fold and next(node for node in fold.findall(siblings=True) if node.astext().strip() == "</details>")
        head = end or next(doctree.findall(nodes.title))
        switch = nodes.raw("", SWITCH.format(what=what, each=each), format="html")
        head.parent.insert(head.parent.index(head) + 1, switch)
    for cell in marked:
        for node in list(cell.findall(include_self=False, descend=False, siblings=True)):
            parts = (part for part in node if isinstance(part, nodes.container))
            if isinstance(node, nodes.section) or any(part.get("nb_element") == "cell_code_output" for part in parts):
                break
            if isinstance(node, nodes.paragraph | nodes.bullet_list | nodes.enumerated_list):
                node["classes"].append("rb-told")
        for output in cell.findall(nodes.container):
            if output.get("nb_element") == "cell_code_output":
                output.insert(0, nodes.raw("", COVER, format="html"))


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", add_switch, priority=900)  # when statements are read, and with them the summary
