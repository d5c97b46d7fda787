"""Train the workshop a little: python two_processes.py FOLDER [PORT INDEX]."""

import sys

import workshop

from align_rudder.hierarchy.alignment import tables_of
from align_rudder.hierarchy.devices import find_devices
from align_rudder.hierarchy.ppo import PPO
from align_rudder.hierarchy.training import Training, train


def small_training(folder, devices):
    task = workshop.Workshop(max_steps=30)
    runs = workshop.demonstrations(task, 2)
    ppo = PPO(16, 16, epochs=1, minibatches=2, cloning=0.05, burn_in=1)
    training = Training(
        steps=2600,
        ppo=ppo,
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
    train(task, tables_of(workshop.fitted(runs)), runs, training, folder, devices, progress=False)


if __name__ == "__main__":
    folder, *rest = sys.argv[1:]
    if rest:
        devices = find_devices("cpu", f"localhost:{rest[0]}", 2, int(rest[1]))
    else:
        devices = find_devices("cpu")
    small_training(folder, devices)
    print(f"devices={devices.n} first={devices.first}")
