"""Minimal reproducers still show the stall, and each of their steps is necessary. The generated script does what it says."""

from __future__ import annotations

import ast
import functools
import json
import math
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab.errors import CaptureInsufficient
from tcptrace_lab.replay.changes import Changes
from tcptrace_lab.replay.evidence import gather
from tcptrace_lab.replay.model import setting
from tcptrace_lab.replay.reproducers.edits import edited, places
from tcptrace_lab.replay.reproducers.reproducer import Reproducer, reproduce
from tcptrace_lab.replay.reproducers.shrink import shrink
from tcptrace_lab.replay.reproducers.stall_oracle import Shown
from tcptrace_lab.replay.schedule import Between, End, Schedule, read_schedule
from tcptrace_lab.replay.side_by_side import DIRECTIONS, FAMILIES
from tcptrace_lab.replay.whatif import modelled
from tcptrace_lab.stacks import simulate
from tcptrace_lab.stacks.setting import Read, Think, Write
from tests.support.command import only_line, tcptrace_lab
from tests.support.peers import packetdrill
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tcptrace_lab.replay.model import Fit
    from tcptrace_lab.replay.schedule import Action


REMEDIES = {
    "ethernet-nagle-on.pcapng": "--nodelay",
    "atm9180-slow-reader.pcapng": "--eager-reader",
    "ethernet-small-send-buffer.pcapng": "--send-buffer 4194304",
    "ethernet-small-receive-window.pcapng": "--receive-buffer 4194304",
    "ethernet-application-limited.pcapng": "--no-thinking",
}
"""For each kind of stall, one capture and the option that fixes it, according to `captures/README.md`."""

ATTEMPTS = 3
"""Number of attempts per test, because a busy machine possibly delays packets."""


@functools.cache
def made(name: str) -> Reproducer:
    return reproduce(gather([str(CAPTURES / name)]), max_s=math.inf)


# Shrinking


def stalled_ns(of: Reproducer, schedule: Schedule, fit: Fit) -> int | None:
    """Return how long the causes of the stall delayed a sender that had data to send, in nanoseconds.

    The waits come from the ledger of the model. If a program hangs, return None.
    """
    run = simulate(setting(schedule, replace(fit, extra_ns=40_000) if schedule.path.loopback else fit), truth=True)
    if not (run.client.done and run.server.done):
        return None
    way = DIRECTIONS[of.stall.direction]
    last_ns = max((packet.sent_ns for packet in run.packets if packet.from_client == way and packet.payload_bytes), default=0)
    holds = [hold for hold in run.truth if hold.from_client == way and hold.cause in FAMILIES[of.stall.family]]
    return sum(max(0, min(hold.end_ns, last_ns) - hold.start_ns) for hold in holds)


def without(schedule: Schedule, is_client: bool, number: int) -> Schedule:  # noqa: FBT001  (of which end)
    """Return the schedule without one step.

    If the step is a write, the reads of its bytes become shorter.
    """
    tasks = {True: schedule.client.tasks[0], False: schedule.server.tasks[0]}
    by_write = {
        side: [at for at, step in enumerate(task) if isinstance(step, Write) for _ in range(step.size_bytes)]
        for side, task in tasks.items()
    }

    def steps(side: bool) -> Iterator[Action]:  # noqa: FBT001
        stream = iter(by_write[not side])
        for at, step in enumerate(tasks[side]):
            if isinstance(step, Read) and step.size_bytes:
                writers = [next(stream) for _ in range(step.size_bytes)]
                left = sum(1 for writer in writers if (not side, writer) != (is_client, number))
                if left:
                    yield Read(left)
            elif (side, at) != (is_client, number):
                yield step

    client, server = (replace(end, tasks=(tuple(steps(side)),)) for side, end in ((True, schedule.client), (False, schedule.server)))
    return replace(schedule, client=client, server=server)


