"""The GPU that a process uses, where several processes of a machine each take one of several GPUs.

Owns which one it is. Knows nothing of how a GPU runs programs.
"""

import os
from typing import IO

from evo.evaluate.cuda.device import MIN_CAPABILITY, DeviceInfo, Probe, choose_device
from evo.storage.disk_cache import cache_folder
from evo.storage.files import try_lock

_taken: dict[str, IO[bytes]] = {}  # locks that this process holds, as long as it lives, by the UUID of a GPU


def chosen_device(probed: Probe, ordinal: int | None, *, is_shared: bool) -> DeviceInfo:
    """The GPU that this process uses.

    Args:
        ordinal: `evaluation.device` of a config.
        is_shared: other processes beside this one use GPUs too, so it takes one of the first one's kind that none of them has.

    Raises:
        UserError: it cannot be used.
    """
    chosen = choose_device(probed, ordinal)
    if ordinal is not None or not is_shared:
        return chosen
    alike = (chosen.name, chosen.architecture)
    usable = [info for info in probed.devices if info.capability >= MIN_CAPABILITY]
    return _next_free([info for info in usable if (info.name, info.architecture) == alike])


def _next_free(devices: list[DeviceInfo]) -> DeviceInfo:
    """The first that no other process of this machine has taken; if all are, one of them."""
    folder = cache_folder() / "gpus"
    folder.mkdir(parents=True, exist_ok=True)
    for info in sorted(devices, key=lambda device: device.uuid not in _taken):
        if info.uuid not in _taken:
            lock = open(folder / f"{info.uuid}.lock", "wb")  # noqa: SIM115 - held until the process ends
            if not try_lock(lock):
                lock.close()
                continue
            _taken[info.uuid] = lock
        return info
    return devices[os.getpid() % len(devices)]
