import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { MessageChannel, Worker } from "node:worker_threads";
import { UsageError } from "../../../errors.ts";
import { packageFile } from "../../../files/package-file.ts";
import type { ThreadSetup } from "./serve-thread.ts";
import { serveThread } from "./serve-thread.ts";
import type { TokenMessage, ThreadReply, ThreadRequest } from "./thread-message.ts";

/** Callbacks for a thread's messages. */
export interface ThreadListeners {
  readonly onMessage: (message: ThreadReply | TokenMessage) => void;
  /** Called if the thread ends without `close()`. */
  readonly onLost: (cause: Error) => void;
}

/** A thread that samples and scores. */
export interface SamplingThread {
  post(request: ThreadRequest): void;
  /** Sets whether the thread keeps the process alive. */
  setBusy(isBusy: boolean): void;
  close(): Promise<void>;
}

/** Starts a thread. */
export type StartThread = (listeners: ThreadListeners) => SamplingThread;

/** Starts a worker thread. */
export function startWorkerThread(
  setup: ThreadSetup,
  { onMessage, onLost }: ThreadListeners,
): SamplingThread {
  const worker = new Worker(workerUrl(), {
    workerData: setup,
    name: "turnwright-reference-engine",
    execArgv: [],
  });
  let isClosed = false;
  worker.on("message", onMessage);
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

/** Computes on the calling thread, one step per iteration of its event loop. */
export function startOnThisThread(
  setup: ThreadSetup,
  { onMessage }: ThreadListeners,
): SamplingThread {
  const { port1: callerPort, port2: threadPort } = new MessageChannel();
  serveThread(threadPort, setup);
  callerPort.on("message", onMessage);
  const setBusy = (isBusy: boolean): void => {
    for (const port of [callerPort, threadPort]) {
      if (isBusy) port.ref();
      else port.unref();
    }
  };
  setBusy(false);
  return {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    post: (request) => callerPort.postMessage(request),
    setBusy,
    async close() {
      callerPort.close();
      threadPort.close();
    },
  };
}

/** Returns the URL of the compiled worker module, because a thread cannot run TypeScript. */
function workerUrl(): URL {
  const built = packageFile("dist/src/engine/reference/thread/worker.js");
  if (existsSync(built)) return pathToFileURL(built);
  throw new UsageError(
    "Cannot start threads: the sources are not compiled; run `npm run build`, or set threads to 0",
  );
}
