import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine } from "../engine/engine.ts";
import { preparedEngine } from "../episode/lamp-episode.fixture.ts";
import type { EngineDescription } from "../engine/engine.ts";
import { readRunConfig } from "./config/run-config.ts";
import { createRun } from "./create-run.ts";
import { createEngine } from "./create-engine.ts";
import type { EngineConfig } from "./config/engine-config.ts";
import type { GivenSettings } from "./config/setting.ts";

const model = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

const referenceConfig: EngineConfig = {
  kind: "reference",
  modelDir: model,
  threadCount: 1,
  sequenceCount: 1,
};

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-create-run-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** A module with a user that records its calls. */
async function writeNotingModule(name: string): Promise<string> {
  const file = path.join(scratch, `${name}.mjs`);
  await writeFile(
    file,
    `export const notes = [];
    export function createEnvironment() {
      return { name: "noting", source: "none", splits: { test: 1 }, tools: [], policyText: "",
        task: (split, index) => ({ id: "noting/0", environment: "noting", split, index, instruction: "" }),
        open() {} };
    }
    export function createUser() {
      return { strategy: "noting", open() {}, async close() { notes.push("closed"); } };
    }`,
  );
  return file;
}

async function notesOf(file: string): Promise<readonly string[]> {
  return ((await import(file)) as { readonly notes: readonly string[] }).notes;
}

