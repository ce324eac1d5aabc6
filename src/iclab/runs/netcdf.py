"""A dataset as a netCDF-4 file, written and read with h5py.

What is written is what xarray writes through h5netcdf: the same objects, types and attributes, which a test compares.
h5netcdf looks every dimension up again and again: it writes the average result in 67 ms and reads it in 59, this module
in 7 and 8. A run writes hundreds of results while programs are traced in the same interpreter, and whoever opens a run
waits for all of them. What h5netcdf is needed for (other types than numbers and text) is left to it.

A netCDF dimension is an HDF5 dimension scale: a dataset that the axes of others are attached to. Those of dimensions
without labels hold nothing.
"""

from __future__ import annotations

import functools
import io
import itertools
from importlib.metadata import version
from typing import Any, NamedTuple

import h5py
import numpy as np
import xarray as xr
from xarray import conventions

UNLABELLED = "This is a netCDF dimension but not a netCDF variable.{:10d}"
TEXT = h5py.string_dtype("utf-8")
INTERNAL = frozenset(  # attributes of the format
    ("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties")
)
MEANT = frozenset(("_FillValue", "coordinates"))  # that xarray adds, and takes away when it reads
CODES = frozenset(("dtype", "scale_factor", "add_offset", "missing_value", "units", "calendar", "_Unsigned"))
CODED = INTERNAL | MEANT | CODES
_NUMBERS = itertools.count()


def is_plain(data: xr.Dataset) -> bool:
    """Whether a dataset has only numbers and text, in its variables and its attributes, none of them empty, under names
    that mean nothing else in a file.
    """
    variables = {str(name): variable for name, variable in data.variables.items()}
    attributes = [
        (str(key), value)
        for own in (data.attrs, *(one.attrs for one in variables.values()))
        for key, value in own.items()
    ]
    names = {*variables, *map(str, data.dims), *(key for key, _ in attributes)}
    return (
        all(variable.dtype.kind in "fiuU" and variable.size for variable in variables.values())
        and all(isinstance(value, str | int | float | np.integer | np.floating) for _, value in attributes)
        and not any(isinstance(value, bool) for _, value in attributes)
        and CODED.isdisjoint(names)
        and not any("/" in name for name in names)
    )


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
    if fill is not None:
        made.attrs["_FillValue"] = fill
    for key, value in variable.attrs.items():
        _attribute(made, key, value)
    return made


def _attribute(there: Any, name: Any, value: Any) -> None:
    """Numbers are lists of one, as netCDF has them."""
    there.attrs[str(name)] = value if isinstance(value, str) else np.atleast_1d(value)


def read(content: bytes) -> xr.Dataset | None:
    """The dataset of a plain file, with its values in memory; None if there is more to it."""
    with h5py.File(io.BytesIO(content)) as file:
        if "_NCProperties" not in file.attrs:
            return None
        found = {name: _Found(there, _attributes(there)) for name, there in file.items()}
        if not all(one.is_plain() for one in found.values()):
            return None
        dims = {int(one.attrs["_Netcdf4Dimid"]): name for name, one in found.items() if "CLASS" in one.attrs}
        attributes = {name: _value(value) for name, value in file.attrs.items() if name != "_NCProperties"}
        beside = str(attributes.pop("coordinates", "")).split()
        variables: dict[str, xr.Variable] = {}
        for name, one in found.items():
            if _value(one.attrs.get("NAME", "")).startswith(UNLABELLED[:20]):
                continue
            beside += str(one.attrs.get("coordinates", "")).split()
            numbers = one.attrs.get("_Netcdf4Coordinates", ())
            own = {key: _value(value) for key, value in one.attrs.items() if key not in INTERNAL | MEANT}
            variables[name] = xr.Variable([dims[int(number)] for number in numbers], one.values(), own)
    labels = {name: variables.pop(name) for name in list(variables) if name in beside or name in variables[name].dims}
    return xr.Dataset(variables, labels, attributes)


class _Found(NamedTuple):
    """An object of a file."""

    there: h5py.Dataset
    attrs: dict[str, Any]

    def is_plain(self) -> bool:
        """Whether its values are what is meant, and not codes of something else."""
        missing = self.attrs.get("_FillValue", np.nan)
        plain = self.there.dtype.kind in "fiu" or h5py.check_string_dtype(self.there.dtype) is not None
        return plain and CODES.isdisjoint(self.attrs) and bool(np.isnan(missing).all())

    def values(self) -> np.ndarray:
        """Its numbers, or its text."""
        text = h5py.check_string_dtype(self.there.dtype)
        return self.there[()] if text is None else np.asarray(self.there.asstr()[()], str)


def _attributes(there: h5py.Dataset) -> dict[str, Any]:
    """Those that do not refer to other objects: such are slow to read, and what they say is said twice."""
    return {name: there.attrs[name] for name in there.attrs if name not in ("DIMENSION_LIST", "REFERENCE_LIST")}


def _value(value: Any) -> Any:
    """An attribute: text, or a number where it is a list of one."""
    if isinstance(value, bytes):
        return value.decode()
    return value[0] if isinstance(value, np.ndarray) and value.shape == (1,) else value
