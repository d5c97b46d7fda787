"""Shared by the tests of what is shown: a model of crafting demonstrations."""

import pytest
from show.chromium import started

import align_rudder as ar
from align_rudder.data.crafting import crafting_demonstrations, crafting_episode


@pytest.fixture(scope="session")
def crafting():
    return ar.AlignRudder().fit(crafting_demonstrations(6))


@pytest.fixture(scope="session")
def episodes():
    return [crafting_episode(500), crafting_episode(500, success=False)]


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    driver = started(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()