@pytest.mark.parametrize("name", REMEDIES)
def test_what_is_left_shows_the_stall_under_every_fit_and_the_cure_takes_it_away(name: str) -> None:
    one = made(name)
    assert one.remedy.words() == REMEDIES[name]
    assert one.oracle is not None
    for fit in one.oracle.fits:
        held = stalled_ns(one, one.schedule, fit)
        fixed = stalled_ns(one, one.remedy.applied(one.schedule), replace(fit, less_bytes=0))
        assert held is not None
        assert fixed is not None
        assert held >= one.oracle.need_ns >= 10_000_000
        assert fixed <= held / 5


@pytest.mark.parametrize("name", REMEDIES)
def test_analyze_finds_the_same_stall_in_a_capture_of_what_is_left(name: str) -> None:
    one = made(name)
    assert one.oracle is not None
    fit = one.oracle.fits[0]
    seen = modelled("what is left", one.schedule, replace(fit, extra_ns=40_000) if one.schedule.path.loopback else fit)
    assert seen.stalled_s(one.stall.family, one.stall.direction) * 1e9 >= one.oracle.need_ns / 2


@pytest.mark.parametrize("name", REMEDIES)
def test_no_step_of_what_is_left_can_be_left_out(name: str) -> None:
    one = made(name)
    assert one.shrunk is not None
    assert one.oracle is not None
    assert one.shrunk.is_minimal
    question = one.oracle
    tried = 0
    for is_client, end in ((True, one.schedule.client), (False, one.schedule.server)):
        for number, step in enumerate(end.tasks[0]):
            if isinstance(step, Read) and step.size_bytes:
                continue
            smaller = without(one.schedule, is_client, number)
            held = [stalled_ns(one, smaller, fit) for fit in question.fits]
            shown = question.shows(smaller)
            assert shown is None
            assert any(spent is None or spent < question.need_ns for spent in held) or _is_nothing(one, smaller)
            tried += 1
    assert tried >= 1


def _is_nothing(one: Reproducer, schedule: Schedule) -> bool:
    """Return whether the remedy would save nothing, or `analyze` would see no stall."""
    assert one.oracle is not None
    fit = one.oracle.fits[0]
    seen = modelled("", schedule, replace(fit, extra_ns=40_000) if schedule.path.loopback else fit)
    if seen.stalled_s(one.stall.family, one.stall.direction) * 1e9 < one.oracle.need_ns / 2:
        return True
    said = [one.oracle.asked(schedule, fit) for fit in one.oracle.fits]
    return any(each is None or each.took_ns - each.fixed_ns < one.oracle.need_ns / 2 for each in said)


def test_twelve_questions_in_two_writes_become_one_and_a_warm_up_over_loopback() -> None:
    """Linux acknowledges the first data segments of a connection at once (TCP_MAX_QUICKACKS).

    So the reproducer needs one exchange before the exchange that stalls.
    """
    one = made("ethernet-nagle-on.pcapng")
    assert one.shrunk is not None
    assert (one.shrunk.before.writes, one.shrunk.before.written_bytes) == (36, 3_600)
    assert one.schedule.client.tasks == ((Write(1), Read(1), Write(1), Write(1), Read(1)),)
    assert one.schedule.server.tasks == ((Read(1), Write(1), Read(2), Write(1)),)
    assert one.schedule.path.loopback
    assert (
        "from 36 writes of 3,600 bytes in total to 5 of 5, from 26 pauses to 0, over loopback; cannot be shrunk further" in one.cut_words()
    )


def test_shrinking_is_the_same_every_time() -> None:
    one = made("ethernet-small-receive-window.pcapng")
    again = reproduce(gather([str(CAPTURES / "ethernet-small-receive-window.pcapng")]), max_s=math.inf)
    assert (again.program(), again.packetdrill()) == (one.program(), one.packetdrill())


class Asked:
    """An oracle that sees a stall if the client makes certain writes with at least certain sizes."""

    def __init__(self, least: dict[int, int]) -> None:
        self.least, self.runs = least, 0

    def shows(self, schedule: Schedule) -> Shown | None:  # noqa: D102  (the oracle's)
        self.runs += 1
        sizes = [step.size_bytes for step in schedule.client.tasks[0] if isinstance(step, Write)]
        there = all(any(size % 1000 == key and size >= least for size in sizes) for key, least in self.least.items())
        return Shown(1, 0, 1, 0) if there else None


