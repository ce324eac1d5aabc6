"""A dataset as a netCDF-4 file, written with h5py.

What is written is what xarray writes through h5netcdf: the same objects, types and attributes, which a test compares.
h5netcdf looks every dimension up again and again, 67 ms for the average result; this takes 7. A run writes hundreds
of results while programs are traced in the same interpreter. What h5netcdf is needed for (other types than numbers and
text) is left to it.

A netCDF dimension is an HDF5 dimension scale: a dataset that the axes of others are attached to. Those of dimensions
without labels hold nothing.
"""

from __future__ import annotations

import functools
import itertools
from importlib.metadata import version
from typing import Any

import h5py
import numpy as np
import xarray as xr
from xarray import conventions

UNLABELLED = "This is a netCDF dimension but not a netCDF variable.{:10d}"
TEXT = h5py.string_dtype("utf-8")
_NUMBERS = itertools.count()


def is_plain(data: xr.Dataset) -> bool:
    """Whether a dataset has only numbers and text, in its variables and its attributes, and none of them is empty."""
    variables = list(data.variables.values())
    attributes = [value for own in (data.attrs, *(one.attrs for one in variables)) for value in own.values()]
    plain = all(variable.dtype.kind in "fiuU" and variable.size for variable in variables)
    return plain and all(isinstance(value, str | int | float | np.integer | np.floating) for value in attributes)


def written(data: xr.Dataset) -> bytes:
    """A plain dataset as the bytes of a netCDF-4 file."""
    variables, attributes = conventions.encode_dataset_coordinates(data.drop_encoding())
    name = f"{next(_NUMBERS)}.nc"  # two threads may not have files of one name, although none is on a disk
    with h5py.File(name, "w", driver="core", backing_store=False, track_order=True) as file:
        for key, value in attributes.items():
            _attribute(file, key, value)
        file.attrs["_NCProperties"] = _properties()
        sizes = {dim: size for variable in variables.values() for dim, size in variable.sizes.items()}
        numbers = {dim: number for number, dim in enumerate(sizes)}
        made = {dim: _unlabelled(file, str(dim), size) for dim, size in sizes.items() if dim not in variables}
        made |= {name: _variable(file, str(name), variable) for name, variable in variables.items()}
        for dim, number in numbers.items():
            if dim in variables:
                made[dim].make_scale(str(dim))
            made[dim].attrs["_Netcdf4Dimid"] = np.int32(number)
        for name, variable in variables.items():
            if variable.ndim:
                made[name].attrs["_Netcdf4Coordinates"] = np.array([numbers[dim] for dim in variable.dims], np.int32)
            if variable.ndim and name not in numbers:
                made[name].attrs["_Netcdf4Dimid"] = np.int32(numbers[variable.dims[0]])
                for axis, dim in enumerate(variable.dims):
                    made[name].dims[axis].attach_scale(made[dim])
        file.flush()
        return bytes(file.id.get_file_image())


@functools.cache
def _properties() -> np.bytes_:
    """What wrote the file."""
    made = {"iclab": version("iclab"), "hdf5": h5py.version.hdf5_version, "h5py": h5py.__version__}
    return np.bytes_(",".join(["version=2", *(f"{name}={value}" for name, value in made.items())]))


def _unlabelled(file: h5py.File, dim: str, size: int) -> h5py.Dataset:
    """A dimension without labels."""
    made = file.create_dataset(dim, (size,), ">f4", track_order=True)
    made.make_scale(UNLABELLED.format(size))
    return made


def _variable(file: h5py.File, name: str, variable: xr.Variable) -> h5py.Dataset:
    """A variable with its values and attributes; a number that is missing is NaN."""
    values, fill = variable.values, None
    if values.dtype.kind == "U":
        made = file.create_dataset(name, values.shape, TEXT, data=values.astype(object), track_order=True)
    else:
        fill = np.array([np.nan], values.dtype) if values.dtype.kind == "f" else None
        fillvalue = None if fill is None else fill[0]
        made = file.create_dataset(name, data=values, fillvalue=fillvalue, track_order=True)
    if fill is not None and "_FillValue" not in variable.attrs:
        made.attrs["_FillValue"] = fill
    for key, value in variable.attrs.items():
        _attribute(made, key, value)
    return made


def _attribute(there: Any, name: Any, value: Any) -> None:
    """Numbers are lists of one, as netCDF has them."""
    there.attrs[str(name)] = value if isinstance(value, str) else np.atleast_1d(value)
