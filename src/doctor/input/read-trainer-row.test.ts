import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { readTrainerRow } from "./read-trainer-row.ts";
import type { RouteTable, TrainerRow } from "./trainer-row.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "turnwright-trainer-row-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** A `.npy` file of version 1.0. */
function npy(descr: string, shape: string, data: Uint8Array): Uint8Array {
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape}), }`;
  const header = Buffer.from(`${text.padEnd(117)}\n`);
  const start = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length, 0]);
  return Buffer.concat([start, header, data]);
}

async function routesOf(routedExperts: unknown): Promise<RouteTable> {
  const line = { rolloutId: "a", segment: 0, logprobs: [null, -1.5], routedExperts };
  const row = readTrainerRow(JSON.stringify(line), folder) as TrainerRow;
  return await (row.routedExperts as () => Promise<RouteTable>)();
}

describe("readTrainerRow()", () => {
  test("reads values, and keeps apart what is missing and what is not finite", () => {
    const text =
      '{"rolloutId":"a","segment":2,"logprobs":[null,-1,NaN,-Infinity],"policyVersion":4}';
    expect(readTrainerRow(text, folder)).toEqual({
      rolloutId: "a",
      segment: 2,
      logprobs: Float64Array.of(NaN, -1, Infinity, Infinity),
      policyVersion: "4",
    });
  });

  test("reads routes from base64, raw files and .npy files", async () => {
    const ids = Uint8Array.of(3, 1, 2, 0);
    await writeFile(path.join(folder, "raw.bin"), Uint16Array.of(300, 1, 2, 0));
    await writeFile(
      path.join(folder, "routes.npy"),
      npy("<i4", "2, 1, 2", new Uint8Array(16).fill(0)),
    );
    await writeFile(path.join(folder, "float.npy"), npy("<f4", "2, 1, 2", new Uint8Array(16)));
    const shape = [2, 1, 2];
    const table = { rows: 2, layerCount: 1, perToken: 2 };
    const base64 = Buffer.from(ids).toString("base64");
    expect(await routesOf({ shape, dtype: "uint8", base64 })).toEqual({ ...table, ids });
    expect(await routesOf({ shape, dtype: "uint16", path: "raw.bin" })).toEqual({
      ...table,
      ids: Uint16Array.of(300, 1, 2, 0),
    });
    expect(await routesOf("routes.npy")).toEqual({ ...table, ids: Int32Array.of(0, 0, 0, 0) });
    const long = npy("<i8", "2, 1, 2", new Uint8Array(BigInt64Array.of(3n, 1n, 2n, -1n).buffer));
    await writeFile(path.join(folder, "long.npy"), long);
    expect(await routesOf("long.npy")).toEqual({ ...table, ids: Int32Array.of(3, 1, 2, -1) });
    for (const [routes, problem] of [
      [
        "float.npy",
        "its array has the type <f4 in C order, expected uint8, int8, uint16, int16, int32, int64 in C order",
      ],
      ["none.npy", "no such file or directory"],
      [
        { shape, dtype: "uint16", base64 },
        "4 bytes are not an array of 2 x 1 x 2 uint16, expected 8",
      ],
      [{ shape, dtype: "uint8" }, 'its routes have neither "base64" nor "path"'],
    ] as const) {
      await expect(routesOf(routes)).rejects.toThrow(problem);
      await expect(routesOf(routes)).rejects.toBeInstanceOf(UsageError);
    }
  });

  test("reads files of routes when a row is compared, so that they are not all in memory", async () => {
    const about = { shape: [1, 1, 1], dtype: "uint8", path: "late.bin" };
    const line = { rolloutId: "a", segment: 0, logprobs: [-1], routedExperts: about };
    const row = readTrainerRow(JSON.stringify(line), folder) as TrainerRow;
    await writeFile(path.join(folder, "late.bin"), Uint8Array.of(7));
    const { ids } = await (row.routedExperts as () => Promise<RouteTable>)();
    expect(ids).toEqual(Uint8Array.of(7));
  });

  test.each([
    ['{"rolloutId":', "not-json", "it is not JSON"],
    ["[]", "shape", "it is not an object"],
    [
      '{"rolloutId":"a","segment":0,"logprobs":[-1,"x"]}',
      "shape",
      '"logprobs" is missing or of another type, expected a list of numbers and null',
    ],
  ])("names the fault of %s", (text, kind, detail) => {
    expect(readTrainerRow(text, folder)).toEqual({ kind, detail });
  });
});
