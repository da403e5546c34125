"""The compile farm: against the local pool, its bytes, its rate, how many workers the run's core can feed, and a lost worker.

Run as a script, this file is a null worker: one that answers each request at once, always with the same content.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import zmq

from evo.compile.compiler import Module, PackCompiler
from evo.compile.farm import protocol
from evo.compile.farm.keys import WorkerKeys, make_keys
from evo.compile.farm.protocol import decode, encode
from evo.compile.farm.server import HEARTBEAT_S, CompileFarm
from evo.compile.language import encode_language
from evo.compile.pool import CompilePool
from evo.compile.request import CompileRequest, compile_request, pack_programs
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language

TARGET = "sm_90"
NUM_PROGRAMS = 2048
PACK = 128  # programs of a request, as by default
NUM_ROUNDS = 6
NUM_REQUESTS = 1500
NUM_BEATS = 20_000
CUBIN_BYTES = 150_000
NUM_HELD = 16  # requests that a null worker holds
ALL_CORES = sorted(os.sched_getaffinity(0))


class NullPeer:
    """A worker by hand."""

    def __init__(self, address: str, keys: WorkerKeys | None = None):
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.set(zmq.LINGER, 0)
        if keys:
            self.socket.set(zmq.CURVE_SECRETKEY, keys.secret)
            self.socket.set(zmq.CURVE_PUBLICKEY, zmq.curve_public(keys.secret))
            self.socket.set(zmq.CURVE_SERVERKEY, keys.run)
        self.socket.connect(address)
        self.say("hello", protocol.versions(), NUM_HELD - 1, f"null {os.getpid()}")
        assert self.hears()[0] == "welcome"

    def say(self, *message) -> None:
        """Sends a message."""
        self.socket.send_multipart(encode(message))

    def hears(self):
        """The next message."""
        return decode(self.socket.recv_multipart())

    def answer_all(self, content: bytes) -> None:
        """Answers requests until the run takes its leave."""
        while (message := self.hears()) != ("bye",):
            if message[0] == "request":
                header, _ = encode(("answer", message[1], "", 0.1, 0.1, b""))
                self.socket.send_multipart([header, content], copy=False)


if __name__ == "__main__":
    ADDRESS, CONTENT, KEYS, CORE = sys.argv[1:]
    os.sched_setaffinity(0, {int(CORE)})
    NullPeer(ADDRESS, WorkerKeys.read(Path(KEYS)) if KEYS else None).answer_all(Path(CONTENT).read_bytes())
    sys.exit()

from bench_lowering import live_programs  # noqa: E402 - NumPy's import is none of the null worker's business


@contextmanager
def process_of(*command: object):
    """A command in the background, killed at the end."""
    nowhere = subprocess.DEVNULL
    with subprocess.Popen([str(part) for part in command], stdin=nowhere, stdout=nowhere, stderr=nowhere) as process:
        yield process
        process.kill()


def evo_worker(address: str):
    """An `evo worker` with one process."""
    return process_of(Path(sys.executable).with_name("evo"), "worker", "--connect", address, "--workers", 1)


def wait_for(condition) -> None:
    """Returns once the condition holds."""
    end_s = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.01)


def request_of(language: Language, batch: Batch) -> CompileRequest:
    """The request for a batch's programs."""
    return CompileRequest(*pack_programs(batch.words, batch.hashes), encode_language(language), TARGET, 64)


# ---- against the local pool


def pool_rows(language: Language, batch: Batch):
    """Time for the same programs in two processes of the local pool and in two farm workers, in turn."""
    best_s = {"pool": float("inf"), "farm": float("inf")}
    with (
        CompilePool(2) as pool,
        CompileFarm("tcp://127.0.0.1:0", None, 0) as farm,
        evo_worker(farm.address),
        evo_worker(farm.address),
    ):
        wait_for(lambda: farm.status()["workers"] == 2)
        for number in range(NUM_ROUNDS + 1):  # the first one is not counted
            for name, executor in (("pool", pool), ("farm", farm)):
                compiler = PackCompiler(language, TARGET, executor)
                start_s = time.perf_counter()
                assert all(isinstance(result, Module) for result in compiler.compile(batch))
                if number:
                    best_s[name] = min(best_s[name], time.perf_counter() - start_s)
    what = f"{len(batch):,} programs, two farm workers on this machine against the local pool of 2, time"
    yield what, f"{best_s['farm'] / best_s['pool']:.3f}x", "1.08x", "1.03x"


# ---- rate


