"""Ids of a configuration are those that every other program of the fleet computes."""

import pytest

from plaita.backends.generations import Generations, generations

QUEUE = "plaita:flow:queue"
USUAL = Generations("cf1-fe07261d70a0", "cfg1-68311eff386e", "bg1-6cece37a8ab0")


def test_the_ids_of_the_defaults_are_the_documented_ones() -> None:
    assert generations({}, QUEUE) == USUAL


@pytest.mark.parametrize(
    ("environ", "ids"),
    [
        ({"PLAITA_DEPLOYMENT_EPOCH": "7"}, ("cf1-fe07261d70a0", "cfg1-e0d4deb0a36b", "bg1-6cece37a8ab0")),
        (
            {"PLAITA_DEPLOYMENT_EPOCH": "7", "PLAITA_DISABLE_FENCING": "1"},
            ("cf1-fe07261d70a0", "cfg1-727f9065292d", "bg1-6cece37a8ab0"),
        ),
        (
            {"PLAITA_LEASE_TTL_SECONDS": "120"},
            ("cf1-fe07261d70a0", "cfg1-", "bg1-6a07ef4af763"),
        ),
        ({"PLAITA_TENANT_NAMESPACE_VERSION": "v2"}, ("cf1-f31209c2d755", "cfg1-", "bg1-6cece37a8ab0")),
    ],
)  # fmt: skip
def test_variables_change_the_ids_they_belong_to(environ: dict[str, str], ids: tuple[str, ...]) -> None:
    found = generations(environ, QUEUE)
    assert (found.config_family, found.budget_generation) == (ids[0], ids[2])
    assert found.config_generation.startswith(ids[1])


@pytest.mark.parametrize("text", ["0", "-5", "many", "", " "])
def test_a_limit_that_is_no_positive_number_is_the_default(text: str) -> None:
    assert generations({"PLAITA_MAX_DELIVERIES": text, "PLAITA_TASK_MAX_AGE_SECONDS": text}, QUEUE) == USUAL


@pytest.mark.parametrize("word", ["true", "yes", "0", "on"])
def test_only_a_one_turns_a_switch(word: str) -> None:
    assert generations({"PLAITA_DISABLE_AFFINITY": word}, QUEUE) == USUAL


def test_another_stream_group_or_dead_letter_stream_is_another_family() -> None:
    families = {
        generations({}, QUEUE).config_family,
        generations({}, "other").config_family,
        generations({}, QUEUE, "group").config_family,
        generations({}, QUEUE, dlq_key="dead").config_family,
    }
    assert len(families) == 4
