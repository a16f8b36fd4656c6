"""Files need at most as much memory as they have bytes."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from agents import config as config_lib
from agents.training.faults import crash_folder
from agents.training.run_folder import array_file, checkpoint


def _write(path, shape, dtype, data=b""):
  """Writes an array with a header that need not describe its data."""
  header = io.BytesIO()
  description = {"shape": shape, "fortran_order": False, "descr": dtype}
  np.lib.format.write_array_header_1_0(header, description)
  with zipfile.ZipFile(path, "w") as archive:
    archive.writestr("x.npy", header.getvalue() + data)


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
def test_arrays_are_read_unchanged(tmp_path):
  arrays = {
    "float": np.arange(6.0).reshape(2, 3),
    "fortran": np.asfortranarray(np.ones((2, 3), np.float32)),
    "bool": np.array([True]),
    "byte": np.array(3, np.uint8),
    "text": np.array("facts"),
    "empty": np.zeros((0, 4), np.int64),
    "no text": np.zeros(3, "U0"),
    "fields": np.array([(1, (2.0, 3.0))], [("a", np.int64), ("b\u03b2", np.float32, 2)]),
  }
  np.savez(tmp_path / "x.npz", **arrays)
  loaded = array_file.read(tmp_path / "x.npz")
  assert loaded.keys() == arrays.keys()
  for name, array in arrays.items():
    assert (loaded[name].dtype, loaded[name].shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(loaded[name], array)


def test_arrays_with_hundreds_of_fields_are_read_unchanged(tmp_path):
  fields = [(f"sensor_{index:03d}", np.float32, (1,)) for index in range(1_000)]
  np.savez(tmp_path / "x.npz", x=np.ones(2, fields))
  np.testing.assert_array_equal(
    array_file.read(tmp_path / "x.npz")["x"], np.ones(2, fields), strict=True
  )


@pytest.mark.parametrize(
  "shape, dtype, data",
  [
    ((10**12,), "<f8", b""),  # Memory is allocated before the data is read.
    ((10**12, 0), "<f8", b""),
    ((10**12,), "<U0", b""),
    ((10**12,), "|V0", b""),
    ((1,), "|O", bytes(8)),
    ((1,), [("a", "|O")], bytes(8)),
    ((2,), [("a", "<f8")], bytes(8)),
    ((1,), "<f8", bytes(16)),
  ],
)
def test_header_that_does_not_fit_its_data_is_rejected(shape, dtype, data, tmp_path):
  _write(tmp_path / "x.npz", shape, dtype, data)
  with pytest.raises(ValueError, match="does not fit|not supported"):
    array_file.read(tmp_path / "x.npz")


def test_arrays_that_share_their_bytes_are_rejected(tmp_path):
  _write(tmp_path / "x.npz", (10_000,), "<f8", bytes(80_000))
  data = bytearray((tmp_path / "x.npz").read_bytes())
  # Repeats the entry of the only array in the directory at the end of the file.
  start, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
  entry, tail = data[start:end], data[end:]
  tail[8:12] = (100).to_bytes(2, "little") * 2
  tail[12:16] = (100 * len(entry)).to_bytes(4, "little")
  (tmp_path / "x.npz").write_bytes(data[:start] + 100 * entry + tail)
  with pytest.raises(ValueError, match="larger than the file"):
    array_file.read(tmp_path / "x.npz")


def test_compressed_arrays_of_run_folders_are_rejected_before_they_inflate(tmp_path):
  path = tmp_path / "checkpoint-000000000001.npz"
  np.savez_compressed(path, facts="{}", x=np.zeros(2**25, np.uint8))
  (tmp_path / "about.txt").write_text("failed")
  (tmp_path / "config.yaml").write_text(config_lib.dump(config_lib.Config()))
  path.with_name("episodes.npz").write_bytes(path.read_bytes())
  tracemalloc.start()
  with pytest.raises(checkpoint.CheckpointError, match="its arrays are larger than the file"):
    checkpoint.load(path)
  with pytest.raises(config_lib.ConfigError, match="its arrays are larger than the file"):
    crash_folder.load(tmp_path)
  _, peak = tracemalloc.get_traced_memory()
  tracemalloc.stop()
  assert peak < 2**23
