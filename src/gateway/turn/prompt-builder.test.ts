import { describe, expect, test } from "vitest";
import { RolloutError, UsageError } from "../../errors.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import type { Generation } from "../../engine/engine.ts";
import { characterIds, createCharacterRenderer } from "../../testing/character-renderer.ts";
import { toSentTurn, type TurnNode } from "../tree/turn-node.ts";
import { promptOf } from "../tree/random-session.fixture.ts";
import { callTemplates, templateRenderer } from "./call-templates.fixture.ts";
import { PromptBuilder, type BuiltPrompt, type ShownTurn } from "./prompt-builder.ts";

function generationOf(text: string): Generation {
  const outputIds = characterIds(text);
  return {
    outputIds,
    logprobs: outputIds.map(() => -1),
    discarded: [],
    finish: { type: "stop", matched: outputIds.at(-1)! },
    pieces: [{ requestId: "r", tokenCount: outputIds.length, policyVersion: "1", finish: "stop" }],
  };
}

function nodeOf(
  { prompt, shown }: BuiltPrompt,
  text: string,
  parent?: TurnNode<ShownTurn>,
): TurnNode<ShownTurn> {
  const message = { role: "assistant", content: text } as const;
  const turn = toSentTurn([{ type: "text", id: "m", text }]);
  const record = { prompt, shown, message, generation: generationOf(text), isTrainable: true };
  return {
    index: 0,
    parent,
    children: [],
    cause: undefined,
    place: "",
    tools: undefined,
    turn,
    record,
    isDelivered: true,
  };
}

