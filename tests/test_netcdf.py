"""Results are written as xarray would write them through h5netcdf, and read by it."""

import concurrent.futures
import io

import h5py
import numpy as np
import pytest
import xarray as xr

from iclab.runs import netcdf
from iclab.runs.contents import from_bytes, to_bytes


def result(**variables):
    """Labelled and unlabelled dimensions, text, labels beside the dimensions, numbers of all kinds, attributes."""
    one = xr.Dataset(
        {
            "error": (("seed", "step"), np.array([[0.5, np.nan, 0.1], [-0.0, np.inf, 1e-300]])),
            "half": (("step",), np.array([1, 2, 3], np.float32)),
            "count": (("seed", "place"), np.arange(10, dtype=np.int32).reshape(2, 5)),
            "total": ((), 3.5),
        },
        {"seed": [0, 1], "step": [0.0, 0.5, 1.0], "setting": "standard", "rule": ("step", ["flip", "κ_a'", ""])},
        {"seconds": 1.5, "members": 8, "blocks": "[[4, 3.6]]"},
    )
    one["error"].attrs = {"long_name": "0-1 error", "limit": 300.0}
    return one.assign(variables)


def objects(content):
    """All that is in an HDF5 file: shapes, types and attributes of every object, without what names the writer."""
    with h5py.File(io.BytesIO(content)) as file:
        named = {"": file} | dict(file.items())
        return list(file), {
            name: (
                getattr(there, "shape", None), str(getattr(there, "dtype", None)), str(getattr(there, "fillvalue", None)),
                {key: (str(there.attrs.get_id(key).dtype), there.attrs.get_id(key).shape, held(key, there.attrs[key]))
                 for key in sorted(there.attrs) if key != "_NCProperties"},
            )
            for name, there in named.items()
        }  # fmt: skip


def held(key, value):
    """An attribute's value; of references to other objects, how many there are."""
    return len(value) if key in ("DIMENSION_LIST", "REFERENCE_LIST") else str(value)


CASES = {
    "all kinds": result(),
    "one number": xr.Dataset({"error": 0.5}),
    "a dimension without labels": xr.Dataset({"error": (("prompt",), np.zeros(3))}),
    "text of two dimensions": result(word=(("seed", "step"), np.array([["a", "b", "c"], ["d", "e", "longer"]]))),
}


@pytest.mark.parametrize("data", CASES.values(), ids=CASES)
def test_the_file_has_the_objects_types_and_attributes_that_h5netcdf_writes(data):
    assert netcdf.is_plain(data)
    assert objects(to_bytes(data)) == objects(bytes(data.to_netcdf(engine="h5netcdf")))


@pytest.mark.parametrize("data", CASES.values(), ids=CASES)
def test_what_is_read_is_what_was_written_to_the_last_bit(data):
    read = from_bytes(to_bytes(data))
    xr.testing.assert_identical(read, data)
    for name, variable in data.variables.items():
        if variable.dtype.kind != "U":
            assert read[name].dtype == variable.dtype and read[name].values.tobytes() == variable.values.tobytes()


def test_the_same_result_is_the_same_file():
    assert to_bytes(result()) == to_bytes(result()) != to_bytes(result(total=3.6))


def test_threads_write_side_by_side():
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        files = list(threads.map(to_bytes, [result(total=float(n)) for n in range(40)]))
    assert [float(from_bytes(content)["total"]) for content in files] == list(range(40))


@pytest.mark.parametrize(
    "data",
    [xr.Dataset({"met": ("seed", [True, False])}), xr.Dataset({"none": ("seed", np.zeros(0))}),
     xr.Dataset({"error": 0.5}, attrs={"several": [1, 2]}), xr.Dataset({"time": ("seed", [1.0, 2.0], {"units": "s"})})],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_xarray(data):
    assert not netcdf.is_plain(data)
    read = from_bytes(to_bytes(data))
    xr.testing.assert_equal(read, data)
    assert all(read[name].dtype == data[name].dtype for name in data.variables)


@pytest.mark.parametrize("data", CASES.values(), ids=CASES)
def test_files_of_h5netcdf_are_read_as_xarray_reads_them(data):
    content = bytes(data.to_netcdf(engine="h5netcdf"))
    read, known = netcdf.read(content), xr.load_dataset(io.BytesIO(content), engine="h5netcdf")
    xr.testing.assert_identical(read, known)
    assert list(read.data_vars) == list(known.data_vars) and list(read.sizes) == list(known.sizes)


def test_a_slash_in_a_name_is_refused_as_before():
    with pytest.raises(ValueError, match="slashes"):
        to_bytes(xr.Dataset({"error/first": 0.5}))


def test_what_is_no_netcdf_file_is_an_error_as_before():
    for content in (b"", b"no file", to_bytes(result())[:500]):
        with pytest.raises((OSError, ValueError)):
            from_bytes(content)
