"""Docling in its own environment (or in process): a one-page PDF or PNG into the JSON of its `DoclingDocument`.

Run by hsdkit/workers/serve.py; imports nothing of hsdkit, and docling only when loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def version() -> str:
    from importlib.metadata import version

    return version("docling")


def load(options: dict[str, Any]) -> Callable[[str], Any]:
    """`options`: pipeline (`standard` or `native`), artifacts_path ("" for docling's own cache), ocr, formulas, threads
    (0: docling's default). Models are loaded here, so that missing weights show at once."""
    from docling.datamodel.base_models import ConversionStatus, InputFormat
    from docling.document_converter import DocumentConverter

    converter = DocumentConverter(
        allowed_formats=[InputFormat.PDF, InputFormat.IMAGE],
        format_options=_native() if options["pipeline"] == "native" else _standard(options),
    )
    converter.initialize_pipeline(InputFormat.PDF)

    def read(path: str) -> Any:
        if options["pipeline"] == "native" and not path.endswith(".pdf"):
            raise ValueError("the native pipeline reads PDFs only")
        result = converter.convert(path, raises_on_error=True)
        if result.status not in (ConversionStatus.SUCCESS, ConversionStatus.PARTIAL_SUCCESS):
            raise RuntimeError("; ".join(e.error_message for e in result.errors) or f"status {result.status.value}")
        return result.document.export_to_dict()

    return read


def _native() -> dict[Any, Any]:
    """Text cells of the PDF as they are: no models."""
    from docling.datamodel.base_models import InputFormat
    from docling.datamodel.pipeline_options import NativePdfPipelineOptions
    from docling.document_converter import PdfFormatOption
    from docling.pipeline.native_pdf_pipeline import NativePdfPipeline
    from docling_core.types.doc.page import TextCellUnit

    options = NativePdfPipelineOptions(
        text_cell_unit=TextCellUnit.WORD, generate_page_images=False, generate_picture_images=False
    )
    return {InputFormat.PDF: PdfFormatOption(pipeline_cls=NativePdfPipeline, pipeline_options=options)}


def _standard(options: dict[str, Any]) -> dict[Any, Any]:
    """Layout, tables and OCR models, the same for PDFs and images."""
    from docling.datamodel.accelerator_options import AcceleratorOptions
    from docling.datamodel.base_models import InputFormat
    from docling.datamodel.pipeline_options import PdfPipelineOptions
    from docling.document_converter import ImageFormatOption, PdfFormatOption

    chosen = PdfPipelineOptions(do_ocr=options["ocr"], do_formula_enrichment=options["formulas"])
    if options["artifacts_path"]:
        chosen.artifacts_path = options["artifacts_path"]
    if options["threads"]:
        chosen.accelerator_options = AcceleratorOptions(num_threads=options["threads"])
    return {
        InputFormat.PDF: PdfFormatOption(pipeline_options=chosen),
        InputFormat.IMAGE: ImageFormatOption(pipeline_options=chosen),
    }
