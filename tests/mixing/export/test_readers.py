"""What is written is read back by the projects that own the formats (make test-trainers)."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.mixing import TokenFeed
from gristmill.mixing.export import export

pytestmark = [pytest.mark.trainers, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", name="feed")
def feed_fixture(naive, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    return TokenFeed(naive("naive_mixing").make_plan(folder), folder / "tokens")


def windows(feed, to, out):
    """(folder, dtype, [window, ...]) of each stage, the windows from the feed."""
    content = export(feed, to, out)
    for stage, told in zip(feed.plan.stages, content["stages"], strict=True):
        places = range(stage.first, stage.first + stage.windows)
        ids = [feed[p]["input_ids"].tolist() for p in places]
        yield out / told["folder"], np.dtype(content["dtype"]), ids


def test_megatron_core_reads_every_window(feed, tmp_path):
    megatron = pytest.importorskip("megatron.core.datasets.indexed_dataset")
    for folder, _, expected in windows(feed, "megatron", tmp_path / "out"):
        dataset = megatron.IndexedDataset(str(folder / "tokens"))
        first = dataset.document_indices.tolist()
        assert len(first) == len(expected) + 1
        for k, window in enumerate(expected):
            pieces = [dataset[i].tolist() for i in range(first[k], first[k + 1])]
            assert [token for piece in pieces for token in piece] == window


def test_datatrove_reads_every_window(feed, tmp_path):
    datatrove = pytest.importorskip("datatrove.utils.dataset")
    for folder, dtype, expected in windows(feed, "ds", tmp_path / "out"):
        dataset = datatrove.DatatroveFileDataset(
            str(folder / "tokens.ds"), seq_len=len(expected[0]) - 1, token_size=dtype.itemsize
        )
        assert len(dataset) == len(expected)
        assert [dataset[i]["input_ids"].tolist() for i in range(len(expected))] == expected


def test_mosaicml_streaming_reads_every_window(feed, tmp_path):
    streaming = pytest.importorskip("streaming")
    for folder, _, expected in windows(feed, "mds", tmp_path / "out"):
        dataset = streaming.StreamingDataset(local=str(folder), batch_size=1, shuffle=False)
        assert [dataset[i]["input_ids"].tolist() for i in range(len(dataset))] == expected


def test_olmo_core_reads_every_window(feed, tmp_path):
    olmo = pytest.importorskip("olmo_core.data.numpy_dataset")
    for folder, dtype, expected in windows(feed, "npy", tmp_path / "out"):
        dataset = olmo.NumpyFSLDataset(
            str(folder / "tokens.npy"),
            sequence_length=len(expected[0]),
            pad_token_id=0,
            eos_token_id=0,
            vocab_size=1 << 16,
            dtype=dtype.type,
        )
        assert [dataset[i]["input_ids"].tolist() for i in range(len(dataset))] == expected
