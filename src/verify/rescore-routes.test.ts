import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ColumnSpecs, ExpertShape } from "../columns/column-specs.ts";
import { preparedEngine, says, switchCall } from "../episode/lamp-episode.fixture.ts";
import type { Engine } from "../engine/engine.ts";
import { RunFolder } from "../run/folder/run-folder.ts";
import { testManifest } from "../run/folder/run-folder.fixture.ts";
import { lampPlan, lamps, lampSetup } from "../run/lamp-run.fixture.ts";
import { runRollouts } from "../run/run-rollouts.ts";
import { withInventedColumns } from "../testing/column-engine.ts";
import { rescoreRoutes } from "./rescore-routes.ts";

const specs = {
  routedExperts: { layerCount: 3, perToken: 2, expertCount: 8 },
} satisfies ColumnSpecs & { readonly routedExperts: ExpertShape };

let dir = "";
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-rescore-routes-"));
  const environment = { ...lamps(2), repeatable: true };
  const engine = withInventedColumns({
    ...preparedEngine([]),
    generate: async (request, options) => {
      const reply = request.requestId.endsWith(":0;") ? says(switchCall) : says("Goodbye!");
      return await preparedEngine([reply]).generate(request, options);
    },
  });
  await using folder = await RunFolder.open(dir, testManifest, { retryFailed: false });
  await runRollouts({
    plan: lampPlan(environment),
    setup: { ...lampSetup({ environment, engine }), columns: specs },
    folder,
    concurrency: 1,
    attempts: 1,
    maxFailuresInRow: 10,
    signal: new AbortController().signal,
  });
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