describe("createRun()", () => {
  test("plays a configuration from the library", async () => {
    const out = path.join(scratch, "run");
    const config = readRunConfig({
      env: "storefront",
      user: "scripted",
      engine: "reference",
      threads: 1,
      sequences: 2,
      model,
      tasks: "0-1",
      "max-tokens-per-turn": 64,
      "sampling-seed": 3,
      out,
    });
    const rewards: (number | undefined)[] = [];
    await using run = await createRun(config, { now: () => 1_000 });
    expect(run.environment.name).toBe("storefront");
    expect(run.setup.limits).toMatchObject({ maxTokensPerTurn: 64, maxTurns: 30 });
    expect(Number.isFinite(run.setup.limits.maxContextTokens)).toBe(true);
    expect(run.manifest.configuration).toMatchObject({ env: "storefront", tasks: "0-1" });
    expect(run.manifest.configuration).not.toHaveProperty("model");
    expect(run.manifest.found["settings"]).toMatchObject({ model, out });
    {
      await using folder = await run.openFolder();
      const { end, progress } = await run.play(folder, {
        signal: new AbortController().signal,
        onEpisode: ({ reward }) => rewards.push(reward),
      });
      expect(end).toBe("finished");
      expect(progress).toMatchObject({ planned: 2, finished: 2 });
    }
    const stored = JSON.parse(await readFile(path.join(out, "run.json"), "utf8")) as unknown;
    expect(stored).toMatchObject({
      configuration: run.manifest.configuration,
      identity: { engine: "reference", weights: expect.stringMatching(/^[0-9a-f]{64}$/) as string },
    });
    expect(rewards).toHaveLength(2);
  });

  test("treats an invalid context length as unknown, and warns", async () => {
    const engine: Engine = {
      ...preparedEngine([]),
      describe: async () => ({ kind: "own", logprobConvention: "tempered", contextLength: 0 }),
    };
    const url = ["http://127.0.0.1:9"];
    const tasks = "0";
    const config = readRunConfig({ env: "storefront", user: "scripted", tasks, model, url });
    await using run = await createRun(config, { engine });
    expect(run.setup.limits.maxContextTokens).toBe(Infinity);
    const warnings = [
      expect.stringContaining("the engine prepared names the context length 0, expected a whole"),
    ];
    expect(run.warnings).toEqual(warnings);
    expect(run.manifest.found["engine"]).toEqual({
      kind: "own",
      logprobConvention: "tempered",
      warnings,
    });
  });

  test("closes its parts when it is disposed of, and when a later part fails", async () => {
    const [whole, broken] = [await writeNotingModule("whole"), await writeNotingModule("broken")];
    const settings = { user: "scripted", engine: "reference", threads: 1, sequences: 1, model };
    const run = await createRun(readRunConfig({ ...settings, env: whole, agent: "act" }));
    expect(await notesOf(whole)).toEqual([]);
    await run[Symbol.asyncDispose]();
    expect(await notesOf(whole)).toEqual(["closed"]);
    await expect(run.setup.engine.generate(request)).rejects.toThrow();

    const config = readRunConfig({ ...settings, env: broken, agent: "few-shot" });
    await expect(createRun(config)).rejects.toThrow("Missing --few-shot-file");
    expect(await notesOf(broken)).toEqual(["closed"]);
  });

  test("refuses a folder whose turns were sampled with another context length or other logprobs", async () => {
    const settings = {
      env: "storefront",
      user: "scripted",
      url: ["http://127.0.0.1:9"],
      model,
      tasks: "0-1",
      "max-turns": 1,
      "max-tokens-per-turn": 8,
      concurrency: 1,
      out: path.join(scratch, "contexts"),
    };
    const start = async (changes: Partial<EngineDescription>, more: GivenSettings = {}) => {
      const config = readRunConfig({ ...settings, ...more });
      const own = await createEngine(referenceConfig, {});
      const stop = new AbortController();
      const engine = {
        kind: own.kind,
        generate: own.generate.bind(own),
        describe: async () => ({ ...(await own.describe()), kind: "own", ...changes }),
        close: async () => await own.close(),
      };
      await using run = await createRun(config, { engine });
      await using folder = await run.openFolder();
      const { end } = await run.play(folder, {
        signal: stop.signal,
        // The first start alone is stopped.
        onEpisode: () => folder.finished.length === 0 && stop.abort(),
      });
      return end;
    };
    expect(await start({ contextLength: 4096 })).toBe("interrupted");
    await expect(start({ contextLength: 720 })).rejects.toThrow(
      'max-context was "4096" and is "720"; restore what was there or',
    );
    await expect(start({ contextLength: 8192 })).rejects.toThrow(
      'max-context was "4096" and is "8192"; restore what was there, give --max-context 4096 or',
    );
    await expect(start({ contextLength: 4096, logprobConvention: "raw" })).rejects.toThrow(
      'logprobConvention was "tempered" and is "raw"; restore what was there or',
    );
    expect(await start({ contextLength: 8192 }, { "max-context": 4096 })).toBe("finished");
  });

  test("keeps the context length of an earlier start if this start sets none", async () => {
    const config = readRunConfig({
      env: "storefront",
      user: "scripted",
      url: ["http://127.0.0.1:9"],
      model,
      tasks: "0-1",
      "max-tokens-per-turn": 8,
      concurrency: 1,
      out: path.join(scratch, "silent"),
    });
    const start = async (contextLength?: number): Promise<readonly string[]> => {
      const reasons: string[] = [];
      const stop = new AbortController();
      const own = await createEngine(referenceConfig, {});
      const engine: Engine = {
        kind: own.kind,
        generate: own.generate.bind(own),
        describe: async () => ({
          kind: "own",
          logprobConvention: "tempered",
          ...(contextLength !== undefined && { contextLength }),
        }),
        close: async () => await own.close(),
      };
      await using run = await createRun(config, { engine });
      await using folder = await run.openFolder();
      await run.play(folder, {
        signal: stop.signal,
        onEpisode({ stopReason }) {
          reasons.push(stopReason);
          stop.abort();
        },
      });
      return reasons;
    };
    // No prompt of the environment's is as short.
    expect(await start(16)).toEqual(["context-full"]);
    expect(await start()).toEqual(["context-full"]);
  });

  test("reports missing environment members before it makes an engine", async () => {
    const settings = { env: "storefront", user: "scripted", model, url: ["http://127.0.0.1:9"] };
    await expect(createRun(readRunConfig({ ...settings, split: "dev" }))).rejects.toThrow(
      'Cannot find split "dev" of storefront: expected one of train, test',
    );
  });
});

const request = {
  promptIds: [1],
  sampling: {},
  maxNewTokens: 1,
  stopTokenIds: [2],
  requestId: "r",
  sessionId: "s",
};
