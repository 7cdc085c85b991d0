import { mkdtempSync, rmSync } from "node:fs";
import { open, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createColumnModel } from "../../src/testing/protocol-servers/shared/column-model.ts";
import { createTextPolicy, startSglangTestServer } from "../../src/testing/index.ts";
import { smallModelFolder } from "../support/small-model.ts";

interface Figures {
  readonly rows: number;
  readonly nearTies: number;
  readonly versions: Readonly<Record<string, number>>;
}

interface Routes {
  readonly experts: readonly (readonly (readonly number[])[])[];
  readonly margins: readonly number[];
}

type RoutesOf = (version: string, ids: readonly number[]) => Promise<Routes>;

interface Context {
  readonly server: { readonly name: string };
  readonly dir: string;
  readonly url: string;
  readonly columns: string;
  readonly routesOf: RoutesOf;
  readonly update?: (version: string) => Promise<void>;
}

/** The tested functions of `interop/column-rounds.mjs` and `interop/compare-routes.mjs`. */
interface Rounds {
  playColumns(context: Context, options: { readonly count: number }): Promise<Figures>;
  killColumns(context: Context): Promise<Figures>;
  abortColumns(context: Context): Promise<Figures>;
  updateColumns(context: Context): Promise<Figures>;
}

interface Comparison {
  readonly compareRoutes: (dir: string, routesOf: RoutesOf) => Promise<Figures>;
}

const moduleOf = (name: string): string => new URL(`../../interop/${name}`, import.meta.url).href;
const rounds = (await import(moduleOf("column-rounds.mjs"))) as Rounds;
const { compareRoutes } = (await import(moduleOf("compare-routes.mjs"))) as Comparison;

const shape = { layerCount: 3, perToken: 2, expertCount: 8 };
const model = createColumnModel({ routedExperts: shape });

/** Computes the test server's routes of a row, as transformers does those of a real server. */
const routesOf: RoutesOf = async (version, ids) =>
  await Promise.resolve({
    experts: ids.map((id, position) =>
      Array.from({ length: shape.layerCount }, (_, layer) =>
        model.experts({ id, position, version }, layer),
      ),
    ),
    margins: ids.map(() => 1),
  });

let dir = "";
let server: Awaited<ReturnType<typeof startSglangTestServer>>;
let context: Context;
beforeAll(async () => {
  dir = mkdtempSync(path.join(tmpdir(), "turnwright-interop-columns-"));
  const turns = ["Where is it?", "I see.", "Thank you.", "One more thing.", "Bye."];
  server = await startSglangTestServer({
    policy: await createTextPolicy(() => turns, { modelDir: smallModelFolder }),
    columns: { routedExperts: shape },
    tokenLatencyMs: 2,
  });
  context = {
    server: { name: "sglang" },
    dir,
    url: server.url,
    columns: "routedExperts=3x2/8",
    routesOf,
  };
});
afterAll(async () => {
  await server.close();
  rmSync(dir, { recursive: true });
});

test("a played run has the routes of the model, and a changed byte is found", async () => {
  const figures = await rounds.playColumns(context, { count: 4 });
  expect(figures.rows).toBeGreaterThan(4 * 100);
  expect(figures.nearTies).toBe(0);
  const run = path.join(dir, "columns");
  const shifted: RoutesOf = async (version, ids) => {
    const { experts, margins } = await routesOf(version, ids);
    return { experts: [experts[0]!, ...experts.slice(0, -1)], margins };
  };
  await expect(compareRoutes(run, shifted)).rejects.toThrow(/token 1, version .*: the experts are/);
  const near: RoutesOf = async (version, ids) => ({
    ...(await shifted(version, ids)),
    margins: ids.map(() => 1e-9),
  });
  expect(await compareRoutes(run, near)).toMatchObject({
    nearTies: figures.rows,
    unequalNearTies: expect.any(Number) as number,
  });
  const [line] = (await readFile(path.join(run, "columns/start-0.jsonl"), "utf8")).split("\n");
  const { file, at } = JSON.parse(line!) as { readonly file: string; readonly at: number };
  {
    await using bytes = await open(path.join(run, "columns", file), "r+");
    await bytes.write(Buffer.of(250), 0, 1, at);
  }
  await expect(compareRoutes(run, routesOf)).rejects.toThrow("token 0, version");
});

test("a run that was killed or aborted keeps its routes", async () => {
  expect((await rounds.killColumns(context)).rows).toBeGreaterThan(0);
  expect((await rounds.abortColumns(context)).rows).toBeGreaterThan(0);
});

test("each part has the routes of its own weights", async () => {
  const update = async (version: string): Promise<void> => {
    const call = async (name: string, body: object): Promise<void> => {
      const headers = { "content-type": "application/json" };
      const init = { method: "POST", headers, body: JSON.stringify(body) };
      expect((await fetch(`${server.url}/${name}`, init)).ok).toBe(true);
    };
    await call("pause_generation", { mode: "abort" });
    await call("update_weights_from_disk", { model_path: "next", weight_version: version });
    await call("continue_generation", {});
  };
  const { versions } = await rounds.updateColumns({ ...context, update });
  expect(Object.keys(versions).toSorted()).toEqual(["2", "default"]);
});
