"""The curriculum: what each phase trains on, for how long, and at which rate."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Size:
    """Pages of `width` by `height` pixels, `batch` a step and rank, drawn in proportion to `weight`."""

    width: int
    height: int
    batch: int
    weight: float


@dataclass(frozen=True)
class Phase:
    """`minutes` of wall time; the rate is constant, then falls to zero over the last share `decay` of the time.

    half: what is trained: the vision tower alone, the language model alone on oracle tokens, or both together.
    """

    name: str
    sizes: tuple[Size, ...]
    minutes: float
    half: Literal["vision", "oracle", "both"] = "both"
    rate: float = 2e-3
    decay: float = 0.0
    dense: float = 1.0  # weights of the auxiliary losses
    pointer: float = 0.3


_TINY = (Size(192, 96, 10, 3), Size(256, 64, 10, 3), Size(128, 128, 10, 2), Size(320, 160, 4, 2))
_SMALL = (
    Size(192, 64, 8, 2),
    Size(256, 96, 4, 3),
    Size(128, 128, 5, 1),
    Size(256, 192, 2, 3),
    Size(320, 128, 3, 2),
    Size(512, 48, 4, 1),
    Size(320, 320, 1, 2),
)
_MIDDLE = (
    Size(208, 48, 8, 0.5),
    Size(256, 96, 4, 1),
    Size(576, 64, 3, 1.5),
    Size(256, 192, 2, 2),
    Size(320, 160, 2, 1),
    Size(320, 320, 1, 3),
    Size(384, 528, 1, 2),
    Size(448, 448, 1, 2),
    Size(640, 448, 1, 1),
)
_LARGE = (
    Size(208, 48, 8, 0.3),
    Size(256, 96, 4, 0.5),
    Size(576, 64, 3, 0.8),
    Size(800, 80, 2, 0.6),
    Size(320, 192, 2, 1.2),
    Size(448, 320, 1, 2),
    Size(448, 448, 1, 1.5),
    Size(384, 528, 1, 1.5),
    Size(640, 448, 1, 1.0),
    Size(512, 704, 1, 1.0),
    Size(640, 640, 1, 0.5),
    Size(640, 896, 1, 0.6),
    Size(832, 1184, 1, 0.1),
)

# Minutes of two cores of one's own; about four hours.
VISION = Phase("vision", _TINY, minutes=60, half="vision", decay=0.5)
ORACLE = Phase("oracle", _SMALL, minutes=40, half="oracle", rate=1e-3, decay=0.4, pointer=1.0)
JOINT = (
    Phase("joint-small", _SMALL, minutes=40, rate=1e-3),
    Phase("joint-middle", _MIDDLE, minutes=50, rate=1e-3),
    Phase("joint-large", _LARGE, minutes=90, rate=5e-4, decay=1.0),
)
PHASES = {phase.name: phase for phase in (VISION, ORACLE, *JOINT)}
