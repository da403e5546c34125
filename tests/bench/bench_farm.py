"""The compile farm: against the local pool, its bytes, its rate, a lost worker, and a model of many workers with measured costs.

Run as a script, this file is a null worker: one that answers each request at once, always with the same content.
"""

import heapq
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue

import zmq

from evo.compile.compiler import Module, PackCompiler
from evo.compile.farm import protocol, server
from evo.compile.farm.keys import WorkerKeys, make_keys
from evo.compile.farm.protocol import Answer, Beat, Hello, Request, Shared, Welcome, decode, encode, seal
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
server.CHECK_ONE_IN = 10**9  # its content is no cubin that this process would make
NETWORK_S = 0.0005  # of the model, one way: within a building
PACKS_PER_WORKER = 60  # of the model
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
        self.say(Hello(protocol.PROTOCOL, protocol.versions(), NUM_HELD - 1, f"null {os.getpid()}"))
        while not isinstance(self.hears(), Welcome):
            pass

    def say(self, message) -> None:
        """Sends a message."""
        self.socket.send_multipart(encode(message))

    def hears(self):
        """The next message."""
        return decode(self.socket.recv_multipart(), protocol.FROM_RUN)

    def answer_all(self, content: bytes) -> None:
        """Answers requests, all of the same programs, until the run takes its leave."""
        seal_of_all = None
        while True:
            message = self.hears()
            if isinstance(message, Request):
                seal_of_all = seal_of_all or seal(message.shared, message.hashes, content)
                header, _ = encode(Answer(message.lease, protocol.COMPILED, 0.1, 0.1, seal_of_all, b""))
                self.socket.send_multipart([header, content], copy=False)
            elif not isinstance(message, (Shared, Beat)):
                return


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
        wait_for(lambda: farm.num_workers == 2)
        for number in range(NUM_ROUNDS + 1):  # the first one is not counted
            for name, executor in (("pool", pool), ("farm", farm)):
                compiler = PackCompiler(language, TARGET, executor)
                start_s = time.perf_counter()
                assert all(isinstance(result, Module) for result in compiler.compile(batch))
                if number:
                    best_s[name] = min(best_s[name], time.perf_counter() - start_s)
    what = f"{len(batch):,} programs, two farm workers on this machine against the local pool of 2, time"
    yield what, f"{best_s['farm'] / best_s['pool']:.3f}x", "1.08x", "1.03x"


# ---- bytes


class Proxy:
    """A TCP proxy that counts what goes out to the worker."""

    def __init__(self, port: int):
        self.num_bytes = 0
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                theirs, _ = self._listener.accept()
                ours = socket.create_connection(self._target)
                threading.Thread(target=self._copy, args=(theirs, ours, False), daemon=True).start()
                threading.Thread(target=self._copy, args=(ours, theirs, True), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, is_out: bool) -> None:
        with suppress(OSError):
            while content := source.recv(1 << 16):
                self.num_bytes += len(content) * is_out
                target.sendall(content)

    def close(self) -> None:
        """Takes no more connections."""
        self._listener.close()


