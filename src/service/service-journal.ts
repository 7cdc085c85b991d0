import path from "node:path";
import { diskFiles, type Files } from "../run/disk/files.ts";
import { JsonlJournal } from "../run/disk/jsonl-journal.ts";
import { scanLines } from "../run/disk/line-ranges.ts";
import { UsageError } from "../errors.ts";
import type { BatchRequest } from "./batch-request.ts";

/**
 * One line of `service.jsonl`. Later starts of the service restore their state from these lines.
 */
export type ServiceEntry =
  | {
      readonly type: "batch";
      readonly batch: string;
      readonly atMs: number;
      readonly request: BatchRequest;
      /** The name of the `Taker` that gets the groups. Absent if readers of `/v1/groups` get them. */
      readonly taker?: string;
    }
  | GroupEntry
  | {
      readonly type: "batch-ended";
      readonly batch: string;
      readonly state: "finished" | "cancelled" | "failed";
      /** The reason why it failed. */
      readonly reason?: string;
    }
  /** The acknowledgement of all groups up to the cursor: of all batches, or of one. */
  | { readonly type: "acknowledged"; readonly cursor: number; readonly batch?: string }
  | { readonly type: "policy"; readonly version: number; readonly weights?: string }
  /**
   * The engine is about to load weights. `policy` follows if it did, and `policy-kept` if it did
   * not.
   */
  | { readonly type: "policy-loading"; readonly version: number; readonly weights: string }
  | { readonly type: "policy-kept" }
  | { readonly type: "paused"; readonly isPaused: boolean };

/** A stored group, which a reader can get by its cursor. */
export interface GroupEntry {
  readonly type: "group";
  readonly cursor: number;
  readonly batch: string;
  readonly groupIndex: number;
}

/**
 * The service's journal: an append-only file. Each line is on the disk before its effect is
 * visible.
 */
export interface ServiceJournal extends AsyncDisposable {
  append(entry: ServiceEntry): Promise<void>;
}

/**
 * Opens the journal of a data folder and reads the lines of earlier starts.
 * @param guard - Called before each write. Throws if the folder no longer belongs to this process.
 * @throws UsageError if the disk fails, or if a line is invalid.
 */
export async function openServiceJournal(
  dir: string,
  { files = diskFiles, guard }: { readonly files?: Files; readonly guard: () => Promise<void> },
): Promise<{ readonly journal: ServiceJournal; readonly entries: readonly ServiceEntry[] }> {
  const file = path.join(dir, "service.jsonl");
  // Opening the journal removes an incomplete last line, which a crash leaves.
  const journal = await JsonlJournal.open(file, { files, guard });
  const entries: ServiceEntry[] = [];
  try {
    await scanLines(files, file, ({ bytes }) => {
      try {
        entries.push(JSON.parse(bytes.toString("utf8")) as ServiceEntry);
      } catch (error) {
        throw new UsageError(
          `Cannot read ${file}: its line ${entries.length + 1} is damaged; put a copy of it back or ` +
            "choose another --out",
          { cause: error },
        );
      }
    });
  } catch (error) {
    await journal[Symbol.asyncDispose]();
    throw error;
  }
  return { journal, entries };
}
