"""All calls, in any order and with restarts, against a plain model: dicts, lists and sentences of the documentation.

The model does not know which arm a policy chooses; it checks that the arm was allowed, and takes it over.
"""

import json
import random
import shutil
import tempfile
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from helpers.amount import amount
from helpers.serving import Clock, Local
from robandit.decisions import engine as engines
from robandit.decisions import replica as replicas
from robandit.storage.postgres import PostgresStore

NAMES = ["p", "q"]
ARMS = ["a", "b", "c/d", "é"]
WINDOW = 60.0
SETTINGS = [
    {"arms": ARMS[:2], "seed": 1},
    {"arms": ARMS[:2], "policy": "EpsilonGreedy(epsilon=0.5)", "seed": 2, "reward_window": WINDOW, "max_open": 4},
    {"arms": ARMS[:3], "policy": "UCB1", "minimize": True, "reward_window": WINDOW, "on_expiry": 30.0},
]
VALUES = [0.0, 1.5, -2.25, 0.1, 1e100]
STATES = ["active", "active", "active", "paused", "retired"]
SECONDS = [0.0, 0.5, WINDOW / 2, WINDOW, WINDOW + 0.001, -1.0, -WINDOW * 2]
CONTEXTS = [None, {"user": 1}, [1, "é"]]
FIELDS = ("among", "arm", "context")

names = st.sampled_from(NAMES)
arms = st.sampled_from([*ARMS, "missing"])
client_ids = st.sampled_from([f"c{i}" for i in range(6)])
seeds = st.integers(0, 2**48)
recent = st.integers(0, 7)
any_ids = st.one_of(recent, recent, recent, client_ids, st.just("never made"))
rewards = st.tuples(any_ids, st.sampled_from(VALUES))


@st.composite
def decisions(draw):
    body = {}
    if draw(st.booleans()):
        body["id"] = draw(client_ids)
    kind = draw(st.sampled_from(["plain", "plain", "among", "arm", "both"]))
    if kind in ("among", "both"):
        body["among"] = draw(st.lists(arms, min_size=1, max_size=3, unique=True))
    if kind in ("arm", "both"):
        body["arm"] = draw(arms)
    context = draw(st.sampled_from(CONTEXTS))
    if context is not None:
        body["context"] = context
    return body


def random_decision(rng):
    body = {"id": f"c{rng.randrange(6)}"} if rng.random() < 0.3 else {}
    kind = rng.random()
    if kind < 0.3:
        body["among"] = rng.sample([*ARMS, "missing"] if kind < 0.05 else ARMS[:2], 2)
    if kind < 0.02 or kind > 0.8:
        body["arm"] = rng.choice(ARMS)
    if rng.random() < 0.3:
        body["context"] = rng.choice(CONTEXTS[1:])
    return body


