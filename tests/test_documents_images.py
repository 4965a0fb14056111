"""Image files as pages: every mode ends up as upright RGB of bounded size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hsdkit import image_file
from hsdkit.documents import open_document
from hsdkit.errors import DocumentError


def only_page(path: Path, **options):
    with open_document(path, **options) as document:
        (page,) = document
    return page


def half(mode: str = "L", size: tuple[int, int] = (40, 20)) -> Image.Image:
    """Left half dark, right half white."""
    image = Image.new("L", size, 255)
    image.paste(0, (0, 0, size[0] // 2, size[1]))
    return image.convert(mode)


def left_and_right(page) -> tuple[int, int]:
    pixels = np.asarray(page.image)
    return int(pixels[:, 2].mean()), int(pixels[:, -3].mean())


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".webp", ".bmp"])
@pytest.mark.parametrize("mode", ["L", "RGB", "1", "P", "CMYK", "LA", "RGBA"])
def test_formats_and_modes(tmp_path: Path, suffix: str, mode: str):
    path = tmp_path / f"a{suffix}"
    try:
        half(mode).save(path)
    except (OSError, KeyError, ValueError):
        pytest.skip(f"Pillow does not write {mode} as {suffix}")
    page = only_page(path)
    assert (page.image.mode, page.width, page.height, page.text_layer) == ("RGB", 40, 20, None)
    dark, light = left_and_right(page)
    assert dark < 40
    assert light > 215


def test_transparent_is_white(tmp_path: Path):
    image = Image.new("RGBA", (40, 20), (0, 0, 0, 0))
    image.paste((0, 0, 0, 255), (0, 0, 20, 20))
    image.save(tmp_path / "a.png")
    assert left_and_right(only_page(tmp_path / "a.png")) == (0, 255)
    palette = half("P")
    palette.save(tmp_path / "p.png", transparency=palette.getpixel((1, 1)))
    assert left_and_right(only_page(tmp_path / "p.png")) == (255, 255)


@pytest.mark.parametrize("top", [65535, 4095])
def test_sixteen_bits_are_scaled_not_cut(tmp_path: Path, top: int):
    samples = np.zeros((20, 40), np.uint16)
    samples[:, 20:] = top
    samples[:, 10:20] = top // 2
    Image.fromarray(samples).save(tmp_path / "a.tif")
    page = only_page(tmp_path / "a.tif")
    assert left_and_right(page) == (0, 255)
    assert np.asarray(page.image)[0, 15, 0] == pytest.approx(127, abs=1)


@pytest.mark.parametrize("suffix", [".jpg", ".tif", ".png"])
@pytest.mark.parametrize(
    ("orientation", "size", "dark"), [(1, (40, 20), "left"), (6, (20, 40), "top"), (3, (40, 20), "right")]
)
def test_exif_orientation(tmp_path: Path, suffix: str, orientation: int, size: tuple[int, int], dark: str):
    exif = Image.Exif()
    exif[0x0112] = orientation
    half("RGB").save(tmp_path / f"a{suffix}", exif=exif)
    page = only_page(tmp_path / f"a{suffix}")
    assert (page.width, page.height) == size
    pixels = np.asarray(page.image)
    spot = {"left": pixels[10, 2], "right": pixels[10, -3], "top": pixels[2, 10]}[dark]
    assert spot.mean() < 40


def test_a_tiff_has_as_many_pages_as_frames(tmp_path: Path):
    frames = [Image.new("L", (30 + 10 * k, 20), 60 * k) for k in range(4)]
    frames[0].save(tmp_path / "a.tif", save_all=True, append_images=frames[1:], dpi=(200, 200))
    with open_document(tmp_path / "a.tif", pages="2-") as document:
        pages = list(document)
        again = document.page(2)
    assert [(p.number, p.width, int(np.asarray(p.image)[0, 0, 0])) for p in pages] == [
        (2, 40, 60),
        (3, 50, 120),
        (4, 60, 180),
    ]
    assert pages[0].dpi == 200
    assert again.width == 40


def test_an_animation_is_one_page(tmp_path: Path):
    half("RGB").save(tmp_path / "a.webp", save_all=True, append_images=[half("RGB")])
    assert only_page(tmp_path / "a.webp").number == 1


@pytest.mark.parametrize(("rotate", "size"), [(90, (20, 40)), (180, (40, 20)), (270, (20, 40))])
def test_rotation_is_clockwise(tmp_path: Path, rotate: int, size: tuple[int, int]):
    half("RGB").save(tmp_path / "a.png")
    page = only_page(tmp_path / "a.png", rotate=rotate)
    assert (page.width, page.height) == size
    pixels = np.asarray(page.image)
    dark = {90: pixels[2, 10], 180: pixels[10, -3], 270: pixels[-3, 10]}[rotate]
    assert dark.mean() == 0


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_large_images_are_scaled_down_and_say_so(tmp_path: Path, suffix: str):
    half("RGB", (400, 200)).save(tmp_path / f"a{suffix}", dpi=(300, 300))
    page = only_page(tmp_path / f"a{suffix}", max_pixels=20_000)
    assert page.width * page.height <= 20_000
    assert page.width / page.height == pytest.approx(2, rel=0.02)
    assert page.dpi == pytest.approx(150, rel=0.01)
    assert page.notes == (f"scaled down from 400 x 200 to {page.width} x {page.height} pixels (max_pixels)",)


def test_a_decompression_bomb_is_refused_before_it_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(image_file, "MAX_DECODED", 500)
    half().save(tmp_path / "a.png")
    with (
        open_document(tmp_path / "a.png") as document,
        pytest.raises(DocumentError, match=r"a\.png, page 1: .*too large"),
    ):
        document.page(1)


def test_an_enormous_header_is_refused_on_opening(tmp_path: Path):
    half().save(tmp_path / "a.bmp")
    content = bytearray((tmp_path / "a.bmp").read_bytes())
    content[18:26] = (60_000).to_bytes(4, "little") * 2
    (tmp_path / "a.bmp").write_bytes(content)
    with pytest.raises(DocumentError, match=r"a\.bmp: the image is too large"):
        open_document(tmp_path / "a.bmp")


def test_a_truncated_image_names_the_page(tmp_path: Path):
    Image.effect_noise((200, 200), 90).save(tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(content[: len(content) // 2])
    with (
        open_document(tmp_path / "a.png") as document,
        pytest.raises(DocumentError, match=r"a\.png, page 1: cannot be decoded"),
    ):
        document.page(1)
