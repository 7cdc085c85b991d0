import { appendFile, mkdtemp, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { acquireBytes } from "../../text/lent-bytes.ts";
import { encodeLine } from "./encode-line.ts";
import { type Fault, type FileCall, faultyFiles } from "../faulty-files.fixture.ts";
import { JsonlJournal } from "./jsonl-journal.ts";
import { readJsonl } from "./read-jsonl.ts";

let dir = "";
let file = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-"));
  file = path.join(dir, "a.jsonl");
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

async function valuesOf(file: string): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const value of readJsonl(file)) values.push(value);
  return values;
}

describe("JsonlJournal", () => {
  test("keeps the order of lines that are appended at once", async () => {
    {
      await using journal = await JsonlJournal.open(file);
      await Promise.all(Array.from({ length: 100 }, (_, index) => journal.append({ index })));
      await journal.append({ index: 100 });
    }
    expect(await valuesOf(file)).toEqual(Array.from({ length: 101 }, (_, index) => ({ index })));
  });

  test("keeps the order of lines even if the first takes longer to encode, and closes after the last", async () => {
    const long = { text: "long ".repeat(100_000), list: Array.from({ length: 20_000 }, () => [1]) };
    const journal = await JsonlJournal.open(file);
    const appended = [journal.append(long), journal.append({ index: 1 })];
    const closed = journal[Symbol.asyncDispose]();
    await Promise.all(appended);
    await closed;
    expect(await valuesOf(file)).toEqual([long, { index: 1 }]);
  });

  test("lines in borrowed blocks stay intact while others are encoded and written", async () => {
    const lineOf = (index: number): object => ({
      index,
      text: `${index}`.repeat(1 + ((index * 7919) % 60_000)),
    });
    const indexes = Array.from({ length: 120 }, (_, index) => index);
    {
      await using journal = await JsonlJournal.open(file);
      await Promise.all(
        [0, 1, 2, 3, 4, 5].map(async (worker) => {
          for (const index of indexes.filter((each) => each % 6 === worker)) {
            const lines = [await encodeLine(lineOf(index), acquireBytes)];
            await journal.appendLines(lines);
          }
        }),
      );
    }
    const values = (await valuesOf(file)) as { readonly index: number }[];
    expect(values.toSorted((one, other) => one.index - other.index)).toEqual(indexes.map(lineOf));
  });

  test("refuses a value that is not JSON, and continues", async () => {
    {
      await using journal = await JsonlJournal.open(file);
      const refused = journal.append({ count: 1n });
      const appended = journal.append({ index: 1 });
      await expect(refused).rejects.toThrow(TypeError);
      await appended;
    }
    expect(await valuesOf(file)).toEqual([{ index: 1 }]);
  });

  test("a line is on the disk once its append has resolved", async () => {
    await using journal = await JsonlJournal.open(file);
    await journal.append({ a: 1 });
    expect(await readFile(file, "utf8")).toBe('{"a":1}\n');
  });

  test("syncs lines that are appended at once together", async () => {
    let syncCount = 0;
    const files = faultyFiles(({ operation }) => {
      if (operation === "sync") syncCount++;
      return undefined;
    });
    await using journal = await JsonlJournal.open(file, { files });
    await Promise.all(Array.from({ length: 100 }, (_, index) => journal.append({ index })));
    expect(syncCount).toBeLessThan(20);
  });

  test.each([
    ['{"a":1}\n{"a":2}\n{"a":', '{"a":1}\n{"a":2}\n{"a":3}\n'],
    ['{"a":', '{"a":3}\n'],
    ["", '{"a":3}\n'],
    [`{"a":"${"x".repeat(200_000)}`, '{"a":3}\n'],
    ['{"a":1}\n\u0000\u0000', '{"a":1}\n{"a":3}\n'],
  ])("opening a file cuts off its torn last line", async (before, after) => {
    await writeFile(file, before);
    {
      await using journal = await JsonlJournal.open(file);
      await journal.append({ a: 3 });
    }
    expect(await readFile(file, "utf8")).toBe(after);
  });

  test("opening a file keeps a last line that lacks only its line feed", async () => {
    await writeFile(file, '{"a":1}\n{"a":2}');
    {
      await using journal = await JsonlJournal.open(file);
      await journal.append({ a: 3 });
    }
    expect(await readFile(file, "utf8")).toBe('{"a":1}\n{"a":2}\n{"a":3}\n');
  });

  test("a file that was cut at any byte is appended to without gluing lines", async () => {
    const lines = ['{"a":"ü🦊"}', '{"a":"\\u2028"}'];
    const text = lines.map((line) => `${line}\n`).join("");
    // A line that lacks only its line feed is complete.
    const ends = [Buffer.byteLength(lines[0]!), Buffer.byteLength(text) - 1];
    for (let length = 0; length <= Buffer.byteLength(text); length++) {
      await writeFile(file, text);
      await truncate(file, length);
      {
        await using journal = await JsonlJournal.open(file);
        await journal.append({ b: 1 });
      }
      const whole = lines.filter((_line, index) => length >= ends[index]!);
      expect(await readFile(file, "utf8"), `cut at ${length}`).toBe(
        [...whole, '{"b":1}', ""].join("\n"),
      );
    }
  });

  test("says which file cannot be opened", async () => {
    const gone = path.join(dir, "no", "a.jsonl");
    await expect(JsonlJournal.open(gone)).rejects.toThrow(`Cannot open ${gone}: ENOENT`);
  });
});

