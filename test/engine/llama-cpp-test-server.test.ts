import { describe, expect, test } from "vitest";
import type { LlamaCppTestServerOptions } from "../../src/testing/index.ts";
import { createScriptedPolicy, startLlamaCppTestServer } from "../../src/testing/index.ts";

type JsonObject = Readonly<Record<string, unknown>>;

async function start(options: LlamaCppTestServerOptions = {}) {
  const turns = [
    { outputIds: [10, 11, 2] },
    { outputIds: [12, 2] },
    { outputIds: [13, 2] },
    { outputIds: [14, 2] },
  ];
  const server = await startLlamaCppTestServer({ policy: createScriptedPolicy(turns), ...options });
  async function send(body: unknown): Promise<{ status: number; body: unknown }> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const reply = await fetch(`${server.url}/completion`, { method: "POST", body: text });
    return { status: reply.status, body: await reply.json() };
  }
  return { server, send, [Symbol.asyncDispose]: () => server.close() };
}

const BODY = { prompt: [1, 2, 3], n_predict: 8, n_probs: 1, return_tokens: true };

/** The parts of a reply that name the sequence and its tokens. */
function summarise(reply: unknown): unknown {
  const { index, tokens, stop_type: stop } = reply as JsonObject;
  return { index, tokens, stop };
}

describe("/completion, as llama.cpp's server of 2026-10 answers it", () => {
  test("several samples of a prompt are returned as a list, under either name of their number", async () => {
    await using tested = await start();
    const { body: first } = await tested.send({ ...BODY, n: 2 });
    expect((first as unknown[]).map(summarise)).toEqual([
      { index: 0, tokens: [10, 11, 2], stop: "eos" },
      { index: 1, tokens: [10, 11, 2], stop: "eos" },
    ]);
    const { body: second } = await tested.send({ ...BODY, prompt: [4], n_cmpl: 2 });
    expect(second).toHaveLength(2);
  });

  test("several prompts are returned as a list, a single one without a list", async () => {
    await using tested = await start();
    const { body: batch } = await tested.send({ ...BODY, prompt: [[4], [5]] });
    expect((batch as unknown[]).map(summarise)).toEqual([
      { index: 0, tokens: [10, 11, 2], stop: "eos" },
      { index: 1, tokens: [12, 2], stop: "eos" },
    ]);
    const { body: one } = await tested.send({ ...BODY, prompt: [6] });
    expect(summarise(one)).toEqual({ index: 0, tokens: [13, 2], stop: "eos" });
  });

  test("a budget of 0 samples one token", async () => {
    await using tested = await start();
    const { body } = await tested.send({ ...BODY, n_predict: 0 });
    expect(summarise(body)).toEqual({ index: 0, tokens: [10], stop: "limit" });
  });

  test("the token that completes a stop string has an id and no probability", async () => {
    const turns = [{ outputIds: [10, 11, 12], matched: "!" }];
    await using tested = await start({ policy: createScriptedPolicy(turns) });
    const { body } = await tested.send(BODY);
    expect(body).toMatchObject({ tokens: [10, 11, 12], stop_type: "word", stopping_word: "!" });
    const entries = (body as JsonObject)["completion_probabilities"] as JsonObject[];
    expect(entries.map(({ id }) => id)).toEqual([10, 11]);
  });

  test.each([
    ["2026-10", 200],
    ["2026-08", 500],
  ] as const)("of %s: a text that ends within a character is HTTP %d", async (release, status) => {
    await using tested = await start({ release, partialIds: [10] });
    const reply = await tested.send({ ...BODY, n_predict: 1 });
    expect(reply.status).toBe(status);
  });

  test.each([
    ["2026-10", 400, "invalid_request_error"],
    ["2026-08", 500, "server_error"],
  ] as const)("of %s: a body that is no JSON is HTTP %d", async (release, status, type) => {
    await using tested = await start({ release });
    const reply = await tested.send('{"prompt":[1,2');
    expect(reply).toEqual({
      status,
      body: {
        error: {
          code: status,
          type,
          message: expect.stringMatching(
            /^\[json\.exception\.parse_error\.101\] parse error at line 1, column 15: /,
          ) as string,
        },
      },
    });
  });
});
