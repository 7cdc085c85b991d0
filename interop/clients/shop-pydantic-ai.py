"""Serves a customer of the shop with pydantic-ai: DIALECT BASE KEY DESK."""
import asyncio
import sys

from desk_client import Desk
from pydantic_ai import Agent, Tool

dialect, base, key, url = sys.argv[1:]
if dialect == "anthropic":
    from pydantic_ai.models.anthropic import AnthropicModel as Model
    from pydantic_ai.providers.anthropic import AnthropicProvider as Provider
else:
    from pydantic_ai.models.openai import OpenAIChatModel as Chat, OpenAIResponsesModel as Responses
    from pydantic_ai.providers.openai import OpenAIProvider as Provider

    Model = Responses if dialect == "responses" else Chat
desk = Desk(url)


def tool_of(about: dict) -> Tool:
    name = about["name"]

    async def call(**given) -> str:
        return await asyncio.to_thread(desk.call, name, given)

    return Tool.from_schema(call, name, about.get("description"), about["parameters"])


agent = Agent(
    Model("policy", provider=Provider(base_url=base, api_key=key)),
    system_prompt=desk.task["policyText"],
    tools=[tool_of(tool["function"]) for tool in desk.task["tools"]],
)


async def serve() -> None:
    said, history = desk.task["firstUserText"], None
    while said is not None:
        result = await agent.run(said, message_history=history)
        history = result.all_messages()
        said = desk.say(result.output)


asyncio.run(serve())
