import { randomUUID } from "node:crypto";
import type { Variables } from "../../composition/create-engine.ts";
import { createRun } from "../../composition/create-run.ts";
import { loadEnvironment } from "../../composition/environment/environments.ts";
import { readRunConfig } from "../../composition/config/run-config.ts";
import { createRunRedactor } from "../../composition/run-secrets.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { describeNoPlace, noColumnsPlace } from "../place/describe-no-place.ts";
import { openSharedPlace } from "../place/open-shared-place.ts";
import { termsOf } from "../run/run-terms.ts";
import type { QueueStore } from "../store/queue-store.ts";
import { QueueWorker, type WorkerNote } from "./queue-worker.ts";
import type { WorkerConfig } from "./worker-settings.ts";

/** An open worker, with its warnings and its redactor. */
export interface OpenedWorker extends AsyncDisposable {
  readonly worker: QueueWorker;
  readonly redactor: Redactor;
  /** Warnings about the engine and the chat template. */
  readonly warnings: readonly string[];
}

/** The surroundings of a worker: environment variables, signal, and connection to the store. */
export interface WorkerSurroundings {
  /** Connects to the store of the queue. */
  readonly connect: (redactor: Redactor) => Promise<QueueStore>;
  readonly env?: Variables;
  readonly signal?: AbortSignal;
  readonly onNote?: (note: WorkerNote) => void;
  /** The folder for side columns. Default: one for each run in the shared folder. */
  readonly columnsDir?: string;
}

/**
 * Assembles and starts a worker.
 * @throws UsageError if a part cannot be loaded or combined, or if the store does not answer.
 * @throws RolloutError if the engine does not answer.
 */
export async function openWorker(
  config: Pick<WorkerConfig, "run" | "shared" | "name" | "leaseMs">,
  { env = process.env, signal, onNote, connect, columnsDir }: WorkerSurroundings,
): Promise<OpenedWorker> {
  const { run: asked, shared, name, leaseMs } = config;
  // `createRun()` needs a scope. Jobs name their own tasks, so the choice does not matter.
  const environment = await loadEnvironment(asked.environment);
  const [split = "test"] = Object.keys(environment.splits);
  const { epochs: _epochs, groups: _groups, ...settings } = asked.settings;
  const scoped = readRunConfig({ ...withoutUndefined(settings), split, tasks: "all" });
  const redactor = createRunRedactor(asked, env);
  const opened: AsyncDisposable[] = [];
  const close = async (): Promise<void> => {
    for (const part of opened.splice(0).toReversed()) await part[Symbol.asyncDispose]();
  };
  try {
    const run = await createRun(scoped, { env, ...(signal !== undefined && { signal }) });
    opened.push(run);
    const place = await openSharedPlace(shared, env);
    const columnsOf = columnsDir === undefined ? place?.columnsOf : () => columnsDir;
    if (run.setup.columns !== undefined && columnsOf === undefined) throw noColumnsPlace(shared);
    const store = await connect(redactor);
    opened.push(store);
    const worker = await QueueWorker.start({
      store,
      setup: run.setup,
      redactor,
      concurrency: asked.conduct.concurrency,
      leaseMs,
      terms: termsOf(run.manifest),
      ...(place && { place }),
      ...(columnsOf && { columnsOf }),
      // A part of its own keeps two workers with the same name apart.
      ...(name !== undefined && { name: `${name}-${randomUUID().slice(0, 6)}` }),
      ...(onNote !== undefined && { onNote }),
    });
    opened.push(worker);
    const warning = describeNoPlace(shared, run.setup.limits);
    const warnings = [...run.warnings, ...(warning === undefined ? [] : [warning])];
    return { worker, redactor, warnings, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}
