import { access, readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { createStorefront, demonstrate } from "../environments/storefront/index.ts";
import type * as byHand from "../examples/play-lamps-by-hand.ts";
import type * as example from "../examples/play-one-episode.ts";
import { loadTokenCodec } from "../src/tokenizer/load-codec.ts";
import { scriptedPolicy, startSglangTestServer } from "../src/testing/index.ts";
import { verifySample } from "../src/trajectory/verify-sample.ts";
import { smallModelFolder } from "./support/small-model.ts";
import { jsonLines, runCli } from "./support/run-cli.ts";

const root = new URL("../", import.meta.url);

async function page(name: string): Promise<string> {
  return await readFile(fileURLToPath(new URL(name, root)), "utf8");
}

/** The module that an example was compiled to. */
function compiled(name: string): string {
  return fileURLToPath(new URL(`dist/examples/${name}.js`, root));
}

const docs = await readdir(fileURLToPath(new URL("docs", root)));
const pages = ["README.md", ...docs.filter((name) => name.endsWith(".md")).map((n) => `docs/${n}`)];

/** Flags of npm, and of inference servers. */
const FOREIGN_FLAGS = [
  ...["--silent", "--help", "--omit"],
  ...["--enable-scale-out", "--logprobs-mode", "--flash-attn", "--cache-type-k", "--cache-type-v"],
  ...["--disable-radix-cache", "--chunked-prefill-size", "--dtype", "--max-num-batched-tokens"],
  ...["--enable-deterministic-inference"],
];

const helps = new Map<string, Promise<string>>();

/** The help of a command that exists. */
async function helpOf(command: string): Promise<string> {
  const asked =
    helps.get(command) ??
    runCli([...command.split(" "), "--help"]).then(({ status, stdout }) => {
      expect(status, command).toBe(0);
      return stdout;
    });
  helps.set(command, asked);
  return await asked;
}

describe.each(pages)("%s", (name) => {
  test("shows the examples as they are", async () => {
    const shown = [...(await page(name)).matchAll(/<!-- (examples\/\S+) -->\n```ts\n([^]*?)```/g)];
    for (const [, file, code] of shown) expect(code, file).toBe(await page(file!));
  });

  test("names only commands and flags that exist", async () => {
    const text = await page(name);
    const named = [...text.matchAll(/(?:turnwright |`)(env [a-z]+)|turnwright (?!--)([a-z-]+)/g)];
    const commands = named.map(([, inGroup, alone]) => inGroup ?? alone!);
    // `npm start` is `turnwright demo`.
    const asked = new Set(["rollout", "demo", ...commands]);
    const texts = await Promise.all([...asked].map(helpOf));
    const known = texts.join("\n");
    const flags = new Set([...text.matchAll(/[ `](--[a-z][a-z-]+)/g)].map(([, flag]) => flag!));
    for (const flag of FOREIGN_FLAGS) flags.delete(flag);
    for (const flag of flags) expect(known, flag).toContain(flag);
  });

  test("links to files that are there", async () => {
    const links = [...(await page(name)).matchAll(/\]\((?!https?:|#)([^)#]+)/g)];
    const place = new URL(name, root);
    for (const [, link] of links) await access(fileURLToPath(new URL(link!, place)));
  });
});

test("README.md shows a training row that verifies", async () => {
  const [, row] = /```json\n(\{"format":1[^]*?)```/.exec(await page("README.md"))!;
  expect(verifySample(JSON.parse(row!))).toEqual([]);
});

test("docs/environments.md shows what `env play` answers", async () => {
  const text = await page("docs/environments.md");
  const [line, answer] = [...text.matchAll(/```json\n([^]*?)```/g)].map(([, json]) => json!);
  const { stdout } = await runCli(["env", "play", compiled("lamps")], { input: line! });
  expect(jsonLines(stdout)).toEqual([JSON.parse(answer!)]);
});

describe("examples", () => {
  test("play-one-episode plays an episode", async () => {
    const { playOneEpisode } = (await import(compiled("play-one-episode"))) as typeof example;
    const codec = await loadTokenCodec(smallModelFolder);
    const { turns } = await demonstrate(createStorefront().task("test", 0), { seed: 0 });
    const outputs = turns.map(({ text }) => codec.encode(`${text}<|im_end|>`));
    const script = (await Promise.all(outputs)).map((outputIds) => ({ outputIds }));
    await using server = await startSglangTestServer({ policy: scriptedPolicy(script) });
    const episode = await playOneEpisode(server.url, smallModelFolder);
    expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
  });

  test("play-lamps-by-hand earns the reward of every test task", async () => {
    const { playLampsByHand } = (await import(compiled("play-lamps-by-hand"))) as typeof byHand;
    for (let index = 0; index < 100; index++) {
      const { steps, score } = await playLampsByHand(index);
      expect(steps.at(-1)?.done).toBe("user-left");
      expect(score.reward).toBe(1);
    }
  });
});
