import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { UsageError } from "../errors.ts";
import { packageFile } from "../files/package-file.ts";

/** A thread of this process. It keeps the process alive only while it is set busy. */
export interface WorkerThread<Request> {
  post(request: Request): void;
  /** Sets whether the thread keeps the process alive. */
  setBusy(isBusy: boolean): void;
  close(): Promise<void>;
}

/** A thread's module and its start. */
interface WorkerStart {
  /** The path of the compiled module in this package, because a thread cannot run TypeScript. */
  readonly file: string;
  readonly name: string;
  readonly workerData: unknown;
  /** Maximum size of the thread's objects in MiB. Default: that of this process. */
  readonly heapMib?: number;
  /** The message of the error if the sources are not compiled. */
  readonly unbuilt: string;
}

/** Callbacks for a thread's messages. */
interface WorkerListeners {
  /** Takes what the thread's module posts. */
  readonly onMessage: (message: never) => void;
  /** Called if the thread ends without `close()`, for example because its memory is full. */
  readonly onLost: (cause: Error) => void;
}

/**
 * Starts a thread.
 *
 * @throws UsageError if the sources are not compiled.
 */
export function startWorker<Request>(
  { file, name, workerData, heapMib, unbuilt }: WorkerStart,
  { onMessage, onLost }: WorkerListeners,
): WorkerThread<Request> {
  const built = packageFile(file);
  if (!existsSync(built)) throw new UsageError(unbuilt);
  const worker = new Worker(pathToFileURL(built), {
    workerData,
    name,
    execArgv: [],
    ...(heapMib !== undefined && { resourceLimits: { maxOldGenerationSizeMb: heapMib } }),
  });
  let isClosed = false;
  worker.on("message", (message: unknown) => onMessage(message as never));
  worker.on("error", (error) => onLost(error instanceof Error ? error : new Error(String(error))));
  worker.on("exit", (code) => {
    if (!isClosed) onLost(new Error(`the thread ended with status ${code}`));
  });
  // Called last, because adding a listener makes the worker keep the process alive again.
  worker.unref();
  return {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    post: (request) => worker.postMessage(request),
    setBusy: (isBusy) => (isBusy ? worker.ref() : worker.unref()),
    async close() {
      isClosed = true;
      await worker.terminate();
    },
  };
}
