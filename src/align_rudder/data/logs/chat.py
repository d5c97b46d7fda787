"""Runs of agents in JSON: chat messages with tool calls, τ-bench results, SWE-agent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from align_rudder.data.logs.runs import Entry, Message, Run

__all__ = ["is_run", "run_of"]

_MESSAGES = ("messages", "traj", "trajectory", "conversation")
_DEPTH = 4


def is_run(value: Any) -> bool:
    """Return whether a JSON value is a run: a list of messages, or an object that has one."""
    if isinstance(value, dict):
        return any(isinstance(value.get(name), list) for name in _MESSAGES)
    return isinstance(value, list) and bool(value) and all(map(_is_message, value))


def run_of(value: Any, name: str) -> Run:
    """Return the run of a JSON value; `ValueError` if it is none.

    Args:
        value: A list of messages, or an object with "messages", "traj" or "trajectory".
        name: What it is called.
    """
    fields: dict[str, Any] = {}
    if isinstance(value, dict):
        key = next((key for key in _MESSAGES if isinstance(value.get(key), list)), None)
        if key is None:
            raise ValueError(f"it has none of {', '.join(_MESSAGES)}, a list of messages")
        fields = dict(_flat({k: v for k, v in value.items() if k not in (*_MESSAGES, "history")}))
        value = value[key]
    if not isinstance(value, list):
        raise ValueError("a list of messages is needed")
    if value and all(isinstance(step, dict) and "action" in step for step in value):
        return Run(name, *_steps(value), fields=fields)
    for i, message in enumerate(value):
        if not _is_message(message):
            raise ValueError(
                f"message {i} is {str(message)[:60]!r}; an object with a role and content or "
                "tool_calls is needed"
            )
    return Run(name, tuple(_entries(value)), tuple(map(_message, value)), fields)


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def _message(message: Mapping[str, Any]) -> Message:
    return Message(message["role"], _text(message.get("content")))


def _text(content: Any) -> str:
    """Return a content as text: a string, or parts of which some are text."""
    if isinstance(content, list):
        texts = (part.get("text") if isinstance(part, dict) else part for part in content)
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else "" if content is None else json.dumps(content)


def _entries(messages: list[dict[str, Any]]) -> Iterator[Entry]:
    answers: dict[str, list[dict[str, Any]]] = {}
    for message in messages:
        if message["role"] in ("tool", "function"):
            answers.setdefault(str(message.get("tool_call_id") or message.get("name")), []).append(
                message
            )
    for i, message in enumerate(messages):
        role, calls = message["role"], message.get("tool_calls")
        if not calls and isinstance(message.get("function_call"), dict):
            calls = [{"function": message["function_call"]}]
        if role in ("tool", "function"):
            continue
        if not calls:
            if role != "system":
                yield Entry("message", role, i)
            continue
        if not isinstance(calls, list):
            raise ValueError(f"the tool_calls of message {i} are no list")
        for call in calls:
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict) or not isinstance(function.get("name"), str):
                raise ValueError(f"a tool call of message {i} has no function with a name")
            waiting = answers.get(str(call.get("id") or function["name"]), [])
            answer = waiting.pop(0) if waiting else None
            yield Entry(
                "call",
                function["name"],
                i,
                _arguments(function.get("arguments")),
                None if answer is None else _is_error(answer),
                "" if answer is None else _text(answer.get("content")),
            )


def _arguments(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else {}
        except (ValueError, RecursionError):
            return {"arguments": given}  # the model wrote no JSON: that is what happened
    return given if isinstance(given, dict) else {} if given is None else {"arguments": given}


def _is_error(answer: Mapping[str, Any]) -> bool:
    """Return whether an answer says that it is an error, in a field or in its first word."""
    if isinstance(answer.get("is_error"), bool):
        return answer["is_error"]
    text = _text(answer.get("content")).lstrip().lower()
    return text.startswith(("error", "traceback", "exception", '{"error"', '{"is_error": true'))


def _steps(steps: list[dict[str, Any]]) -> tuple[tuple[Entry, ...], tuple[Message, ...]]:
    """Return the entries and messages of SWE-agent's steps: thought and action, then observation.

    What is named is the command, the first word of the action.
    """
    entries, messages = [], []
    for step in steps:
        action, seen = _text(step.get("action")).strip(), _text(step.get("observation"))
        words = action.split()
        if words:
            error = seen.lstrip().lower().startswith(("error", "traceback", "bash:", "command not"))
            arguments = {"action": action}
            entries.append(Entry("call", words[0], len(messages), arguments, error, seen))
        said = _text(step.get("thought")) or _text(step.get("response"))
        messages.append(Message("assistant", f"{said}\n{action}".strip()))
        messages.append(Message("tool", seen))
    return tuple(entries), tuple(messages)


def _flat(value: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the entries of nested objects by dotted names; lists are left out."""
    for key, entry in value.items():
        if isinstance(entry, dict) and depth < _DEPTH:
            yield from _flat(entry, f"{before}{key}.", depth + 1)
        elif entry is None or isinstance(entry, str | int | float | bool):
            yield before + str(key), entry