class Model:
    """What the documentation says of one experiment."""

    def __init__(self, given, clock):
        self.given = given
        self.clock = clock
        self.arms = dict.fromkeys(given["arms"], "active")
        self.window = given.get("reward_window")
        self.most = given.get("max_open", 100_000)
        self.time = 0.0
        self.log = []
        self.paused = False
        self.epoch = 0
        self.decisions = {}
        self.counts = {}
        self.pulls = {}
        self.forget()
        self.record("created", None)
        self.created = self.time

    def forget(self):
        self.counts = dict.fromkeys(("decisions", "rewards", "late", "expired"), 0)
        self.pulls = dict.fromkeys(self.arms, 0)
        for decision in self.decisions.values():
            if decision["status"] == "open":
                decision["status"] = "reset"

    @property
    def now(self):
        return max(self.clock(), self.time)

    def record(self, kind, id):
        self.time = self.now
        self.log.append((len(self.log) + 1, kind, str(len(self.log) + 1) if id is None else id))

    def opened(self):
        return [id for id, decision in self.decisions.items() if decision["status"] == "open"]

    def is_due(self, id):
        return self.window is not None and self.decisions[id]["time"] < self.now - self.window

    def expire(self, id):
        decision = self.decisions[id]
        decision["status"] = "expired"
        self.record("expired", id)
        decision["expired"] = self.time
        self.counts["expired"] += 1
        if self.given.get("on_expiry", "drop") != "drop":
            self.pulls[decision["arm"]] += 1

    def sweep(self):
        for id in self.opened():
            if self.is_due(id):
                self.expire(id)

    # Each of these returns the expected status, whether it is a repetition, and a function that takes over a new decision.

    def decide(self, body):
        id, among, arm = body.get("id"), body.get("among"), body.get("arm")
        if among is not None and arm is not None:
            return 422, False, None
        if id in self.decisions:
            known = self.decisions[id]["body"]
            same = all(known.get(field) == body.get(field) for field in FIELDS)
            return (200, True, None) if same else (409, False, None)
        if self.paused and arm is None:
            return 409, False, None
        if len(self.opened()) >= self.most:
            self.sweep()
        full = len(self.opened()) >= self.most
        if arm is not None:
            if arm not in self.arms:
                return 422, False, None
            return (429, False, None) if full else (200, False, {arm})
        if full:
            return 429, False, None
        if among is not None and not set(among) <= set(self.arms):
            return 422, False, None
        allowed = {each for each in (among or self.arms) if self.arms[each] == "active"}
        return (200, False, allowed) if allowed else (409, False, None)

    def take_over(self, body, answer):
        self.record("decided", answer["id"])
        self.decisions[answer["id"]] = {
            "body": body,
            "answer": answer,
            "arm": answer["arm"],
            "time": self.time,
            "status": "open",
            "expired": None,
            "reward": None,
        }
        self.counts["decisions"] += 1

    def reward(self, id, value):
        if id not in self.decisions:
            return 404, False, None
        decision = self.decisions[id]
        if decision["status"] == "open" and self.is_due(id):
            self.expire(id)
        if decision["status"] == "open":
            self.record("rewarded", id)
            self.counts["rewards"] += 1
            self.pulls[decision["arm"]] += 1
            decision["status"] = "rewarded"
            decision["reward"] = (value, "applied", None, self.time)
            return 200, False, None
        if decision["reward"] is not None:
            first = decision["reward"]
            if first[0] != value:
                return 409, False, None
            return 200 if first[1] == "applied" else 202, True, None
        self.record("late", id)
        self.counts["late"] += 1
        reason = "window" if decision["status"] == "expired" else "reset"
        decision["reward"] = (value, "late", reason, self.time)
        return 202, False, None

    def summary(self):
        return {
            "state": "paused" if self.paused else "running",
            "created": self.created,
            "seq": len(self.log),
            "epoch": self.epoch,
            "counts": {**self.counts, "open": len(self.opened())},
            "arms": [{"arm": arm, "state": state, "pulls": self.pulls[arm]} for arm, state in self.arms.items()],
        }


