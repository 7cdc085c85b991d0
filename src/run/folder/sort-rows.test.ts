import { mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { faultyFiles } from "../faulty-files.fixture.ts";
import { sortRows } from "./sort-rows.ts";

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-sort-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

const rankOf = (line: Buffer) => Number(/^\d+/.exec(line.toString())?.[0]);

async function sorted(text: string): Promise<string> {
  const file = path.join(scratch, "rows.jsonl");
  await writeFile(file, text);
  await sortRows(file, rankOf);
  return await readFile(file, "utf8");
}

describe("sortRows()", () => {
  test("puts lines in the order of their ranks, byte for byte", async () => {
    expect(await sorted("2 ü\n10 \u2028\n1 🦊🦊\n")).toBe("1 🦊🦊\n2 ü\n10 \u2028\n");
  });

  test("keeps the order of equal ranks", async () => {
    expect(await sorted("1 b\n0\n1 a\n0 z\n")).toBe("0\n0 z\n1 b\n1 a\n");
  });

  test("keeps a file that is in order, and leaves no other file", async () => {
    const file = path.join(scratch, "rows.jsonl");
    await writeFile(file, "0\n1\n1\n");
    const before = await stat(file);
    await sortRows(file, rankOf);
    expect((await stat(file)).ino).toBe(before.ino);
    expect(await sorted("1\n0\n")).toBe("0\n1\n");
    expect(await readdir(scratch)).toEqual(["rows.jsonl"]);
  });

  test("keeps the file if the disk refuses the sorted one", async () => {
    const file = path.join(scratch, "rows.jsonl");
    for (const operation of ["write", "sync", "rename"] as const) {
      await writeFile(file, "1\n0\n");
      const files = faultyFiles((call) =>
        call.operation === operation ? { type: "fail", code: "ENOSPC" } : undefined,
      );
      await expect(sortRows(file, rankOf, { files })).rejects.toThrow(
        `Cannot write ${file}: ENOSPC: no space left on device, write; make room on the disk`,
      );
      expect(await readFile(file, "utf8")).toBe("1\n0\n");
      expect(await readdir(scratch)).toEqual(["rows.jsonl"]);
    }
  });

  test("gives a last line its line feed, and sorts lines of megabytes", async () => {
    expect(await sorted("1\n0")).toBe("0\n1\n");
    const long = `5 ${"x".repeat(3_000_000)}`;
    expect(await sorted(`7\n${long}\n6\n`)).toBe(`${long}\n6\n7\n`);
  });

  test("takes no file for an empty one", async () => {
    await sortRows(path.join(scratch, "absent"), rankOf);
    expect(await sorted("")).toBe("");
  });
});
