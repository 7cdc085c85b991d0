import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Diagnosis } from "../doctor/diagnosis.ts";
import { startDoctorHere } from "../doctor/live/thread/start-doctor.ts";
import type { ColumnPart } from "../columns/column-part.ts";
import { checkInventedRow, inventedSpecs } from "../run/columns/invented-columns.fixture.ts";
import { Redactor } from "../secrets/redactor.ts";
import type { Sample } from "../trajectory/sample.ts";
import { verifyRun } from "../verify/verify-run.ts";
import { caller, columnSetup, openLamps, twoLamps } from "./lamp-service.fixture.ts";
import type { RolloutServiceOptions } from "./rollout-service-options.ts";
import type { RolloutService } from "./rollout-service.ts";
import { createServiceApp } from "./server/service-app.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-service-columns-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

async function open(options: Partial<RolloutServiceOptions> = {}): Promise<RolloutService> {
  return await openLamps(dir, { setup: columnSetup(inventedSpecs), ...options });
}

/** Plays two attempts at each of two lamps, and returns their rows. */
async function rowsOf(service: RolloutService, key = "step-1"): Promise<readonly Sample[]> {
  const call = caller(service);
  const accepted = await call("POST", "/v1/batches", { ...twoLamps, key });
  const { batch } = accepted.body as { readonly batch: string };
  return await streamedRows(service, batch);
}

async function streamedRows(service: RolloutService, batch: string): Promise<readonly Sample[]> {
  const { body } = await caller(service)("GET", `/v1/groups?batch=${batch}`);
  return (body as readonly string[]).flatMap((line) => {
    const { type, group } = JSON.parse(line) as {
      readonly type: string;
      readonly group: { readonly attempts: readonly { readonly rows: readonly Sample[] }[] };
    };
    return type === "group" ? group.attempts.flatMap(({ rows }) => rows) : [];
  });
}

/** Calls `/v1/columns/HASH`. */
function columnsOf(service: RolloutService, token?: string) {
  const redactor = new Redactor();
  const app = createServiceApp(service, {
    version: "0",
    checksHost: true,
    redactor,
    ...(token !== undefined && { token }),
  });
  return async (hash: string, headers: Record<string, string> = {}, method = "GET") =>
    await app.request(`/v1/columns/${hash}`, { headers, method });
}

const readPart = async (service: RolloutService, { hash }: Pick<ColumnPart, "hash">) =>
  Buffer.from(await (await columnsOf(service)(hash)).arrayBuffer());

async function checkRows(service: RolloutService, rows: readonly Sample[]): Promise<void> {
  expect(rows).toHaveLength(4);
  const read = async (part: Pick<ColumnPart, "hash">) => await readPart(service, part);
  for (const row of rows) expect(await checkInventedRow(row, { read })).toBe(3);
}

const filesOf = async (batch: string): Promise<readonly string[]> =>
  (await readdir(path.join(dir, "batches", batch, "columns"))).toSorted();

const kept = ["start-0-0000.bin", "start-0.jsonl"];
const freed = ["start-0-0000.bin.freed", "start-0.jsonl"];

test("rows name columns by hash, and readers get the bytes of each part", async () => {
  await using service = await open();
  const rows = await rowsOf(service);
  await checkRows(service, rows);
  const [part] = rows[0]!.columns!.routedExperts!;
  expect(part).not.toHaveProperty("bytes");
  const answer = await columnsOf(service)(part!.hash);
  expect([answer.status, Object.fromEntries(answer.headers)]).toEqual([
    200,
    {
      "accept-ranges": "bytes",
      "cache-control": "no-store",
      "content-length": String(part!.size),
      "content-type": "application/octet-stream",
    },
  ]);
});

test.each([
  ["bytes=2-5", 2, 6],
  ["bytes=7-", 7, undefined],
  ["bytes=-3", -3, undefined],
  ["bytes=2-999999", 2, undefined],
])("the range %s is a part of the bytes", async (range, start, end) => {
  await using service = await open();
  const [row] = await rowsOf(service);
  const [part] = row!.columns!.routedExperts!;
  const whole = await readPart(service, part!);
  const answer = await columnsOf(service)(part!.hash, { range });
  const wanted = whole.subarray(start, end);
  expect(answer.status).toBe(206);
  expect(Buffer.from(await answer.arrayBuffer())).toEqual(wanted);
  const first = start < 0 ? whole.length + start : start;
  expect(answer.headers.get("content-range")).toBe(
    `bytes ${first}-${first + wanted.length - 1}/${whole.length}`,
  );
  expect(answer.headers.get("content-length")).toBe(String(wanted.length));
});

