"""Policies as versions 0.1 and 0.2 wrote them: read with today's names, or refused by name."""

import hashlib

import msgspec
import numpy as np
import pytest

import robandit as rb
from helpers.every_policy import VARIANTS
from robandit.decisions.settings import checked_settings
from robandit.errors import InvalidInput
from robandit.live.saving import HEADER, MAGIC
from robandit.policies import all_policies
from robandit.policies.former import identity, renewed

DEFAULT = {"policy": "AdaKLUCB", "center": "median", "schedule": "adaptive", "pulls": "single"}
PROVED = {"policy": "AdaKLUCB", "center": None, "schedule": "proved", "pulls": "single"}


@pytest.mark.parametrize("policy", [*all_policies(), *VARIANTS], ids=repr)
def test_what_0_2_wrote_is_read(policy):
    assert renewed(identity(policy.to_dict())) == policy.to_dict() == renewed(policy.to_dict())
    assert rb.Policy.from_dict(identity(policy.to_dict())) == policy


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"schedule": "practical"}, "AdaKLUCB(schedule='practical')"),
        ({"schedule": "practical", "pulls": "double"}, "AdaKLUCB(schedule='practical', pulls='double')"),
        ({"schedule": "proved"}, "AdaKLUCB(schedule='proved')"),
        ({"policy": "AdaRUCB", "center": "median"}, "AdaRUCB(center='median')"),
    ],
)
def test_what_is_gone_is_refused_by_name(changes, named):
    data = (DEFAULT if "policy" not in changes else {}) | changes
    for policy in (data, {"policy": "Restarting", "of": data}):
        with pytest.raises(InvalidInput) as caught:
            rb.Policy.from_dict(policy)
        assert str(caught.value).startswith(
            f"{named} is gone since Robandit 0.3: Robandit 0.2.0 still reads and plays it"
        )
        assert (caught.value.parameter, caught.value.value) == ("policy", data)


@pytest.mark.parametrize(
    "data", [DEFAULT | {"schedule": "other"}, DEFAULT | {"center": 0.0}, DEFAULT | {"pulls": ["x"]}]
)
def test_what_no_version_wrote_is_no_parameter(data):
    with pytest.raises(InvalidInput, match="AdaKLUCB has no parameter"):
        rb.Policy.from_dict(data)


@pytest.mark.parametrize("pulls", ["single", "double"])
def test_a_bandit_that_0_2_saved_with_the_proved_schedule_goes_on(pulls):
    """Its state had a field more."""
    bandit = rb.Bandit(["a", "b"], rb.AdaKLProved(pulls=pulls), compile="never")
    rewards = np.random.default_rng(1).standard_t(1.5, 40).tolist()
    for reward in rewards:
        bandit.update(bandit.select(), reward)
    data = bandit.to_bytes()
    content = msgspec.msgpack.decode(data[HEADER:])
    content["policy"] = PROVED | {"pulls": pulls}
    content["state"]["firsts"] = ["<f8", [2, 2, 128], bytes(8 * 2 * 2 * 128)]
    payload = msgspec.msgpack.encode(content)
    old = data[: len(MAGIC) + 4] + hashlib.sha256(payload).digest() + payload
    again = rb.Bandit.from_bytes(old, compile="never")
    assert again.policy == bandit.policy
    assert again.to_bytes() == data


def test_an_experiment_that_0_2_created_can_be_asked_for_again():
    asked = {"arms": ["a"], "minimize": False, "seed": 1, "reward_window": None, "on_expiry": "drop", "max_open": None}
    new = checked_settings(policy=None, drawn=1, **asked)
    old = msgspec.structs.replace(new, policy=DEFAULT)
    assert old.first_difference(new) is None
    other = msgspec.structs.replace(new, policy=PROVED)
    assert 'policy is "AdaKLProved(pulls=\'single\')", not "AdaKLUCB()"' in (other.first_difference(new) or "")