def conversation(count: int) -> Schedule:
    """Return a schedule in which the client writes 1001, 1002, … bytes, and the server answers each write with one byte."""
    client = tuple(step for number in range(count) for step in (Write(1_001 + number), Think(7), Read(1)))
    server = tuple(step for number in range(count) for step in (Read(1_001 + number), Write(1)))
    return Schedule(End((client,)), End((server,)), Between())


def test_of_two_hundred_writes_the_three_that_matter_are_found_wherever_they_stand() -> None:
    asked: Any = Asked({3: 1_003, 77: 1_077, 198: 1_198})
    found = shrink(conversation(200), asked)
    assert found.is_minimal
    assert [step.size_bytes for step in found.schedule.client.tasks[0]] == [1_003, 1_077, 1_198]  # type: ignore[union-attr]
    assert found.schedule.server.tasks == ((Read(1_003 + 1_077 + 1_198),),)
    assert found.runs < 400


def test_a_search_that_is_out_of_questions_says_so_and_keeps_what_it_has() -> None:
    asked: Any = Asked({3: 1_003, 198: 1_198})
    found = shrink(conversation(200), asked, max_runs=20)
    assert not found.is_minimal
    assert asked.shows(found.schedule) is not None
    assert asked.runs <= 24


def test_a_smaller_write_takes_its_last_bytes_from_the_reads_that_had_them() -> None:
    schedule = Schedule(End(((Write(100), Write(50)),)), End(((Read(60), Think(5), Read(90), Read()),)), Between())
    smaller = edited(schedule, {(True, 0): Write(10)})
    assert smaller.server.tasks == ((Read(10), Think(5), Read(50), Read()),)
    assert edited(schedule, {(True, 0): None, (True, 1): None}).server.tasks == ((Think(5), Read()),)
    assert places(schedule) == [(True, 0), (True, 1), (False, 1), (False, 3)]


# The Python program


def parts(text: str) -> list[str]:
    """Return the syntax tree of each statement of a program, without positions and comments."""
    return [ast.dump(node) for node in ast.parse(text, feature_version=(3, 8)).body]


@pytest.mark.parametrize("name", REMEDIES)
def test_the_program_is_python_3_8_and_needs_the_standard_library_alone(name: str) -> None:
    text = made(name).program()
    compile(text, "reproduce.py", "exec")
    tree = ast.parse(text, feature_version=(3, 8))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names
    assert f"SHA-256: {made(name).digest}" in text


def facts(text: str) -> dict[str, Any]:
    """Return the literals that a program assigns to annotated names at its top level."""
    return {
        node.target.id: ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
    }


@pytest.mark.parametrize("name", REMEDIES)
def test_the_program_holds_the_schedule_that_is_left(name: str) -> None:
    one, reported = made(name), facts(made(name).program())
    document = one.schedule.to_dict()
    assert reported["CLIENT"] == {key: value for key, value in document["client"].items() if value}
    assert reported["SERVER"] == {key: value for key, value in document["server"].items() if value}
    assert reported["REMEDY"] == REMEDIES[name]
    assert reported["EXPECTED"]["with_s"] > reported["EXPECTED"]["without_s"]


HOSTILE = [
    'a"""\nimport os; os._exit(42)\n"""',
    "a'''\\\nraise SystemExit(42)",
    "#\r\nraise SystemExit(42)",
    "`reboot`\n0 `touch x`",
    "coding: utf-7",
    "x\u2028raise SystemExit(42)",
    "//*/%{ }%\x00".replace("\x00", "\x1b[2J"),
]


@pytest.mark.parametrize("said", HOSTILE)
def test_nothing_that_a_name_says_becomes_code(said: str) -> None:
    one = made("ethernet-nagle-on.pcapng")
    hostile = replace(one, evidence=replace(one.evidence, capture=said))
    assert parts(hostile.program()) == parts(one.program())
    assert all(character.isprintable() for character in set(hostile.program()) - {"\n"})
    plain, other = (
        [line for line in text.splitlines() if not line.startswith("//")] for text in (one.packetdrill(), hostile.packetdrill())
    )
    assert other == plain


