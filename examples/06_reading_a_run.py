"""Read a run with xarray: every experiment is one netCDF file with named dimensions, every answer is in a JSON file.

python examples/06_reading_a_run.py [DIR]        reads your run; without DIR, it first makes a small one
"""

import json
import sys
import tempfile
from pathlib import Path

import xarray as xr

import iclab

if len(sys.argv) > 1:
    folder = Path(sys.argv[1])
else:
    folder = Path(tempfile.mkdtemp()) / "run"
    iclab.reproduce("feature-selection/fig1a", profile="smoke", seeds=3, out=folder)

for statement in json.loads((folder / "claims.json").read_text())["statements"]:
    print(f"{statement['id']}: {statement['words']}")
    for part in statement["readings"][0]["parts"]:
        untrained = part["control"]["measured"]
        print(f"  {part['name']}: {part['measured']:.3g} over {part['seeds']} seeds; untrained {untrained:.3g}")

for path in sorted(folder.glob("results/*/*.nc")):
    data = xr.open_dataset(path, engine="h5netcdf")
    print(f"\n{path.relative_to(folder)}: {dict(data.sizes)}")
    curve = data["training_loss"]  # seed × step
    print("loss, mean over seeds, along training:", curve.mean("seed").dropna("step").round(3).values.tolist())
    print("seeds that diverged:", data["seed"].where(data["diverged_at"] >= 0, drop=True).values.tolist())
    table = data[["training_loss", "training_error"]].isel(step=-1).to_dataframe()
    print(table[["training_loss", "training_error"]].round(3).to_string())
