"""When a round closes, who is asked again, and what the study's process gets."""

from __future__ import annotations

import struct
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfda.errors import ProtocolError, TransportError
from dpfda.federation.carried import CarriedTransport
from dpfda.federation.frames import FrameServer, connect, send_frame
from dpfda.federation.held import HeldBack
from dpfda.federation.hello import encode_hello, encode_welcome, parse_hello, parse_welcome
from dpfda.federation.rounds import (
    Closing,
    OpenRound,
    RoundTable,
    count_all,
    encode_answer,
    encode_question,
    parse_answer,
    parse_question,
)  # fmt: skip
from dpfda.federation.server_link import Answers, LinkService, ServerLink, SiteContact, pack, unpack
from dpfda.federation.silo_service import Reply

SITES = ("a", "b", "c")


class Network:
    """Sites that answer when told; the table is the real one."""

    def __init__(self, connected=SITES):
        self.places = {name: (name, 0) for name in connected}
        self.sent, self.full = [], set()
        self.table = RoundTable(self.send, lambda: dict(self.places))

    def send(self, site, question):
        if site in self.full:
            return False
        self.sent.append((site, question))
        return True

    def answer(self, site, payload=b"ok", given=True, which=-1):
        ticket = parse_question(self.sent[which][1])[0]
        return self.table.deliver(site, encode_answer(ticket, Reply(given, payload if given else b"")))

    def ask(self, closing, sites=SITES, counts=count_all):
        found = []
        thread = threading.Thread(
            target=lambda: found.append(self.table.ask(sites, b"q", closing, lambda: False, counts))
        )
        thread.start()
        self.wait_for_sent(len((set(sites) & set(self.places)) - self.full))
        return thread, found

    def wait_for_sent(self, questions):
        """Wait until so many questions have left."""
        deadline = time.monotonic() + 60
        while len(self.sent) < questions and time.monotonic() < deadline:
            time.sleep(0.001)


def test_a_round_closes_when_all_have_answered():
    network = Network()
    thread, found = network.ask(Closing(3, 600, 600))
    for site in reversed(SITES):
        assert network.answer(site, site.encode())
    thread.join(60)
    assert found[0].given() == {"a": b"a", "b": b"b", "c": b"c"}
    assert list(found[0].given()) == ["a", "b", "c"]


def test_a_round_closes_a_while_after_the_quorum():
    network = Network()
    began = time.monotonic()
    thread, found = network.ask(Closing(2, 0.4, 600))
    network.answer("a")
    network.answer("b")
    thread.join(60)
    assert not thread.is_alive(), "a round with its quorum does not wait for its deadline"
    assert time.monotonic() - began >= 0.4
    assert set(found[0].given()) == {"a", "b"}
    assert not network.answer("c"), "what comes after the close is dropped"


def test_a_round_closes_at_its_deadline():
    network = Network()
    began = time.monotonic()
    thread, found = network.ask(Closing(3, 0.1, 0.5))
    network.answer("a")
    thread.join(60)
    assert not thread.is_alive()
    assert time.monotonic() - began >= 0.5
    assert set(found[0].given()) == {"a"}


def test_nobody_waits_for_a_site_that_is_gone():
    network = Network(connected=("a", "b"))
    thread, found = network.ask(Closing(2, 600, 600))
    network.answer("a")
    network.answer("b")
    thread.join(60)
    assert set(found[0].given()) == {"a", "b"}
    assert [site for site, _ in network.sent] == ["a", "b"]


def test_a_site_that_comes_back_is_asked_again_and_one_that_stays_is_not():
    network = Network(connected=("a", "b"))
    thread, found = network.ask(Closing(3, 600, 600))
    network.answer("a")
    network.places["c"] = ("c", 1)
    network.places["b"] = ("b", 1)
    network.table.wake()
    time.sleep(0.1)
    assert [site for site, _ in network.sent] == ["a", "b", "b", "c"]
    network.answer("b")
    network.answer("c")
    thread.join(60)
    assert set(found[0].given()) == set(SITES)


def test_a_site_that_does_not_read_is_asked_a_little_later():
    network = Network()
    network.full.add("b")
    thread, found = network.ask(Closing(3, 600, 600), sites=("a", "b"))
    assert [site for site, _ in network.sent] == ["a"]
    network.full.clear()
    network.table.wake()
    network.wait_for_sent(2)
    assert [site for site, _ in network.sent] == ["a", "b"]
    network.answer("a")
    network.answer("b")
    thread.join(60)
    assert set(found[0].given()) == {"a", "b"}


def test_unavailable_is_an_answer_but_gives_nothing():
    network = Network()
    thread, found = network.ask(Closing(3, 600, 600))
    network.answer("a")
    network.answer("b", given=False)
    network.answer("b")
    network.answer("c")
    thread.join(60)
    assert set(found[0].given()) == {"a", "c"}, "the first word counts"


