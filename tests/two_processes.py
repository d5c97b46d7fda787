"""Train the workshop a little: python two_processes.py FOLDER [PORT INDEX [interrupted]]."""

import signal
import sys

import workshop

from align_rudder.hierarchy import training
from align_rudder.hierarchy.aligned import tables_of
from align_rudder.hierarchy.devices import find_devices
from align_rudder.hierarchy.ppo import PPO
from align_rudder.hierarchy.training import Training, train


def small_training(folder, devices):
    task = workshop.Workshop(max_steps=30)
    runs = workshop.demonstrations(task, 2)
    ppo = PPO(16, 16, epochs=1, minibatches=2, cloning=0.05, burn_in=1)
    small = Training(
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
    train(task, tables_of(workshop.fitted(runs)), runs, small, folder, devices, progress=False)


def interrupt_after_an_update():
    log = training._Trainer._log

    def logged(trainer, metrics):
        log(trainer, metrics)
        if trainer.at.updates == 1:
            signal.raise_signal(signal.SIGINT)

    training._Trainer._log = logged


if __name__ == "__main__":
    folder, *rest = sys.argv[1:]
    if rest:
        devices = find_devices("cpu", f"localhost:{rest[0]}", 2, int(rest[1]))
    else:
        devices = find_devices("cpu")
    if "interrupted" in rest:
        interrupt_after_an_update()
    small_training(folder, devices)
    print(f"devices={devices.n} first={devices.first}")
