import { fork, type ChildProcess } from "node:child_process";
import { packageFile } from "../../files/package-file.ts";
import { UsageError } from "../../errors.ts";
import { systemClock } from "../../async/clock.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import type { Variables } from "../../composition/create-engine.ts";
import type { RunSettings } from "../../composition/config/run-config.ts";
import { workerAliveKey, workersKey } from "../store/keys.ts";
import type { FromWorker, ToWorker } from "./channel-message.ts";
import type { LocalStore } from "./local-store.ts";
import { RestartDelay } from "./restart-delay.ts";
import { ServedStore } from "./serve-store.ts";

/** The worker processes to start. */
export interface WorkerProcessesOptions {
  readonly store: LocalStore;
  readonly count: number;
  /** The file of the program that each process runs. Default: the worker of this package. */
  readonly program?: string;
  /** The settings of the run. `concurrency` is the share of each worker. */
  readonly settings: RunSettings;
  /** The folder for recordings and large results. */
  readonly shared: string;
  /** The run's own folder of side columns. */
  readonly columnsDir: string;
  readonly env: Variables;
  /** Stops the start when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Called with messages for a person. */
  readonly say: (text: string) => void;
  /** Called if a worker cannot be replaced, or cannot play the run. */
  readonly onFailure: (error: UsageError) => void;
}

/**
 * The time without a heartbeat after which other workers take over the attempts of a process that hangs, in
 * milliseconds.
 */
const leaseMs = 15_000;

/** The longest time that a worker may take to end, in milliseconds. */
const farewellMs = 10_000;

/** The worker processes of one run on this machine. A process that ends is replaced. */
export class WorkerProcesses implements AsyncDisposable {
  readonly #options: WorkerProcessesOptions;
  readonly #processes = new Set<WorkerProcess>();
  readonly #delay = new RestartDelay();
  readonly #closing = new AbortController();

  private constructor(options: WorkerProcessesOptions) {
    this.#options = options;
  }

  /**
   * Starts the workers. Resolves when all of them are ready to play.
   * @throws UsageError if one of them cannot start.
   * @throws the signal's reason if it aborts.
   */
  static async start(options: WorkerProcessesOptions): Promise<WorkerProcesses> {
    const { count, signal } = options;
    const workers = new WorkerProcesses(options);
    const aborted = withResolvers<never>();
    aborted.promise.catch(() => {});
    const onAbort = (): void => aborted.reject(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      signal?.throwIfAborted();
      const started = Array.from({ length: count }, async (_, index) => {
        await workers.#start(index + 1);
      });
      await Promise.race([Promise.all(started), aborted.promise]);
      return workers;
    } catch (error) {
      await workers[Symbol.asyncDispose]();
      throw error;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Starts the worker with this number. Resolves when it is ready. */
  async #start(number: number): Promise<void> {
    const { columnsDir, count, env, onFailure, say, settings, shared, store } = this.#options;
    const { program = packageFile("dist/src/queue/local/worker-process.js") } = this.#options;
    const started = new WorkerProcess(store, { env, program });
    this.#processes.add(started);
    const name = `worker ${number}`;
    started.onNote = ({ about, text }) => {
      if (about === "trouble") say(`${name} ${text}`);
      else if (about === "refuses")
        onFailure(new UsageError(`Cannot play with ${name}: it ${text}`));
    };
    let readyAt = 0;
    void started.ended.then((how) => {
      this.#processes.delete(started);
      if (this.#closing.signal.aborted || !started.isReady) return;
      const waitMs = this.#delay.next(systemClock.now() - readyAt);
      const later = waitMs === 0 ? "" : ` in ${waitMs / 1_000} s`;
      say(
        `${name} ended (${how}): others play its attempts, and a new process takes its place${later}`,
      );
      this.#replace(number, waitMs).catch(onFailure);
    });
    try {
      const name = `worker-${number}`;
      await started.start({ settings, shared, columnsDir, name, leaseMs });
      readyAt = systemClock.now();
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      throw new UsageError(
        `Cannot start worker ${number} of ${count}: ${(error as Error).message}`,
        { cause: error },
      );
    }
  }

  /** Starts the worker with this number after a wait, unless all workers end meanwhile. */
  async #replace(number: number, waitMs: number): Promise<void> {
    const { signal } = this.#closing;
    if (waitMs > 0) await systemClock.sleep(waitMs, { signal }).catch(() => {});
    if (!signal.aborted) await this.#start(number);
  }

  /** Ends all workers. Resolves when their processes have ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await Promise.all(Array.from(this.#processes, async (worker) => await worker.stop()));
  }
}

/** One worker process. */
class WorkerProcess {
  /** Resolves with a description of the end when the process has ended. */
  readonly ended: Promise<string>;
  onNote: (note: Extract<FromWorker, { type: "note" }>["note"]) => void = () => {};
  readonly #child: ChildProcess;
  readonly #served: ServedStore;
  readonly #ready = withResolvers();
  #worker: string | undefined;
  /** The reason that the process sent before it ended. */
  #failure: string | undefined;

  constructor(
    store: LocalStore,
    { env, program }: { readonly env: Variables; readonly program: string },
  ) {
    const ended = withResolvers<string>();
    this.ended = ended.promise;
    this.#ready.promise.catch(() => {});
    this.#child = fork(program, [], {
      env,
      execArgv: process.execArgv.filter((argument) => !argument.startsWith("--inspect")),
      // The output of an environment does not go to this process's standard output.
      stdio: ["ignore", 2, 2, "ipc"],
    });
    this.#served = new ServedStore(store, (message) => this.#send(message));
    this.#child.on("message", (message: FromWorker) => this.#receive(message));
    const end = (how: string): void => {
      this.#served.release();
      if (this.#worker !== undefined) {
        store.del(workerAliveKey(this.#worker));
        store.hdel(workersKey, this.#worker);
      }
      const reason = this.#failure ?? `its process ended ${how} before it was ready`;
      this.#ready.reject(new Error(reason));
      ended.resolve(this.#failure ?? how);
    };
    this.#child.once("error", ({ message }) => end(message));
    this.#child.once("exit", (status, signal) => {
      end(signal === null ? `with status ${status}` : `by ${signal}`);
    });
  }

  /** True if the worker can play. */
  get isReady(): boolean {
    return this.#worker !== undefined;
  }

  /** Resolves when the worker can play. Rejects if its process ends first. */
  async start(start: Extract<ToWorker, { type: "start" }>["start"]): Promise<void> {
    this.#send({ type: "start", start });
    await this.#ready.promise;
  }

  /** Asks the worker to leave, and kills it if it does not leave in time. */
  async stop(): Promise<void> {
    this.#send({ type: "stop" });
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), farewellMs);
    await this.ended;
    clearTimeout(timer);
  }

  #receive(message: FromWorker): void {
    switch (message.type) {
      case "commands":
        this.#served.receive(message);
        break;
      case "ready":
        this.#worker = message.worker;
        this.#ready.resolve();
        break;
      case "failed":
        this.#failure = message.message;
        break;
      case "note":
        this.onNote(message.note);
    }
  }

  #send(message: ToWorker): void {
    // If the process has ended, the exit listener handles it. Without the callback, this call would
    // throw.
    if (this.#child.connected) this.#child.send(message, () => {});
  }
}
