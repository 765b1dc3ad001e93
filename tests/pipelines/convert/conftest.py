"""Records to convert."""

from __future__ import annotations

import pytest

from gristmill.documents.records import Draft, Locator, Loss, Record
from gristmill.pipelines.readers import ReadAccount, plan_extents, read_extent


def record(text=None, *, body=None, span=10, inner=0, **more) -> Record:
    """A record with a locator of its own."""
    return Record(locator=Locator("f", 0, inner, span), text=text, body=body, **more)


def html(source: str | bytes, **more) -> Record:
    """A page."""
    body = source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")
    return record(body=body, media_type="text/html", **more)


class Build:
    """What the tests build with."""

    record = staticmethod(record)
    html = staticmethod(html)

    @staticmethod
    def draft(converter, item) -> Draft:
        """The one document of one record."""
        (out,) = converter(iter([item]))
        assert isinstance(out, Draft), out
        return out

    @staticmethod
    def loss(converter, item) -> Loss:
        """The one loss of one record, with the record's locator."""
        (out,) = converter(iter([item]))
        assert isinstance(out, Loss), out
        assert out.locator == item.locator
        return out


@pytest.fixture
def build() -> Build:
    return Build()


@pytest.fixture
def real_rows(real_data):
    """A function: what the reader gives of real files, rows that have no text among them."""

    def read(*patterns, account=None):
        account = account or ReadAccount()
        return [
            item
            for shard in plan_extents(real_data, patterns)
            for extent in shard
            for item in read_extent(real_data, extent, account, text_field=None)
        ]

    return read
