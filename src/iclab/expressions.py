"""Statistics as data: expressions over labelled results, evaluated when a statement is judged.

    error = measured("sums", "error").sel(setting="standard")
    error.sel(total=slice(1, 2)).max("total")

is only a description: which experiment and which of its variables to read, and what to do with them. So the needs of a
statement are known before anything is trained, a reading can replace an experiment, a variable or a coordinate, and a
control can evaluate the same description on untrained models.

An expression has the methods of an xarray DataArray that choose and reduce, arithmetic, comparisons, and `apply` for
everything else: `apply(trend, error, "total")` is a function of the array and of plain arguments.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import xarray as xr

from iclab.errors import InputError, in_words, nearest, require

Results = Mapping[str, xr.Dataset]


class Expression:
    """A function of arrays and plain values that is applied when `evaluate` is called."""

    __array_ufunc__ = None  # NumPy leaves arithmetic to the expression

    def __init__(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> None:
        self._function = function
        self._arguments = arguments
        self._options = options

    def evaluate(self, results: Results) -> Any:
        """The value on these results."""
        arguments = [_value(argument, results) for argument in self._arguments]
        options = {name: _value(option, results) for name, option in self._options.items()}
        return self._function(*arguments, **options)

    def leaves(self) -> Iterator[Measured]:
        """Every variable that it reads from results."""
        for part in (*self._arguments, *self._options.values()):
            if isinstance(part, Expression):
                yield from part.leaves()

    @property
    def needs(self) -> tuple[str, ...]:
        """The experiments whose results are read, in order."""
        return tuple(dict.fromkeys(leaf.experiment for leaf in self.leaves()))

    def _method(self, name: str, /, *arguments: Any, **options: Any) -> Expression:
        return Expression(_call, self, name, *arguments, **options)

    def sel(self, **at: Any) -> Expression:
        """Choose by label; a slice takes all labels in a range."""
        return self._method("sel", **at)

    def isel(self, **at: Any) -> Expression:
        """Choose by position."""
        return self._method("isel", **at)

    def first(self, dim: str = "step") -> Expression:
        """The first along a dimension: a model before training."""
        return self.isel(**{dim: 0})

    def last(self, dim: str = "step") -> Expression:
        """The last along a dimension: a model after training."""
        return self.isel(**{dim: -1})

    def where(self, condition: Any, *other: Any) -> Expression:
        """NaN (or another value) where the condition is false."""
        return self._method("where", condition, *other)

    def max(self, dim: Any, *, skipna: bool = True) -> Expression:
        """The largest over a dimension (or several); with `skipna=False` a diverged point makes it NaN."""
        return self._method("max", dim, skipna=skipna)

    def min(self, dim: Any, *, skipna: bool = True) -> Expression:
        """The smallest over a dimension (or several)."""
        return self._method("min", dim, skipna=skipna)

    def mean(self, dim: Any) -> Expression:
        """The mean over a dimension (or several)."""
        return self._method("mean", dim)

    def median(self, dim: Any) -> Expression:
        """The median over a dimension."""
        return self._method("median", dim)

    def sum(self, dim: Any) -> Expression:
        """The sum over a dimension."""
        return self._method("sum", dim)

    def notnull(self) -> Expression:
        """Where there is a number."""
        return self._method("notnull")

    def coordinate(self, name: str) -> Expression:
        """The values of a coordinate, as an array of its own."""
        return Expression(_coordinate, self, name)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value before it is evaluated; write (0 < x) & (x < 1).")

    def __abs__(self) -> Expression:
        return Expression(operator.abs, self)

    def __neg__(self) -> Expression:
        return Expression(operator.neg, self)

    def __add__(self, other: Any) -> Expression:
        return Expression(operator.add, self, other)

    def __radd__(self, other: Any) -> Expression:
        return Expression(operator.add, other, self)

    def __sub__(self, other: Any) -> Expression:
        return Expression(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Expression:
        return Expression(operator.sub, other, self)

    def __mul__(self, other: Any) -> Expression:
        return Expression(operator.mul, self, other)

    def __rmul__(self, other: Any) -> Expression:
        return Expression(operator.mul, other, self)

    def __truediv__(self, other: Any) -> Expression:
        return Expression(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return Expression(operator.truediv, other, self)

    def __pow__(self, other: Any) -> Expression:
        return Expression(operator.pow, self, other)

    def __rpow__(self, other: Any) -> Expression:
        return Expression(operator.pow, other, self)

    def __lt__(self, other: Any) -> Expression:
        return Expression(operator.lt, self, other)

    def __le__(self, other: Any) -> Expression:
        return Expression(operator.le, self, other)

    def __gt__(self, other: Any) -> Expression:
        return Expression(operator.gt, self, other)

    def __ge__(self, other: Any) -> Expression:
        return Expression(operator.ge, self, other)

    def __and__(self, other: Any) -> Expression:
        return Expression(operator.and_, self, other)


class Measured(Expression):
    """One variable of an experiment's results."""

    def __init__(self, experiment: str, variable: str) -> None:
        super().__init__(_call)
        self.experiment = experiment
        self.variable = variable

    def evaluate(self, results: Results) -> xr.DataArray:
        """The variable; an `InputError` if it does not exist."""
        if self.experiment not in results:
            raise InputError(f"there is no experiment {self.experiment!r}. {nearest(self.experiment, results)}")
        data = results[self.experiment]
        if self.variable not in data:
            known = [str(name) for name in data.variables]
            raise InputError(
                f"the experiment {self.experiment!r} has no {self.variable!r}. {nearest(self.variable, known)}"
            )
        return data[self.variable]

    def leaves(self) -> Iterator[Measured]:
        """Itself."""
        yield self


