import { cp, mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createColumnPart, withoutBytes, type ColumnPart } from "../columns/column-part.ts";
import type { ColumnName } from "../columns/column-specs.ts";
import { encodeRagged } from "../columns/ragged-rows.ts";
import {
  inventedLampEngine,
  inventedSpecs,
  playInventedLamps,
} from "../run/columns/invented-columns.fixture.ts";
import { RunFolder } from "../run/folder/run-folder.ts";
import { testManifest } from "../run/folder/run-folder.fixture.ts";
import type { Sample } from "../trajectory/sample.ts";
import { ColumnBytes } from "./check-column-bytes.ts";
import { verifyRun } from "./verify-run.ts";

let scratch = "";
let sound = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-column-damage-"));
  sound = path.join(scratch, "sound");
  const engine = inventedLampEngine({ goodbye: (sessionId) => `Goodbye from ${sessionId}!` });
  await using folder = await RunFolder.open(sound, testManifest, { retryFailed: false });
  await playInventedLamps(folder, { engine, concurrency: 1 });
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

const binFile = "columns/start-0-0000.bin";
const indexFile = "columns/start-0.jsonl";

interface Edit {
  readonly read: (name: string) => Promise<string>;
  readonly write: (name: string, text: string) => Promise<void>;
  readonly at: (name: string) => string;
}

/** Changes lines of a file that are JSON. */
async function editLines(
  { read, write }: Edit,
  name: string,
  change: (lines: never[]) => void,
): Promise<void> {
  const lines = (await read(name))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as never);
  change(lines);
  await write(name, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}

interface Place {
  hash: string;
  file: string;
  at: number;
  size: number;
}

type OpenRow = { columns?: Record<string, Record<string, unknown>[]> } & Record<string, unknown>;

const rows = async (edit: Edit, change: (row: OpenRow) => void): Promise<void> =>
  await editLines(edit, "samples.jsonl", (lines: OpenRow[]) => change(lines[0]!));
const places = async (edit: Edit, change: (lines: Place[]) => void): Promise<void> =>
  await editLines(edit, indexFile, change);

