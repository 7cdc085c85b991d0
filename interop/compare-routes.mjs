// Compares the routes of a run's rows with those that a model computes for the same ids.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { readRun } from "../dist/src/api/read-run.js";
import { openColumnFolder } from "../dist/src/run/columns/column-folder.js";

const routersFile = fileURLToPath(new URL("routers.py", import.meta.url));

/** Weights of a token's experts that differ by less are a near tie: 32 bits may decide it in another way. */
const NEAR_TIE = 1e-5;

/**
 * Compares every row of routes. Each part is compared with the weights of its own version.
 *
 * @param routesOf - Returns the routes of a row's ids by the weights of a version: `experts[token][layer]`, and for each
 *   token `margins`, the least difference of weights that decided.
 * @returns the number of rows, of those in near ties, and of unequal ones among these.
 */
export async function compareRoutes(dir, routesOf) {
  const run = await readRun(dir);
  const columns = openColumnFolder(dir);
  const { layerCount, perToken } = run.manifest.found.columns.routedExperts;
  const size = layerCount * perToken;
  const found = { rows: 0, nearTies: 0, unequalNearTies: 0, versions: {} };
  try {
    for await (const { tokenIds, columns: own, rolloutId } of run.samples()) {
      const byVersion = new Map();
      for (const part of own.routedExperts) {
        const { from, rows, policyVersion: version } = part;
        if (!byVersion.has(version)) byVersion.set(version, await routesOf(version, tokenIds));
        const { experts, margins } = byVersion.get(version);
        const bytes = await columns.read(part);
        for (let row = 0; row < rows; row++) {
          const token = from + row;
          const got = [...bytes.subarray(row * size, (row + 1) * size)];
          const wanted = experts[token].flat();
          const isEqual = got.every((id, index) => id === wanted[index]);
          const isNear = margins[token] < NEAR_TIE;
          found.nearTies += isNear ? 1 : 0;
          found.unequalNearTies += isNear && !isEqual ? 1 : 0;
          assert.ok(
            isEqual || isNear,
            `${rolloutId}, token ${token}, version ${version}: the experts are ${got.join(" ")}, expected ${wanted.join(" ")}`,
          );
        }
        found.rows += rows;
        found.versions[version] = (found.versions[version] ?? 0) + rows;
      }
    }
  } finally {
    await columns[Symbol.asyncDispose]();
  }
  assert.ok(found.rows > 0, "the run has no routes");
  return found;
}

/**
 * Starts transformers in a server's Python.
 *
 * @param folderOf - Returns the folder of the weights of a version.
 */
export function startRouters(folder, folderOf) {
  const python = path.join(folder, "venv/bin/python");
  const env = { ...process.env, CUDA_VISIBLE_DEVICES: "", HF_HUB_OFFLINE: "1" };
  const child = spawn(python, [routersFile], { stdio: ["pipe", "pipe", "inherit"], env });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    routesOf: async (version, ids) => {
      child.stdin.write(`${JSON.stringify({ model: folderOf(version), ids })}\n`);
      const { value, done } = await lines.next();
      assert.ok(!done, "transformers ended before it answered");
      return JSON.parse(value);
    },
    stop: () => child.kill("SIGKILL"),
  };
}
