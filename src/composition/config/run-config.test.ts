import { describe, expect, test } from "vitest";
import { readRunConfig, runSettings } from "./run-config.ts";
import type { GivenSettings, Setting } from "./setting.ts";

const least = {
  env: "storefront",
  user: "scripted",
  url: ["http://127.0.0.1:30000"],
  model: "models/some",
};

describe("readRunConfig()", () => {
  test("fills in defaults, with units and kinds of their own", () => {
    const config = readRunConfig(least);
    expect(config).toMatchObject({
      environment: { name: "storefront" },
      scope: { tasks: "all", sampleCount: 1, seed: 0 },
      user: { strategy: "scripted" },
      engine: { kind: "sglang", urls: least.url, turnTimeoutMs: 1_200_000 },
      renderer: { modelDir: "models/some", historyPolicy: "keep", guardPolicy: "neutralise" },
      agent: { strategy: "tool-calling", toolUse: { name: "many" } },
      sampling: { temperature: 1, topP: 1, topK: -1, minP: 0 },
      limits: { maxTurns: 30, episodeTimeoutMs: 1_800_000, userTimeoutMs: 120_000 },
      conduct: { concurrency: 64, attempts: 2, maxFailuresInRow: 20, retryFailed: false },
    });
    expect(config.limits).not.toHaveProperty("maxContextTokens");
    expect(config.settings).toMatchObject({ ...least, "max-turns": 30 });
  });

  test("gives each kind of engine, user and agent its own settings and no others", () => {
    const llama = { env: "storefront", model: "m", engine: "llama", gguf: "w.gguf", sequences: 3 };
    const talking = { "user-url": "http://h/v1", "user-model": "u", "user-output-price": 2 };
    const { engine, user, agent, conduct } = readRunConfig({
      ...llama,
      user: "llm",
      ...talking,
      agent: "react",
      "user-timeout": 5,
    });
    expect(engine).toEqual({ kind: "llama", file: "w.gguf", sequenceCount: 3 });
    expect(user).toEqual({
      strategy: "llm",
      model: {
        baseUrl: "http://h/v1",
        model: "u",
        maxConcurrent: 32,
        prices: { inputUsd: 0, outputUsd: 2 },
      },
    });
    expect(agent).toEqual({ strategy: "react", invalidAction: "say" });
    expect(conduct.concurrency).toBe(3);
  });

  test("uses the environment's user if no user is named", () => {
    const { user, settings } = readRunConfig({ ...least, env: "./mine.js", user: undefined });
    expect(user).toEqual({ strategy: "scripted", isAssumed: true });
    expect(settings.user).toBe("scripted");
    expect(readRunConfig(settings).user).toEqual({ strategy: "scripted" });
  });

  test("is frozen, and does not change its input", () => {
    const config = readRunConfig(least);
    const parts = [config, config.engine, config.limits, config.settings, config.settings.url];
    expect(parts.every((part) => Object.isFrozen(part))).toBe(true);
    expect(Object.isFrozen(least.url)).toBe(false);
  });

  test.each<[GivenSettings, string]>([
    [{ env: undefined }, "Missing --env: the environment to play (see `env list`)"],
    [{ env: "nope" }, 'Cannot find environment "nope": expected one of tau-retail, tau-airline'],
    [{ env: "tau-retail", user: undefined }, "Missing --user: who the agent talks to"],
    [{ user: "llm" }, "Missing --user-url: the user model's endpoint"],
    [{ url: [] }, "Missing --url: the address of the engine"],
    [{ model: undefined }, "Missing --model: the model's folder"],
    [{ engine: "reference" }, "Cannot use --url with --engine reference: it belongs to sglang"],
    [{ engine: "llama", url: undefined }, "Missing --gguf: the model"],
    [{ agent: "act", "tool-use": "one" }, "Cannot use --tool-use one with --agent act"],
    [{ temprature: 1 }, 'Cannot use "temprature": unknown setting, did you mean temperature?'],
    [{ "max-turns": 0 }, "Cannot use --max-turns 0: expected a whole number of at least 1"],
    [{ "max-turns": "3" }, "Cannot use --max-turns 3: expected a number"],
    [{ history: "drop" }, "Cannot use --history drop: expected one of keep, split, refuse"],
    [{ url: "http://h" }, "Cannot use --url http://h: expected a list of texts"],
    [{ "retry-failed": "yes" }, "Cannot use --retry-failed yes: expected true or false"],
    [{ "refuse-calls": ["ok"] }, "Cannot use --refuse-calls ok: expected one of schema-mismatch"],
  ])("refuses %j", (change, complaint) => {
    expect(() => readRunConfig({ ...least, ...change })).toThrow(complaint);
  });
});

describe("the settings of a run", () => {
  test("that may change when it is resumed are those that change no conversation's rules", () => {
    const table: readonly Setting[] = runSettings;
    const names = table.filter(({ operational }) => operational === true).map(({ name }) => name);
    expect(names).toEqual([
      "python",
      "env-processes",
      // The files that these settings name are compared by their contents.
      "data",
      // A run without an end plays until it is stopped.
      "groups",
      "url",
      "engine-mode",
      "engine-api",
      "api-key-env",
      "gguf",
      "threads",
      "sequences",
      "model",
      "few-shot-file",
      "user-url",
      "user-api-key-env",
      "user-concurrency",
      "user-input-price",
      "user-output-price",
      "user-script",
      "episode-timeout",
      "user-timeout",
      "tool-timeout",
      "engine-timeout",
      "concurrency",
      "follow-load",
      "attempts",
      "max-failures",
      "out",
      "record",
      "retry-failed",
    ]);
  });

  test("have names of their own", () => {
    const names = runSettings.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("a template variable", () => {
  const variable = (entry: string) =>
    readRunConfig({ ...least, "template-variable": [entry] }).renderer?.variables;

  test.each<[string, unknown]>([
    ["a=false", false],
    ["a=null", null],
    ["a=2.5", 2.5],
    ["a=high", "high"],
    ["a=Falsehood", "Falsehood"],
    ["a=", ""],
    ["a=b=c", "b=c"],
    ['a="False"', "False"],
  ])("%s is read as JSON, or as a text", (entry, value) => {
    expect(JSON.stringify(variable(entry)?.get("a"))).toBe(JSON.stringify(value));
  });

  test.each([
    ["a=False", "Cannot read --template-variable a=False: expected a=false, or a='\"False\"' for"],
    ["a=True", "Cannot read --template-variable a=True: expected a=true, or"],
    ["a=TRUE", "Cannot read --template-variable a=TRUE: expected a=true, or"],
    ["a=None", "Cannot read --template-variable a=None: expected a=null, or"],
    ["a=none", "Cannot read --template-variable a=none: expected a=null, or"],
    [
      "a={'b': 1}",
      "Cannot read --template-variable a={'b': 1}: it starts like JSON, but is not JSON",
    ],
    ["a=[1,", "Cannot read --template-variable a=[1,: it starts like JSON, but is not JSON"],
    ['a="b', 'Cannot read --template-variable a="b: it starts like JSON, but is not JSON'],
    ["=1", "Cannot read --template-variable =1: expected name=value"],
    ["a", "Cannot read --template-variable a: expected name=value"],
  ])("%s is refused: it would be a text, and so true", (entry, complaint) => {
    expect(() => variable(entry)).toThrow(complaint);
  });
});
