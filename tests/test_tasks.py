import numpy as np
import pytest

from iclab.errors import InputError
from iclab.papers.nonlinear_icl.experiments import task_subset
from iclab.worlds.tasks import all_tasks, cyclic_tasks, without


def covers_uniformly(tasks: np.ndarray, patterns: int) -> bool:
    """Condition 3.2 (nonlinear-icl): each pattern has each label in exactly |T_tr| / M1 >= 1 of the tasks."""
    share = len(tasks) / patterns
    counts = np.array([np.bincount(tasks[:, side], minlength=patterns) for side in (0, 1)])
    return share >= 1 and bool(np.all(counts == share))


@pytest.mark.parametrize("patterns", [3, 4, 6, 8])
def test_the_cyclic_tasks_cover_uniformly_and_no_longer_when_one_is_removed(patterns):
    tasks = cyclic_tasks(patterns)
    assert len(tasks) == patterns
    assert covers_uniformly(tasks, patterns)
    for gone in range(patterns):
        assert not covers_uniformly(np.delete(tasks, gone, axis=0), patterns)


def test_cyclic_tasks_with_more_shifts_cover_uniformly_too():
    for shifts in range(1, 6):
        assert covers_uniformly(cyclic_tasks(6, shifts), 6)
        assert len(cyclic_tasks(6, shifts)) == 6 * shifts
    with pytest.raises(InputError, match="task_shifts is 6"):
        cyclic_tasks(6, 6)


def test_all_tasks_are_all_ordered_pairs_and_unseen_ones_are_the_rest():
    every = all_tasks(6)
    assert len(every) == 30 and len({tuple(task) for task in every.tolist()}) == 30
    rest = without(every, cyclic_tasks(6))
    assert len(rest) == 24
    assert not {tuple(t) for t in rest.tolist()} & {tuple(t) for t in cyclic_tasks(6).tolist()}


def test_fig7_samples_within_the_cycle_up_to_m1_and_contains_the_whole_cycle_beyond():
    cycle = {tuple(task) for task in cyclic_tasks(6).tolist()}
    for count in (3, 5, 6):
        assert {tuple(task) for task in task_subset(6, count, 0).tolist()} <= cycle
    for count in (6, 8, 12):
        chosen = {tuple(task) for task in task_subset(6, count, 0).tolist()}
        assert cycle <= chosen and len(chosen) == count
