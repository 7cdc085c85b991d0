import { MessageChannel } from "node:worker_threads";
import { startWorker, type WorkerThread } from "../../../async/start-worker.ts";
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
export type SamplingThread = WorkerThread<ThreadRequest>;

/** Starts a thread. */
export type StartThread = (listeners: ThreadListeners) => SamplingThread;

/** Starts a worker thread. */
export function startWorkerThread(setup: ThreadSetup, listeners: ThreadListeners): SamplingThread {
  return startWorker<ThreadRequest>(
    {
      file: "dist/src/engine/reference/thread/worker.js",
      name: "turnwright-reference-engine",
      workerData: setup,
      unbuilt:
        "Cannot start threads: the sources are not compiled; run `npm run build`, or set threads to 0",
    },
    listeners,
  );
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
