"""Serves a customer of the shop with pydantic-ai: DIALECT BASE KEY SHOP."""
import asyncio
import sys

from shop_client import Shop
from pydantic_ai import Agent, Tool

dialect, base, key, url = sys.argv[1:]
if dialect == "anthropic":
    from pydantic_ai.models.anthropic import AnthropicModel as Model
    from pydantic_ai.providers.anthropic import AnthropicProvider as Provider
else:
    from pydantic_ai.models.openai import OpenAIChatModel as Chat, OpenAIResponsesModel as Responses
    from pydantic_ai.providers.openai import OpenAIProvider as Provider

    Model = Responses if dialect == "responses" else Chat
shop = Shop(url)


def tool_of(about: dict) -> Tool:
    name = about["name"]

    async def call(**given) -> str:
        return await asyncio.to_thread(shop.call, name, given)

    return Tool.from_schema(call, name, about.get("description"), about["parameters"])


agent = Agent(
    Model("policy", provider=Provider(base_url=base, api_key=key)),
    system_prompt=shop.task["policyText"],
    tools=[tool_of(tool["function"]) for tool in shop.task["tools"]],
)


async def serve() -> None:
    said, history = shop.task["firstUserText"], None
    while said is not None:
        result = await agent.run(said, message_history=history)
        history = result.all_messages()
        said = shop.say(result.output)


asyncio.run(serve())
