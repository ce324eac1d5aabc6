"""Many members in one compiled program, on every device there is.

A member is one training or one evaluation. Its random stream depends only on what it is (`member_key`), never on the
batch, the device or the machine it ran on. `Mapped` maps a function over stacked members: on CPU each core is a
device and takes its members one after another (measured faster than vmapping small models); on GPU they are vmapped,
unless one alone keeps it busy.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec
from jaxtyping import Array, Int, Key

from iclab import memory, randomness

Tree = TypeVar("Tree")

SMALL_BYTES = 1 << 20  # members smaller than this share programs of at least MINIMUM_CAPACITY slots per core
MINIMUM_CAPACITY = 64
UNTUNED = {"xla_gpu_autotune_level": 0}  # for small members: trying kernels out took longer than the best of them saved
LARGE_BYTES = 32 << 20  # a member of so much keeps a GPU busy alone, with kernels that were tried out
MOST_RESIDENT = 8  # trees of large members that stay on a GPU for the next question
GPU_BYTES = 16 << 30  # what the prompts of one block of evaluations may take on a GPU


def member_key(identity: str, seed: int) -> Key[Array, ""]:
    """The random stream of member `identity`, `seed`: a hash of both, so that nothing else can move it."""
    return randomness.key_of(_words(identity, seed))


def member_keys(members: Iterable[tuple[str, int]]) -> Key[Array, " members"]:
    """The streams of several members, at once."""
    return randomness.key_of(np.stack([_words(identity, seed) for identity, seed in members]))


def _words(identity: str, seed: int) -> np.ndarray:
    return np.frombuffer(hashlib.sha256(f"{identity}#{seed}".encode()).digest()[:8], np.uint32)


def on_host(leaves: Sequence[Any], combine: Callable[[list[np.ndarray]], np.ndarray]) -> Any:
    """`combine` applied to arrays of members in NumPy, which compiles nothing; random keys stay keys, other arrays of a
    device become arrays of the host.
    """
    if not jax.dtypes.issubdtype(getattr(leaves[0], "dtype", None), jax.dtypes.prng_key):
        return combine([np.asarray(leaf) for leaf in leaves])
    words = combine([np.asarray(jax.random.key_data(leaf)) for leaf in leaves])
    return jax.random.wrap_key_data(jnp.asarray(words), impl=jax.random.key_impl(leaves[0]))


def stack(trees: Sequence[Tree]) -> Tree:
    """Stack equal pytrees along a new leading axis. Static fields must agree: they decide what is compiled."""
    return jax.tree.map(lambda *leaves: on_host(leaves, np.stack), *trees)


def shape_of(stacked: Any) -> tuple[Any, ...]:
    """Static fields, shapes and types of one of several stacked trees: what a compiled program depends on."""
    leaves, structure = jax.tree.flatten(stacked)
    return structure, tuple((leaf.shape[1:], str(leaf.dtype)) for leaf in leaves)


def shapes(stacked: Any) -> Any:
    """The shapes of stacked members, without their arrays."""

    def shape(leaf: Any) -> jax.ShapeDtypeStruct:
        dtype = jax.dtypes.canonicalize_dtype(leaf.dtype, allow_extended_dtype=True)
        return jax.ShapeDtypeStruct(leaf.shape, dtype, weak_type=bool(getattr(leaf, "weak_type", False)))

    return jax.tree.map(shape, stacked)


def one_of(stacked: Any) -> Any:
    """The shapes of one of several stacked trees."""
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype, weak_type=leaf.weak_type), shapes(stacked)
    )


def unstack(tree: Tree, index: int | Int[Array, ""]) -> Tree:
    """One member of a stacked pytree."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def size(tree: Any) -> int:
    """How many members are stacked in a pytree."""
    return jax.tree.leaves(tree)[0].shape[0]


def join(trees: Sequence[Tree]) -> Tree:
    """Stacked pytrees one after another."""
    return trees[0] if len(trees) == 1 else jax.tree.map(lambda *leaves: on_host(leaves, np.concatenate), *trees)


def part(tree: Tree, which: Any) -> Tree:
    """Some members of a stacked pytree: a slice of them, or their numbers."""
    return jax.tree.map(lambda leaf: on_host([leaf], lambda arrays: arrays[0][which]), tree)


@functools.cache
def _mesh() -> jax.sharding.Mesh:
    return jax.sharding.Mesh(np.array(jax.local_devices()), ("members",))


def capacity(members: int, bytes_per_member: int) -> int:
    """Slots per device for so many members: a power of two, and at least `MINIMUM_CAPACITY` for small members on a
    CPU.
    """
    slots = 1 << (-(-members // jax.local_device_count()) - 1).bit_length()
    small = jax.default_backend() == "cpu" and bytes_per_member <= SMALL_BYTES
    return max(slots, MINIMUM_CAPACITY) if small else slots


def in_turn(bytes_per_member: int) -> bool:
    """Whether a device takes members of this size one after another, and not all at once."""
    return jax.default_backend() == "cpu" or bytes_per_member >= LARGE_BYTES


def large(bytes_per_member: int) -> bool:
    """Whether members are so large that carrying them to a GPU again and again takes longer than what it does there."""
    return jax.default_backend() != "cpu" and bytes_per_member >= LARGE_BYTES


_RESIDENT: dict[tuple[int, ...], tuple[Any, Any]] = {}  # by identity, with the host's arrays, which so stay the same


def resident(tree: Tree) -> Tree:
    """A tree whole on every device; one that was there lately is not carried again."""
    found = tuple(map(id, jax.tree.leaves(tree)))
    kept = _RESIDENT.pop(found, None) or (tree, jax.device_put(tree, _whole()))
    _RESIDENT[found] = kept
    while len(_RESIDENT) > MOST_RESIDENT:
        _RESIDENT.pop(next(iter(_RESIDENT)), None)
    on_device: Tree = kept[1]
    return on_device


def _whole() -> jax.sharding.NamedSharding:
    return jax.sharding.NamedSharding(_mesh(), PartitionSpec())


def resident_shapes(tree: Any) -> Any:
    """The shapes of `resident(tree)`, to compile for; `tree` may be shapes itself."""
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=_whole(), weak_type=leaf.weak_type),
        shapes(tree),
    )


