"""Bodies of requests as rows: by media type, for a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from thresher.data import bodies
from thresher.data.errors import DataError
from thresher.data.labels import WordTable, give_back
from thresher.learning.model.prediction import BasePredictor, body_reader, label_reader
from thresher.options.option import UsageError
from thresher.serving.errors import RefusedError
from thresher.serving.openapi import JSON, MEDIA

_ANY = ("", "text/plain", "application/octet-stream", "application/x-www-form-urlencoded")
"""Media types that say nothing, the last of them curl's: the format is that of the training data"""


class Bodies:
    """Reads bodies for a model. Threads may use it at once."""

    def __init__(self, model: BasePredictor, most_rows: int, words: WordTable | None = None) -> None:
        """`most_rows` is the largest number of rows in a body; labels may add to `words`."""
        self._model, self._loaded, self._late = model, set[str](), label_reader(model, most_rows, words)
        self._readers, self._refused = dict[str, bodies.BodyReader](), dict[str, str]()
        for form in {*MEDIA.values()}:
            try:
                self._readers[form] = body_reader(model, form, most_rows, words)
            except (DataError, UsageError) as error:
                self._refused[form] = error.args[0]
        self._usual = model.layout.format if model.layout is not None else ""
        if self._usual not in self._readers:
            self._usual = next((form for form in ("svmlight", "jsonl") if form in self._readers), "")

    @property
    def media(self) -> list[str]:
        """The media types that can be read."""
        return [media for media, form in MEDIA.items() if form in self._readers]

    def examples(self) -> list[tuple[bytes, str]]:
        """Bodies with their media types that compile what most bodies need."""
        usual = self._readers.get(self._usual)
        wanted = [(usual, "")] if usual else []
        if usual and usual.layout.columns:
            wanted = [(self._readers["jsonl"], JSON), *(wanted if usual.layout.delimited_by else [])]
        return [(body, media) for reader, media in wanted if (body := reader.example())]

    def read(self, body: bytes, media: str, *, labelled: bool, ids: str = "") -> bodies.Rows:
        """The rows of a body. Labels are checked if they are `labelled`, and ignored otherwise.

        `ids` is the column (in VW text ``tag``) that identifies rows. `DataError`, `RefusedError`.
        """
        form = self._form(media, body)
        rows = self._read(self._readers[form], body, labelled, ids)
        self._loaded.add(form)
        return rows

    def read_labels(self, body: bytes) -> bodies.Rows:
        """Late labels in lines of JSON: ids, labels and importances. `DataError`, `RefusedError`."""
        if self._model.head.outputs.kind in ("labels", "values"):
            raise RefusedError(409, "labels can come late only if a row has one, and here it has several")
        rows = self._read(self._late, body, True, "id")
        wrong = [f"line {one.line}: {one.error}" for one in rows.bad]
        if wrong := wrong or [f"unknown field {name}" for name in rows.unknown]:
            label = json.dumps(give_back(self._model.classes).tolist()[0]) if self._model.classes else "1"
            raise RefusedError(400, f'{wrong[0]}; expected lines such as {{"id": "a", "label": {label}}}')
        return rows

    def read_labels_together(self, given: Sequence[bytes]) -> list[bodies.Rows] | None:
        """The late labels of each body, all parsed at once; None if they must be read one by one."""
        try:
            found = self._late.read_together(given, True, "id")
        except DataError:
            return None
        wrong = self._model.head.outputs.kind in ("labels", "values") or found is None or found[0].unknown
        return None if wrong or any(one.bad for one in found or ()) else found

    def _read(self, reader: bodies.BodyReader, body: bytes, labelled: bool, ids: str) -> bodies.Rows:
        try:
            return reader.read(body, labelled, ids)
        except bodies.BinaryError as error:
            raise RefusedError(415, f"{error.args[0]}; send {', '.join(self.media)}") from None

    def is_loaded(self, media: str) -> bool:
        """Whether bodies of this kind have been read before; the first may take seconds, to compile."""
        try:
            return self._form(media) in self._loaded
        except RefusedError:
            return True

    def read_together(
        self, given: Sequence[bytes], media: str, *, labelled: bool = False, ids: str = ""
    ) -> list[bodies.Rows] | None:
        """The rows of each body, all parsed at once; None if they must be read one by one."""
        try:
            return self._readers[self._form(media, given[0])].read_together(given, labelled, ids)
        except (RefusedError, DataError):
            return None

    def names(self, body: bytes, media: str, keys: NDArray[np.uint64]) -> Mapping[int, str]:
        """The names that features have in a body whose rows were read; `keys` may have any order."""
        return self._readers[self._form(media, body)].names(body, keys)

    def _form(self, media: str, body: bytes = b"") -> str:
        """The format of a media type; if that says nothing, of a body that begins like JSON."""
        kind = media.partition(";")[0].strip().lower()
        form = self._usual if kind in _ANY else MEDIA.get(kind, "")
        form = "jsonl" if kind in _ANY and "jsonl" in self._readers and body[:1] in (b"{", b"[") else form
        if form in self._readers:
            return form
        why = self._refused.get(form, f"rows cannot be read from {kind or 'this model'}")
        raise RefusedError(415, f"{why}; send {', '.join(self.media) or 'rows to another model'}")
