import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Engine, GenerateRequest } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import { preparedEngine, says, switchCall } from "../episode/lamp-episode.fixture.ts";
import { defaultLimits } from "../episode/limits.ts";
import { Redactor } from "../secrets/redactor.ts";
import { lamps, lampSetup } from "../run/lamp-run.fixture.ts";
import { fakeMachine } from "../run/machine.fixture.ts";
import { RunFolder } from "../run/folder/run-folder.ts";
import { testManifest } from "../run/folder/run-folder.fixture.ts";
import type { LiveRun } from "../run/live-run.ts";
import { startRun } from "../run/start-run.ts";
import type { StartRunOptions } from "../run/start-run-options.ts";
import { createTaskList, type TaskSource } from "../run/schedule/task-source.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import { HandOut, type HandOutOptions } from "./hand-out/hand-out.ts";
import type { HandOutNews } from "./hand-out/hand-out-news.ts";
import { openSharedFolder } from "./place/shared-folder.ts";
import type { SharedPlace } from "./place/shared-place.ts";
import { startStore, type StoreServer } from "./store/store-server.fixture.ts";
import { QueueStore } from "./store/queue-store.ts";
import { QueueWorker, type QueueWorkerOptions } from "./worker/queue-worker.ts";

/** Which turn of its episode a request asks for, by the stop tokens in its prompt. */
export function turnOf({ promptIds }: GenerateRequest): number {
  const [stop] = createCharacterRenderer().stopTokenIds;
  // The system message and the user's first line have one each.
  return Math.floor((promptIds.filter((id) => id === stop).length - 2) / 2);
}

/** Switches the lamp on and says goodbye; the answers depend only on the request. */
export function lampEngine(
  onRequest: (request: GenerateRequest, turn: number) => unknown = () => undefined,
): Engine {
  const engine = preparedEngine([]);
  return {
    ...engine,
    async generate(request, options) {
      const turn = turnOf(request);
      const special = await onRequest(request, turn);
      options?.signal?.throwIfAborted();
      if (special instanceof Error) throw special;
      const reply = typeof special === "string" ? special : turn === 0 ? switchCall : "Goodbye!";
      return await preparedEngine([says(reply)]).generate(request, options);
    },
  };
}

const environment: Environment = { ...lamps(100), repeatable: true };

/** The setup for lamps: turns may be long enough for a shared result. */
export function longLampSetup(engine: Engine = lampEngine()): StartRunOptions["setup"] {
  const limits = { ...defaultLimits, maxTokensPerTurn: 100_000 };
  return { ...lampSetup({ environment, engine }), limits };
}

/** The first `count` lamps. */
export function lampSource(lampCount: number): TaskSource {
  const taskIndexes = Array.from({ length: lampCount }, (_, index) => index);
  return createTaskList(environment, { split: "test", taskIndexes });
}

/** A store, folders, and those who hand out and play; all goes when it is disposed of. */
export class QueueBench implements AsyncDisposable {
  readonly dir: string;
  readonly server: StoreServer;
  readonly news: HandOutNews[] = [];
  readonly notes: string[] = [];
  readonly #opened: AsyncDisposable[] = [];
  #pid = 1;

  private constructor(dir: string, server: StoreServer) {
    this.dir = dir;
    this.server = server;
  }

  static async open(flags: readonly string[] = []): Promise<QueueBench> {
    const dir = await mkdtemp(path.join(tmpdir(), "turnwright-queue-"));
    return new QueueBench(dir, await startStore(flags));
  }

  /** The shared place of this test. */
  async place(): Promise<SharedPlace> {
    return await openSharedFolder(path.join(this.dir, "shared"));
  }

  /** The contents of the files in the shared place. */
  async sharedTexts(): Promise<readonly string[]> {
    return await textsIn(path.join(this.dir, "shared"));
  }

  async store(url = this.server.url): Promise<QueueStore> {
    return this.#keep(await QueueStore.connect({ url }));
  }

  async handOut(options: Partial<HandOutOptions> & { url?: string } = {}): Promise<HandOut> {
    const { url, ...rest } = options;
    return this.#keep(
      await HandOut.open({
        store: await this.store(url),
        run: "test-run",
        environment: "lamp",
        terms: { tokenizer: "t1" },
        sampling: {},
        isRecorded: true,
        everyMs: 100,
        onNews: (news) => this.news.push(news),
        ...rest,
      }),
    );
  }

  async worker(
    options: Partial<QueueWorkerOptions> & { url?: string; engine?: Engine } = {},
  ): Promise<QueueWorker> {
    const { url, engine, ...rest } = options;
    return this.#keep(
      await QueueWorker.start({
        store: await this.store(url),
        setup: longLampSetup(engine),
        terms: { tokenizer: "t1" },
        redactor: new Redactor(),
        concurrency: 4,
        // A slow machine must not count as a lost worker; real losses are found soon.
        leaseMs: 60_000,
        lookForLostMs: 200,
        onNote: ({ text }) => this.notes.push(text),
        ...rest,
      }),
    );
  }

  async folder(name: string): Promise<RunFolder> {
    this.#pid += 1;
    return this.#keep(
      await RunFolder.open(path.join(this.dir, name), testManifest, {
        retryFailed: false,
        lock: { machine: fakeMachine({ pid: this.#pid }) },
      }),
    );
  }

  /** Starts a run of two attempts at each of `count` lamps. */
  start(lampCount: number, options: Partial<StartRunOptions> & { engine?: Engine } = {}): LiveRun {
    const { engine, ...rest } = options;
    return startRun({
      source: lampSource(lampCount),
      setup: longLampSetup(engine),
      grouping: { size: 2 },
      admission: { concurrency: 16 },
      ...rest,
    });
  }

  async text(folder: string, file: string): Promise<string> {
    return await readFile(path.join(this.dir, folder, file), "utf8");
  }

  #keep<Part extends AsyncDisposable>(part: Part): Part {
    this.#opened.push(part);
    return part;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const part of this.#opened.splice(0).toReversed()) {
      await part[Symbol.asyncDispose]();
    }
    await this.server[Symbol.asyncDispose]();
    await rm(this.dir, { recursive: true, force: true });
  }
}

/** Resolves once a condition is true. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** The contents of the files in a folder and its subfolders. */
export async function textsIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return await Promise.all(
    files.map(async ({ name, parentPath }) => await readFile(path.join(parentPath, name), "utf8")),
  );
}
