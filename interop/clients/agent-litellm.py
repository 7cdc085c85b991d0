"""Plays two turns with litellm, streamed and not: once as OpenAI's client, once as Anthropic's."""
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm  # noqa: E402

litellm.suppress_debug_info = True
dialect, base, key = sys.argv[1:]
tool = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "number"}},
            "required": ["city"],
        },
    },
}
asked = {"model": f"{dialect}/policy", "api_base": base, "api_key": key, "tools": [tool]}
for streamed in (False, True):
    messages = [{"role": "user", "content": f"TASK {streamed}: what is the weather?"}]
    for _ in range(3):
        reply = litellm.completion(**asked, messages=messages, stream=streamed)
        if streamed:
            reply = litellm.stream_chunk_builder(list(reply), messages=messages)
        message = reply.choices[0].message
        messages.append(message.model_dump())
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "21 C"})
    assert message.content == "All is done.", message
