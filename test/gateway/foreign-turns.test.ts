import { describe, expect, test } from "vitest";
import { callTemplates, templateRenderer } from "../../src/gateway/turn/call-templates.fixture.ts";
import { openTestGateway } from "./client-history.fixture.ts";

const go = { role: "user", content: "go" };
const parameters = { type: "object", properties: { at: { type: "string" } } };
const tool = (name: string) => ({ type: "function", function: { name, parameters } });
const call = (text: string) => {
  return { id: "c", type: "function", function: { name: "look", arguments: text } };
};
const answer = { role: "tool", tool_call_id: "c", content: "A" };

describe("a turn with text and a call", () => {
  test("that was sampled here becomes two turns when a root begins, if the template refuses it", async () => {
    const base = templateRenderer(callTemplates.textOrReasoning);
    const renderer = { ...base, card: { ...base.card, reasoningParser: "qwen3" } };
    const written = '<tool_call>\n{"name": "look", "arguments": {"at": "door"}}\n</tool_call>';
    const texts = [`<think>Hm.</think>I look.${written}`, "done"];
    await using talk = await openTestGateway(texts, { renderer });
    const { body } = await talk.chat({ messages: [go], tools: [tool("look")] });
    const [{ message }] = body.choices;
    expect(message).toMatchObject({ content: "I look.", reasoning_content: "Hm." });
    const result = { ...answer, tool_call_id: message.tool_calls[0]!.id };
    const tools = [tool("look"), tool("open")];
    const { status } = await talk.chat({ messages: [go, message, result], tools });
    expect(status).toBe(200);
    expect((await talk.prompts())[1]).toBe(
      'user: go\nassistant: I look.\nassistant: (Hm.)<look{"at": "door"}>\nresult: A\nassistant:',
    );
    const { roots, notes } = talk.counts();
    expect([roots, notes]).toEqual([{ first: 1, "tools-changed": 1 }, {}]);
  });

  test("is counted if the template drops the text or the reasoning", async () => {
    const renderer = templateRenderer(callTemplates.callsOrTextAlternating);
    await using talk = await openTestGateway(["done"], { renderer });
    const turn = { role: "assistant", content: "I look.", reasoning_content: "Hm." };
    await talk.chat({ messages: [go, { ...turn, tool_calls: [call("{}")] }, answer] });
    expect(await talk.prompts()).toEqual(["user: go\nassistant: <look{}>\nresult: A\nassistant:"]);
    expect(talk.counts().notes).toEqual({ "text-not-shown": 1, "reasoning-not-shown": 1 });
  });

  test("is refused if the template drops the call", async () => {
    const renderer = templateRenderer(callTemplates.textOrCallsAlternating);
    await using talk = await openTestGateway([], { renderer });
    const turn = { role: "assistant", content: "I look.", tool_calls: [call("{}")] };
    const { status, body } = await talk.chat({ messages: [go, turn, answer] });
    expect([status, body.error?.message]).toEqual([
      400,
      "Cannot show an earlier call of look with the chat template: the prompt does not contain calls beside text; " +
        "send the turn without its text, or the call as text, as the model writes it",
    ]);
  });
});

describe("a call with arguments that are no JSON object", () => {
  const refusal = (place: string): string =>
    `Cannot show ${place}: the text is no JSON object, and the chat template prints only objects; ` +
    "send an object, or the call as text of the assistant";

  test("is refused with its place if the template cannot print them, in each dialect", async () => {
    const renderer = templateRenderer(callTemplates.members);
    await using talk = await openTestGateway([], { renderer });
    const turn = { role: "assistant", content: null, tool_calls: [call('{"at": "do')] };
    const chat = await talk.chat({ messages: [go, turn, answer] });
    const item = { type: "function_call", call_id: "c", name: "look", arguments: '{"at": "do' };
    const output = { type: "function_call_output", call_id: "c", output: "A" };
    const responses = await talk.responses({ input: [go, item, output] });
    const block = { type: "tool_use", id: "c", name: "look", input: '{"at": "do' };
    const messages = await talk.messages({
      messages: [go, { role: "assistant", content: [block] }, go],
    });
    expect(
      [chat, responses, messages].map(({ status, body }) => [status, body.error?.message]),
    ).toEqual([
      [400, refusal("messages[1].tool_calls[0].function.arguments")],
      [400, refusal("input[1].arguments")],
      [400, refusal("messages[1].content[0].input")],
    ]);
    expect(talk.counts().refused).toMatchObject({
      [refusal("messages[].tool_calls[].function.arguments")]: 1,
    });
  });

  test("is shown if the template prints them", async () => {
    const renderer = templateRenderer(callTemplates.printing);
    await using talk = await openTestGateway(["done"], { renderer });
    const turn = { role: "assistant", content: null, tool_calls: [call('["door"]')] };
    await talk.chat({ messages: [go, turn, answer] });
    const [prompt] = await talk.prompts();
    expect(prompt).toContain('<c|look"[\\"door\\"]">');
  });
});
