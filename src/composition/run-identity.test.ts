import { cp, mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createStorefront } from "../../environments/storefront/index.ts";
import type { EngineDescription } from "../engine/engine.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import { readRunConfig } from "./config/run-config.ts";
import { describeIdentity } from "./run-identity.ts";
import type { GivenSettings } from "./config/setting.ts";

let scratch = "";
let model = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-identity-"));
  model = await writeModel("model");
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** A model folder, as far as its identity goes. */
async function writeModel(name: string, files: Readonly<Record<string, string>> = {}) {
  const dir = path.join(scratch, name);
  await mkdir(dir);
  const all = {
    "tokenizer.json": '{"model": 1}',
    "tokenizer_config.json": '{"eos_token": "</s>"}',
    "config.json": "{}",
    "model.safetensors": "weights",
    ...files,
  };
  for (const [file, content] of Object.entries(all)) {
    await writeFile(path.join(dir, file), content);
  }
  return dir;
}

const environment = createStorefront();
const described: EngineDescription = {
  kind: "sglang",
  model: "some/model",
  logprobConvention: "tempered",
};

async function identify(
  settings: GivenSettings = {},
  { engine = described, world = environment, card = {}, maxContextTokens = 4096 } = {},
) {
  const config = readRunConfig({
    env: "storefront",
    user: "scripted",
    model,
    ...(settings["engine"] === undefined && { url: ["http://h"] }),
    ...settings,
  });
  const renderer = createCharacterRenderer();
  return await describeIdentity(config, {
    environment: world,
    limits: { maxContextTokens },
    renderer: { ...renderer, card: { ...renderer.card, ...card } },
    engine,
  });
}

/** The names of the differing parts. */
function differences(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): readonly string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => before[name] !== after[name]);
}

