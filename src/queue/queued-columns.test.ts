import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../async/clock.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import type { Engine } from "../engine/engine.ts";
import { checkInvented, inventedSpecs, readRows } from "../run/columns/invented-columns.fixture.ts";
import { testManifest } from "../run/folder/run-folder.fixture.ts";
import { RunFolder } from "../run/folder/run-folder.ts";
import { startRun } from "../run/start-run.ts";
import type { StartRunOptions } from "../run/start-run-options.ts";
import { Redactor } from "../secrets/redactor.ts";
import { withInventedColumns } from "../testing/column-engine.ts";
import type { HandOutNews } from "./hand-out/hand-out-news.ts";
import { HandOut } from "./hand-out/hand-out.ts";
import { connectHere } from "./local/store-connection.ts";
import { localClients } from "./local/local-clients.ts";
import { LocalStore } from "./local/local-store.ts";
import { openHandOut } from "./open-hand-out.ts";
import { noColumnsPlace } from "./place/describe-no-place.ts";
import { openSharedFolder } from "./place/shared-folder.ts";
import { lampEngine, lampSource, longLampSetup, until } from "./queue.fixture.ts";
import { QueueStore } from "./store/queue-store.ts";
import { QueueWorker, type QueueWorkerOptions } from "./worker/queue-worker.ts";

let scratch = "";
beforeEach(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-queued-columns-"));
});
afterEach(async () => {
  await rm(scratch, { recursive: true });
});

const terms = {};

function columnSetup(engine: Engine = lampEngine()): StartRunOptions["setup"] {
  return { ...longLampSetup(withInventedColumns(engine)), columns: inventedSpecs };
}

/** A store in memory, a shared folder, a hand-out and workers. */
class Bench implements AsyncDisposable {
  readonly news: HandOutNews[] = [];
  readonly notes: string[] = [];
  readonly #store = new LocalStore({ now: systemClock.now, wallNow: Date.now });
  readonly #opened: AsyncDisposable[] = [];

