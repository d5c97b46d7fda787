"""What is known of the workshop from six demonstrations, made once."""

import pytest

workshop = pytest.importorskip("workshop")


@pytest.fixture(scope="session")
def known():
    return workshop.known()


@pytest.fixture(scope="session")
def task(known):
    return known.task


@pytest.fixture(scope="session")
def worlds(known):
    return known.worlds


@pytest.fixture(scope="session")
def shown(known):
    return known.shown
