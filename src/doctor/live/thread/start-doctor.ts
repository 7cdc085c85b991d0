import { MessageChannel } from "node:worker_threads";
import { startWorker, type WorkerThread } from "../../../async/start-worker.ts";
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
export type DoctorThread = Pick<WorkerThread<DoctorRequest>, "post" | "close">;

/** Starts a thread. */
export type StartDoctor = (setup: LiveDoctorSetup, listeners: DoctorListeners) => DoctorThread;

/** Maximum size of the thread's objects in MiB. The tokens of the rows in memory are outside of it. */
const heapMib = 2048;

/** Starts a worker thread, so that a diagnosis never makes the caller wait. */
export const startDoctorThread: StartDoctor = (setup, { onReply, onLost }) =>
  startWorker<DoctorRequest>(
    {
      file: "dist/src/doctor/live/thread/worker.js",
      name: "turnwright-doctor",
      workerData: setup,
      heapMib,
      unbuilt:
        "Cannot start the doctor's thread: the sources are not compiled; run `npm run build`",
    },
    { onMessage: onReply, onLost },
  );

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
