import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { RunIndex } from "./run-index.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-index-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

async function replace(name: string, lines: readonly string[]): Promise<void> {
  await writeFile(path.join(dir, "next"), lines.map((line) => `${line}\n`).join(""));
  await rename(path.join(dir, "next"), path.join(dir, name));
}

test("a run with replaced rows has the damaged lines and the versions of the new rows", async () => {
  const manifest = { format: 1, turnwright: "0", configuration: {}, found: {} };
  await writeFile(path.join(dir, "run.json"), JSON.stringify(manifest));
  const row = (version: string): string =>
    JSON.stringify({ format: 1, rolloutId: "a#0", segment: 0, policyVersions: [version] });
  await replace("episodes.jsonl", ["nothing"]);
  await replace("samples.jsonl", [row("1"), "neither"]);
  const index = await RunIndex.open(dir, { key: "run" });
  expect(index.facts.damagedCount).toBe(2);
  expect(await index.versions()).toEqual({ "a#0": ["1"] });
  await replace("samples.jsonl", [row("2")]);
  await index.refresh();
  expect(index.facts.damagedCount).toBe(1);
  expect(await index.versions()).toEqual({ "a#0": ["2"] });
});
