"""Serves a customer of the shop with litellm: DIALECT BASE KEY SHOP [streamed]."""
import faulthandler
import gc
import json
import os
import sys

# Prints the place of a hang.
faulthandler.dump_traceback_later(150, exit=True)
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm  # noqa: E402
from shop_client import Shop  # noqa: E402

litellm.suppress_debug_info = True
dialect, base, key, url, *flags = sys.argv[1:]
shop = Shop(url)
asked = {"model": f"{dialect}/policy", "api_base": base, "api_key": key, "tools": shop.task["tools"]}
messages = [
    {"role": "system", "content": shop.task["policyText"]},
    {"role": "user", "content": shop.task["firstUserText"]},
]
for _ in range(60):
    reply = litellm.completion(**asked, messages=messages, stream="streamed" in flags)
    if "streamed" in flags:
        reply = litellm.stream_chunk_builder(list(reply), messages=messages)
        # litellm leaves streams unread at their end. If Python collects one during the next request, it
        # waits forever for a lock of httpcore that this request has.
        gc.collect()
    message = reply.choices[0].message
    messages.append(message.model_dump())
    for call in message.tool_calls or []:
        content = shop.call(call.function.name, json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
    if message.tool_calls:
        continue
    answer = shop.say(message.content)
    if answer is None:
        sys.exit(0)
    messages.append({"role": "user", "content": answer})
sys.exit("the customer is still there")
