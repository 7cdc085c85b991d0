import fc from "fast-check";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { diagnoseRun, diagnosisText, TrainerRows } from "../../src/doctor/index.ts";
import type { Diagnosis, DiagnoseOptions, TrainerRow } from "../../src/doctor/index.ts";
import type { LiveDiagnosis } from "../../src/doctor/live/live-doctor.ts";
import { startDoctorHere } from "../../src/doctor/live/thread/start-doctor.ts";
import { columnsFolder, freeColumnFile } from "../../src/run/columns/column-index.ts";
import { diskFiles } from "../../src/run/disk/files.ts";
import { caller, openLamps, type Answer } from "../../src/service/lamp-service.fixture.ts";
import { addTrainerLogprobs } from "../../src/service/server/doctor-call.ts";
import type { RolloutService } from "../../src/service/rollout-service.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import { postLine, writePairRun } from "./pair-run.ts";
import { readRecordedCases, toArguments } from "./recorded-cases.ts";
import { moved, routeShape, routesOf, simulatePair } from "./simulated-pairs.ts";

let dir = "";
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-live-doctor-"));
});
afterAll(async () => {
  await rm(dir, { recursive: true });
});

/** A service with one batch, `b1`. */
interface Place extends AsyncDisposable {
  readonly service: RolloutService;
  /** The folder of the batch. */
  readonly run: string;
  /** Posts JSON lines. */
  post(lines: string | readonly string[], type?: string): Promise<Answer>;
  ask(query?: string): Promise<LiveDiagnosis>;
}

async function openPlace(
  rows: readonly Sample[],
  options: Pick<DiagnoseOptions, "facts" | "routes"> = {},
  serviceOptions: Parameters<typeof openLamps>[1] = {},
): Promise<Place> {
  const place = await mkdtemp(path.join(dir, "service-"));
  const service = await openLamps(place, serviceOptions);
  const call = caller(service);
  const run = path.join(place, "batches", "b1");
  await writePairRun(run, rows, options);
  return {
    service,
    run,
    async post(lines, type = "application/x-ndjson") {
      const body = typeof lines === "string" ? lines : lines.map((line) => `${line}\n`).join("");
      const init = { body, headers: { "content-type": type } };
      return await call("POST", "/v1/trainer-logprobs", undefined, init);
    },
    async ask(query = "") {
      const { status, body } = await call("GET", `/v1/doctor${query}`);
      expect(status, JSON.stringify(body)).toBe(200);
      return body as LiveDiagnosis;
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
    },
  };
}

const lineOf = (row: TrainerRow): string => postLine("b1", row);

/** Posts all rows to a service, and returns its diagnosis and that of the batch's folder. */
async function diagnoseBoth(
  rows: readonly Sample[],
  trainer: readonly TrainerRow[],
  {
    options,
    postsOf = (lines) => [lines],
  }: {
    readonly options: Pick<DiagnoseOptions, "facts" | "routes">;
    readonly postsOf?: (lines: readonly string[]) => readonly (readonly string[])[];
  },
): Promise<{ readonly live: Diagnosis; readonly stored: Diagnosis }> {
  await using place = await openPlace(rows, options);
  const given = new TrainerRows();
  for (const row of trainer) given.add(row, "");
  const stored = await diagnoseRun(place.run, { trainerLogprobs: given });
  for (const lines of postsOf(trainer.map(lineOf))) {
    if (lines.length > 0) expect((await place.post(lines)).status).toBe(200);
  }
  const { window: _window, ...live } = await place.ask();
  return { live, stored };
}

/** What JSON leaves of a value. */
const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe("recorded mismatches have the same diagnosis over the service as from a file", () => {
  const cases = readRecordedCases();
  test.each(cases.map((one) => [one.name, one] as const))("%s", async (_, one) => {
    const [rows, trainer, options] = toArguments(one);
    const { live, stored } = await diagnoseBoth(rows, trainer, { options });
    expect(live).toEqual(asJson(stored));
    expect(diagnosisText(live)).toBe(diagnosisText(stored));
    expect(live.problems).toEqual([]);
  });
});

type Fault = (row: TrainerRow, sample: Sample) => TrainerRow;

