import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createStorefront } from "../environments/storefront/index.ts";
import { checkEnvironment, evaluate, rollout } from "../src/index.ts";
import { createSeededPolicy, startSglangTestServer } from "../src/testing/index.ts";
import { rescoreFile } from "../src/trajectory/index.ts";
import { createSglangEngine } from "../src/engine/index.ts";
import { smallModelFolder } from "./support/small-model.ts";

let scratch = "";
let server: Awaited<ReturnType<typeof startSglangTestServer>>;
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-aborted-"));
  server = await startSglangTestServer({ policy: createSeededPolicy() });
  await writeFile(path.join(scratch, "samples.jsonl"), "");
});
afterAll(async () => {
  await server.close();
  await rm(scratch, { recursive: true });
});

/** Functions of the library that take a signal, each with work that takes longer than the signal. */
const works: Readonly<Record<string, (signal: AbortSignal, stop: () => void) => Promise<unknown>>> =
  {
    async rollout(signal, stop) {
      for await (const _ of rollout({ ...settings(), signal })) stop();
    },
    async evaluate(signal, stop) {
      const { split: _split, ...options } = settings();
      return await evaluate({ ...options, signal, onEpisode: stop });
    },
    async checkEnvironment(signal, stop) {
      const environment = createStorefront();
      const watched = {
        ...environment,
        task(split: string, index: number) {
          stop();
          return environment.task(split, index);
        },
      };
      return await checkEnvironment(watched, { signal });
    },
  };

function settings() {
  return {
    environment: "storefront",
    url: server.url,
    model: smallModelFolder,
    parser: "qwen25",
    split: "test",
    tasks: "0-31",
    maxTokensPerTurn: 4,
  } as const;
}

describe.each(Object.entries(works))("%s()", (_, work) => {
  const reason = new Error("the trainer stops");

  test("rejects with the reason of a signal that is aborted before it starts", async () => {
    await expect(work(AbortSignal.abort(reason), () => {})).rejects.toBe(reason);
  });

  test("rejects with the reason of a signal that is aborted meanwhile", async () => {
    const controller = new AbortController();
    const stop = (): void => controller.abort(reason);
    await expect(work(controller.signal, stop)).rejects.toBe(reason);
  });
});

test("rescoreFile() rejects with the reason of a signal that is aborted", async () => {
  const reason = new Error("the trainer stops");
  const engine = createSglangEngine({ url: server.url });
  const options = { engine, temperature: 1, tolerance: 1, signal: AbortSignal.abort(reason) };
  await expect(rescoreFile(path.join(scratch, "samples.jsonl"), options)).rejects.toBe(reason);
  await engine.close();
});