describe("PromptBuilder", () => {
  test("builds the same prompts from kept ids as from the tree, for branches too", async () => {
    const builder = new PromptBuilder(createCharacterRenderer());
    const user = (content: string) => [{ role: "user", content } as const];
    const root = await builder.begin(user("Hi"), []);
    const begun = [...root.recorder.promptIds];
    const first = nodeOf(root, "Hello");
    builder.keep(first, root.recorder);
    const prompts: { readonly ids: readonly number[]; readonly node: TurnNode<ShownTurn> }[] = [];
    let parent = first;
    for (const said of ["left", "right", "on"]) {
      // "right" continues the same turn as "left", after its kept prompt was used.
      const parentNode = said === "right" ? first : parent;
      const built = await builder.continue(parentNode, user(said), []);
      if ("cause" in built) throw new Error("the template goes on");
      const node = nodeOf(built, `to ${said}`, parentNode);
      prompts.push({ ids: [...built.recorder.promptIds], node });
      builder.keep(node, built.recorder);
      parent = node;
    }
    for (const { ids, node } of prompts) expect(ids).toEqual(promptOf(node));
    expect(root.prompt).toEqual({ type: "root", ids: begun });
  });

  test("refuses tool results that the chat template drops", async () => {
    const renderer = createCharacterRenderer();
    const { card } = renderer;
    const deaf = { ...renderer, card: { ...card, supports: { ...card.supports, tool: false } } };
    const builder = new PromptBuilder(deaf);
    const call = { id: "c1", name: "find", argumentsText: "{}" };
    const said = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "", calls: [call], marks: [] },
    ] as const;
    await expect(builder.begin(said, [])).resolves.toMatchObject({ prompt: { type: "root" } });
    const result = { role: "tool", content: "Found", callId: "c1" } as const;
    const refusal = {
      kind: "invalid",
      message:
        "Cannot show the tool results with the chat template: the prompt does not contain them; " +
        "send them as user messages, or give the model a chat template that prints tool results",
    };
    for (const after of [[], [{ role: "user", content: "Well?" } as const]]) {
      const messages = [...said, result, ...after];
      await expect(builder.begin(messages, [])).rejects.toMatchObject(refusal);
    }
  });

  test("refuses calls that the chat template drops, unless its own prompts are requested", async () => {
    const dropping = templateRenderer(callTemplates.dropping);
    const call = { id: "c1", name: "find", argumentsText: "{}" };
    const messages = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "", calls: [call], marks: [] },
      { role: "tool", content: "Found", callId: "c1" },
    ] as const;
    await expect(new PromptBuilder(dropping).begin(messages, [])).rejects.toMatchObject({
      kind: "invalid",
      message: expect.stringContaining("Cannot show the calls of earlier turns") as string,
    });
    const split = new PromptBuilder({ ...dropping, rerender: async () => undefined });
    const { prompt } = await split.begin(messages, []);
    const text = await dropping.codec.decode(prompt.type === "root" ? [...prompt.ids] : []);
    expect(text).toBe("user: Hi\nassistant: \nresult: Found\nassistant:");
  });

  test("checks a role sequence with a sampled turn that the template refuses whole", async () => {
    const delta = {
      ids: characterIds("delta"),
      text: "user: two\nassistant:",
      closeSynthesised: false,
    };
    const renderer = {
      ...templateRenderer(callTemplates.textOrReasoning),
      delta: async () => delta,
    };
    const builder = new PromptBuilder(renderer);
    const sampled = nodeOf(await builder.begin([{ role: "user", content: "Hi" }], []), "I look.");
    const toolCalls = [{ id: "c1", name: "look", argumentsText: "{}" }];
    const message = { role: "assistant", content: "I look.", reasoning: "Hm.", toolCalls } as const;
    const turn = toSentTurn([{ type: "call", id: "f", callId: "c1", name: "look", text: "{}" }]);
    const node = { ...sampled, turn, record: { ...sampled.record, message } };
    const lines = ["one", "two"].map((content) => ({ role: "user", content }) as const);
    expect(await builder.continue(node, lines, [])).toMatchObject({
      prompt: { type: "delta", delta },
      notes: [],
    });
  });

  const died = new RolloutError(
    "internal/tokenizer",
    "Cannot use the tokenizer: its process ended with SIGKILL",
  );
  const tooLong = new RolloutError(
    "internal/text-too-long",
    "Cannot encode a text of 4000001 characters: expected at most 4000000",
  );

  /** A renderer with a `prompt()` that throws the given errors in turn. */
  function failingRenderer(failures: Error[]): Renderer {
    const renderer = createCharacterRenderer();
    return {
      ...renderer,
      prompt: async (conversation) => {
        const failure = failures.shift();
        if (failure !== undefined) throw failure;
        return await renderer.prompt(conversation);
      },
    };
  }

  test("refuses a prompt that is too long as `too-long`, and no other", async () => {
    const hi = [{ role: "user", content: "Hi" } as const];
    const begin = async (error: Error): Promise<unknown> => {
      try {
        return await new PromptBuilder(failingRenderer([error])).begin(hi, []);
      } catch (problem) {
        return problem;
      }
    };
    expect(await begin(died)).toBe(died);
    expect(await begin(tooLong)).toMatchObject({
      kind: "too-long",
      message: `prompt is too long: ${tooLong.message}`,
      cause: tooLong,
    });
    const guarded = new RolloutError("internal/guard", "Cannot keep control tokens out");
    expect(await begin(guarded)).toMatchObject({ kind: "invalid", message: guarded.message });
  });

  test("measures a role sequence again after the tokenizer failed", async () => {
    const failures: Error[] = [];
    const builder = new PromptBuilder(failingRenderer(failures));
    const first = nodeOf(await builder.begin([{ role: "user", content: "Hi" }], []), "Hello");
    const twoLines = ["one", "two"].map((content) => ({ role: "user", content }) as const);
    for (const [error, expected] of [
      [died, died],
      [tooLong, { kind: "too-long", cause: tooLong }],
    ] as const) {
      failures.push(error);
      const problem = builder.continue(first, twoLines, []).catch((thrown: unknown) => thrown);
      expect(await problem).toMatchObject(expected);
    }
    expect(await builder.continue(first, twoLines, [])).toMatchObject({
      prompt: { type: "delta" },
    });
    // A refusal by the template is remembered.
    const other = [...twoLines, ...twoLines];
    failures.push(new UsageError("Cannot render the conversation"));
    for (let time = 0; time < 2; time++) {
      expect(await builder.continue(first, other, [])).toEqual({ cause: "delta-unsupported" });
    }
  });
});