/** A damage, with a part of the finding that names it. */
const damages: Readonly<Record<string, readonly [(edit: Edit) => Promise<void>, RegExp]>> = {
  "a byte of a file is another": [
    async ({ at }) => {
      const bytes = await readFile(at(binFile));
      bytes[bytes.length - 5]! ^= 1;
      await writeFile(at(binFile), bytes);
    },
    /so they were changed/,
  ],
  "a file is cut": [async ({ at }) => await truncate(at(binFile), 100), /ends before it/],
  "a file is missing": [
    async ({ at }) => await rm(at(binFile)),
    /no index names it with a file that exists/,
  ],
  "the index is missing": [async ({ at }) => await rm(at(indexFile)), /no index names it/],
  "the folder is missing": [
    async ({ at }) => await rm(at("columns"), { recursive: true }),
    /no index names it/,
  ],
  "a line of the index is missing": [
    async (edit) => await places(edit, (lines) => void lines.pop()),
    /no index names it/,
  ],
  "a line of the index is torn": [
    async (edit) => {
      const text = await edit.read(indexFile);
      await edit.write(indexFile, text.slice(0, -10));
    },
    /no index names it/,
  ],
  "a place is shifted by a byte": [
    async (edit) => await places(edit, (lines) => void (lines.at(-1)!.at -= 1)),
    /so they were changed/,
  ],
  "a place is shifted by a row": [
    async (edit) => await places(edit, (lines) => void (lines.at(-1)!.at -= 6)),
    /so they were changed/,
  ],
  "a place has another size": [
    async (edit) => await places(edit, (lines) => void (lines.at(-1)!.size -= 1)),
    /bytes, and/,
  ],
  "two places are swapped": [
    async (edit) =>
      await places(edit, (lines) => {
        const [one, other] = [lines.at(-1)!, lines.at(-2)!];
        [one.hash, other.hash] = [other.hash, one.hash];
      }),
    /bytes, and|so they were changed/,
  ],
  "a place names another file": [
    async (edit) => await places(edit, (lines) => void (lines.at(-1)!.file = "start-9-0000.bin")),
    /no index names it with a file that exists/,
  ],
  "a row has no columns": [
    async (edit) => await rows(edit, (row) => void delete row.columns),
    /the row has no columns/,
  ],
  "a row lacks a column": [
    async (edit) => await rows(edit, (row) => void delete row.columns!["keptTokens"]),
    /columns has no keptTokens/,
  ],
  "a row has a column that its run does not have": [
    async (edit) => await rows(edit, (row) => void (row.columns!["indexerTopK"] = [])),
    /"indexerTopK"/,
  ],
  "a column has an unknown name": [
    async (edit) => await rows(edit, (row) => void (row.columns!["routes"] = [])),
    /"routes"/,
  ],
  "columns is a list": [
    async (edit) =>
      await rows(edit, (row) => void ((row as Record<string, unknown>)["columns"] = [])),
    /columns is \[\]/,
  ],
  "a column is no list": [
    async (edit) =>
      await rows(edit, (row) => void ((row.columns as Record<string, unknown>)["keptTokens"] = 1)),
    /columns.keptTokens is 1/,
  ],
  "a part is missing": [
    async (edit) => await rows(edit, (row) => void row.columns!["routedExperts"]!.pop()),
    /routedExperts has \d+ rows, and token/,
  ],
  "the first part is missing": [
    async (edit) => await rows(edit, (row) => void row.columns!["routedExperts"]!.shift()),
    /routedExperts has rows up to token 0, and continues at/,
  ],
  "a part is there twice": [
    async (edit) =>
      await rows(edit, (row) => {
        const parts = row.columns!["routedExperts"]!;
        parts.push(parts.at(-1)!);
      }),
    /routedExperts has rows up to/,
  ],
  "parts are in another order": [
    async (edit) =>
      await rows(
        edit,
        (row) => void (row.columns!["routedExperts"] = row.columns!["routedExperts"]!.toReversed()),
      ),
    /routedExperts has rows up to token 0, and continues at/,
  ],
  "a part begins one row later": [
    async (edit) =>
      await rows(edit, (row) => {
        const [part] = row.columns!["routedExperts"]!;
        part!["from"] = 1;
      }),
    /continues at 1/,
  ],
  "a part has a row more": [
    async (edit) =>
      await rows(edit, (row) => {
        const part = row.columns!["routedExperts"]!.at(-1)!;
        part["rows"] = (part["rows"] as number) + 1;
      }),
    /rows for \d+ tokens/,
  ],
  "a part has a row less": [
    async (edit) =>
      await rows(edit, (row) => {
        const part = row.columns!["routedExperts"]!.at(-1)!;
        part["rows"] = (part["rows"] as number) - 1;
      }),
    /routedExperts has \d+ rows, and token/,
  ],
  "sets of a turn are missing": [
    async (edit) => await rows(edit, (row) => void row.columns!["keptTokens"]!.pop()),
    /keptTokens of the turn at token \d+ ends at/,
  ],
  "sets are shifted by a token": [
    async (edit) =>
      await rows(edit, (row) => {
        const [part] = row.columns!["keptTokens"]!;
        part!["from"] = (part!["from"] as number) + 1;
      }),
    /keptTokens has a part at token \d+, expected one at/,
  ],
  "a part has another hash": [
    async (edit) =>
      await rows(edit, (row) => void (row.columns!["topLogprobs"]![0]!["hash"] = "0".repeat(32))),
    /no index names it|sampleHashes|hash/,
  ],
  "a part has no version": [
    async (edit) =>
      await rows(edit, (row) => void delete row.columns!["routedExperts"]![0]!["policyVersion"]),
    /expected a part/,
  ],
  "a part has another version": [
    async (edit) =>
      await rows(edit, (row) => void (row.columns!["routedExperts"]![0]!["policyVersion"] = "7")),
    /hash/,
  ],
  "a part is that of another row": [
    async (edit) =>
      await editLines(edit, "samples.jsonl", (lines: OpenRow[]) => {
        lines[0]!.columns!["routedExperts"]![0] = lines.at(-1)!.columns!["routedExperts"]!.at(-1)!;
      }),
    /routedExperts has rows up to token 0, and continues at/,
  ],
  "the recording names another part": [
    async (edit) => {
      const text = await edit.read("recording.jsonl");
      const [, hash = ""] = /"hash":"([0-9a-f]{32})"/.exec(text)!;
      await edit.write("recording.jsonl", text.replace(hash, "0".repeat(32)));
    },
    /recording|line/,
  ],
  "run.json does not name the columns": [
    async (edit) => {
      const manifest = JSON.parse(await edit.read("run.json")) as { found: { columns?: unknown } };
      delete manifest.found.columns;
      await edit.write("run.json", JSON.stringify(manifest));
    },
    /which its run does not have/,
  ],
};

