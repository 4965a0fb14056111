"""Target `rolmocr`: RolmOCR, a Qwen2.5-VL that was trained to read documents."""

from hsdkit_plugins.targets.profile import Profile, profile_component

from hsdkit import hookimpl

HSDKIT_HOOKSPEC = 1

ROLMOCR = Profile(
    name="rolmocr",
    summary="RolmOCR (7B), plain text in reading order",
    model="reducto/RolmOCR",
    model_types=frozenset({"qwen2_5_vl"}),
    page="Return the plain text representation of this document as if you were reading it naturally.\n",
)


@hookimpl
def hsdkit_components():
    yield profile_component(ROLMOCR)
