import path from "node:path";
import { Worker } from "node:worker_threads";
import { byteSpellings } from "./byte-level.ts";

/** A byte-level model's merges, by their ids. */
export interface MergeTable {
  /** The id of each byte. */
  readonly byteIds: Int32Array;
  /** For each pair that merges, where `slotOf()` finds it: left, right, rank and merged id; -1 for none. */
  readonly slots: Int32Array;
}

/** A table that is being read. */
export interface MergeTableReading {
  /** `undefined` where the file has none that is of use here. */
  readonly table: Promise<MergeTable | undefined>;
  end(): Promise<void>;
}

/**
 * Reads the merges of a `tokenizer.json` in a thread of its own, which takes it some tenths of a second.
 * It does not keep the process alive.
 */
export function readMergeTable(file: string): MergeTableReading {
  // The code travels as text, so that it runs alike from the sources and from the build.
  const worker = new Worker(
    `const { parentPort, workerData } = require("node:worker_threads");
    const { readFileSync } = require("node:fs");
    const table = (${buildMergeTable.toString()})({
      ...workerData, readFileSync, slotOf: ${slotOf.toString()},
    });
    parentPort.postMessage(table, table ? [table.byteIds.buffer, table.slots.buffer] : []);`,
    { eval: true, workerData: { file: path.resolve(file), spellings: byteSpellings } },
  );
  worker.unref();
  const table = new Promise<MergeTable | undefined>((resolve) => {
    worker.on("message", resolve);
    // Without a table the library is asked as before.
    worker.on("error", () => resolve(undefined));
    worker.on("exit", () => resolve(undefined));
  });
  return { table, end: async () => void (await worker.terminate()) };
}

/**
 * The place of a pair in `slots`, or the free place where it would be.
 *
 * Its text runs in a thread too: it uses nothing from around it.
 */
export function slotOf(slots: Int32Array, left: number, right: number): number {
  const mask = slots.length / 4 - 1;
  const mixed = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b);
  let slot = (mixed ^ (mixed >>> 15)) & mask;
  for (;;) {
    const place = slot * 4;
    const found = slots[place];
    if (found === -1 || (found === left && slots[place + 1] === right)) return place;
    slot = (slot + 1) & mask;
  }
}

/** As `slotOf()`, it uses nothing from around it. */
function buildMergeTable(place: {
  readonly file: string;
  readonly spellings: readonly string[];
  readonly readFileSync: (file: string, encoding: "utf8") => string;
  readonly slotOf: (slots: Int32Array, left: number, right: number) => number;
}): MergeTable | undefined {
  const { model } = JSON.parse(place.readFileSync(place.file, "utf8")) as {
    readonly model: {
      readonly vocab: Readonly<Record<string, number>>;
      readonly merges: readonly (string | readonly [string, string])[];
    };
  };
  const ids = new Map(Object.entries(model.vocab));
  const byteIds = Int32Array.from(place.spellings, (spelling) => ids.get(spelling) ?? -1);
  if (byteIds.includes(-1)) return undefined;
  let capacity = 1024;
  while (capacity < model.merges.length * 2) capacity *= 2;
  const slots = new Int32Array(capacity * 4).fill(-1);
  for (const [rank, merge] of model.merges.entries()) {
    const [left = "", right = ""] = typeof merge === "string" ? merge.split(" ") : merge;
    const pair = [ids.get(left), ids.get(right), rank, ids.get(left + right)];
    if (pair.includes(undefined)) return undefined;
    slots.set(pair as number[], place.slotOf(slots, pair[0] as number, pair[1] as number));
  }
  return { byteIds, slots };
}
