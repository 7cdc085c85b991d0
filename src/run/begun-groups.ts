import path from "node:path";
import type { Task } from "../task.ts";
import { parseJson } from "./episode-row.ts";
import type { Files } from "./files.ts";
import { scanLines } from "./line-ranges.ts";
import { storageError } from "./storage-error.ts";
import { eventsFile } from "./told-episodes.ts";

/** A group that an earlier start began with a task that its source may not give again. */
export interface BegunGroup {
  readonly groupIndex: number;
  readonly groupId: string;
  readonly task: Task;
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
      const event = parseJson(bytes) as Partial<BegunGroup & { readonly type: string }> | undefined;
      const { type, groupIndex, groupId, task } = event ?? {};
      if (typeof groupIndex !== "number") return;
      if (type === "group-finished") finished.add(groupIndex);
      else if (type === "group-taken" || type === "group-left-out") settled.add(groupIndex);
      else if (type === "group-begun" && typeof groupId === "string" && task !== undefined) {
        begun.push({ groupIndex, groupId, task });
      }
    });
  } catch (error) {
    throw storageError("read", file, error);
  }
  return { begun, finished, settled };
}