def test_an_answer_that_does_not_count_neither_makes_a_quorum_nor_starts_the_grace_period():
    network = Network()
    thread, found = network.ask(Closing(2, 0.2, 60), counts=lambda site, answer: answer != b"junk")
    network.answer("a", b"junk")
    network.answer("b")
    network.answer("a")
    time.sleep(0.6)
    assert thread.is_alive(), "three times the grace period, and the honest site that needs longer is waited for"
    network.answer("c")
    thread.join(60)
    assert set(found[0].given()) == {"b", "c"}
    assert found[0].rejected == {"a"}, "the first word counts"


def test_answers_are_looked_at_while_other_rounds_go_on():
    network, looking, go_on = Network(), threading.Event(), threading.Event()

    def ponder(site, answer):
        looking.set()
        return go_on.wait(5)

    slow, found = network.ask(Closing(1, 0, 60), sites=("a",), counts=ponder)
    network.answer("a")
    assert looking.wait(2)
    quick, others = network.ask(Closing(1, 0, 60), sites=("a", "b"))
    network.answer("b")
    quick.join(60)
    assert set(others[0].given()) == {"b"}
    go_on.set()
    slow.join(60)
    assert set(found[0].given()) == {"a"}


def test_an_answer_counts_for_its_sender_in_its_round_only():
    network = Network()
    thread, found = network.ask(Closing(3, 600, 600))
    assert not network.answer("stranger")
    assert not network.table.deliver("a", encode_answer(b"\0" * 16, Reply(True, b"x")))
    with pytest.raises(ProtocolError):
        network.table.deliver("a", b"short")
    for site in SITES:
        network.answer(site)
    thread.join(60)
    assert set(found[0].given()) == set(SITES)


def test_a_round_ends_when_whoever_asked_is_gone():
    network = Network()
    began = time.monotonic()
    network.table.ask(SITES, b"q", Closing(3, 600, 600), lambda: True, count_all)
    assert time.monotonic() - began < 300, "the deadline is not waited for"


@pytest.mark.parametrize(
    "fields",
    [(-1, 1, 1), (1.5, 1, 1), (True, 1, 1), (1, -1, 1), (1, float("nan"), 1), (1, 1, 0), (1, 1, 1e9), (1, 1, float("inf")),
     ("1", 1, 1), (1, "1", 1)],
)  # fmt: skip
def test_a_malformed_closing_is_refused(fields):
    with pytest.raises(ProtocolError):
        Closing(*fields)


@given(st.binary(min_size=16, max_size=16), st.floats(0, 86400), st.binary(max_size=50), st.booleans())
def test_questions_and_answers_survive(ticket, seconds, payload, given_):
    assert parse_question(encode_question(ticket, seconds, payload)) == (ticket, seconds, payload)
    reply = Reply(given_, payload if given_ else b"")
    assert parse_answer(encode_answer(ticket, reply)) == (ticket, reply)


@given(st.binary(max_size=40))
def test_noise_is_refused_or_read(data):
    for parse in (parse_question, parse_answer, parse_hello, parse_welcome):
        try:
            parse(data)
        except ProtocolError:
            continue


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), 1e12])
def test_an_absurd_deadline_is_refused_at_the_site(seconds):
    with pytest.raises(ProtocolError):
        parse_question(b"\0" * 16 + struct.pack("!d", seconds) + b"x")


def test_hellos_survive():
    assert parse_hello(encode_hello(b"12345678", 1.5)) == (b"12345678", 1.5)
    assert parse_welcome(encode_welcome(2.5)) == 2.5
    with pytest.raises(ProtocolError):
        parse_welcome(encode_welcome(float("nan")))


def test_what_is_held_back_comes_in_time_and_in_order():
    done, held = [], HeldBack(most=3)
    began = time.monotonic()
    assert held.call_after(0.2, lambda: done.append(("late", time.monotonic() - began)))
    assert held.call_after(0.05, lambda: done.append(("soon", time.monotonic() - began)))
    assert held.call_after(60, done.clear)
    assert not held.call_after(120, done.clear), "there is no room for what is further away than all the others"
    assert held.call_after(0.01, lambda: 1 / 0), "the one furthest away makes room, and a failure ends nothing"
    limit = time.monotonic() + 60
    while len(done) < 2 and time.monotonic() < limit:
        time.sleep(0.01)
    assert [name for name, _ in done] == ["soon", "late"]
    assert done[0][1] >= 0.05
    assert done[1][1] >= 0.2


# ---------------------------------------------------------------- the study's process


@pytest.fixture
def link(tmp_path):
    def ask(sites, message, closing, gone, counts):
        round_ = OpenRound(tuple(sites), message, closing)
        for site in sites:
            if site == "refuses":
                round_.take(site, Reply(False))
            elif site not in ("absent", "stranger", "frozen"):
                answer = site.encode() + message
                round_.take(site, Reply(True, answer), counts=counts(site, answer))
        return round_

    contacts = {
        name: SiteContact(True, name != "absent", 1.0, 0.5)
        for name in ("a", "b", "junk", "refuses", "absent", "frozen")
    }
    server = FrameServer(tmp_path / "server.sock", LinkService(ask, lambda: contacts).serve, "study")
    server.start()
    made = ServerLink(tmp_path / "server.sock")
    yield made
    made.close()
    server.close()