class Layout:
    """Where each of n members lies when spread over the devices: blocks of `capacity` slots, the first ones filled.

    Padding slots repeat member 0; where members are taken in turn, they are not computed. Capacities are powers of
    two, and at least `MINIMUM_CAPACITY` for small members, so that ensembles of different sizes share one program.
    """

    def __init__(self, members: int, bytes_per_member: int) -> None:
        devices = jax.local_device_count()
        per_device = -(-members // devices)
        slots = capacity(members, bytes_per_member)
        starts = np.minimum(np.arange(devices) * per_device, members)
        self.counts = np.minimum(members - starts, per_device).astype(np.int32)
        self.slots = np.concatenate([d * slots + np.arange(n) for d, n in enumerate(self.counts)])
        self.source = np.zeros(devices * slots, np.int32)
        self.source[self.slots] = np.arange(members)

    def spread(self, tree: Tree) -> Tree:
        """Members in order -> slots on devices."""
        sharding = jax.sharding.NamedSharding(_mesh(), PartitionSpec("members"))
        return jax.device_put(part(tree, self.source), sharding)

    def shaped(self, tree: Any) -> Any:
        """The shapes of `spread(tree)`, to compile for; `tree` may be shapes itself."""
        sharding = jax.sharding.NamedSharding(_mesh(), PartitionSpec("members"))
        return jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(
                (len(self.source), *leaf.shape[1:]), leaf.dtype, sharding=sharding, weak_type=leaf.weak_type
            ),
            shapes(tree),
        )

    def collect(self, tree: Tree) -> Tree:
        """Slots on devices -> members in order, as host arrays."""
        return jax.tree.map(lambda leaf: np.asarray(leaf)[self.slots], tree)


def shared_slots() -> int:
    """How many small members programs on CPU have room for, however few they are used for."""
    return MINIMUM_CAPACITY * jax.local_device_count()


def block_size(bytes_per_job: int) -> int:
    """How many jobs one program takes: its slots on CPU (one is computed at a time), what fits into memory on a GPU."""
    if jax.default_backend() == "cpu":
        return shared_slots()
    return max(1, min(512, GPU_BYTES // max(bytes_per_job, 1))) * jax.local_device_count()


def once(function: Callable[..., Any]) -> Any:
    """The same function, traced once for arguments of the same shapes, wherever it is called. It leaves no mark on the
    program that calls it. Keep the result.
    """
    return jax.jit(function, inline=True)


class Mapped:
    """`function(*one_member) -> pytree` becomes `mapped(counts, *spread_members) -> spread pytree`, compiled.

    With `among`, a tree that every device holds whole (`resident`), it is `function(among, *one_member)`. The function
    is traced three times unless it is `once(...)`. Keep the result: each has a compilation cache of its own.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        def bound(among: Any) -> Callable[..., Any]:
            return function if among is None else functools.partial(function, among)

        def in_turn(counts: Int[Array, " 1"], among: Any, stacked: Any) -> Any:
            return _one_after_another(bound(among), counts[0], stacked)

        def at_once(counts: Int[Array, " 1"], among: Any, stacked: Any) -> Any:
            return jax.vmap(bound(among))(*stacked)

        self._in_turn = _on_every_device(in_turn)
        self._at_once = _on_every_device(at_once, UNTUNED)

    def __call__(self, counts: np.ndarray, *spread: Any, among: Any = None) -> Any:
        """What the function gives for every member."""
        return self._for(spread, among)(counts, among, spread)

    def lower(self, counts: np.ndarray, *spread: Any, among: Any = None) -> Any:
        """The program for members of these shapes, to be compiled."""
        return self._for(spread, among).lower(counts, among, spread)

    def _for(self, spread: Any, among: Any) -> Any:
        turns = among is not None or in_turn(memory.bytes_of(spread) // size(spread))
        return self._in_turn if turns else self._at_once


def _on_every_device(mapped: Callable[..., Any], options: dict[str, Any] | None = None) -> Any:
    if jax.local_device_count() > 1:  # one is faster to trace without
        split, whole = PartitionSpec("members"), PartitionSpec()
        specs = (split, whole, split)
        mapped = jax.shard_map(mapped, mesh=_mesh(), in_specs=specs, out_specs=split, check_vma=False)
    return jax.jit(mapped, compiler_options=options)


def _one_after_another(function: Callable[..., Any], count: Int[Array, ""], stacked: Any) -> Any:
    """`lax.map` over the first `count` members only; `count` is traced, so filling a program's slots never
    recompiles.
    """
    capacity = size(stacked)
    one = jax.eval_shape(lambda s: function(*unstack(s, 0)), stacked)
    results = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), one)

    def body(index: Int[Array, ""], results: Any) -> Any:
        result = function(*unstack(stacked, index))
        return jax.tree.map(lambda store, value: store.at[index].set(value), results, result)

    return jax.lax.fori_loop(0, count, body, results)
