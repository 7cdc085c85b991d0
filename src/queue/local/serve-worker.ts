import { reportUnhandledRejections } from "../../async/pass-over-floating.ts";
import { describeError } from "../../errors.ts";
import { QueueStore } from "../store/queue-store.ts";
import type { OpenedWorker, WorkerSurroundings } from "../worker/open-worker.ts";
import type { FromWorker, ToWorker, WorkerStart } from "./channel-message.ts";
import { localClients } from "./local-clients.ts";
import { StoreChannel } from "./store-channel.ts";

/**
 * The longest time that a worker may take to leave after the hand-out's process has ended, in
 * milliseconds.
 */
const orphanMs = 3_000;

/** Sends a message if the channel is open. */
const send = (message: FromWorker, onSent: () => void = () => {}): void => {
  // Without a callback, a message that cannot be sent would throw.
  if (process.connected) process.send?.(message, onSent);
  else onSent();
};

/**
 * Makes this process a worker of the process that started it (see `WorkerProcesses`). Ends the process when the worker
 * leaves.
 *
 * @param open - Opens the worker when the settings have arrived.
 */
export function serveWorker(
  open: (start: WorkerStart, around: WorkerSurroundings) => Promise<OpenedWorker>,
): void {
  const channel = new StoreChannel(send);
  let opened: OpenedWorker | undefined;

  // The terminal sends Ctrl-C to this process, too. The hand-out's process decides when a worker
  // ends.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  reportUnhandledRejections((line) => process.stderr.write(`turnwright: ${line}\n`));

  process.on("message", (message: ToWorker) => {
    if (message.type === "start") void start(message.start);
    else if (message.type === "stop") void leave();
    else channel.receive(message);
  });
  process.once("disconnect", () => {
    channel.close();
    setTimeout(() => process.exit(1), orphanMs);
    void leave();
  });

  async function start(given: WorkerStart): Promise<void> {
    try {
      opened = await open(given, {
        connect: async () => await QueueStore.over(localClients(() => channel.connect())),
        onNote: (note) => send({ type: "note", note }),
        columnsDir: given.columnsDir,
      });
      opened.worker.failed.catch(fail);
      send({ type: "ready", worker: opened.worker.name });
    } catch (error) {
      fail(error);
    }
  }

  function fail(error: unknown): void {
    const message = describeError(error);
    process.exitCode = 1;
    const shown = opened?.redactor.text(message) ?? message;
    // The process ends once the message is sent.
    send({ type: "failed", message: shown }, () => void leave());
  }

  async function leave(): Promise<void> {
    try {
      await opened?.[Symbol.asyncDispose]();
    } finally {
      process.exit();
    }
  }
}