describe("describeIdentity()", () => {
  test("describes the parts of the run in hashes and words", async () => {
    const sha256 = expect.stringMatching(/^[0-9a-f]{64}$/) as string;
    expect(await identify()).toEqual({
      engine: "sglang",
      servedModel: "some/model",
      "max-context": "4096",
      logprobConvention: "tempered",
      tokenizer: sha256,
      vocabularySize: String(createCharacterRenderer().codec.vocabularySize),
      stopTokens: createCharacterRenderer().stopTokenIds.join(" "),
      chatTemplate: "",
      templateVariables: sha256,
      tools: sha256,
      policyText: sha256,
    });
  });

  test("is the same for the same files in another folder, and for settings that may change", async () => {
    const moved = path.join(scratch, "moved");
    await cp(model, moved, { recursive: true });
    const other = { model: moved, url: ["http://i"], concurrency: 3, "max-turns": 2, seed: 4 };
    expect(await identify(other)).toEqual(await identify());
  });

  test.each<[string, () => Promise<Readonly<Record<string, string>>>, readonly string[]]>([
    [
      "another tokenizer",
      async () => identify({ model: await writeModel("tokens", { "tokenizer.json": "{}" }) }),
      ["tokenizer"],
    ],
    [
      "other special tokens",
      async () => {
        const files = { "tokenizer_config.json": '{"eos_token": "<|end|>"}' };
        return identify({ model: await writeModel("special", files) });
      },
      ["templateVariables"],
    ],
    [
      "another template variable",
      () => identify({ "template-variable": ["enable_thinking=false"] }),
      ["templateVariables"],
    ],
    [
      "another chat template",
      () => identify({}, { card: { templateHash: "00ff" } }),
      ["chatTemplate"],
    ],
    [
      "another model of the engine",
      () => identify({}, { engine: { ...described, model: "another" } }),
      ["servedModel"],
    ],
    [
      "another engine",
      () =>
        identify({ engine: "vllm", url: ["http://h"] }, { engine: { ...described, kind: "vllm" } }),
      ["engine"],
    ],
    ["another context limit", () => identify({}, { maxContextTokens: 720 }), ["max-context"]],
    [
      "logprobs of another kind",
      () => identify({}, { engine: { ...described, logprobConvention: "raw" } }),
      ["logprobConvention"],
    ],
    [
      "an engine that reports neither",
      () =>
        identify(
          {},
          { engine: { ...described, isConventionAssumed: true }, maxContextTokens: Infinity },
        ),
      ["max-context", "logprobConvention"],
    ],
    [
      "other tools and rules",
      () =>
        identify(
          {},
          { world: { ...environment, tools: environment.tools.slice(1), policyText: "" } },
        ),
      ["tools", "policyText"],
    ],
  ])("differs for %s", async (_, other, names) => {
    expect(differences(await identify(), await other())).toEqual(names);
  });

  test("identifies a model that runs in this process by its weights, in any folder", async () => {
    const engine = { ...described, kind: "reference", model };
    const same = await identify({ engine: "reference" }, { engine });
    expect(same).not.toHaveProperty("servedModel");
    const trained = await writeModel("trained", { "model.safetensors": "other weights" });
    const other = await identify({ engine: "reference", model: trained }, { engine });
    expect(differences(same, other)).toEqual(["weights"]);
  });

  test("includes a limit that follows from the machine only if the user set it", async () => {
    const engine = { ...described, kind: "reference" };
    const found = await identify({ engine: "reference" }, { engine });
    expect(found).not.toHaveProperty("max-context");
    const settings = { engine: "reference", threads: 64 };
    expect(await identify(settings, { engine, maxContextTokens: 3264 })).toEqual(found);
    const asked = { engine: "reference", "max-context": 720 };
    expect(await identify(asked, { engine, maxContextTokens: 720 })).toEqual({
      ...found,
      "max-context": "720",
    });
  });

  test("identifies fetched weights by name and by result", async () => {
    const gguf = "hf:acme/small:q8.gguf";
    const settings = { engine: "llama", gguf };
    const fetched = async (name: string, content: string) => {
      const weightsFile = path.join(scratch, name);
      await writeFile(weightsFile, content);
      return await identify(settings, { engine: { ...described, kind: "llama", weightsFile } });
    };
    const first = await fetched("fetched-1.gguf", "weights");
    expect(first).toMatchObject({ weights: gguf });
    expect(await fetched("fetched-2.gguf", "weights")).toEqual(first);
    expect(differences(first, await fetched("fetched-3.gguf", "newer"))).toEqual(["weightsFile"]);
    const unknown = await identify(settings, { engine: { ...described, kind: "llama" } });
    expect(differences(first, unknown)).toEqual(["weightsFile"]);
  });

  test("knows weights that are links, as in the hub's cache, and needs none to play again", async () => {
    const engine = { ...described, kind: "reference", model };
    const linked = await writeModel("linked");
    for (const name of ["model.safetensors", "config.json"]) {
      await rename(path.join(linked, name), path.join(scratch, `blob-${name}`));
      await symlink(path.join(scratch, `blob-${name}`), path.join(linked, name));
    }
    const same = await identify({ engine: "reference" }, { engine });
    expect(await identify({ engine: "reference", model: linked }, { engine })).toEqual(same);
    const bare = await writeModel("bare");
    for (const name of ["model.safetensors", "config.json"]) await rm(path.join(bare, name));
    const other = await identify({ engine: "reference", model: bare }, { engine });
    expect(differences(same, other)).toEqual(["weights"]);
  });

  test("knows a module by the files that it imports, too", async () => {
    const env = path.join(scratch, "imports.mjs");
    const prices = path.join(scratch, "prices.mjs");
    await writeFile(env, 'import "./prices.mjs";\n');
    await writeFile(prices, "export const price = 1;\n");
    const first = (await identify({ env }))["environmentData"];
    expect((await identify({ env }))["environmentData"]).toBe(first);
    await writeFile(prices, "export const price = 2;\n");
    expect((await identify({ env }))["environmentData"]).not.toBe(first);
  });

  test("identifies a module and a script by their contents", async () => {
    const [first, second] = [path.join(scratch, "a.mjs"), path.join(scratch, "b.mjs")];
    await writeFile(first, "export const a = 1;");
    await writeFile(second, "export const a = 2;");
    const base = await identify({ env: first, "user-script": first });
    expect(differences(base, await identify({ env: second, "user-script": first }))).toEqual([
      "environmentData",
    ]);
    expect(differences(base, await identify({ env: first, "user-script": second }))).toEqual([
      "userScript",
    ]);
  });

  test("knows a benchmark's data by its files, and not those of its other domains", async () => {
    const bundle = path.join(scratch, "bundle");
    for (const domain of ["retail", "airline"]) {
      await mkdir(path.join(bundle, domain), { recursive: true });
      await writeFile(path.join(bundle, domain, "users.json"), "{}");
    }
    const settings = { env: "tau-retail", data: bundle };
    const before = await identify(settings);
    await writeFile(path.join(bundle, "airline", "users.json"), '{"a": 1}');
    expect(await identify(settings)).toEqual(before);
    await writeFile(path.join(bundle, "retail", "users.json"), '{"a": 1}');
    expect(differences(before, await identify(settings))).toEqual(["environmentData"]);
  });
});