test("a sound run has no finding", async () => {
  expect((await verifyRun(sound)).violations).toEqual([]);
});

describe("verify names each damage to columns", () => {
  test.each(Object.entries(damages))("%s", async (name, [damage, expected]) => {
    const dir = path.join(scratch, name.replaceAll(" ", "-"));
    await cp(sound, dir, { recursive: true });
    const at = (file: string): string => path.join(dir, file);
    await damage({
      at,
      read: async (file) => await readFile(at(file), "utf8"),
      write: async (file, text) => await writeFile(at(file), text),
    });
    const { violations } = await verifyRun(dir);
    expect(violations.map(({ detail }) => detail).join("\n")).toMatch(expected);
  });
});

/** Values that no engine returns, under their own hash. */
const wrongValues: Readonly<Record<string, readonly [ColumnName, Uint8Array, RegExp]>> = {
  "an expert that does not exist": ["routedExperts", Uint8Array.of(0, 1, 2, 9, 4, 5), /9/],
  "the same expert twice": ["routedExperts", Uint8Array.of(0, 1, 3, 3, 4, 5), /layer 1/],
  "no expert in any layer": ["routedExperts", new Uint8Array(6), /layer/],
  "a set without the sampled id": [
    "keptTokens",
    encodeRagged({ counts: Uint32Array.of(2), ids: Int32Array.of(5, 6) }),
    /lacks the sampled id 7/,
  ],
  "an id outside the vocabulary": [
    "keptTokens",
    encodeRagged({ counts: Uint32Array.of(2), ids: Int32Array.of(7, 100) }),
    /the id 100/,
  ],
  "a set with an id twice": [
    "keptTokens",
    encodeRagged({ counts: Uint32Array.of(2), ids: Int32Array.of(7, 7) }),
    /twice/,
  ],
  "a set that is too large": [
    "keptTokens",
    encodeRagged({ counts: Uint32Array.of(5), ids: Int32Array.of(7, 8, 9, 10, 11) }),
    /5 ids/,
  ],
  "rows that end early": ["keptTokens", Uint8Array.of(1, 0), /cannot be read/],
  "logprobs that rise": [
    "topLogprobs",
    encodeRagged({
      counts: Uint32Array.of(2),
      ids: Int32Array.of(7, 8),
      logprobs: Float32Array.of(-2, -1),
    }),
    /higher logprob/,
  ],
  "a logprob that is not a number": [
    "topLogprobs",
    encodeRagged({
      counts: Uint32Array.of(2),
      ids: Int32Array.of(7, 8),
      logprobs: Float32Array.of(-1, Number.NaN),
    }),
    /NaN/,
  ],
};

describe("verify names each value that no engine returns", () => {
  test.each(Object.entries(wrongValues))("%s", async (_name, [column, bytes, expected]) => {
    const part = createColumnPart({ from: 3, rows: 1, policyVersion: "1", bytes });
    const checker = new ColumnBytes(
      {
        read: (wanted: Pick<ColumnPart, "hash">) =>
          Promise.resolve(wanted.hash === part.hash ? bytes : new Uint8Array()),
        isFreed: () => Promise.resolve(false),
      },
      {
        columns: { [column]: inventedSpecs[column as keyof typeof inventedSpecs] },
        vocabularySize: 50,
      },
    );
    const row = {
      tokenIds: [1, 2, 3, 7, 8],
      turns: [{ start: 3, end: 4 }],
      columns: { [column]: [withoutBytes(part)] },
    } satisfies Partial<Record<keyof Sample, unknown>>;
    const found = await checker.check(row);
    expect(found.map(({ detail }) => detail).join("\n")).toMatch(expected);
  });
});
