"""Runs of agents in JSON: messages with tool calls (OpenAI, Anthropic), τ-bench, SWE-agent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from align_rudder.data.logs.runs import Entry, Message, Run
from align_rudder.files import mended

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
    if any(isinstance(step, dict) and "action" in step and "role" not in step for step in value):
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
    role = "tool" if _only_answers(message) else message["role"]
    return Message(role, _text(message.get("content")))


def _text(content: Any) -> str:
    """Return a content as text: a string, or parts of which some are text or answers of tools."""
    if isinstance(content, list):
        texts = (_part_text(part) if isinstance(part, dict) else part for part in content)
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else "" if content is None else json.dumps(content)


def _part_text(part: Mapping[str, Any]) -> Any:
    return _text(part.get("content")) if _is_part(part, "tool_result") else part.get("text")


def _parts(message: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the parts of a content that are of a kind, as Anthropic's form has them."""
    content = message.get("content")
    return [p for p in content if _is_part(p, kind)] if isinstance(content, list) else []


def _is_part(part: Any, kind: str) -> bool:
    # Tools of the provider have a word before: server_tool_use, mcp_tool_result.
    return isinstance(part, dict) and str(part.get("type")).endswith(kind)


def _only_answers(message: Mapping[str, Any]) -> bool:
    answers, content = _parts(message, "tool_result"), message.get("content")
    return bool(answers) and answers == content


def _entries(messages: list[dict[str, Any]]) -> Iterator[Entry]:
    answers = _answers(messages)
    for i, message in enumerate(messages):
        role, calls = message["role"], _calls(message, i)
        if role in ("tool", "function") or _only_answers(message):
            continue
        if not calls and role != "system":
            yield Entry("message", role, i)
        for name, number, arguments in calls:
            waiting = answers.get(str(number or name), [])
            answer = waiting.pop(0) if waiting else None
            yield Entry(
                "call",
                name,
                i,
                _arguments(arguments),
                None if answer is None else _is_error(answer),
                "" if answer is None else _text(answer.get("content")),
            )


def _answers(messages: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the answers of tools by the number of their call, or the name of the tool."""
    answers: dict[str, list[dict[str, Any]]] = {}
    for message in messages:
        if message["role"] in ("tool", "function"):
            number = message.get("tool_call_id") or message.get("name")
            answers.setdefault(str(number), []).append(message)
        for part in _parts(message, "tool_result"):
            answers.setdefault(str(part.get("tool_use_id")), []).append(part)
    return answers


def _calls(message: Mapping[str, Any], i: int) -> list[tuple[str, Any, Any]]:
    """Return name, number and arguments of each tool call of a message."""
    used = _parts(message, "tool_use")
    if nameless := [part for part in used if not isinstance(part.get("name"), str)]:
        raise ValueError(f"a {nameless[0]['type']} of message {i} has no name")
    calls = message.get("tool_calls")
    if not calls and isinstance(message.get("function_call"), dict):
        calls = [{"function": message["function_call"]}]
    if not isinstance(calls or [], list):
        raise ValueError(f"the tool_calls of message {i} are no list")
    found = []
    for call in calls or []:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ValueError(f"a tool call of message {i} has no function with a name")
        found.append((function["name"], call.get("id"), function.get("arguments")))
    return found or [(part["name"], part.get("id"), part.get("input")) for part in used]


def _arguments(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        try:
            given = mended(json.loads(given)) if given.strip() else {}
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
    for i, step in enumerate(steps):
        if not isinstance(step, dict) or "action" not in step:
            raise ValueError(
                f"step {i} has no action: {str(step)[:60]!r}; steps of SWE-agent have an action "
                "and an observation"
            )
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