class Service(RuleBasedStateMachine):
    """The calls, each made to the service and to the model."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="robandit-"))
        self.clock = Clock()
        self.models = {}
        self.audit = []
        self.keys = {}
        self.local = None

    @initialize(first=st.sampled_from(SETTINGS), second=st.sampled_from(SETTINGS), seed=seeds)
    def begin(self, first, second, seed):
        self.start()
        self.create("p", first)
        self.create("q", second)
        self.burst(seed)

    def start(self):
        self.local = Local(self.folder / "robandit.db", clock=self.clock, snapshot_every=7)
        self.local.__enter__()

    def teardown(self):
        try:
            if self.local is not None:
                assert not self.local.failures
                self.local.__exit__()
        finally:
            shutil.rmtree(self.folder)

    def call(self, *given):
        answer = self.local.call(*given)
        assert answer.status < 500, answer
        return answer

    def now(self):
        return self.local.engine.clock()

    def known_id(self, name, id):
        """An integer stands for one of the last decisions."""
        if not isinstance(id, int):
            return id
        known = list(self.models[name].decisions) if name in self.models else []
        return known[-1 - id % len(known)] if known else "never made"

    def check_decision(self, name, body, expected, status, replayed, answer):
        model = self.models[name]
        wanted, repeated, allowed = expected
        assert (status, replayed) == (wanted, repeated), (body, answer)
        if repeated:
            assert answer == model.decisions[body["id"]]["answer"]
        elif status == 200:
            assert answer["arm"] in allowed
            assert "id" not in body or answer["id"] == body["id"]
            assert answer["id"] not in model.decisions
            model.take_over(body, answer)
            assert (answer["experiment"], answer["time"], answer["seq"]) == (name, model.time, len(model.log))

    def check_reward(self, name, id, value, expected, status, replayed, answer):
        wanted, repeated, _ = expected
        assert (status, replayed) == (wanted, repeated), answer
        if status in (200, 202):
            decision = self.models[name].decisions[id]
            first, outcome, reason, time = decision["reward"]
            shown = (answer["id"], answer["arm"], answer["value"], answer["outcome"], answer["reason"], answer["time"])
            assert shown == (id, decision["arm"], first, outcome, reason, time)
            assert value == first

    # --- decisions and rewards --------------------------------------------------------------------------------------------

    # Half of the rules are about decisions and rewards, so that other calls find something to work on.

    @rule(name=names, bodies=st.lists(decisions(), min_size=1, max_size=3))
    def decide(self, name, bodies):
        for body in bodies:
            self.decide_once(name, body)

    @rule(name=names, number=recent, changed=st.one_of(st.none(), st.none(), decisions()))
    def decide_again(self, name, number, changed):
        if name in self.models and self.models[name].decisions:
            id = self.known_id(name, number)
            self.decide_once(
                name, {**(self.models[name].decisions[id]["body"] if changed is None else changed), "id": id}
            )

    def decide_once(self, name, body):
        expected = self.models[name].decide(body) if name in self.models else (404, False, None)
        answer = self.call("POST", f"/v1/experiments/{name}/decisions", body or None)
        if name in self.models:
            self.check_decision(name, body, expected, answer.status, answer.replayed, answer.json)
        else:
            assert answer.status == 404

    @rule(name=names, bodies=st.lists(decisions(), min_size=1, max_size=5))
    def decide_batch(self, name, bodies):
        answer = self.call("POST", f"/v1/experiments/{name}/decisions/batch", {"items": bodies})
        if name not in self.models:
            assert answer.status == 404
            return
        assert answer.status == 200
        for body, item in zip(bodies, answer.json["items"], strict=True):
            expected = self.models[name].decide(body)
            self.check_decision(name, body, expected, item["status"], item["replayed"], item["decision"])

    @rule(name=names, given=st.lists(rewards, min_size=1, max_size=3))
    def reward(self, name, given):
        for id, value in given:
            self.reward_once(name, self.known_id(name, id), value)

    @rule(name=names, number=recent, value=st.one_of(st.none(), st.none(), st.sampled_from(VALUES)))
    def reward_again(self, name, number, value):
        id = self.known_id(name, number)
        if name in self.models and id in self.models[name].decisions:
            known = self.models[name].decisions[id]["reward"]
            self.reward_once(name, id, known[0] if known is not None and value is None else value or 0.0)

    def reward_once(self, name, id, value):
        expected = self.models[name].reward(id, value) if name in self.models else (404, False, None)
        answer = self.call("POST", f"/v1/experiments/{name}/rewards", {"id": id, "value": value})
        if name in self.models:
            self.check_reward(name, id, value, expected, answer.status, answer.replayed, answer.json)
        else:
            assert answer.status == 404

    @rule(name=names, given=st.lists(rewards, min_size=1, max_size=6))
    def reward_batch(self, name, given):
        items = [{"id": self.known_id(name, id), "value": value} for id, value in given]
        answer = self.call("POST", f"/v1/experiments/{name}/rewards/batch", {"items": items})
        if name not in self.models:
            assert answer.status == 404
            return
        for sent, item in zip(items, answer.json["items"], strict=True):
            expected = self.models[name].reward(sent["id"], sent["value"])
            self.check_reward(
                name, sent["id"], sent["value"], expected, item["status"], item["replayed"], item["reward"]
            )

    @rule(name=names, id=any_ids)
    def explain(self, name, id):
        id = self.known_id(name, id)
        answer = self.call("GET", f"/v1/experiments/{name}/decisions/{quote(id, safe='')}")
        if name not in self.models or id not in self.models[name].decisions:
            assert answer.status == 404
            return
        decision, shown = self.models[name].decisions[id], answer.json
        assert {field: shown[field] for field in decision["answer"]} == decision["answer"]
        assert (shown["status"], shown["expired"]) == (decision["status"], decision["expired"])
        assert shown["among"] == decision["body"].get("among")
        assert shown["context"] == decision["body"].get("context")
        assert shown["observed"] == (decision["body"].get("arm") is not None)
        reward = shown["reward"] and tuple(shown["reward"][field] for field in ("value", "outcome", "reason", "time"))
        assert reward == decision["reward"]

    @rule(seed=seeds)
    def burst(self, seed):
        """Many calls at once. Hypothesis alone makes short and similar histories, in which little is open, late or full."""
        rng = random.Random(seed)
        for _ in range(30):
            self.call_at_random(rng, rng.choice(NAMES) if rng.random() < 0.3 else "p")
            self.overview()

    def call_at_random(self, rng, name):
        number, value = rng.randrange(8), rng.choice(VALUES)
        calls = {
            lambda: self.decide_once(name, random_decision(rng)): 30,
            lambda: self.decide_again(name, number, rng.choice([None, None, random_decision(rng)])): 8,
            lambda: self.decide_batch(name, [random_decision(rng) for _ in range(rng.randrange(1, 5))]): 6,
            lambda: self.reward_once(name, self.known_id(name, number), value): 30,
            lambda: self.reward_again(name, number, rng.choice([None, value])): 8,
            lambda: self.reward_batch(name, [(rng.randrange(8), rng.choice(VALUES)) for _ in range(4)]): 6,
            lambda: self.reward_at_the_end_of_the_window(name, value): 3,
            lambda: self.explain(name, number): 4,
            lambda: self.move_clock(rng.choice(SECONDS)): 12,
            self.sweep: 3,
            lambda: self.change_arm(name, rng.choice(ARMS), rng.choice(STATES)): 4,
            lambda: self.add_arm(name, rng.choice(ARMS)): 2,
            lambda: self.pause_or_resume(name, paused=rng.random() < 0.3): 3,
            lambda: self.reset(name): 1.5,
            lambda: self.create(name, rng.choice(SETTINGS)): 3,
            lambda: self.delete(name): 0.5,
        }
        [call] = rng.choices(list(calls), weights=list(calls.values()))
        call()

    def reward_at_the_end_of_the_window(self, name, value):
        if name in self.models and (opened := self.models[name].opened()):
            decided = self.models[name].decisions[opened[-1]]["time"]
            if self.now() == self.clock.now <= decided + WINDOW:
                self.clock.now = decided + WINDOW
            self.reward_once(name, opened[-1], value)

    # --- experiments ------------------------------------------------------------------------------------------------------

    @rule(name=names, data=st.data())
    def administer(self, name, data):
        """One rule for all these calls, because they are rare in practice."""
        changes = [self.add_arm, self.change_arm, self.change_arm, self.pause, self.resume, self.reset, self.create]
        change = data.draw(st.sampled_from([*changes, self.delete, self.create_key, self.revoke_key]))
        given = {
            self.create: [st.sampled_from(SETTINGS)],
            self.add_arm: [st.sampled_from(ARMS)],
            self.change_arm: [arms, st.sampled_from(STATES)],
            self.revoke_key: [recent],
        }
        change(name, *(data.draw(each) for each in given.get(change, ())))

    @precondition(lambda self: len(self.models) < len(NAMES))
    @rule(name=names, given=st.sampled_from(SETTINGS))
    def create(self, name, given):
        answer = self.call("PUT", f"/v1/experiments/{name}", given)
        if name not in self.models:
            assert answer.status == 201
            # The clock of the engine, which never goes backwards, has tests of its own.
            self.models[name] = Model(given, lambda: self.now())
            self.audit.append(("create", name))
        else:
            assert answer.status == (200 if self.models[name].given == given else 409)

    def delete(self, name):
        answer = self.call("DELETE", f"/v1/experiments/{name}")
        assert answer.status == (204 if name in self.models else 404)
        if self.models.pop(name, None) is not None:
            self.audit.append(("delete", name))

    def add_arm(self, name, arm):
        answer = self.call("POST", f"/v1/experiments/{name}/arms", {"arm": arm})
        if name not in self.models:
            assert answer.status == 404
            return
        model = self.models[name]
        assert answer.status == (409 if arm in model.arms else 201)
        if arm not in model.arms:
            model.arms[arm], model.pulls[arm] = "active", 0
            model.record("arm_added", None)
            self.audit.append(("add arm", name))

    def change_arm(self, name, arm, state):
        answer = self.call("PATCH", f"/v1/experiments/{name}/arms/{quote(arm, safe='')}", {"state": state})
        if name not in self.models or arm not in self.models[name].arms:
            assert answer.status == 404
            return
        model = self.models[name]
        present = model.arms[arm]
        if present == state:
            assert answer.status == 200
        elif present == "retired":
            assert answer.status == 409
        else:
            assert answer.status == 200
            model.arms[arm] = state
            model.record({"active": "arm_resumed", "paused": "arm_paused", "retired": "arm_retired"}[state], None)
            self.audit.append(("change arm", name))

    def pause(self, name):
        self.pause_or_resume(name, paused=True)

    def resume(self, name):
        self.pause_or_resume(name, paused=False)

    def pause_or_resume(self, name, *, paused):
        answer = self.call("POST", f"/v1/experiments/{name}/{'pause' if paused else 'resume'}")
        if name not in self.models:
            assert answer.status == 404
            return
        assert answer.status == 200
        model = self.models[name]
        if model.paused != paused:
            model.paused = paused
            model.record("paused" if paused else "resumed", None)
            self.audit.append(("pause" if paused else "resume", name))

    def reset(self, name):
        answer = self.call("POST", f"/v1/experiments/{name}/reset")
        if name not in self.models:
            assert answer.status == 404
            return
        model = self.models[name]
        model.record("reset", None)
        model.epoch += 1
        model.forget()
        self.audit.append(("reset", name))

    # --- keys -------------------------------------------------------------------------------------------------------------

    def create_key(self, _):
        made = self.call("POST", "/v1/keys", {"scopes": ["read"]}).json
        self.keys[made["id"]] = None
        self.audit.append(("create key", made["id"]))

    def revoke_key(self, _, number):
        if not self.keys:
            return
        id = list(self.keys)[number % len(self.keys)]
        revoked = self.call("DELETE", f"/v1/keys/{id}").json["revoked"]
        self.keys[id] = self.now() if self.keys[id] is None else self.keys[id]
        assert revoked == self.keys[id]
        self.audit.append(("revoke key", id))

    # --- time and restarts ------------------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from(SECONDS))
    def move_clock(self, seconds):
        self.clock.now += seconds

    @rule()
    def sweep(self):
        """The service does this every half second, which is switched off here."""

        async def sweep():
            for experiment in self.local.engine.experiments.values():
                experiment.expire_due()
            await self.local.engine.settled()

        self.local.run(sweep())
        for model in self.models.values():
            model.sweep()

    @rule(snapshot=st.booleans(), seed=seeds)
    def restart(self, snapshot, seed):
        if not snapshot:  # as after a crash: the last snapshots are older
            engine = self.local.engine
            engine._snapshots = {experiment.number: experiment.seq for experiment in engine.experiments.values()}
        self.local.__exit__()
        assert not self.local.failures
        self.start()
        self.overview()
        self.burst(seed)

    # --- what must always hold --------------------------------------------------------------------------------------------

    @invariant()
    def overview(self):
        if self.local is None:
            return
        listed = self.call("GET", "/v1/experiments").json["experiments"]
        shown = {
            each["name"]: {field: each[field] for field in Model.summary(self.models[each["name"]])} for each in listed
        }
        assert shown == {name: model.summary() for name, model in self.models.items()}

    @rule(name=names)
    def read_log(self, name):
        answer = self.call("GET", f"/v1/experiments/{name}/log")
        if name in self.models:
            rows = [json.loads(line) for line in answer.body.splitlines()]
            assert [(row["seq"], row["kind"], row["id"]) for row in rows] == self.models[name].log
        else:
            assert answer.status == 404

    @rule()
    def read_administration(self):
        entries = self.call("GET", "/v1/audit").json["entries"]
        assert [(entry["action"], entry["subject"]) for entry in entries] == self.audit
        keys = self.call("GET", "/v1/keys").json["keys"]
        assert {key["id"]: key["revoked"] for key in keys} == self.keys


class ClockedStore(PostgresStore):
    """A database whose clock the test moves."""

    def __init__(self, url, clock):
        super().__init__(url, durability="off")
        self.clock = clock

    def turn(self, *given):
        turn = super().turn(*given)
        turn.time = self.clock()
        return turn

    def pulse(self):
        return super().pulse()._replace(time=self.clock())


class Replicas(Service):
    """The same calls to two servers that share a database, each to one of them at random."""

    postgres = None

    def __init__(self):
        super().__init__()
        self.random = random.Random(1)
        self.url = self.postgres.create_database()
        self.servers = []

    def start(self):
        while len(self.servers) < 2:
            server = Local(self.folder, store=ClockedStore(self.url, self.clock), clock=self.clock, snapshot_every=7)
            self.servers.append(server.__enter__())
        self.local = self.servers[0]

    def teardown(self):
        try:
            for server in self.servers:
                assert not server.failures
            states = [self.states(server) for server in self.servers]
            assert len(states) < 2 or states[0] == states[1]
        finally:
            for server in self.servers:
                server.__exit__()
            shutil.rmtree(self.folder)
            self.postgres.drop_database(self.url)

    def states(self, server):
        """Return the bytes of all experiments in a server, when it has caught up."""
        server.run(server.engine.catch_up())
        return {name: each.snapshot().content for name, each in server.engine.experiments.items()}

    def call(self, *given):
        self.local = self.random.choice(self.servers)
        return super().call(*given)

    def now(self):
        return self.clock()

    @rule()
    def sweep(self):
        server = self.random.choice(self.servers)
        for name in self.models:
            server.run(server.engine.change(name, lambda experiment: experiment.expire_due()))
        for model in self.models.values():
            model.sweep()

    @rule(snapshot=st.booleans(), seed=seeds)
    def restart(self, snapshot, seed):
        """Start one server again, or both."""
        for server in self.servers[:] if snapshot else [self.random.choice(self.servers)]:
            server.__exit__()
            assert not server.failures
            self.servers.remove(server)
        self.start()
        self.overview()
        self.burst(seed)


@pytest.fixture
def without_sweeps(monkeypatch):
    monkeypatch.setattr(engines, "SWEEP_EVERY", 1e6)
    monkeypatch.setattr(replicas, "PULSE", 1e6)


@pytest.mark.parametrize("servers", [Service, Replicas])
def test_all_calls_agree_with_a_plain_model(without_sweeps, servers, request):
    if servers is Replicas:
        Replicas.postgres = request.getfixturevalue("postgres")
    chosen = settings(
        max_examples=amount(20 if servers is Service else 4, 400),
        stateful_step_count=amount(20, 60),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(servers, settings=chosen)
