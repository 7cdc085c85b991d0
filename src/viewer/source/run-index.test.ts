import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadTokenCodec } from "../../tokenizer/load-codec.ts";
import { readFilter } from "../model/lists/episode-filter.ts";
import { makeSeveralRows } from "../several-rows.fixture.ts";
import {
  appendEpisode,
  makeEpisode,
  makeSample,
  viewedModel,
  writeViewedRun,
} from "../viewed-run.fixture.ts";
import { RowSource } from "./row-source.ts";
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

test("an episode has the number of its rows, and its rows have their origins", async () => {
  const codec = await loadTokenCodec(viewedModel);
  const parts = [{ text: "Hello" }, { text: "there", version: "7" }];
  const one = async (id: string) => ({
    row: makeEpisode(id, [{}]),
    samples: [await makeSample(codec, id, parts)],
  });
  const first = "shop/test/0#0";
  await writeViewedRun(dir, [await makeSeveralRows(codec, first), await one("shop/test/1#0")]);
  const index = await RunIndex.open(dir, { key: "run" });
  const counts = () => index.entries.map(({ rolloutId, rowCount }) => [rolloutId, rowCount]);
  expect(counts()).toEqual([
    [first, 4],
    ["shop/test/1#0", 1],
  ]);
  await appendEpisode(dir, await makeSeveralRows(codec, "shop/test/2#0"));
  await appendEpisode(dir, { row: makeEpisode("shop/test/3#0", []), samples: [] });
  await index.refresh();
  expect(counts().slice(2)).toEqual([
    ["shop/test/2#0", 4],
    ["shop/test/3#0", 0],
  ]);
  const { test: isShown } = readFilter("rows>1");
  expect(index.entries.filter((entry) => isShown(entry)).map(({ order }) => order)).toEqual([0, 2]);
  const branches = await new RowSource().branches(index, first);
  expect(branches.map(({ role, from }) => [role, from])).toEqual([
    ["main", undefined],
    ["subagent", { row: 0, turnIndex: 0, edge: "subagent_call" }],
    ["compaction", { row: 0, turnIndex: 1, edge: "compaction_attempt" }],
    ["main", { row: 2, turnIndex: 3, edge: "compaction" }],
  ]);
  await codec.close?.();
});
