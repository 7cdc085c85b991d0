import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type * as example from "../examples/play-one-episode.ts";
import { createStorefront, demonstrate } from "../environments/storefront/index.ts";
import { loadTokenCodec } from "../src/tokenizer/load-codec.ts";
import { scriptedPolicy, startSglangTestServer } from "../src/testing/index.ts";
import { verifySample } from "../src/trajectory/verify-sample.ts";
import { qwen3Folder } from "./qwen3-model.ts";
import { runCli } from "./run-cli.ts";

const root = new URL("../", import.meta.url);

async function page(name: string): Promise<string> {
  return await readFile(fileURLToPath(new URL(name, root)), "utf8");
}

describe("README.md", () => {
  test("shows the examples as they are", async () => {
    const readme = await page("README.md");
    const shown = [...readme.matchAll(/<!-- (examples\/\S+) -->\n```ts\n([^]*?)```/g)];
    expect(shown.length).toBeGreaterThan(0);
    for (const [, file, code] of shown) expect(code, file).toBe(await page(file!));
  });

  test("names only commands and flags that exist", async () => {
    const readme = await page("README.md");
    const flags = new Set([...readme.matchAll(/ (--[a-z][a-z-]+)/g)].map(([, flag]) => flag!));
    const commands = [
      "rollout",
      "eval",
      "compare",
      "show",
      "env import",
      "identify-errors",
      "env pull",
      "verify",
      "demo",
    ];
    const helps = await Promise.all(
      commands.map(async (command) => (await runCli([...command.split(" "), "--help"])).stdout),
    );
    const known = helps.join("\n");
    // Flags of npm itself are not ours.
    for (const flag of ["--silent", "--help", "--omit"]) flags.delete(flag);
    for (const flag of flags) expect(known, flag).toContain(flag);
  });

  test("shows a training row that verifies", async () => {
    const [, row] = /```json\n(\{"format":1[^]*?)```/.exec(await page("README.md"))!;
    expect(verifySample(JSON.parse(row!))).toEqual([]);
  });
});

describe("examples", () => {
  test("play-one-episode plays an episode", async () => {
    const { playOneEpisode } = (await import(
      fileURLToPath(new URL("dist/examples/play-one-episode.js", root))
    )) as typeof example;
    const codec = await loadTokenCodec(qwen3Folder());
    const { turns } = await demonstrate(createStorefront().task("test", 0), { seed: 0 });
    const outputs = turns.map(({ text }) => codec.encode(`${text}<|im_end|>`));
    const script = (await Promise.all(outputs)).map((outputIds) => ({ outputIds }));
    await using server = await startSglangTestServer({ policy: scriptedPolicy(script) });
    const episode = await playOneEpisode(server.url, qwen3Folder());
    expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
  });
});
