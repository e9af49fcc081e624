"""A flow as a picture: boxes and arrows, and what is written or drawn of them."""

from plaita.core.drawing.mermaid import as_mermaid
from plaita.core.drawing.picture import Arrow, Box, Picture, picture_of
from plaita.core.drawing.svg import as_svg
from plaita.core.drawing.text import as_text

__all__ = ["Arrow", "Box", "Picture", "as_mermaid", "as_svg", "as_text", "picture_of"]
