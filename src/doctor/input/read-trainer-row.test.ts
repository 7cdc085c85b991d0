import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readTrainerRow } from "./read-trainer-row.ts";

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

async function read(more: Readonly<Record<string, unknown>>) {
  const line = { rolloutId: "a", segment: 0, logprobs: [null, -1.5], ...more };
  return await readTrainerRow(JSON.stringify(line), folder);
}

describe("readTrainerRow()", () => {
  test("reads values, and keeps apart what is missing and what is not finite", async () => {
    const text =
      '{"rolloutId":"a","segment":2,"logprobs":[null,-1,NaN,-Infinity],"policyVersion":4}';
    expect(await readTrainerRow(text, folder)).toEqual({
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
    expect(await read({ routedExperts: { shape, dtype: "uint8", base64 } })).toMatchObject({
      routedExperts: { ...table, ids },
    });
    const raw = { shape, dtype: "uint16", path: "raw.bin" };
    expect(await read({ routedExperts: raw })).toMatchObject({
      routedExperts: { ...table, ids: Uint16Array.of(300, 1, 2, 0) },
    });
    expect(await read({ routedExperts: "routes.npy" })).toMatchObject({
      routedExperts: { ...table, ids: Int32Array.of(0, 0, 0, 0) },
    });
    expect(await read({ routedExperts: "float.npy" })).toMatchObject({
      routesFault:
        "its array has the type <f4, expected uint8, int8, uint16, int16, int32 in C order",
    });
    expect(await read({ routedExperts: { shape, dtype: "uint16", base64 } })).toMatchObject({
      routesFault: "4 bytes are not an array of 2 x 1 x 2 uint16, expected 8",
    });
  });

  test.each([
    ['{"rolloutId":', "not-json", "it is not JSON"],
    ["[]", "shape", "it is not an object"],
    [
      '{"rolloutId":"a","segment":0,"logprobs":[-1,"x"]}',
      "shape",
      '"logprobs" is missing or of another type, expected a list of numbers and null',
    ],
  ])("names the fault of %s", async (text, kind, detail) => {
    expect(await readTrainerRow(text, folder)).toEqual({ kind, detail });
  });
});
