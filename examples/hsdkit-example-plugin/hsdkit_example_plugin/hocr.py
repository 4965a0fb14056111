"""Drafter `hocr`: what an OCR program wrote beside the document, `letter.hocr` for `letter.png`."""

import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from hsdkit import Box, Component, Draft, DrafterError, Label, Region, hookimpl

HSDKIT_HOOKSPEC = 1


@dataclass(frozen=True)
class HocrConfig:
    """folder: where the .hocr files are."""

    folder: str = "."


class Hocr:
    name = "hocr"

    def __init__(self, config):
        self.folder = Path(config.folder)

    def draft(self, page):
        path = self.folder / f"{Path(page.source).stem}.hocr"
        try:
            scans = [e for e in ElementTree.parse(path).iter() if e.get("class") == "ocr_page"]
            scan = scans[page.number - 1]
        except (OSError, ElementTree.ParseError, IndexError) as e:
            raise DrafterError(f"{path} has no text for page {page.number}: {e}") from e
        _, _, width, height = numbers(scan)
        x, y = page.width / width, page.height / height
        paragraphs = [e for e in scan.iter() if e.get("class") == "ocr_par"]
        return Draft(tuple(region(p, x, y) for p in paragraphs), self.name)


def numbers(element):
    return [int(n) for n in re.findall(r"bbox (\d+) (\d+) (\d+) (\d+)", element.get("title"))[0]]


def region(paragraph, x, y):
    x0, y0, x1, y1 = numbers(paragraph)
    text = " ".join("".join(paragraph.itertext()).split())
    return Region(Box(x0 * x, y0 * y, x1 * x, y1 * y), Label.TEXT, text)


@hookimpl
def hsdkit_components():
    yield Component("drafter", "hocr", "hOCR files beside the documents", HocrConfig, Hocr)
