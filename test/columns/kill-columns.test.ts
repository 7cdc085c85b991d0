import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { createColumnPart, withoutBytes, type ColumnPart } from "../../src/columns/column-part.ts";
import { encodeRagged } from "../../src/columns/ragged-rows.ts";
import { inventedFaults } from "../../src/run/columns/invented-faults.fixture.ts";
import { inventedRoutes, inventedSet } from "../../src/testing/column-engine.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import { killedSpecs as specs } from "./invented-setup.ts";

const program = fileURLToPath(new URL("kill-columns.mjs", import.meta.url));
const tokenIds = [40, 41, 42, 43, 44, 45];

/** Routes of tokens, computed by the weights of a version. */
function routes(from: number, rows: number, policyVersion = "3"): ColumnPart {
  const about = { from, rows, policyVersion, shape: specs.routedExperts };
  return createColumnPart({ from, rows, policyVersion, bytes: inventedRoutes(tokenIds, about) });
}

/** Kept sets of sampled tokens. */
function sets(from: number, rows: number): ColumnPart {
  const own = tokenIds.slice(from, from + rows).map((id) => inventedSet(id, 4));
  const counts = Uint32Array.from(own, ({ length }) => length);
  const bytes = encodeRagged({ counts, ids: Int32Array.from(own.flat()) });
  return createColumnPart({ from, rows, policyVersion: "3", bytes });
}

test.each<[string, readonly ColumnPart[], readonly ColumnPart[], readonly string[]]>([
  ["nothing in a whole row", [routes(0, 3), routes(3, 2)], [sets(3, 3)], []],
  ["a lost part", [routes(0, 3)], [sets(3, 3)], ["routes of 3 of 6 tokens"]],
  [
    "a doubled part",
    [routes(0, 3), routes(0, 3), routes(3, 2)],
    [sets(3, 3), sets(3, 1)],
    ["routes from 0, not 3", "token 3 is in 2 parts"],
  ],
  [
    "a shifted part",
    [routes(0, 3), { ...routes(2, 2), from: 3 }],
    [sets(3, 3)],
    ["routes from 3 are not invented"],
  ],
  [
    "a part of other weights",
    [routes(0, 3), { ...routes(3, 2, "4"), policyVersion: "3" }],
    [{ ...sets(3, 3), policyVersion: "4" }],
    [
      "routes from 3 are not invented",
      ...[3, 4, 5].map((place) => `token ${place} is of 3, its part of 4`),
    ],
  ],
])("the checks find %s", async (_, routedExperts, keptTokens, faults) => {
  const parts = [...routedExperts, ...keptTokens];
  const bytesOf = new Map(parts.map(({ hash, bytes }) => [hash, bytes!]));
  const row = {
    tokenIds,
    lossMask: [0, 0, 0, 1, 1, 1],
    policyVersions: ["", "", "", "3", "3", "3"],
    columns: {
      routedExperts: routedExperts.map(withoutBytes),
      keptTokens: keptTokens.map(withoutBytes),
    },
  };
  const source = {
    read: ({ hash }: { readonly hash: string }) => Promise.resolve(bytesOf.get(hash)!),
  };
  const found = await inventedFaults(row as unknown as Sample, { source, specs });
  expect(found.filter((fault) => !fault.includes("in 0 parts"))).toEqual(faults);
});

test("runs with columns that are killed lose, double, shift and mix up no part", async () => {
  // A failure has the output too.
  const { stdout } = await promisify(execFile)(process.execPath, [program, "6"]).catch(
    (error: { readonly stdout: string }) => error,
  );
  const sums = JSON.parse(stdout.trim().split("\n").at(-1)!) as { readonly mixedRows: number };
  expect(sums).toMatchObject({ kills: 6, faults: [] });
  expect(sums.mixedRows).toBeGreaterThan(0);
});