def test_a_capture_with_a_hostile_name_is_read_and_its_program_compiles(tmp_path: Path) -> None:
    source = (CAPTURES / "ethernet-nagle-on.pcapng").read_bytes()
    capture = tmp_path / 'a"""\nraise SystemExit(42) #.pcapng'
    capture.write_bytes(source)
    done = tcptrace_lab("replay", "script", capture, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".pkt", ".py"]
    (program,) = (tmp_path / "out").glob("*.py")
    assert re.fullmatch(r"reproduce-[A-Za-z0-9._+-]+\.py", program.name)
    assert parts(program.read_text()) == parts(made("ethernet-nagle-on.pcapng").program())


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, program, *arguments], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.live
@pytest.mark.parametrize("name", REMEDIES)
def test_the_program_shows_the_stall_and_with_the_cure_it_is_gone(name: str, tmp_path: Path) -> None:
    program = tmp_path / "reproduce.py"
    program.write_text(made(name).program())
    for _ in range(ATTEMPTS):
        plain, fixed = run(program), run(program, "--times", "6", *REMEDIES[name].split())
        if (plain.returncode, fixed.returncode) == (1, 0):
            break
    assert (plain.returncode, fixed.returncode) == (1, 0), (plain, fixed)
    assert f"try it with {REMEDIES[name]}" in plain.stdout
    assert "<- here" in plain.stdout
    assert max(map(len, plain.stdout.splitlines())) <= 80