/** The faults of trainers, by the cause that the doctor names. */
const faults: readonly (readonly [cause: string, fault: Fault])[] = [
  ["healthy", (row) => row],
  ["shifted", (row) => ({ ...row, logprobs: moved(row.logprobs, -1) })],
  ["shifted", (row) => ({ ...row, logprobs: moved(row.logprobs, 2) })],
  [
    "mask-shifted",
    (row, { lossMask }) => ({
      ...row,
      logprobs: row.logprobs.map((value, index) => (lossMask[index - 1] === 1 ? value : 0)),
    }),
  ],
  [
    "routes-not-replayed",
    (row, sample) => {
      const table = routesOf(sample);
      const ids = table.ids.map((_, place) => place % routeShape.perToken);
      return { ...row, routedExperts: { ...table, ids } };
    },
  ],
];

test("planted faults are named over the service, in posts of any sizes", async () => {
  const source = { read: () => Promise.reject(new Error("the parts have their bytes")) };
  const options = { routes: { shape: routeShape, source } };
  const posts = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 });
  const settings = fc.record({
    seed: fc.integer({ min: 0, max: 1e6 }),
    rowCount: fc.integer({ min: 6, max: 9 }),
    spread: fc.double({ min: 1.5, max: 5, noNaN: true }),
    staleness: fc.constantFrom(0, 0.6),
  });
  await fc.assert(
    fc.asyncProperty(settings, fc.constantFrom(...faults), posts, async (about, fault, sizes) => {
      const { rows, trainer } = simulatePair(about);
      const [cause, change] = fault;
      const given = trainer.map((row, index) => change(row, rows[index]!));
      const { live, stored } = await diagnoseBoth(rows, given, {
        options,
        postsOf: (lines) => {
          let at = 0;
          const cut = sizes.map((size) => lines.slice(at, (at += size)));
          return [...cut, lines.slice(at)];
        },
      });
      expect(live).toEqual(asJson(stored));
      const named = live.causes.filter(({ isFinding }) => isFinding).map(({ name }) => name);
      if (cause !== "healthy") expect(named).toContain(cause);
      if (about.staleness > 0 && cause !== "routes-not-replayed") {
        expect(named).toContain("stale-weights");
      }
    }),
    { numRuns: 15 },
  );
});

test("before the first post nothing is compared, and the answer says so", async () => {
  await using place = await openPlace([]);
  const { verdict, text, hasFinding, window } = await place.ask();
  expect([verdict, hasFinding, text]).toEqual([
    "nothing-compared",
    true,
    "Nothing could be compared: the trainer has posted no logprobs since the service started.",
  ]);
  expect(window).toEqual({ rowCount: 0, droppedRowCount: 0, tokenLimit: 262_144 });
});

test("a repeated post changes nothing, and a row that is scored again replaces itself", async () => {
  const { rows, trainer } = simulatePair({ seed: 1, rowCount: 6, spread: 3 });
  await using place = await openPlace(rows);
  const lines = trainer.map(lineOf);
  expect((await place.post(lines)).body).toEqual({ rows: 6, trainedTokens: 6 * 58 });
  const first = await place.ask();
  expect(first.verdict).toBe("healthy");
  await place.post(lines);
  expect(await place.ask()).toEqual(first);
  const shifted = trainer.map((row) => ({ ...row, logprobs: moved(row.logprobs, -1) }));
  await place.post(shifted.map(lineOf));
  const second = await place.ask();
  expect([second.verdict, second.counts.rowCount]).toEqual(["shifted", 6]);
});

test("the newest rows are diagnosed, and the window says how many it has dropped", async () => {
  const { rows, trainer } = simulatePair({ seed: 1, rowCount: 9, spread: 3 });
  const tokenLimit = 6 * 58 + 57;
  const doctor = { start: startDoctorHere, tokenLimit };
  await using place = await openPlace(rows, {}, { doctor });
  const shifted = trainer.slice(0, 3).map((row) => ({ ...row, logprobs: moved(row.logprobs, -1) }));
  await place.post(shifted.map(lineOf));
  expect((await place.ask()).verdict).toBe("shifted");
  await place.post(trainer.slice(3).map(lineOf));
  const { verdict, window, counts } = await place.ask();
  expect([verdict, counts.rowCount]).toEqual(["healthy", 6]);
  expect(window).toEqual({ rowCount: 6, droppedRowCount: 3, tokenLimit });
  // A post with more rows than fit leaves its last ones alone.
  await place.post(trainer.map(lineOf));
  const { window: last } = await place.ask();
  expect(last).toEqual({ rowCount: 6, droppedRowCount: 12, tokenLimit });
});