@contextmanager
def null_worker(address: str, content: bytes, keys: Path | None):
    """A null worker as a process, on another core than the run's if there is one."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        with process_of(sys.executable, __file__, address, file.name, keys or "", ALL_CORES[-1]) as process:
            yield process


def feed(farm: CompileFarm, request: CompileRequest, count: int) -> None:
    """Has the farm fulfil a request this many times, so many at once that its workers never wait."""
    done = SimpleQueue()
    for number in range(count + 2 * NUM_HELD):
        if number >= 2 * NUM_HELD:
            assert done.get(timeout=60.0).result().cubin
        if number < count:
            farm.submit(compile_request, request).add_done_callback(done.put)


def request_s(request: CompileRequest, content: bytes, keys: Path | None) -> float:
    """Seconds of this process for a request, from its submission to its checked cubin."""
    with (
        CompileFarm("tcp://127.0.0.1:0", keys and keys / "run", 0) as farm,
        null_worker(farm.address, content, keys and keys / "worker"),
    ):
        feed(farm, request, 200)
        best_s = float("inf")
        for _ in range(NUM_ROUNDS):
            start_s = time.process_time()
            feed(farm, request, NUM_REQUESTS)
            best_s = min(best_s, (time.process_time() - start_s) / NUM_REQUESTS)
    return best_s


def beat_s() -> float:
    """Seconds of a run for a worker's beat and its answer."""
    with CompileFarm("tcp://127.0.0.1:0", None, 0) as farm:
        peer = NullPeer(farm.address)
        for _ in range(NUM_BEATS // 100):
            peer.say("beat")
            peer.hears()
        start_s, start_own_s = time.process_time(), time.thread_time()
        for _ in range(NUM_BEATS // 100):
            for _ in range(100):
                peer.say("beat")
            for _ in range(100):
                peer.hears()
        spent_s = time.process_time() - start_s - (time.thread_time() - start_own_s)
        peer.socket.close()
    return spent_s / NUM_BEATS


# ---- a lost worker


def lost_rows(request: CompileRequest):
    """Heartbeats from the loss of a worker that holds a request until another one has it."""
    for how, number in (("killed", signal.SIGKILL), ("hung, its connection open", signal.SIGSTOP)):
        with CompileFarm("tcp://127.0.0.1:0", None, 0) as farm, evo_worker(farm.address) as lost:
            wait_for(lambda farm=farm: farm.status()["workers"] == 1)
            lost.send_signal(signal.SIGSTOP)  # so that it does not answer before
            start_s = time.monotonic()
            future = farm.submit(compile_request, request)
            wait_for(lambda farm=farm: not farm._waiting)
            lost.send_signal(number)
            peer = NullPeer(farm.address)
            is_there = False
            while not is_there:
                peer.say("beat")
                while peer.socket.poll(50):
                    is_there |= peer.hears()[0] == "request"
            seconds = time.monotonic() - start_s
            future.cancel()
            peer.socket.close()
        yield (
            f"a worker is lost ({how}): until its work is elsewhere",
            f"{seconds / HEARTBEAT_S:.1f} heartbeats",
            "3 heartbeats",
            "",
        )


def compile_seconds(request: CompileRequest) -> float:
    """Seconds of one core for a request."""
    compile_request(request)
    best_s = float("inf")
    for _ in range(NUM_ROUNDS):
        start_s = time.process_time()
        compile_request(request)
        best_s = min(best_s, time.process_time() - start_s)
    return best_s


def rows():
    """Rows of the table."""
    language = Language(shipped_instruction_set("default"), (("x", "f32"), ("y", "f32")), (("z", "f32"),))
    batch = Batch.analyze(language.lowering, live_programs(language, 32, 1, NUM_PROGRAMS))
    request = request_of(language, batch[:PACK])
    cubin = compile_request(request).cubin
    content = cubin.ljust(CUBIN_BYTES, b"\0")
    yield from pool_rows(language, batch)
    num_bytes = sum(map(len, encode(("request", 1, *vars(request).values())))) - len(request.words)
    what = f"bytes out a program of 32 live instructions beside its words ({PACK} programs a request)"
    yield what, f"{num_bytes / PACK:.1f}", "40", "32"
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder)
        make_keys(keys, "worker")
        os.sched_setaffinity(0, {ALL_CORES[0]})
        plain_s, curve_s = request_s(request, content, None), request_s(request, content, keys)
        real_s = request_s(request, cubin, keys)
    what = f"requests a second of the run's core to null workers that answer cubins of {CUBIN_BYTES // 1000} KB, by CPU time"
    yield what, f"{1 / plain_s:,.0f}", "1,000", "3,000"
    yield f"{what}, with CURVE", f"{1 / curve_s:,.0f}", "300", "800"
    own_beat_s = beat_s()
    os.sched_setaffinity(0, ALL_CORES)
    yield from lost_rows(request)
    pack_s = compile_seconds(request)
    costs = f"{pack_s * 1e3:.0f} ms a pack; of the run {real_s * 1e6:.0f} us a pack, with CURVE, {own_beat_s * 1e6:.0f} us a beat"
    limit = pack_s / (real_s + pack_s * own_beat_s / HEARTBEAT_S)
    yield f"workers of one core that the run's core can feed ({costs})", f"{limit:,.0f}", "", ""