def measured(experiment: str, variable: str) -> Expression:
    """A variable of an experiment's dataset.

    >>> (measured("sums", "error").sel(total=1.0) < measured("lengths", "error").max("length")).needs
    ('sums', 'lengths')
    """
    named = isinstance(experiment, str) and isinstance(variable, str)
    require(named, f"measured({experiment!r}, {variable!r}): give the names of an experiment and of a result.")
    return Measured(experiment, variable)


def apply(function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Expression:
    """A function of arrays, called when the expression is evaluated; arguments that are expressions become arrays
    first.

    >>> apply(abs, measured("training", "loss")).needs
    ('training',)
    """
    return Expression(function, *arguments, **options)


def _value(argument: Any, results: Results) -> Any:
    return argument.evaluate(results) if isinstance(argument, Expression) else argument


def _call(data: Any, name: str, /, *arguments: Any, **options: Any) -> Any:
    """A method of an array; an `InputError` for a label or a dimension that does not exist."""
    if name in ("sel", "isel"):
        require_labels(data, str(data.name or "the result"), options, by_label=name == "sel")
    with _explained(data, name):
        return getattr(data, name)(*arguments, **options)


def _coordinate(data: xr.DataArray, name: str) -> xr.DataArray:
    if name not in data.coords and name not in data.dims:
        known = map(str, data.coords)
        raise InputError(f"{data.name or 'the result'} has no coordinate {name!r}. {nearest(name, known)}")
    return data[name]


def require_labels(data: xr.DataArray | xr.Dataset, what: str, at: Mapping[str, Any], *, by_label: bool = True) -> None:
    """Refuse dimensions and labels that the data do not have, in one sentence."""
    for dim, wanted in at.items():
        if dim not in data.dims:
            known = dict.fromkeys(str(found) for found in (*data.dims, *data.coords))
            raise InputError(f"{what} has no dimension {dim!r}. {nearest(dim, known)}")
        if by_label and isinstance(wanted, str | int | float) and dim in data.coords:
            values = data[dim].values
            if wanted not in values.tolist():
                shown = ", ".join(str(value) for value in values[:12])
                raise InputError(f"{what} has no {dim} = {wanted!r}; it has {shown}.")


@contextlib.contextmanager
def _explained(data: Any, name: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, ValueError, IndexError) as error:
        raise InputError(f"{getattr(data, 'name', None) or 'the result'}.{name}(...): {in_words(error)}") from error
