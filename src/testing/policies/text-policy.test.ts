import { expect, test } from "vitest";
import { characterIds, createCharacterRenderer } from "../character-renderer.ts";
import type { PolicyToken } from "./server-policy.ts";
import { createTextPolicy } from "./text-policy.ts";

const renderer = createCharacterRenderer();

/** The text that a policy samples after a conversation. */
async function play(
  policy: Awaited<ReturnType<typeof createTextPolicy>>,
  ids: readonly number[],
  routingKey?: string,
): Promise<string> {
  const tokens = (await policy.begin({
    inputIds: ids,
    rid: "r",
    routingKey,
    samplingParams: {},
    maxNewTokens: 100,
    stopTokenIds: renderer.stopTokenIds,
    signal: new AbortController().signal,
  })) as readonly PolicyToken[];
  return await renderer.codec.decode(tokens.map(({ id }) => id));
}

test("createTextPolicy() samples the texts in their turns, and a farewell after them", async () => {
  const policy = await createTextPolicy(["one", "two"], { renderer, otherwise: "bye" });
  const messages = [{ role: "user", content: "assistant\n" }] as const;
  const { ids } = await renderer.prompt({ messages, tools: [] });
  expect(await play(policy, ids)).toBe("one<|stop|>");
  expect(
    await play(
      policy,
      [...ids, ..."on"].map((id) => (typeof id === "string" ? id.codePointAt(0)! : id)),
    ),
  ).toBe("e<|stop|>");
  let ledger: readonly number[] = ids;
  const answers: string[] = [];
  for (const text of ["one", "two", "bye"]) {
    const delta = await renderer.delta({
      history: messages,
      assistant: { role: "assistant", content: text },
      environment: [{ role: "user", content: text }],
      tools: [],
      lastSampledId: renderer.stopTokenIds[0]!,
    } as never);
    ledger = [...ledger, ...characterIds(text), ...delta.ids];
    answers.push(await play(policy, ledger));
  }
  expect(answers).toEqual(["two<|stop|>", "bye<|stop|>", "bye<|stop|>"]);
});

test("createTextPolicy() knows rollouts apart", async () => {
  const policy = await createTextPolicy((id) => [`I am ${id}`], { renderer });
  const { ids } = await renderer.prompt({ messages: [{ role: "user", content: "?" }], tools: [] });
  expect(await play(policy, ids, "a/test/0#1")).toBe("I am a/test/0#1<|stop|>");
});
