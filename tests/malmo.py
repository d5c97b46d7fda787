"""Stands for the Java process: speaks Malmo's protocol to minerl's client, in the small world.

    python malmo.py -port 9000 …        (as minerl starts Minecraft's launchClient.sh)

It runs in minerl's own interpreter. `make`, which `server.py` calls there, has minerl start it.
The file `plan` in its folder says how it ends: each process takes the first line, such as
"die 7", "hang 7" or "garbage 7", and does so at its seventh step; without a line it lives on.

A message is its length (32 bits) and its bytes. What is asked, and what is answered:

    <MalmoEnv…/>                         nothing: a new connection says hello
    <MissionInit …>, then uid:role:resets:agents:synchronous[:seed]     1 (32 bits)
    <Peek/>                              picture, JSON, done (8 bits)
    <Step0>, in 0.4.4 <StepClient0>, a command on each line
                                         picture, reward, done, sent (64, 8, 8 bits), JSON
    <StepServer>                         nothing
    <Quit/>, <Exit>NOW</Exit>            1 (32 bits)
"""

import importlib.util
import json
import os
import re
import socket
import struct
import sys
import time
from pathlib import Path

WORLD = {"hits": 1, "distance": 1, "spread": 90}
NAMES = {"craftNearby": "nearbyCraft", "smeltNearby": "nearbySmelt"}
"""What 0.4.4 calls actions, and what 0.3.7 does."""
FOLDER = Path(os.environ.get("STAND_IN", "."))


def make(name):
    """Return minerl's environment, whose Minecraft is this file."""
    import gym  # pyright: ignore
    import minerl  # noqa: F401  # pyright: ignore
    from minerl.env.malmo import InstanceManager  # pyright: ignore

    InstanceManager.MINECRAFT_DIR = str(FOLDER / "Minecraft")
    InstanceManager.SCHEMAS_DIR = str(FOLDER / "Schemas")
    return gym.make(name)


def install(folder, python):
    """Lay out what minerl takes for Minecraft."""
    (folder / "Schemas").mkdir(parents=True)
    (folder / "Minecraft").mkdir()
    script = folder / "Minecraft" / "launchClient.sh"
    script.write_text(f'#!/bin/sh\nexec "{python}" "{Path(__file__).resolve()}" "$@"\n')
    script.chmod(0o755)


def small_world():
    """Return the small world, where all is quickly reached."""
    path = os.environ["STAND_IN_WORLD"]
    spec = importlib.util.spec_from_file_location("scripted", path)
    scripted = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scripted)
    return scripted.ScriptedEnv(version=4, **WORLD)


def planned():
    """Return what to do at which step, and strike it off the plan."""
    plan = FOLDER / "plan"
    lines = plan.read_text().splitlines() if plan.exists() else []
    if not lines:
        return "live", 0
    plan.write_text("\n".join(lines[1:]))
    what, step = lines[0].split()
    return what, int(step)


class Malmo:
    """Answers one client."""

    def __init__(self, connection):
        self.connection, self.env, self.steps, self.plan = connection, small_world(), 0, planned()

    def receive(self):
        (length,) = struct.unpack("!I", self.exactly(4))
        return self.exactly(length).decode()

    def exactly(self, n):
        got = b""
        while len(got) < n:
            part = self.connection.recv(n - len(got))
            if not part:
                sys.exit(0)
            got += part
        return got

    def send(self, message):
        self.connection.sendall(struct.pack("!I", len(message)) + message)

    def observed(self, seen):
        """Return picture (upside down) and JSON of an observation."""
        counts = [
            {"type": k, "quantity": int(n), "metadata": 0}
            for k, n in seen["inventory"].items()
            if n
        ]
        hand = seen["equipped_items"]["mainhand"]
        hand = {k: str(v) if k == "type" else int(v) for k, v in hand.items()}
        told = {"inventory": counts, "equipped_items": {"mainhand": {**hand, "metadata": 0}}}
        return seen["pov"][::-1].tobytes(), json.dumps(told).encode()

    def mission(self):
        seed = self.receive().split(":")[5:]
        self.env.seed(int(seed[0]) if seed else 0)
        self.seen = self.env.reset()
        self.send(struct.pack("!I", 1))

    def peek(self):
        picture, told = self.observed(self.seen)
        self.send(picture)
        self.send(told)
        self.send(struct.pack("!b", 0))

    def step(self, message):
        self.steps += 1
        if self.steps == self.plan[1]:
            if self.plan[0] == "die":
                os._exit(134)
            if self.plan[0] == "hang":
                time.sleep(1000)
            if self.plan[0] == "garbage":
                self.send(b"#")
                self.send(b"A fatal error has been detected by the Java Runtime Environment")
        action = {}
        for line in re.sub("<[^>]*>", "", message).splitlines():
            name, *values = line.split()
            name = NAMES.get(name, name)
            numbers = name == "camera" or values[0].isdigit()
            action[name] = [float(v) for v in values] if numbers else values[0]
            if numbers and name != "camera":
                action[name] = int(values[0])
        self.seen, reward, done, _ = self.env.step(action)
        picture, told = self.observed(self.seen)
        self.send(picture)
        self.send(struct.pack("!dbb", reward, done, 1))
        self.send(told)

    def serve(self):
        while True:
            message = self.receive()
            if message.startswith("<MissionInit"):
                self.mission()
            elif message == "<Peek/>":
                self.peek()
            elif message.startswith("<StepServer"):
                pass  # 0.4.4 says so when all clients have stepped, and waits for nothing
            elif message.startswith("<Step"):
                self.step(message)
            elif message.startswith(("<Quit", "<Exit")):
                self.send(struct.pack("!I", 1))
                if message.startswith("<Exit"):
                    sys.exit(0)


def main():
    port = int(sys.argv[sys.argv.index("-port") + 1])
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("localhost", port))
        listening.listen(1)
        print(f"***** Start MalmoEnvServer on port {port}")
        print("CLIENT enter state: DORMANT", flush=True)
        connection, _ = listening.accept()
        Malmo(connection).serve()


if __name__ == "__main__":
    main()