  async #connect(): Promise<QueueStore> {
    return await QueueStore.over(localClients(() => connectHere(this.#store, systemClock)));
  }

  async handOut(columnsDir?: string): Promise<HandOut> {
    const handOut = await HandOut.open({
      store: await this.#connect(),
      run: "test-run",
      environment: "lamp",
      terms,
      place: await openSharedFolder(path.join(scratch, "shared")),
      sampling: {},
      isRecorded: true,
      everyMs: 100,
      onNews: (news) => this.news.push(news),
      ...(columnsDir !== undefined && { columnsDir }),
    });
    this.#opened.push(handOut);
    return handOut;
  }

  async worker(options: Partial<QueueWorkerOptions> = {}): Promise<QueueWorker> {
    const place = await openSharedFolder(path.join(scratch, "shared"));
    const worker = await QueueWorker.start({
      store: await this.#connect(),
      setup: columnSetup(),
      terms,
      place,
      columnsOf: place.columnsOf!,
      redactor: new Redactor(),
      concurrency: 4,
      leaseMs: 60_000,
      onNote: ({ text }) => this.notes.push(text),
      ...options,
    });
    this.#opened.push(worker);
    return worker;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const part of this.#opened.toReversed()) await part[Symbol.asyncDispose]();
  }
}

const sharedColumns = (): string => path.join(scratch, "shared", "columns", "test-run");
const runFolder = (): string => path.join(scratch, "run");

async function play(handOut: HandOut): Promise<void> {
  await using folder = await RunFolder.open(runFolder(), testManifest, { retryFailed: false });
  const run = startRun({
    source: lampSource(2),
    setup: columnSetup(),
    grouping: { size: 2 },
    admission: { concurrency: 4 },
    folder,
    player: handOut.player(),
    keepsEpisodes: false,
  });
  for await (const _ of run);
  expect(await run.result).toMatchObject({ end: "finished" });
}

const columnFiles = async (dir: string): Promise<readonly string[]> =>
  (await readdir(dir)).map((name) => name.replace(/^(worker-)[0-9a-f-]{36}/, "$1ID")).toSorted();

test("workers write columns into the shared folder, and the hand-out copies them", async () => {
  await using bench = new Bench();
  await bench.worker();
  await play(await bench.handOut(sharedColumns()));
  const rows = await readRows(runFolder());
  expect(rows).toHaveLength(4);
  expect(await checkInvented(runFolder(), rows)).toBe(24);
  expect(await columnFiles(path.join(runFolder(), "columns"))).toEqual([
    "start-0-0000.bin",
    "start-0.jsonl",
  ]);
  expect(await columnFiles(sharedColumns())).toEqual(["worker-ID-0000.bin", "worker-ID.jsonl"]);
});

test("workers on this machine write columns into the run's own folder", async () => {
  await using bench = new Bench();
  await bench.worker({ columnsOf: () => path.join(runFolder(), "columns") });
  await play(await bench.handOut());
  expect(await checkInvented(runFolder(), await readRows(runFolder()))).toBe(24);
  expect(await columnFiles(path.join(runFolder(), "columns"))).toEqual([
    "start-0.jsonl",
    "worker-ID-0000.bin",
    "worker-ID.jsonl",
  ]);
});

test("a worker that resumes another's attempt names its parts, and asks for new rows only", async () => {
  await using bench = new Bench();
  const handOut = await bench.handOut(sharedColumns());
  const held = withResolvers();
  const isHeld = { count: 0 };
  const stuck = lampEngine(async (_request, turn) => {
    if (turn === 0) return;
    isHeld.count += 1;
    await held.promise;
  });
  const first = await bench.worker({ setup: columnSetup(stuck) });
  const playing = play(handOut);
  await until(() => isHeld.count === 4);
  const known: (number | undefined)[] = [];
  const invented = withInventedColumns(lampEngine());
  const engine: Engine = {
    ...invented,
    generate: async (request, options) => {
      known.push(request.columns?.knownRows);
      return await invented.generate(request, options);
    },
  };
  // The first worker gives its attempts back after a turn each.
  await first.drain({ withinMs: 0 });
  held.resolve();
  await bench.worker({ setup: { ...columnSetup(), engine } });
  await playing;
  expect(await checkInvented(runFolder(), await readRows(runFolder()))).toBe(24);
  expect(known).toHaveLength(4);
  expect(known.every((count) => count! > 0)).toBe(true);
});

test("a run without a folder for the bytes is not handed out", async () => {
  await using bench = new Bench();
  await bench.worker();
  const handOut = await bench.handOut(sharedColumns());
  const run = startRun({
    source: lampSource(1),
    setup: columnSetup(),
    grouping: { size: 1 },
    admission: { concurrency: 1 },
    player: handOut.player(),
  });
  await expect(run.result).rejects.toThrow(
    "Cannot hand out lamp/test/0#0: its rows have side columns, and the run has no folder for them",
  );
});

test("side columns need a shared folder from the start", async () => {
  const setup = columnSetup();
  const opened = openHandOut({
    config: { url: "redis://127.0.0.1:1" },
    columns: setup.columns,
    dir: runFolder(),
    manifest: testManifest,
    redactor: new Redactor(),
    environment: "lamp",
    sampling: {},
    isRecorded: true,
    limits: setup.limits,
  });
  await expect(opened).rejects.toThrow(
    "Cannot use --columns with a queue: workers write side columns into a shared folder, and no --shared is given; " +
      "give the run and its workers the same --shared DIR, a folder that all reach",
  );
  expect(noColumnsPlace("s3://bucket/runs").message).toContain(
    "files in s3://bucket/runs cannot grow",
  );
});

test("a worker without a folder for columns refuses the run", async () => {
  await using bench = new Bench();
  await bench.handOut(sharedColumns());
  await bench.worker({ columnsOf: undefined as never });
  expect(bench.notes).toEqual([
    "refuses run test-run: its rows have side columns, and no --shared DIR is given here",
  ]);
});
