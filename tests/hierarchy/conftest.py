"""What is known of the workshop from six demonstrations, and a training in it, made once."""

import pytest


@pytest.fixture(scope="session")
def known():
    return pytest.importorskip("workshop").known()


@pytest.fixture(scope="session")
def task(known):
    return known.task


@pytest.fixture(scope="session")
def worlds(known):
    return known.worlds


@pytest.fixture(scope="session")
def shown(known):
    return known.shown


@pytest.fixture
def env():
    """The corridor."""
    return pytest.importorskip("corridor").followed()


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The folder of a whole training, to be read only."""
    folder = tmp_path_factory.mktemp("trained") / "whole"
    pytest.importorskip("workshop").train_in(folder)
    return folder