@pytest.mark.live
def test_the_program_plays_its_ends_on_two_hosts() -> None:
    text = made("ethernet-nagle-on.pcapng").program()
    command = [sys.executable, "-u", "-c", text]
    with subprocess.Popen([*command, "--serve", "127.0.0.1", "--port", "45123"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "listening at 127.0.0.1 port 45123; Ctrl-C ends\n"
        done = subprocess.run([*command, "--connect", "127.0.0.1", "--port", "45123"], capture_output=True, timeout=60, check=False)
        server.terminate()
    assert done.returncode == 1, done


@pytest.mark.live
def test_an_interrupted_program_leaves_no_word_and_no_relay_behind() -> None:
    text = made("ethernet-small-receive-window.pcapng").program()
    command = [sys.executable, "-u", "-c", text, "--times", "1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("transfer 1: ")
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends Ctrl-C to the process group
        _, words = process.communicate(timeout=30)
    assert (process.returncode, words) == (130, "")
    with pytest.raises(ProcessLookupError):  # the signal also ended the relay, which is in the process group
        os.killpg(process.pid, 0)


@pytest.mark.live
def test_a_user_without_rights_gets_a_path_of_user_namespaces_or_a_line_that_says_what_to_do(tmp_path: Path) -> None:
    place = tmp_path / "reproduce.py"
    place.write_text(made("ethernet-small-receive-window.pcapng").program())
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", sys.executable, "-"]
    with place.open(encoding="utf-8") as text:
        done = subprocess.run(nobody, stdin=text, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in {1, 3}, done
    assert done.returncode == 1 or "run it as root, or --serve and --connect" in only_line(done.stderr.encode())


def test_a_server_that_is_not_there_is_one_line_and_no_traceback(tmp_path: Path) -> None:
    program = tmp_path / "reproduce.py"
    program.write_text(made("ethernet-nagle-on.pcapng").program())
    done = run(program, "--connect", "127.0.0.1", "--port", "1")
    assert (done.returncode, done.stderr) == (3, "reproduce.py: the transfer could not be made: [Errno 111] Connection refused\n")
    assert run(program, "--port", "99999").returncode == 2


# The packetdrill script


@pytest.mark.parametrize("name", REMEDIES)
def test_the_packetdrill_script_adds_up(name: str) -> None:
    """The script sends all bytes of the schedule once and in order.

    It sends them after they were written, and within the advertised window.
    """
    one = made(name)
    script = packetdrill.read(one.packetdrill())
    is_client = DIRECTIONS[one.stall.direction]
    own, other = (one.schedule.client, one.schedule.server) if is_client else (one.schedule.server, one.schedule.client)
    scale, mss = 0, 0
    written = sent = came = acked = read = 0
    edge = 1 << 16
    for event in script.events:
        match event.what:
            case packetdrill.Call(name="write"):
                written += event.what.result
            case packetdrill.Call(name="read"):
                read += event.what.result
                assert read <= came
            case packetdrill.Packet(outbound=True, size=size) as packet if size:
                assert packet.seq == 1 + sent
                sent += size
                assert sent <= written
                assert sent <= edge
                assert size <= mss
                assert packet.ack == 1 + came
            case packetdrill.Packet(outbound=False, options=options) as packet:
                if options:
                    (mss,), (scale,) = (map(int, re.findall(rf"{key} (\d+)", options)) for key in ("mss", "wscale"))
                else:
                    assert packet.ack is not None
                    assert acked <= packet.ack - 1 <= sent
                    acked, edge = packet.ack - 1, packet.ack - 1 + (packet.window or 0) * (1 << scale)
                    assert packet.seq == 1 + came
                    came += packet.size
            case _:
                pass
    assert written == sent == acked
    # The script of a slow reader pauses for 150 ms, which ends before the kernel probes the window. The script sends only half of the data,
    # which is enough to show the stall.
    assert written == own.written_bytes // (2 if "slow-reader" in name else 1)
    assert (came, read) == (other.written_bytes,) * 2


@pytest.mark.parametrize("name", REMEDIES)
def test_the_packetdrill_script_has_the_wait(name: str) -> None:
    script = packetdrill.read(made(name).packetdrill())
    waits = [float(found[1]) for line in script.comments if (found := re.search(r"Here it waits for ([\d.]+) ms", line))]
    leaving = [event.at_s for event in script.events if isinstance(event.what, packetdrill.Packet) and event.what.outbound]
    longest_ms = max(after - before for before, after in pairwise(leaving)) * 1000
    assert waits
    assert longest_ms >= 10


PLAYED = [name for name in REMEDIES if name != "ethernet-small-send-buffer.pcapng"]
"""The captures whose scripts the tests play.

In the omitted capture, the sender makes a hundred calls at intervals that must be exact to the millisecond. On a busy machine, the player
in Python is not exact enough.
"""


def played(script: Path) -> subprocess.CompletedProcess[str]:
    """Run the script with the packetdrill player of the tests, in a new network namespace."""
    command = ["unshare", "--net", sys.executable, packetdrill.__file__, str(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.live
@pytest.mark.parametrize("name", PLAYED)
def test_this_machine_s_kernel_does_what_the_packetdrill_script_says(name: str, tmp_path: Path) -> None:
    place = tmp_path / "reproduce.pkt"
    place.write_text(made(name).packetdrill())
    for _ in range(2 * ATTEMPTS):  # the kernel retransmits if the player is 200 ms late, and the attempt fails
        done = played(place)
        if done.returncode == 0:
            return
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.live
def test_with_nodelay_the_packetdrill_script_fails_where_the_segment_was_held(tmp_path: Path) -> None:
    place = tmp_path / "reproduce.pkt"
    text = made("ethernet-nagle-on.pcapng").packetdrill()
    assert text.count("TCP_NODELAY, [0]") == 1
    place.write_text(text.replace("TCP_NODELAY, [0]", "TCP_NODELAY, [1]"))
    for _ in range(ATTEMPTS):
        done = played(place)
        if "> P. 3:4(1) ack 2" in done.stderr:
            break
    assert done.returncode == 1
    assert "> P. 3:4(1) ack 2" in done.stderr


def test_what_the_reader_of_these_tests_takes_for_a_script_is_not_everything() -> None:
    for wrong in ("0 > . 1:100(100) ack 1", "+0 < . 1:1(0) ack 1", "0 write(3, ..., 5)", "1 close(3) = 0", "0 > . 1:1(0)"):
        with pytest.raises(AssertionError):
            packetdrill.read(wrong)


# The command


def test_python_goes_to_standard_output_and_words_to_the_other(tmp_path: Path) -> None:
    schedule = tmp_path / "left.json"
    done = tcptrace_lab("replay", "script", CAPTURES / "ethernet-nagle-on.pcapng", "--schedule", schedule)
    assert done.returncode == 0, done.stderr
    assert parts(done.stdout.decode()) == parts(made("ethernet-nagle-on.pcapng").program())
    words = done.stderr.decode().splitlines()
    assert max(map(len, words)) <= 80
    assert words[0] == "Nagle took 477 ms of 527 ms at the client."
    assert read_schedule(str(schedule)).client == made("ethernet-nagle-on.pcapng").schedule.client


def test_a_file_s_name_shows_its_kind(tmp_path: Path) -> None:
    done = tcptrace_lab("replay", "script", CAPTURES / "ethernet-nagle-on.pcapng", "-q", "-o", tmp_path / "r.pkt")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert packetdrill.read((tmp_path / "r.pkt").read_text()).calls("write")


def test_without_shrinking_no_model_is_needed(tmp_path: Path) -> None:
    place = tmp_path / "r.py"
    done = tcptrace_lab("replay", "script", CAPTURES / "ethernet-two-way.pcapng", "-q", "--whole", "-o", place)
    assert (done.returncode, done.stderr) == (0, b"")
    reported = facts(place.read_text())
    assert [len(reported[side]["tasks"]) for side in ("CLIENT", "SERVER")] == [2, 2]
    assert "Not shrunk" in place.read_text()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ethernet-syn-loss.pcapng", "connection 0 has no stall to reproduce"),
        ("ethernet-slow-start.pcapng", "slow-start: normal TCP behaviour, not a stall to reproduce"),
        ("ethernet-two-way.pcapng", "both ends send at once, and a modelled host does one thing at a time"),
        ("ethernet-loss.pcapng", "packet loss stalled connection 0, and the model does not recover from it as Linux does"),
        ("loopback-bulk.pcapng", "no model fits connection 0"),
    ],
)
def test_what_cannot_be_reproduced_is_one_line_and_its_exit_code(name: str, words: str) -> None:
    done = tcptrace_lab("replay", "script", CAPTURES / name, "-q")
    assert (done.returncode, done.stdout) == (3, b"")
    assert words in only_line(done.stderr)


def test_a_packetdrill_script_of_what_no_model_made_is_refused() -> None:
    one = made("ethernet-nagle-on.pcapng")
    with pytest.raises(CaptureInsufficient, match="made from the model's run"):
        replace(one, oracle=None).packetdrill()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a capture"),
        (["-"], "read only once"),
        (["x.pcap", "-o", "r.txt"], "does not name a kind"),
        (["x.pcap", "-o", "r.py", "--kind", "packetdrill"], "does not fit packetdrill"),
        (["x.pcap", "-o", "/nowhere/r.py"], "no such directory"),
        (["x.pcap", "-o", "r.py", "--schedule", "r.py"], "cannot write to the same place"),
    ],
)
def test_options_that_cannot_be_right_are_refused(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = tcptrace_lab("replay", "script", *arguments, folder=tmp_path)
    assert (done.returncode, words in only_line(done.stderr)) == (2, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.live
def test_it_is_proved_over_real_sockets() -> None:
    for _ in range(ATTEMPTS):
        done = tcptrace_lab("replay", "script", CAPTURES / "ethernet-nagle-on.pcapng", "--prove")
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    last = done.stderr.decode().splitlines()[-1]
    found = re.fullmatch(r"Proved: over real sockets, nagle took ([\d.]+) ms; with --nodelay, (0 s|[\d.]+ .?s)\.", last)
    assert found is not None, last
    assert 35 <= float(found[1]) <= 60


def test_the_example_in_the_package_is_the_smallest_of_its_kind() -> None:
    from tcptrace_lab.replay.reproducers import standalone  # noqa: PLC0415  (a program that nobody else imports)

    assert Changes(nodelay=True).words() == standalone.REMEDY
    assert json.loads(json.dumps(standalone.CLIENT)) == {
        "tasks": [[{"write_bytes": 1}, {"read_bytes": 1}, {"write_bytes": 1}, {"write_bytes": 1}, {"read_bytes": 1}]]
    }