test("ranges without a byte, unknown hashes and callers without a token are refused", async () => {
  await using service = await open();
  const [row] = await rowsOf(service);
  const { hash, size } = row!.columns!.keptTokens![0]!;
  const get = columnsOf(service);
  const late = await get(hash, { range: `bytes=${size}-` });
  expect([late.status, late.headers.get("content-range"), await late.json()]).toEqual([
    416,
    `bytes */${size}`,
    {
      error: {
        code: "bad-range",
        message: `The range bytes=${size}- has no byte: the column has ${size}`,
      },
    },
  ]);
  // Other units, broken ranges and several ranges are ignored.
  for (const range of ["rows=0-1", "bytes=5-2", "bytes=0-1,3-4", "bytes=-"]) {
    expect((await get(hash, { range })).status).toBe(200);
  }
  const unknown = await get("0".repeat(32));
  expect([unknown.status, await unknown.json()]).toEqual([
    404,
    {
      error: {
        code: "not-found",
        message: "No batch has a column with this hash: it is wrong, or its rows were acknowledged",
      },
    },
  ]);
  expect((await get(hash, {}, "POST")).status).toBe(405);
  const head = await get(hash, {}, "HEAD");
  expect([head.status, head.headers.get("content-length")]).toEqual([200, String(size)]);
  const guarded = columnsOf(service, "secret");
  expect((await guarded(hash)).status).toBe(401);
  expect((await guarded(hash, { authorization: "Bearer secret" })).status).toBe(200);
});

test("acknowledged groups free their space, and the batch's folder is still sound", async () => {
  await using service = await open();
  const [row] = await rowsOf(service);
  const call = caller(service);
  const { hash } = row!.columns!.keptTokens![0]!;
  expect(await filesOf("b1")).toEqual(kept);
  await call("POST", "/v1/groups/ack", { cursor: 1 });
  expect(await filesOf("b1")).toEqual(kept);
  await call("POST", "/v1/groups/ack", { cursor: 2 });
  expect(await filesOf("b1")).toEqual(freed);
  expect((await columnsOf(service)(hash)).status).toBe(404);
  const folder = path.join(dir, "batches", "b1");
  const { violations } = await verifyRun(folder);
  expect(violations).toEqual([]);
});

test("the next start has the columns of groups that were not acknowledged", async () => {
  let rows: readonly Sample[];
  {
    await using service = await open();
    rows = await rowsOf(service);
    await rowsOf(service, "step-2");
    await caller(service)("POST", "/v1/groups/ack", { batch: "b2" });
  }
  expect([await filesOf("b1"), await filesOf("b2")]).toEqual([kept, freed]);
  await using service = await open();
  expect(await streamedRows(service, "b1")).toEqual(rows);
  await checkRows(service, rows);
  await caller(service)("POST", "/v1/groups/ack", { batch: "b1" });
  expect(await filesOf("b1")).toEqual(freed);
});

test("once a trainer has posted, the newest acknowledged columns stay for the doctor, and for no reader", async () => {
  let first: Sample | undefined;
  {
    await using service = await open();
    [first] = await rowsOf(service, "step-1");
  }
  const folder = path.join(dir, "batches/b1/columns");
  const sizes = await Promise.all(kept.map(async (name) => await stat(path.join(folder, name))));
  const columnBytes = 1.5 * sizes.reduce((sum, { size }) => sum + size, 0);
  await using service = await open({ doctor: { start: startDoctorHere, columnBytes } });
  const call = caller(service);
  await call("POST", "/v1/groups/ack", { batch: "b1" });
  expect(await filesOf("b1")).toEqual(freed);
  const late = await diagnoseZeros(service, "b1", first!);
  expect([late.routes, late.notes.at(-1)]).toEqual([
    undefined,
    expect.stringContaining("The routes of 1 row were freed"),
  ]);
  const [second] = await rowsOf(service, "step-2");
  await call("POST", "/v1/groups/ack", { batch: "b2" });
  expect(await filesOf("b2")).toEqual(kept);
  expect((await columnsOf(service)(second!.columns!.keptTokens![0]!.hash)).status).toBe(404);
  const { routes } = await diagnoseZeros(service, "b2", second!);
  expect(routes?.differingShare).toBe(1);
  await rowsOf(service, "step-3");
  await call("POST", "/v1/groups/ack", { batch: "b3" });
  expect([await filesOf("b2"), await filesOf("b3")]).toEqual([freed, kept]);
});

/** Posts the engine's logprobs of a row with zeros as routes. Returns the diagnosis. */
async function diagnoseZeros(
  service: RolloutService,
  batch: string,
  { rolloutId, segment, logprobs, columns }: Sample,
): Promise<Diagnosis> {
  const { layerCount, perToken } = inventedSpecs.routedExperts;
  const rows = columns!.routedExperts!.reduce((sum, part) => sum + part.rows, 0);
  const base64 = Buffer.alloc(rows * layerCount * perToken).toString("base64");
  const routedExperts = { shape: [rows, layerCount, perToken], dtype: "uint8", base64 };
  const body = JSON.stringify({ batch, rolloutId, segment, logprobs, routedExperts });
  const headers = { "content-type": "application/x-ndjson" };
  const call = caller(service);
  const { status } = await call("POST", "/v1/trainer-logprobs", undefined, { body, headers });
  expect(status).toBe(200);
  return (await call("GET", "/v1/doctor")).body as Diagnosis;
}

test("--keep-columns keeps the columns of acknowledged groups, until a start without it", async () => {
  {
    await using service = await open({ keepsColumns: true });
    const rows = await rowsOf(service);
    await caller(service)("POST", "/v1/groups/ack", { cursor: 2 });
    await checkRows(service, rows);
  }
  expect(await filesOf("b1")).toEqual(kept);
  await using _service = await open();
  expect(await filesOf("b1")).toEqual(freed);
});
