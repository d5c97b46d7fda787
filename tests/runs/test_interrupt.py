"""Being asked to stop."""

import os
import signal
import threading

import pytest

from align_rudder.runs.interrupt import exit_status, interrupt_on_signal, stop_on_signal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted_and_the_second_stops_at_once(number, capsys):
    before = signal.getsignal(number)
    with stop_on_signal() as stop:
        assert not stop.asked
        os.kill(os.getpid(), number)
        assert stop.asked
        assert "Ctrl-C again to stop at once" in capsys.readouterr().err
        assert exit_status(stop.interruption()) == 128 + number
        with pytest.raises(KeyboardInterrupt) as raised:
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before
    assert exit_status(raised.value) == 128 + number


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts(number):
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt) as raised, interrupt_on_signal():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before
    assert exit_status(raised.value) == 128 + number


def test_other_threads_leave_signals_alone():
    found = []

    def work():
        with stop_on_signal() as stop, interrupt_on_signal():
            found.append((stop.asked, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, signal.getsignal(signal.SIGTERM))]
