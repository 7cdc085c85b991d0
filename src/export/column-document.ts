import { createReadStream } from "node:fs";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { assertInvariant } from "../errors.ts";
import type { ColumnLayout } from "./exporter.ts";

/** The number of characters of a column that are kept in memory before they are written. */
const blockLength = 64 * 1024;

/**
 * Yields one JSON object that has a list over all records for each column. Keeps the columns in
 * temporary files, so that memory does not grow with the number of records.
 */
export async function* columnDocument(
  records: AsyncIterable<Readonly<Record<string, unknown>>>,
  { columns, defaults = {}, rest }: ColumnLayout,
): AsyncGenerator<Uint8Array> {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-columns-"));
  try {
    const { files, needed } = await spill(records, { columns, defaults }, dir);
    for (const [index, name] of columns.entries()) {
      if (!needed.has(name)) continue;
      yield Buffer.from(`${index === 0 ? "{" : ","}${JSON.stringify(name)}:[`);
      yield* createReadStream(files[index]!) as AsyncIterable<Uint8Array>;
      yield Buffer.from("]");
    }
    const tail = Object.entries(rest).map(
      ([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`,
    );
    yield Buffer.from(`${tail.join("")}}\n`);
  } finally {
    await rm(dir, { recursive: true });
  }
}

/** Returns the object of `columnDocument()` for few records, in memory. */
export function columnObject(
  records: readonly Readonly<Record<string, unknown>>[],
  { columns, defaults = {}, rest }: ColumnLayout,
): Readonly<Record<string, unknown>> {
  const lists = columns
    .filter(
      (name) =>
        !(name in defaults) || records.some((record) => isNeeded(name, record[name], defaults)),
    )
    .map((name) => [name, records.map((record) => record[name])]);
  return { ...Object.fromEntries(lists), ...rest };
}

/** True if a column cannot be left out because of this value. */
function isNeeded(
  name: string,
  value: unknown,
  defaults: NonNullable<ColumnLayout["defaults"]>,
): boolean {
  return !(name in defaults) || value !== defaults[name];
}

/** Writes each column to a file. Returns the files, and the names of the columns to export. */
async function spill(
  records: AsyncIterable<Readonly<Record<string, unknown>>>,
  { columns, defaults }: Required<Pick<ColumnLayout, "columns" | "defaults">>,
  dir: string,
): Promise<{ readonly files: readonly string[]; readonly needed: ReadonlySet<string> }> {
  const files = columns.map((_, index) => path.join(dir, String(index)));
  const handles = await Promise.all(files.map(async (file) => await open(file, "w")));
  const waiting = columns.map(() => "");
  const needed = new Set(columns.filter((name) => !(name in defaults)));
  let count = 0;
  try {
    for await (const record of records) {
      for (const [index, name] of columns.entries()) {
        assertInvariant(name in record, `each record has the column ${name}`);
        if (isNeeded(name, record[name], defaults)) needed.add(name);
        waiting[index] += `${count === 0 ? "" : ","}${JSON.stringify(record[name])}`;
        if (waiting[index]!.length < blockLength) continue;
        await handles[index]!.writeFile(waiting[index]!);
        waiting[index] = "";
      }
      count += 1;
    }
    for (const [index, text] of waiting.entries()) await handles[index]!.writeFile(text);
  } finally {
    await Promise.all(handles.map(async (handle) => await handle.close()));
  }
  return { files, needed };
}
