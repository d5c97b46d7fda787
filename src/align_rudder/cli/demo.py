"""`align-rudder demo`: the method on built-in data, and what it does for a learner."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from align_rudder.cli.options import Output, check_figure, check_options
from align_rudder.files import Whole, check_outputs, write_figure, write_json

__all__ = ["Demo"]

_TASK = """\
An agent learns recipes of eight items. Where the items stand is new to it, how far it has come is
hidden, and only the finished dish is paid. It has ten logs of cooks in other kitchens, who went
astray now and then: what they took, one word after the other.
"""
_ENDINGS = (".png", ".svg", ".pdf", ".eps", ".ps", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")


@dataclass
class Demo:
    """Show a strategy found in demonstrations, a reward redistributed, and a learner using it."""

    output: Output = "demo/align-rudder-demo.png"
    """File for the figure; that of the learning curves has "-learning" in its name."""
    seed: int = 0
    """Seed of the demonstrations."""
    json: str | None = None
    """Also write summary and learning results as JSON to this file."""

    def run(self) -> None:
        """Fit, redistribute, learn, draw."""
        from align_rudder.studies import demo
        from align_rudder.summary import as_data

        check_options(self, {"seed": Whole()})
        check_figure(self.output, "--output", _ENDINGS)
        path = Path(self.output)
        learning = path.with_name(f"{path.stem}-learning{path.suffix}")
        path.parent.mkdir(parents=True, exist_ok=True)
        check_outputs(self.output, str(learning), self.json)
        print("aligning; a first run compiles for some seconds …", file=sys.stderr, flush=True)
        crafted = demo.craft(self.seed)
        write_figure(path, crafted.figure())
        print(crafted, f"\nfigure: {path}\n", sep="\n", flush=True)
        print(_TASK, flush=True)
        learned = demo.learn(sys.stderr.isatty())
        write_figure(learning, learned.figure)
        write_json(self.json, {**as_data(crafted.model), "learning": learned.data})
        print(learned.table, f"\nfigure: {learning}", sep="\n")
