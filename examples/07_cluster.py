"""A sweep on a cluster: the same call with an executor. Here the cluster is two processes of this machine.

Workers need only iclab: the file is sent with the work, and results come back. If a worker dies, another repeats its
work; the numbers are the same on any machine. On several machines: `dask scheduler`, `dask worker`, and `iclab
sweep FILE --grid ... --cluster tcp://HOST:8786`.

    python examples/07_cluster.py                    needs the extra `cluster`
"""

import tempfile
from pathlib import Path

from distributed import Client, LocalCluster

import iclab
from iclab import skeletons

if __name__ == "__main__":
    folder = Path(tempfile.mkdtemp())
    idea = skeletons.write("claim", "idea", folder)
    grid = {"matching_fraction": [0.4, 0.6, 0.8, 1.0]}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(folder)) as cluster,
        Client(cluster) as client,
    ):
        there = iclab.sweep(
            str(idea),
            grid,
            profile="smoke",
            seeds=2,
            executor=client.get_executor(pure=False),
            workers=2,
            out=folder / "there",
        )
    print(f"{len(there.shards)} shards, computed by two workers:")
    print(there.data["error"].mean("seed").squeeze().to_pandas().round(3).to_string())
    here = iclab.sweep(str(idea), grid, profile="smoke", seeds=2, out=folder / "here")
    print("the same numbers as here:", bool((here.data["error"] == there.data["error"]).all()))
