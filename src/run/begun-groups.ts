import path from "node:path";
import type { Task } from "../task.ts";
import { parseJson } from "./episode-row.ts";
import type { Files } from "./files.ts";
import { scanLines } from "./line-ranges.ts";
import { readInputs, writeInputs } from "./recording-line.ts";
import { storageError } from "./storage-error.ts";
import type { Fork } from "./task-source.ts";
import { eventsFile } from "./told-episodes.ts";

/** A group that an earlier start began with a task that its source may not give again. */
export interface BegunGroup {
  readonly groupIndex: number;
  readonly groupId: string;
  readonly task: Task;
  /** Absent where its attempts begin anew. */
  readonly fork?: Fork;
}

/** What is noted of a group as it is begun. JSON-able. */
export interface BegunEvent extends Omit<BegunGroup, "fork"> {
  readonly type: "group-begun";
  readonly fork?: WrittenFork;
}

type WrittenFork = Omit<Fork, "inputs"> & { readonly inputs: unknown };

/** The event that tells of a group whose task its source may not give again. */
export function begunEvent({ fork, ...group }: BegunGroup): BegunEvent {
  const written = fork && { ...fork, inputs: writeInputs(fork.inputs) };
  return { type: "group-begun", ...group, ...(written && { fork: written }) };
}

function readFork({ inputs, ...fork }: WrittenFork): Fork {
  return { ...fork, inputs: readInputs(inputs) };
}

/** What `events.jsonl` says of the groups of earlier starts. */
export interface ToldGroups {
  readonly begun: readonly BegunGroup[];
  /** Places of groups that ended and were to be handed out. */
  readonly finished: ReadonlySet<number>;
  /** Places of those that nobody needs any more: they were taken, or left out. */
  readonly settled: ReadonlySet<number>;
}

/**
 * Reads which groups earlier starts began, ended and handed out.
 *
 * @throws UsageError where the disk refuses.
 */
export async function readToldGroups(files: Files, dir: string): Promise<ToldGroups> {
  const file = path.join(dir, eventsFile);
  const begun: BegunGroup[] = [];
  const finished = new Set<number>();
  const settled = new Set<number>();
  try {
    await scanLines(files, file, ({ bytes }) => {
      if (!bytes.includes('"group-')) return;
      const event = parseJson(bytes) as
        | Partial<Omit<BegunEvent, "type"> & { readonly type: string }>
        | undefined;
      const { type, groupIndex, groupId, task, fork } = event ?? {};
      if (typeof groupIndex !== "number") return;
      if (type === "group-finished") finished.add(groupIndex);
      else if (type === "group-taken" || type === "group-left-out") settled.add(groupIndex);
      else if (type === "group-begun" && typeof groupId === "string" && task !== undefined) {
        begun.push({ groupIndex, groupId, task, ...(fork && { fork: readFork(fork) }) });
      }
    });
  } catch (error) {
    throw storageError("read", file, error);
  }
  return { begun, finished, settled };
}
