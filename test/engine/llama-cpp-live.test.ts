import { afterAll, describe, expect, test } from "vitest";
import { createLlamaCppEngine } from "../../src/engine/llama-cpp/llama-cpp-engine.ts";
import { failureOf, toRequest } from "./request.ts";

/** A running llama.cpp server with any model, such as http://127.0.0.1:8080. */
const url = process.env["TURNWRIGHT_LLAMA_CPP_URL"];
if (url === undefined) {
  console.warn("Skipping tests on a real llama.cpp server: TURNWRIGHT_LLAMA_CPP_URL is not set");
}

describe.skipIf(url === undefined)("a real llama.cpp server", () => {
  const engine = createLlamaCppEngine({ url: url ?? "http://127.0.0.1:8080" });
  afterAll(() => engine.close());
  const promptIds = [5, 6, 7, 8, 9, 10];

  test("describes itself", async () => {
    const description = await engine.describe();
    expect(description).toMatchObject({ kind: "llama-cpp", logprobConvention: "raw" });
    expect(description.contextLength).toBeGreaterThan(0);
    expect(description.engineVersion).not.toBe("");
  });

  test("gives every sampled id a logprob, those within a character too", async () => {
    const sessions = Array.from({ length: 16 }, (_, index) => index);
    const generations = await Promise.all(
      sessions.map((seed) =>
        engine.generate(
          toRequest({
            promptIds,
            sampling: { seed },
            maxNewTokens: 64,
            stopTokenIds: [],
            requestId: `${seed}-`,
            sessionId: `session-${seed}`,
          }),
        ),
      ),
    );
    for (const { outputIds, logprobs, finish, promptTokenCount, discarded } of generations) {
      expect(logprobs).toHaveLength(outputIds.length);
      expect(logprobs.every((logprob) => Number.isFinite(logprob) && logprob <= 0)).toBe(true);
      expect(finish.type === "stop" || outputIds.length === 64).toBe(true);
      expect(promptTokenCount).toBe(promptIds.length);
      expect(discarded).toEqual([]);
    }
  });

  test("samples the same ids again for the same seed, and others for none", async () => {
    const request = toRequest({ promptIds, maxNewTokens: 12, stopTokenIds: [] });
    const seeded = { ...request, sampling: { seed: 7 } };
    const [first, second] = [await engine.generate(seeded), await engine.generate(seeded)];
    expect(second.outputIds).toEqual(first.outputIds);
    for (const [index, logprob] of first.logprobs.entries()) {
      expect(second.logprobs[index]).toBeCloseTo(logprob, 2);
    }
    const free = [await engine.generate(request), await engine.generate(request)];
    expect(free[0]?.outputIds).not.toEqual(free[1]?.outputIds);
  });

  test("reports greedy logprobs of the raw logits, for any temperature", async () => {
    const request = toRequest({ promptIds, maxNewTokens: 1, stopTokenIds: [] });
    const greedy = await engine.generate({ ...request, sampling: { temperature: 0 } });
    const only = await engine.generate({ ...request, sampling: { temperature: 2, topK: 1 } });
    expect(only.outputIds).toEqual(greedy.outputIds);
    expect(only.logprobs[0]).toBeCloseTo(greedy.logprobs[0] ?? 0, 2);
    expect(greedy.logprobs[0]).toBeLessThan(0);
  });

  test("cuts at a stop id that the server does not know", async () => {
    const request = toRequest({ promptIds, maxNewTokens: 12, sampling: { seed: 7 } });
    const whole = await engine.generate({ ...request, stopTokenIds: [] });
    const stopId = whole.outputIds[4] ?? 0;
    const cut = await engine.generate({ ...request, stopTokenIds: [stopId] });
    const length = whole.outputIds.indexOf(stopId) + 1;
    expect(cut.outputIds).toEqual(whole.outputIds.slice(0, length));
    expect(cut.finish).toEqual({ type: "stop", matched: stopId });
    expect(cut.discarded).toEqual([
      {
        requestId: "a",
        reason: "sampled after a stop id that the server does not know",
        tokenCount: whole.outputIds.length - length,
      },
    ]);
  });

  test("refuses a prompt that exceeds the context, and unknown ids", async () => {
    const { contextLength = 0 } = await engine.describe();
    const long = toRequest({ promptIds: Array.from({ length: contextLength + 1 }, () => 5) });
    expect(await failureOf(engine.generate(long))).toMatchObject({
      code: "engine/prompt-too-long",
      message: expect.stringContaining("exceeds the available context size") as string,
    });
    const wrong = toRequest({ promptIds: [2 ** 30] });
    expect(await failureOf(engine.generate(wrong))).toMatchObject({
      code: "engine/bad-request",
      message: expect.stringContaining("Prompt contains invalid tokens") as string,
    });
  });

  test("reads the number of cached tokens of a session's prompt", async () => {
    const request = toRequest({
      promptIds,
      maxNewTokens: 8,
      stopTokenIds: [],
      sessionId: "cached",
    });
    const first = await engine.generate(request);
    const next = await engine.generate({
      ...request,
      promptIds: [...promptIds, ...first.outputIds, 11, 12],
    });
    expect(next.cachedTokenCount).toBeGreaterThanOrEqual(promptIds.length);
  });

  test("stops sampling when it is cancelled", async () => {
    const controller = new AbortController();
    const request = toRequest({ promptIds, maxNewTokens: 100_000, stopTokenIds: [] });
    const call = engine.generate(request, { signal: controller.signal });
    const reason = new Error("enough");
    setTimeout(() => controller.abort(reason), 50);
    await expect(call).rejects.toBe(reason);
    expect((await engine.generate({ ...request, maxNewTokens: 1 })).outputIds).toHaveLength(1);
  });
});
