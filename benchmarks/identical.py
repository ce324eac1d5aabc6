"""Are two runs the same numbers, to the last bit? The proof that a rewrite of papers changed words and not results.

    python benchmarks/identical.py BEFORE AFTER

Every variable of every experiment that both runs have is compared bit by bit (dimensions of length 1 may come or go),
then the number per seed behind every check of BEFORE is looked for among the parts of AFTER. BEFORE may be a run of
iclab 0.1, whose claims.json has rows. The status is 1 if a variable that both have differs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr


def datasets(run: Path) -> dict[str, xr.Dataset]:
    """Results by "paper/experiment", without dimensions of length 1; those of untrained models and of pieces left
    out.
    """
    found = {}
    for path in sorted((run / "results").glob("*/*.nc")):
        name = path.relative_to(run / "results").with_suffix("").as_posix()
        if not name.startswith(("control/", "pieces/")):
            with xr.open_dataset(path, engine="h5netcdf") as data:
                found[name] = data.load().squeeze(drop=True)
    return found


def same(one: xr.DataArray, two: xr.DataArray) -> bool:
    """The same bits, whatever the order of dimensions; of a dimension that is new, one place must have them."""
    extra = [dim for dim in two.dims if dim not in one.dims]
    if extra:
        return any(same(one, two.isel({extra[0]: place})) for place in range(two.sizes[extra[0]]))
    if set(one.dims) != set(two.dims) or one.dtype != two.dtype:
        return False
    other = two.transpose(*one.dims)
    return one.shape == other.shape and np.asarray(one.values).tobytes() == np.asarray(other.values).tobytes()


def checks(run: Path) -> Iterator[tuple[str, str, list[float | None]]]:
    """(paper, name, numbers per seed) of every check or part."""
    content: Any = json.loads((run / "claims.json").read_text())
    if isinstance(content, list):  # iclab 0.1
        for row in content:
            for check in row["checks"]:
                yield row["paper"], f"{row['id']}: {check['name']}", check["values"]
        return
    for statement in content["statements"]:
        for reading in statement["readings"]:
            for part in reading["parts"]:
                yield statement["paper"], f"{statement['id']}[{reading['name']}]: {part['name']}", part["values"]


def main(before: Path, after: Path) -> int:
    """Print the comparison; 1 if anything that both have differs."""
    old, new = datasets(before), datasets(after)
    differing = 0
    papers = dict.fromkeys(name.partition("/")[0] for name in old)
    for paper in papers:
        shared = [name for name in old if name in new and name.startswith(f"{paper}/")]
        pairs = [(name, str(v)) for name in shared for v in old[name].data_vars if v in new[name].data_vars]
        wrong = [f"{name}: {v}" for name, v in pairs if not same(old[name][v], new[name][v])]
        gone = [f"{name}: {v}" for name in shared for v in old[name].data_vars if v not in new[name].data_vars]
        gone += [name for name in old if name.startswith(f"{paper}/") and name not in new]
        differing += len(wrong)
        print(
            f"{paper}: {len(shared)} experiments, {len(pairs)} variables in both, {len(pairs) - len(wrong)} "
            "bit-identical"
        )
        for line in wrong:
            print(f"  DIFFERS {line}")
        for line in gone:
            print(f"  not there any more: {line}")
        known = {json.dumps(values) for own, _, values in checks(after) if own == paper}
        mine = [(name, values) for own, name, values in checks(before) if own == paper]
        kept = [name for name, values in mine if json.dumps(values) in known]
        print(
            f"  {len(kept)} of {len(mine)} statistics of the checks before are among those after, bit by bit; "
            "the others:"
        )
        for name, _ in [entry for entry in mine if json.dumps(entry[1]) not in known]:
            print(f"    {name}")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
