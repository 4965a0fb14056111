"""Image files through Pillow: upright RGB pages of bounded size, whatever the file's colour mode."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from hsdkit.errors import DocumentError
from hsdkit.page_image import PageImage, bounded_scale

#: Most pixels that are ever decoded (A4 at 1,000 dpi); a larger image may be a decompression bomb.
MAX_DECODED = 100_000_000

_TURNS = {90: Image.Transpose.ROTATE_270, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_90}


class ImageFile:
    """An open PNG, JPEG, WebP, BMP or TIFF; the frames of a TIFF are its pages."""

    def __init__(self, path: Path, rotate: int, max_pixels: int) -> None:
        self._path = path
        self._rotate = rotate
        self._max_pixels = max_pixels
        try:
            self._image = _open(path)
            # Animations and the preview pictures of cameras are not pages.
            self.count = getattr(self._image, "n_frames", 1) if self._image.format == "TIFF" else 1
        except UnidentifiedImageError as e:
            raise DocumentError("is neither a PDF nor an image that can be read (PNG, JPEG, TIFF, WebP, BMP)") from e
        except Image.DecompressionBombError as e:
            raise DocumentError(f"the image is too large to decode safely, scale it down first: {e}") from e
        except Exception as e:  # Pillow's decoders raise many kinds on a damaged header
            raise DocumentError(f"is a damaged image: {_cause(e)}") from e

    def page(self, index: int) -> PageImage:
        try:
            # A single image is opened anew, so that its pixels go when the page goes; a TIFF holds one frame at a time.
            image = self._image if self.count > 1 else _open(self._path)
            image.seek(index)
            width, height = image.size
            if width * height > MAX_DECODED:
                raise DocumentError(
                    f"an image of {width} x {height} pixels is too large to decode safely "
                    f"(limit {MAX_DECODED // 1_000_000} megapixels): scale it down first"
                )
            dpi = _dpi(image)
            scale = bounded_scale(width, height, 1.0, self._max_pixels)
            size = max(1, math.floor(width * scale)), max(1, math.floor(height * scale))
            if scale < 1:
                image.draft("RGB", size)  # a JPEG decodes at a fraction of its size for free
            rgb = to_rgb(image)
            rgb.getexif()[ExifTags.Base.Orientation] = image.getexif().get(ExifTags.Base.Orientation, 1)
            rgb = ImageOps.exif_transpose(rgb)
        except DocumentError:
            raise
        except Exception as e:
            raise DocumentError(f"cannot be decoded: {_cause(e)}") from e
        notes: tuple[str, ...] = ()
        if scale < 1:
            turned = (rgb.width > rgb.height) != (width > height)
            rgb = rgb.resize(size[::-1] if turned else size, Image.Resampling.LANCZOS)
            notes = (f"scaled down from {width} x {height} to {rgb.width} x {rgb.height} pixels (max_pixels)",)
        if self._rotate:
            rgb = turned_by(rgb, self._rotate)
        return PageImage(rgb, dpi * scale, notes)

    def close(self) -> None:
        self._image.close()


def turned_by(image: Image.Image, degrees: int) -> Image.Image:
    """The image turned clockwise by 90, 180 or 270 degrees."""
    return image.transpose(_TURNS[degrees])


def _open(path: Path) -> Image.Image:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # `page` judges each frame before decoding
        return Image.open(path)


def to_rgb(image: Image.Image) -> Image.Image:
    """8-bit RGB with transparency on white; 16-bit and float samples are scaled to the range they use."""
    image.load()
    if image.mode.startswith(("I", "F")):
        return _scaled(image).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        result = Image.new("RGB", image.size, "white")
        result.paste(rgba, mask=rgba.getchannel("A"))
        return result
    return image.convert("RGB")


def _scaled(image: Image.Image) -> Image.Image:
    samples = np.nan_to_num(np.asarray(image, dtype=np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    top = float(samples.max(initial=0.0))
    # Scanners write 10, 12 or 14 bits into 16: the next power of two is the white point.
    limit = 2.0 ** max(8, math.ceil(math.log2(top + 1))) - 1
    if image.mode.startswith("F") and top <= 1:
        limit = 1.0
    return Image.fromarray(np.clip(samples * (255.0 / limit), 0, 255).astype(np.uint8))


def _dpi(image: Image.Image) -> float:
    try:
        dpi = float(image.info.get("dpi", (0, 0))[0])
    except (TypeError, ValueError, ZeroDivisionError, IndexError):
        return 0.0
    return dpi if 1 < dpi <= 4800 else 0.0


def _cause(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
