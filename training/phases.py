"""The curriculum: what each phase trains on, for how long, and at which rate."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """Pages of `width` by `height` pixels, `batch` a step and rank, drawn in proportion to `weight`."""

    width: int
    height: int
    batch: int
    weight: float


@dataclass(frozen=True)
class Phase:
    """`minutes` of wall time; the rate is constant, then falls to zero over the last share `decay` of the time."""

    name: str
    sizes: tuple[Size, ...]
    minutes: float
    rate: float = 2e-3
    decay: float = 0.0
    dense: float = 1.0  # weights of the auxiliary losses
    pointer: float = 0.3


_TINY = (Size(192, 96, 10, 3), Size(256, 64, 10, 3), Size(128, 128, 10, 2), Size(320, 160, 4, 2))
_SMALL = (
    Size(192, 64, 12, 2),
    Size(256, 96, 6, 3),
    Size(128, 128, 8, 1),
    Size(256, 192, 3, 3),
    Size(320, 128, 4, 2),
    Size(512, 48, 6, 1),
    Size(320, 320, 2, 2),
)
_MIDDLE = (
    Size(256, 192, 3, 2),
    Size(320, 320, 2, 3),
    Size(448, 256, 1, 2),
    Size(320, 448, 1, 2),
    Size(448, 448, 1, 1),
    Size(640, 64, 4, 1),
    Size(512, 128, 2, 1),
    Size(208, 80, 8, 1),
    Size(448, 640, 1, 1),
)
_LARGE = (
    Size(320, 320, 2, 2),
    Size(448, 448, 1, 2),
    Size(448, 640, 1, 2),
    Size(640, 448, 1, 2),
    Size(640, 896, 1, 2),
    Size(576, 64, 4, 1),
    Size(640, 160, 1, 1),
    Size(288, 176, 3, 1),
    Size(208, 48, 8, 1),
)

VISION = Phase("vision", _TINY, minutes=12, decay=0.1)
ORACLE = Phase("oracle", _SMALL, minutes=12, decay=0.1, dense=0.3, pointer=1.0)
JOINT = (
    Phase("joint-small", _SMALL, minutes=15),
    Phase("joint-middle", _MIDDLE, minutes=30),
    Phase("joint-large", _LARGE, minutes=45, decay=0.7, dense=0.5),
)
PHASES = {phase.name: phase for phase in (VISION, ORACLE, *JOINT)}
