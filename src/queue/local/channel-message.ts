import type { RunSettings } from "../../composition/config/run-config.ts";
import type { WorkerNote } from "../worker/queue-worker.ts";
import type { StoreCommand } from "./store-connection.ts";

/** The settings of a worker's process. JSON-able. */
export interface WorkerStart {
  /** The settings of the run. `concurrency` is this worker's share. */
  readonly settings: RunSettings;
  /** The folder for recordings and large results. */
  readonly shared: string;
  /** The run's own folder of side columns. Each worker writes separate files in it. */
  readonly columnsDir: string;
  readonly name: string;
  readonly leaseMs: number;
}

/** A message to a worker's process. JSON-able. */
export type ToWorker =
  | { readonly type: "start"; readonly start: WorkerStart }
  /** The answers to the commands with this id. */
  | { readonly type: "answers"; readonly id: number; readonly answers: readonly unknown[] }
  /** The store refused the commands with this id. `code` is BullMQ's, if it has one. */
  | {
      readonly type: "refused";
      readonly id: number;
      readonly message: string;
      readonly code?: unknown;
    }
  | { readonly type: "news"; readonly channel: string; readonly text: string }
  /** The worker gives its attempts back and ends. */
  | { readonly type: "stop" };

/** A message from a worker's process. JSON-able. */
export type FromWorker =
  | { readonly type: "commands"; readonly id: number; readonly commands: readonly StoreCommand[] }
  | { readonly type: "ready"; readonly worker: string }
  /** The worker cannot start or continue, and its process ends. */
  | { readonly type: "failed"; readonly message: string }
  | { readonly type: "note"; readonly note: WorkerNote };
