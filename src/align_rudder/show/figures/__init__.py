"""Figures: the alignment, what it found, and where the reward of an episode goes.

Every function draws into `ax`, or into a new figure (`ax.figure`), and returns the axes; `overview`
and `consensus`, which have several, return the figure.
`ax.figure.savefig("figure.pdf")` writes vector graphics. Colours are Okabe and Ito's.
"""

from align_rudder.show.figures.colors import event_color
from align_rudder.show.figures.consensus import consensus
from align_rudder.show.figures.curves import curves
from align_rudder.show.figures.episodes import overview, redistribution
from align_rudder.show.figures.maps import Grid, clusters, grid_of
from align_rudder.show.figures.profiles import guide_tree, logo, logo_heights, pssm
from align_rudder.show.figures.sequences import alignment

__all__ = [
    "Grid",
    "alignment",
    "clusters",
    "consensus",
    "curves",
    "event_color",
    "grid_of",
    "guide_tree",
    "logo",
    "logo_heights",
    "overview",
    "pssm",
    "redistribution",
]
