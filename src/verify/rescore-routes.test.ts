import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { preparedEngine } from "../episode/lamp-episode.fixture.ts";
import type { Engine } from "../engine/engine.ts";
import {
  inventedSpecs,
  playInventedLamps,
  readRows,
} from "../run/columns/invented-columns.fixture.ts";
import { RunFolder } from "../run/folder/run-folder.ts";
import { testManifest } from "../run/folder/run-folder.fixture.ts";
import { withInventedColumns } from "../testing/column-engine.ts";
import { rescoreRoutes } from "./rescore-routes.ts";

const { routedExperts } = inventedSpecs;
const specs = { routedExperts };

let dir = "";
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-rescore-routes-"));
  await using folder = await RunFolder.open(dir, testManifest, { retryFailed: false });
  await playInventedLamps(folder, { columns: specs, concurrency: 1 });
});
afterAll(async () => {
  await rm(dir, { recursive: true });
});

/** Answers requests for routes with those of weights of this version. */
function weights(policyVersion: string): Engine {
  return withInventedColumns({
    ...preparedEngine([]),
    generate: async (request, options) => {
      const pieces = [{ requestId: "r", tokenCount: 1, policyVersion, finish: "length" } as const];
      const reply = { outputIds: [65], finish: { type: "length" } as const, pieces };
      return await preparedEngine([reply]).generate(request, options);
    },
  });
}

test("the same weights give all routes again, in the same order", async () => {
  const found = await rescoreRoutes(dir, { engine: weights("1"), specs });
  expect(found).toMatchObject({
    rowCount: 4,
    equalShare: 1,
    sameSetShare: 1,
    policyVersions: ["1"],
  });
});

test("other weights give other routes, and the share says so", async () => {
  const found = await rescoreRoutes(dir, { engine: weights("2"), specs });
  expect(found.rowCount).toBe(4);
  expect(found.equalShare).toBe(0);
  expect(found.lowest?.equalShare).toBe(0);
});

test("a row is requested without its last token, so a row that fills the context fits", async () => {
  const lengths: number[] = [];
  const engine = weights("1");
  const watched: Engine = {
    ...engine,
    generate: async (request, options) => {
      lengths.push(request.promptIds.length + request.maxNewTokens);
      return await engine.generate(request, options);
    },
  };
  await rescoreRoutes(dir, { engine: watched, specs, concurrency: 1 });
  const rows = await readRows(dir);
  expect(lengths).toEqual(rows.map(({ tokenIds }) => tokenIds.length));
});