describe("JsonlJournal on a disk with faults", () => {
  /** The n-th call of a kind, counted from 1, after `arm()`. */
  function nth(operation: FileCall["operation"], which: number, fault: Fault) {
    let isArmed = false;
    let count = 0;
    const files = faultyFiles((call) => {
      if (!isArmed || call.operation !== operation) return undefined;
      return ++count === which ? fault : undefined;
    });
    return { files, arm: () => (isArmed = true) };
  }

  test("continues after a write of only some of the bytes", async () => {
    for (let written = 1; written < 8; written++) {
      await rm(file, { force: true });
      const { files, arm } = nth("write", 1, { type: "short", written });
      await using journal = await JsonlJournal.open(file, { files });
      arm();
      await journal.append({ a: 1 });
      await journal.append({ a: 2 });
      expect(await readFile(file, "utf8")).toBe('{"a":1}\n{"a":2}\n');
    }
  });

  test("takes a write of 0 bytes for a full disk", async () => {
    const { files, arm } = nth("write", 1, { type: "short", written: 0 });
    await using journal = await JsonlJournal.open(file, { files });
    arm();
    await expect(journal.append({ a: 1 })).rejects.toThrow(
      `Cannot write ${file}: ENOSPC: the system took no more bytes; make room on the disk`,
    );
  });

  test.each([0, 1, 4, 7, 8])(
    "cuts back a line that failed after %i bytes, and refuses all later ones with the same error",
    async (written) => {
      const { files, arm } = nth("write", 2, { type: "fail", code: "ENOSPC", written });
      await using journal = await JsonlJournal.open(file, { files });
      arm();
      await journal.append({ a: 1 });
      const reason =
        `Cannot write ${file}: ENOSPC: no space left on device, write; make room on the disk, then ` +
        "start the same command again: finished episodes are kept";
      await expect(journal.append({ a: 2 })).rejects.toThrow(reason);
      expect(await readFile(file, "utf8")).toBe('{"a":1}\n');
      await expect(journal.append({ a: 3 })).rejects.toThrow(reason);
      expect(await readFile(file, "utf8")).toBe('{"a":1}\n');
    },
  );

  test("acknowledges no line that could not be synced", async () => {
    const { files, arm } = nth("sync", 2, { type: "fail", code: "EIO" });
    await using journal = await JsonlJournal.open(file, { files });
    arm();
    await journal.append({ a: 1 });
    await expect(journal.append({ a: 2 })).rejects.toThrow(
      `Cannot write ${file}: EIO: i/o error, fsync; check the disk`,
    );
    await expect(journal.append({ a: 3 })).rejects.toThrow("EIO");
    expect(await valuesOf(file)).toEqual([{ a: 1 }]);
  });

  test("reports the first error even if the file cannot be cut back", async () => {
    const files = faultyFiles(({ operation, size }) => {
      if (operation === "write" && size === 8) return { type: "fail", code: "ENOSPC", written: 3 };
      if (operation === "truncate") return { type: "fail", code: "EIO" };
      return undefined;
    });
    {
      await using journal = await JsonlJournal.open(file, { files });
      await expect(journal.append({ a: 1 })).rejects.toThrow("ENOSPC");
      await expect(journal.append({ a: 2 })).rejects.toThrow("ENOSPC");
    }
    // Reopening removes the torn rest.
    await using again = await JsonlJournal.open(file);
    await again.append({ a: 3 });
    expect(await readFile(file, "utf8")).toBe('{"a":3}\n');
  });

  test("refuses all lines of a batch with a failed write", async () => {
    const { files, arm } = nth("write", 1, { type: "fail", code: "ENOSPC", written: 12 });
    await using journal = await JsonlJournal.open(file, { files });
    arm();
    const results = await Promise.allSettled([1, 2, 3].map((a) => journal.append({ a })));
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(await readFile(file, "utf8")).toBe("");
  });

  test("notices that the file was deleted, moved or replaced", async () => {
    await using journal = await JsonlJournal.open(file);
    await journal.append({ a: 1 });
    await rename(file, `${file}.moved`);
    const reason = `Cannot continue writing ${file}: it was moved or deleted`;
    await expect(journal.append({ a: 2 })).rejects.toThrow(reason);
    await expect(journal.append({ a: 3 })).rejects.toThrow(reason);
  });

  test("notices that another program writes to the file, and keeps those lines", async () => {
    await using journal = await JsonlJournal.open(file);
    await journal.append({ a: 1 });
    await appendFile(file, '{"b":1}\n');
    await expect(journal.append({ a: 2 })).rejects.toThrow(
      `Cannot continue writing ${file}: something else writes there`,
    );
    expect(await valuesOf(file)).toContainEqual({ b: 1 });
  });

  test("writes no line that its guard refuses", async () => {
    let isLost = false;
    const guard = async (): Promise<void> => {
      if (isLost) throw new Error("the lock is lost");
      await Promise.resolve();
    };
    await using journal = await JsonlJournal.open(file, { guard });
    await journal.append({ a: 1 });
    isLost = true;
    await expect(journal.append({ a: 2 })).rejects.toThrow("the lock is lost");
    isLost = false;
    await expect(journal.append({ a: 3 })).rejects.toThrow("the lock is lost");
    expect(await readFile(file, "utf8")).toBe('{"a":1}\n');
  });
});

describe("readJsonl()", () => {
  test("skips a torn last line, and refuses one in the middle", async () => {
    await writeFile(file, '{"a":1}\n{"a"');
    expect(await valuesOf(file)).toEqual([{ a: 1 }]);
    await writeFile(file, '{"a"\n{"a":1}\n');
    await expect(valuesOf(file)).rejects.toThrow(SyntaxError);
    expect(await valuesOf(path.join(dir, "none.jsonl"))).toEqual([]);
  });
});