def test_a_study_asks_over_its_socket(link):
    sites = ["b", "junk", "refuses", "absent", "stranger", "frozen", "a"]
    answers = link.ask(sites, b"!", Closing(2, 1, 5), lambda site, answer: answer != b"junk!")
    assert answers.given == {"b": b"b!", "a": b"a!"}
    assert list(answers.given) == ["b", "a"]
    assert answers.missing == {
        "refuses": "unavailable", "absent": "absent", "stranger": "not enrolled", "frozen": "unavailable",
        "junk": "answer rejected",
    }  # fmt: skip
    assert link.look()["a"] == SiteContact(True, True, 1.0, 0.5)


def test_whoever_cannot_judge_an_answer_does_not_leave_the_server_waiting(link):
    with pytest.raises(ZeroDivisionError):
        link.ask(["a"], b"!", Closing(1, 1, 5), lambda site, answer: 1 / 0)
    assert link.ask(["a"], b"!", Closing(1, 1, 5), count_all).given == {"a": b"a!"}


def test_a_server_that_is_not_there(tmp_path):
    with pytest.raises(TransportError, match="Nobody answers"):
        ServerLink(tmp_path / "none").look()


NONSENSE = [
    {"do": "dance"}, {"do": "ask"}, {"do": "ask", "sites": 7, "closing": {}},
    {"do": "ask", "sites": ["a"], "closing": {"x": 1}},
    {"do": "ask", "sites": ["a", "a"], "closing": {"quorum": 1}}, {"do": "ask", "sites": ["a"], "closing": {"quorum": -1}},
]  # fmt: skip


def test_nonsense_on_the_socket_ends_that_connection_only(link, tmp_path):
    for frame in (b"", b"\0\0\0\xff", b"\0\0\0\2[]", *(b"".join(pack(fields)) for fields in NONSENSE)):
        with connect(tmp_path / "server.sock", 5) as connection:
            send_frame(connection, frame)
            assert connection.recv(10) == b""
    assert link.look()
    with pytest.raises(ProtocolError):
        unpack(b"\0\0\0\4nope")


# ---------------------------------------------------------------- the transport


class FakeLink:
    def __init__(self, given):
        self.given, self.asked = given, []

    def ask(self, sites, message, closing, counts):
        self.asked.append((tuple(sites), message))
        given = {site: answer for site, answer in self.given.items() if counts(site, answer)}
        return Answers(given, {site: "absent" for site in sites if site not in self.given})


class Texts:
    def name_sites(self, plan):
        return plan

    def write_invitation(self, plan, run):
        return b"join " + run.encode()

    def is_acceptance(self, plan, run, site, answer):
        return answer == b"yes"

    def write_question(self, question):
        return question.encode()

    def read_answer(self, question, site, answer):
        if answer == b"forged":
            raise ProtocolError("The signature is wrong.")
        return None if answer == b"other" else answer.decode()


def test_an_answer_that_is_not_believed_is_none():
    link = FakeLink({"a": b"yes", "b": b"yes", "c": b"yes"})
    told = []
    transport = CarriedTransport(link, Texts(), Closing(2, 1, 5), lambda kind, codes: told.append(codes))
    transport.open(["c", "a", "b"], "run")
    link.given = {"a": b"forged", "b": b"1", "c": b"2"}
    assert list(transport.gather("q").items()) == [("c", "2"), ("b", "1")]
    assert told[-1] == {"c": "ok", "a": "answer rejected", "b": "ok"}
    link.given = {"a": b"forged", "b": b"other", "c": b"2"}
    with pytest.raises(TransportError, match=r"1 of 3 .* missing: a \(answer rejected\), b \(answer rejected\)"):
        transport.gather("q")
    assert link.asked[0] == (("c", "a", "b"), b"join run")


def test_too_few_acceptances_end_before_the_first_question():
    link = FakeLink({"a": b"yes", "b": b"no"})
    transport = CarriedTransport(link, Texts(), Closing(2, 1, 5))
    with pytest.raises(TransportError, match=r"b \(answer rejected\), c \(absent\)"):
        transport.open(["a", "b", "c"], "run")
    assert len(link.asked) == 1


def test_quorum_and_deadline_are_those_of_the_terms():
    from dpfda.federation import rounds
    from dpfda.federation.running import RunOptions
    from dpfda.protocol import terms

    assert rounds.LONGEST_ROUND == terms.LONGEST_ROUND
    stated = tuple(terms.SiloTerms(name, 100, 1.0, 1e-5) for name in "abc")
    study = terms.StudyTerms(
        "adaptive", (0.0, 1.0), (0.0, 1.0), stated, min_silos=2, round_seconds=86_400, grace_seconds=60
    )
    assert RunOptions().closing(study) == Closing(2, 60.0, 86_400.0)
    assert RunOptions(after_enough=1.0, in_all=9.0).closing(study) == Closing(2, 1.0, 9.0)
    again = terms.StudyTerms.decode(study.encode())
    assert (again.round_seconds, again.grace_seconds) == (86_400.0, 60.0)
