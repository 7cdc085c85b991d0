import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { MessageChannel, Worker } from "node:worker_threads";
import { UsageError } from "../../../errors.ts";
import { packageFile } from "../../../files/package-file.ts";
import type { LiveDoctorSetup } from "../live-doctor.ts";
import type { DoctorReply, DoctorRequest } from "./doctor-message.ts";
import { serveDoctor } from "./serve-doctor.ts";

/** Callbacks for the messages of a doctor's thread. */
export interface DoctorListeners {
  readonly onReply: (reply: DoctorReply) => void;
  /** Called if the thread ends without `close()`, for example because its memory is full. */
  readonly onLost: (cause: Error) => void;
}

/** A thread that compares and diagnoses. It does not keep the process alive. */
export interface DoctorThread {
  post(request: DoctorRequest): void;
  close(): Promise<void>;
}

/** Starts a thread. */
export type StartDoctor = (setup: LiveDoctorSetup, listeners: DoctorListeners) => DoctorThread;

/** Maximum size of the thread's objects in MiB. The tokens of the rows in memory are outside of it. */
const heapMib = 2048;

/** Starts a worker thread, so that a diagnosis never makes the caller wait. */
export const startDoctorThread: StartDoctor = (setup, { onReply, onLost }) => {
  const worker = new Worker(workerUrl(), {
    workerData: setup,
    name: "turnwright-doctor",
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: heapMib },
  });
  let isClosed = false;
  worker.on("message", onReply);
  worker.on("error", (error) => onLost(error instanceof Error ? error : new Error(String(error))));
  worker.on("exit", (code) => {
    if (!isClosed) onLost(new Error(`the thread ended with status ${code}`));
  });
  // Called last, because adding a listener makes the worker keep the process alive again.
  worker.unref();
  return {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    post: (request) => worker.postMessage(request),
    async close() {
      isClosed = true;
      await worker.terminate();
    },
  };
};

/** Works on the calling thread. */
export const startDoctorHere: StartDoctor = (setup, { onReply }) => {
  const { port1: callerPort, port2: threadPort } = new MessageChannel();
  serveDoctor(threadPort, setup);
  callerPort.on("message", onReply);
  return {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    post: (request) => callerPort.postMessage(request),
    async close() {
      callerPort.close();
      await Promise.resolve();
    },
  };
};

/** Returns the URL of the compiled worker module, because a thread cannot run TypeScript. */
function workerUrl(): URL {
  const built = packageFile("dist/src/doctor/live/thread/worker.js");
  if (existsSync(built)) return pathToFileURL(built);
  throw new UsageError(
    "Cannot start the doctor's thread: the sources are not compiled; run `npm run build`",
  );
}