def byte_rows(request: CompileRequest, content: bytes, keys: Path):
    """Bytes that go out for requests of PACK programs, beside words and what is sent once."""
    for name, folder in (("", None), (", with CURVE", keys)):
        with CompileFarm("tcp://127.0.0.1:0", folder and folder / "run", 0, heartbeat_s=60.0) as farm:
            proxy = Proxy(int(farm.address.rpartition(":")[2]))
            with null_worker(proxy.address, content, folder and folder / "worker"):
                feed(farm, request, 10)
                before = proxy.num_bytes
                feed(farm, request, 50)
                num_bytes = (proxy.num_bytes - before) / 50 - len(request.words)
            proxy.close()
        what = f"bytes out a program of 32 live instructions beside its words ({PACK} programs a request{name})"
        yield what, f"{num_bytes / PACK:.1f}", "40", "24"


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
            peer.say(Beat())
            peer.hears()
        start_s, start_own_s = time.process_time(), time.thread_time()
        for _ in range(NUM_BEATS // 100):
            for _ in range(100):
                peer.say(Beat())
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
            wait_for(lambda farm=farm: farm._schedule.num_workers == 1)
            lost.send_signal(signal.SIGSTOP)  # so that it does not answer before
            start_s = time.monotonic()
            future = farm.submit(compile_request, request)
            wait_for(lambda farm=farm, future=future: future.running() or not farm._commands)
            lost.send_signal(number)
            peer = NullPeer(farm.address)
            is_there = False
            while not is_there:
                peer.say(Beat())
                while peer.socket.poll(50):
                    is_there |= isinstance(peer.hears(), Request)
            seconds = time.monotonic() - start_s
            future.cancel()
            peer.socket.close()
        yield (
            f"a worker is lost ({how}): until its work is elsewhere",
            f"{seconds / HEARTBEAT_S:.1f} heartbeats",
            "3 heartbeats",
            "",
        )


# ---- many workers


def idle_share(num_workers: int, compile_s: float, run_s: float, own_beat_s: float, seed: int = 1) -> float:
    """Share of the time in which workers of one core are idle while they compile a batch.

    Events: a pack arrives at a worker, is compiled, its answer arrives at the run. The run takes answers one after the other,
    `run_s` each, and then sends the next pack; the beats of all workers take their share of its core. A worker holds one pack
    beside the one that it compiles. Times of packs vary by a quarter.
    """
    rng = random.Random(seed)
    run_s /= max(1e-3, 1.0 - num_workers * own_beat_s / HEARTBEAT_S)
    num_left = num_workers * PACKS_PER_WORKER
    events: list[tuple[float, int, str, int]] = []
    waiting, is_busy = [0] * num_workers, [False] * num_workers
    busy_s, run_free_s, now_s = 0.0, 0.0, 0.0
    order = 0

    def at(time_s: float, what: str, number: int) -> None:
        nonlocal order
        order += 1
        heapq.heappush(events, (time_s, order, what, number))

    def send(number: int) -> None:
        nonlocal run_free_s, num_left
        run_free_s = max(run_free_s, now_s) + run_s
        if num_left:
            num_left -= 1
            at(run_free_s + NETWORK_S, "pack", number)

    for _ in range(2):
        for number in range(num_workers):
            send(number)
    while events:
        now_s, _, what, number = heapq.heappop(events)
        if what == "answer":
            send(number)
            continue
        if what == "pack":
            waiting[number] += 1
        else:
            is_busy[number] = False
            at(now_s + NETWORK_S, "answer", number)
        if waiting[number] and not is_busy[number]:
            waiting[number] -= 1
            is_busy[number] = True
            seconds = compile_s * rng.uniform(0.75, 1.25)
            busy_s += seconds
            at(now_s + seconds, "end", number)
    return 1.0 - busy_s / (num_workers * now_s)


def model_rows(compile_s: float, run_s: float, own_beat_s: float):
    """Idle shares by the number of workers, and the number from which the run's core is the limit."""
    costs = (
        f"{compile_s * 1e3:.0f} ms a pack; of the run {run_s * 1e6:.0f} us a pack, with CURVE, {own_beat_s * 1e6:.0f} us a beat"
    )
    for num_workers in (64, 512, 4096):
        share = idle_share(num_workers, compile_s, run_s, own_beat_s)
        yield f"model: {num_workers:,} workers of one core are idle ({costs})", f"{share:.1%}", "10 %", "3 %"
    limit = compile_s / (run_s + compile_s * own_beat_s / HEARTBEAT_S)
    yield "model: workers of one core that the run's core can feed", f"{limit:,.0f}", "", ""
    for num_workers, factor in ((512, 4), (4096, 32)):
        share = idle_share(num_workers, factor * compile_s, run_s, own_beat_s)
        yield f"model: {num_workers:,} workers are idle if a pack takes {factor} times as long", f"{share:.1%}", "10 %", "3 %"


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
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder)
        make_keys(keys, "worker")
        yield from byte_rows(request, content, keys)
        os.sched_setaffinity(0, {ALL_CORES[0]})
        plain_s, curve_s = request_s(request, content, None), request_s(request, content, keys)
        real_s = request_s(request, cubin, keys)
    what = f"requests a second of the run's core to null workers that answer cubins of {CUBIN_BYTES // 1000} KB, by CPU time"
    yield what, f"{1 / plain_s:,.0f}", "1,000", "3,000"
    yield f"{what}, with CURVE", f"{1 / curve_s:,.0f}", "300", "800"
    own_beat_s = beat_s()
    os.sched_setaffinity(0, ALL_CORES)
    yield from lost_rows(request)
    yield from model_rows(compile_seconds(request), real_s, own_beat_s)
