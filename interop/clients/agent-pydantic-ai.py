"""Plays two turns with pydantic-ai, streamed and not."""
import asyncio
import sys

from pydantic_ai import Agent

dialect, base, key = sys.argv[1:]
if dialect == "anthropic":
    from pydantic_ai.models.anthropic import AnthropicModel as Model
    from pydantic_ai.providers.anthropic import AnthropicProvider as Provider
else:
    from pydantic_ai.models.openai import OpenAIChatModel as Chat, OpenAIResponsesModel as Responses
    from pydantic_ai.providers.openai import OpenAIProvider as Provider

    Model = Responses if dialect == "responses" else Chat
agent = Agent(Model("policy", provider=Provider(base_url=base, api_key=key)), system_prompt="Be brief.")


@agent.tool_plain
def weather(city: str, days: float = 1) -> str:
    """Returns the weather of a city."""
    return f"21 C in {city} for {days} days"


async def play() -> None:
    plain = await agent.run("TASK plain: what is the weather?")
    assert plain.output == "All is done.", plain.output
    async with agent.run_stream("TASK streamed: what is the weather?") as streamed:
        assert await streamed.get_output() == "All is done."


asyncio.run(play())