test("parameters set thresholds and the lag of unknown versions", async () => {
  const pair = simulatePair({ seed: 1, rowCount: 6, spread: 3, staleness: 0.6 });
  await using place = await openPlace(pair.rows);
  const unknown = pair.trainer.map(({ policyVersion: _version, ...row }) => row);
  await place.post(unknown.map(lineOf));
  expect((await place.ask()).verdict).toBe("unknown-lag");
  expect(Object.keys((await place.ask("?lag=0")).byLag)).toEqual(["0"]);
  const lenient = "?lag=0&meanDifference=9&outsideShare=1&confidentShare=1&numericsShare=9";
  const { hasFinding, thresholds } = await place.ask(lenient);
  expect([hasFinding, thresholds.meanDifference]).toEqual([false, 9]);
  for (const [query, message] of [
    ["lag=x", '"lag" is wrong: expected a whole number, such as 0'],
    ["routeShare=-1", '"routeShare" is wrong: expected a number, 0 or more'],
    ["share=1", 'There is no parameter "share": expected lag, '],
  ] as const) {
    const { status, body } = await caller(place.service)("GET", `/v1/doctor?${query}`);
    expect([status, JSON.stringify(body)]).toEqual([
      400,
      expect.stringContaining(JSON.stringify(message).slice(1, -1)),
    ]);
  }
});

test("routes that were freed with their acknowledgement are named", async () => {
  const source = { read: () => Promise.reject(new Error("the parts have their bytes")) };
  const { rows, trainer } = simulatePair({ seed: 2, rowCount: 6, spread: 3 });
  await using place = await openPlace(rows, { routes: { shape: routeShape, source } });
  await freeColumnFile(path.join(place.run, columnsFolder), "start-0-0000.bin", diskFiles);
  const given = trainer.map((row, index) => ({ ...row, routedExperts: routesOf(rows[index]!) }));
  await place.post(given.map(lineOf));
  const { verdict, notes } = await place.ask();
  expect([verdict, notes]).toEqual([
    "healthy",
    [
      "The routes of 6 rows were freed when the rows were acknowledged, so the trainer's were not compared: post " +
        "earlier, or start the service with --keep-columns.",
    ],
  ]);
});

test("rows without routes are named if other rows have some", async () => {
  const source = { read: () => Promise.reject(new Error("the parts have their bytes")) };
  const { rows, trainer } = simulatePair({ seed: 2, rowCount: 6, spread: 3 });
  await using place = await openPlace(rows, { routes: { shape: routeShape, source } });
  const [first, ...others] = trainer;
  const given = others.map((row, index) => ({ ...row, routedExperts: routesOf(rows[index + 1]!) }));
  await place.post([lineOf(first!), ...given.map(lineOf)]);
  const { verdict, problems } = await place.ask();
  const example = { rowCount: 1, tokenCount: 85, examples: ["row 0, row 0"] };
  expect([verdict, problems]).toEqual(["incomplete", [{ kind: "missing-routes", ...example }]]);
});

