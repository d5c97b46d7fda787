"""Train the workshop a little, in one of one or two processes; a signal may come in between.

    python two_processes.py FOLDER [--port PORT --index INDEX] [--signal NUMBER PHASE UPDATE]

A process that is only interrupted goes on at once.
"""

import argparse
import signal

import workshop

from align_rudder.hierarchy.aligned import tables_of
from align_rudder.hierarchy.devices import find_devices
from align_rudder.hierarchy.folder import TrainingFolder
from align_rudder.hierarchy.ppo import PPO
from align_rudder.hierarchy.settings import Training
from align_rudder.hierarchy.trainer import train
from align_rudder.runs.rows import read_rows

TRAINING = Training(
    steps=2600,
    ppo=PPO(16, 16, n_epochs=1, n_minibatches=2, bc_coef=0.05, burn_in=1),
    hidden=(16,),
    symmetric=False,
    clone=20,
    pool=32,
    buffer=8,
    evaluations=1,
    worlds=8,
    horizon=30,
    manager=0.4,
    patience=40,
)


def signal_after(number, phase, updates):
    """Let the signal come when that update was made and before it is saved, once."""
    save, sent = TrainingFolder.save_checkpoint, []

    def signalled(folder, tree, progress, must=True):
        if (progress.phase, progress.updates) == (phase, updates) and not sent:
            sent.append(number)
            signal.raise_signal(number)
        save(folder, tree, progress, must)

    TrainingFolder.save_checkpoint = signalled


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--port")
    parser.add_argument("--index", type=int)
    parser.add_argument("--signal", nargs=3)
    given = parser.parse_args()
    if given.port:
        devices = find_devices("cpu", f"localhost:{given.port}", 2, given.index)
    else:
        devices = find_devices("cpu")
    if given.signal:
        number, phase, updates = given.signal
        signal_after(int(number), phase, int(updates))
    task = workshop.Workshop(max_steps=30)
    runs = workshop.demonstrations(task, 2)
    tables = tables_of(workshop.fitted(runs))
    try:
        train(task, tables, runs, TRAINING, given.folder, devices, progress=False)
    except KeyboardInterrupt:
        print(f"stopped after {len(read_rows(given.folder + '/updates.csv'))} updates")
        train(task, tables, runs, TRAINING, given.folder, devices, progress=False)
    print(f"devices={devices.n} first={devices.first}")