describe("posts that are wrong are refused as a whole, with the place", () => {
  const { rows, trainer } = simulatePair({ seed: 1, rowCount: 6, spread: 3 });
  const [first, second] = trainer;
  const good = lineOf(first!);
  const changed = (change: object): string => JSON.stringify({ ...JSON.parse(good), ...change });
  const values = JSON.parse(good).logprobs as readonly number[];
  const source = { read: () => Promise.reject(new Error("the parts have their bytes")) };
  const routes = (value: unknown): string => changed({ routedExperts: value });
  const hostile: readonly (readonly [name: string, body: string, message: string])[] = [
    ["no row", "\n\n", "the body has no row, expected one JSON line a row"],
    ["no JSON", `${good}\n{"batch":`, "line 2: it is not JSON"],
    ["no object", "[]", "line 1: it is not an object"],
    [
      "no batch",
      changed({ batch: undefined }),
      'line 1: "batch" is missing or wrong, expected the batch of the row, such as "b1"',
    ],
    [
      "a path as batch",
      changed({ batch: "../../etc" }),
      'line 1: "batch" is missing or wrong, expected the batch of the row, such as "b1"',
    ],
    [
      "an unknown batch",
      changed({ batch: "b77" }),
      'line 1: there is no batch "b77", or its folder was removed',
    ],
    [
      "an unknown row",
      changed({ rolloutId: "row 99" }),
      'line 1: the batch b1 has no row 0 of "row 99", or its folder was removed',
    ],
    [
      "an unknown segment",
      changed({ segment: 1 }),
      'line 1: the batch b1 has no row 1 of "row 0", or its folder was removed',
    ],
    [
      "an endless name",
      changed({ rolloutId: "z".repeat(5000) }),
      `line 1: the batch b1 has no row 0 of "${"z".repeat(200)}…", or its folder was removed`,
    ],
    [
      "an endless member",
      changed({ ["z".repeat(5000)]: 7 }),
      `line 1: there is no member "${"z".repeat(200)}…": expected batch, rolloutId, segment, logprobs, policyVersion, routedExperts`,
    ],
    [
      "an endless version",
      changed({ policyVersion: "7".repeat(5000) }),
      'line 1: "policyVersion" has 5000 characters, expected at most 200',
    ],
    ["a text that nests too deeply", "[".repeat(100_000), "line 1: it is not JSON"],
    ["a doubled row", `${good}\n${good}`, "line 2: row 0 of row 0 is in the body already"],
    [
      "too few logprobs",
      changed({ logprobs: values.slice(1) }),
      'line 1: row 0, row 0 has 90 tokens, and "logprobs" has 89 entries, expected one for each',
    ],
    [
      "no number",
      changed({ logprobs: values.with(7, "x" as never) }),
      'line 1: "logprobs" is missing or of another type, expected a list of numbers and null',
    ],
    [
      "NaN",
      good.replace(String(values[40]), "NaN"),
      'line 1: "logprobs[40]" of row 0, row 0 is infinite or not a number, expected a number, or null without one',
    ],
    [
      "-Infinity in a later line",
      `${good}\n${lineOf(second!).replace(/\[[^,]*/, "[-Infinity")}`,
      'line 2: "logprobs[0]" of row 1, row 0 is infinite or not a number, expected a number, or null without one',
    ],
    [
      "a misspelt member",
      changed({ policy_version: 7 }),
      'line 1: there is no member "policy_version": expected batch, rolloutId, segment, logprobs, policyVersion, routedExperts',
    ],
    [
      "routes in a file of the service's machine",
      routes("/etc/passwd"),
      'line 1: "routedExperts" is missing or of another type, expected an object with "shape", "dtype" and "base64"',
    ],
    [
      "routes at a path",
      routes({ shape: [89, 4, 2], dtype: "uint8", path: "/etc/passwd" }),
      'line 1: "routedExperts" is missing or of another type, expected an object with "shape", "dtype" and "base64"',
    ],
    [
      "routes of another shape",
      routes({ shape: [1, 3, 2], dtype: "uint8", base64: "AAAAAAAA" }),
      'line 1: "routedExperts" of row 0, row 0 cannot be used: 3 x 2 ids a token, the run has 4 x 2',
    ],
    [
      "too few bytes of routes",
      routes({ shape: [89, 4, 2], dtype: "uint8", base64: "AAAA" }),
      'line 1: "routedExperts" of row 0, row 0 cannot be used: 3 bytes are not an array of 89 x 4 x 2 uint8, expected 712',
    ],
    ["bytes that are not UTF-8", "\uD800", "line 1: it is not JSON"],
  ];
  test.each(hostile)("%s", async (_, body, message) => {
    await using place = await openPlace(rows, { routes: { shape: routeShape, source } });
    expect((await place.post([lineOf(second!)])).status).toBe(200);
    const before = await place.ask();
    const { status, body: answer } = await place.post(body);
    const error = { code: "bad-request", message: `Cannot compare the logprobs: ${message}` };
    expect([status, answer]).toEqual([400, { error }]);
    expect(await place.ask()).toEqual(before);
  });

  test("a body that breaks off is no bug of the service", async () => {
    await using place = await openPlace(rows);
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.error(new Error("aborted"));
      },
    });
    const headers = { "content-type": "application/x-ndjson" };
    const url = "http://127.0.0.1/v1/trainer-logprobs";
    const request = new Request(url, { method: "POST", headers, body, duplex: "half" });
    await expect(addTrainerLogprobs(place.service.doctor, request)).rejects.toMatchObject({
      code: "bad-request",
      message: "Cannot read the body: it broke off (aborted)",
    });
  });

  test("another content type, a body that is too large, and other methods", async () => {
    await using place = await openPlace(rows);
    const { body } = await place.post(good, "text/plain");
    const message = "Cannot read the body: send one JSON line a row, as application/x-ndjson";
    expect(body).toEqual({ error: { code: "bad-request", message } });
    const large = await caller(place.service)("POST", "/v1/trainer-logprobs", undefined, {
      body: good,
      headers: { "content-type": "application/x-ndjson", "content-length": "99999999" },
    });
    expect(large.status).toBe(413);
    expect((await caller(place.service)("GET", "/v1/trainer-logprobs")).status).toBe(405);
    expect((await caller(place.service)("POST", "/v1/doctor")).status).toBe(405);
  });
});
