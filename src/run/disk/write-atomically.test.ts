import {
  lstat,
  mkdtemp,
  readFile,
  readdir,
  rm,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createDeferred } from "../../testing/deferred.ts";
import { crashingFiles, faultyFiles, type FileCall } from "../faulty-files.fixture.ts";
import type { Files } from "./files.ts";
import { writeAtomically, writeJsonAtomically } from "./write-atomically.ts";

let dir = "";
let file = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-whole-"));
  file = path.join(dir, "a.json");
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

test("writeWhole() syncs the contents before the rename, and the folder after it", async () => {
  const calls: string[] = [];
  const files = faultyFiles(({ operation, path: name }: FileCall) => {
    calls.push(`${operation} ${path.basename(name)}`);
    return undefined;
  });
  await writeAtomically(file, "new", { files });
  expect(calls.filter((call) => /write|sync|rename/.test(call))).toEqual([
    "write a.json.next",
    "sync a.json.next",
    "rename a.json",
    `syncFolder ${path.basename(dir)}`,
  ]);
});

test.each(["open", "write", "sync", "close", "rename"] as const)(
  "writeAtomically() keeps the old content if %s fails, and leaves no other file",
  async (operation) => {
    await writeFile(file, "old");
    const files = faultyFiles((call) =>
      call.operation === operation ? { type: "fail", code: "ENOSPC", written: 1 } : undefined,
    );
    await expect(writeAtomically(file, "new", { files })).rejects.toThrow(
      `Cannot write ${file}: ENOSPC: no space left on device, write; make room on the disk`,
    );
    expect(await readFile(file, "utf8")).toBe("old");
    expect(await readdir(dir)).toEqual(["a.json"]);
  },
);

test("writeWhole() leaves the old contents or the new ones after a death at any point", async () => {
  for (let at = 0; ; at++) {
    await writeFile(file, "old");
    const { files, count } = crashingFiles(at);
    await writeAtomically(file, "new contents", { files }).catch(() => {});
    expect(["old", "new contents"]).toContain(await readFile(file, "utf8"));
    if (count() <= at) break;
    await rm(`${file}.next`, { force: true });
  }
  expect(await readFile(file, "utf8")).toBe("new contents");
});

test("writeAtomically() lets each of several writers use a file of its own", async () => {
  const [first, second] = [createDeferred(), createDeferred()];
  async function* long(text: string, at: { readonly promise: Promise<void> }) {
    yield Buffer.from(text.repeat(3));
    await at.promise;
    yield Buffer.from(text);
  }
  const writing = writeAtomically(file, long("first ", first));
  await vi.waitFor(async () => expect(await readdir(dir)).toEqual(["a.json.next"]));
  const other = writeAtomically(file, long("other ", second));
  await vi.waitFor(async () =>
    expect((await readdir(dir)).toSorted()).toEqual(["a.json.2.next", "a.json.next"]),
  );
  second.resolve();
  await other;
  expect(await readFile(file, "utf8")).toBe("other other other other ");
  first.resolve();
  await writing;
  expect(await readFile(file, "utf8")).toBe("first first first first ");
  expect(await readdir(dir)).toEqual(["a.json"]);
});

test("writeAtomically() removes the files of killed writers, and none of running ones", async () => {
  const old = new Date(Date.now() - 2 * 3_600_000);
  const left = [
    "a.json.next",
    "a.json.2.next",
    "a.json.3.next",
    "b.json.next",
    "a.json.b.next",
    // The writers with the numbers in between have ended.
    "a.json.17.next",
  ];
  for (const name of left) {
    await writeFile(path.join(dir, name), "half");
    if (name !== "a.json.2.next") await utimes(path.join(dir, name), old, old);
  }
  await writeAtomically(file, "new");
  expect((await readdir(dir)).toSorted()).toEqual([
    "a.json",
    "a.json.2.next",
    "a.json.b.next",
    "b.json.next",
  ]);
  expect(await readFile(file, "utf8")).toBe("new");
});

test("writeAtomically() replaces nothing if it was taken for a killed writer", async () => {
  const wait = createDeferred();
  async function* slow() {
    yield Buffer.from("slow");
    await wait.promise;
  }
  const writing = writeAtomically(file, slow());
  const name = path.join(dir, "a.json.next");
  await vi.waitFor(async () => expect(await readFile(name, "utf8")).toBe("slow"));
  await rm(name);
  await writeFile(name, "another's half");
  wait.resolve();
  await expect(writing).rejects.toThrow(
    `Cannot write ${file}: nothing was written for an hour, and another writer has taken`,
  );
  expect(await readdir(dir)).toEqual(["a.json.next"]);
  expect(await readFile(name, "utf8")).toBe("another's half");
});

test("writeAtomically() removes no file of another writer if its last step fails", async () => {
  const broken = faultyFiles(({ operation }) =>
    operation === "syncFolder" ? { type: "fail", code: "EIO" } : undefined,
  );
  const files: Files = {
    ...broken,
    rename: async (from, to) => {
      await broken.rename(from, to);
      await writeFile(from, "another's");
    },
  };
  await expect(writeAtomically(file, "new", { files })).rejects.toThrow(
    `Cannot write ${file}: EIO`,
  );
  expect(await readFile(`${file}.next`, "utf8")).toBe("another's");
});

test("writeAtomically() follows links to a file that does not exist", async () => {
  await symlink("second", file);
  await symlink(path.join(dir, "real.json"), path.join(dir, "second"));
  await writeAtomically(file, "new");
  expect((await lstat(file)).isSymbolicLink()).toBe(true);
  expect(await readFile(path.join(dir, "real.json"), "utf8")).toBe("new");
});

test("writeJsonAtomically() follows a link, and continues after short writes", async () => {
  await writeFile(path.join(dir, "real.json"), "old");
  await symlink("real.json", file);
  const files = faultyFiles(({ operation }) =>
    operation === "write" ? { type: "short", written: 2 } : undefined,
  );
  await writeJsonAtomically(file, { a: [1] }, { files });
  expect((await lstat(file)).isSymbolicLink()).toBe(true);
  expect(await readFile(path.join(dir, "real.json"), "utf8")).toBe('{\n  "a": [\n    1\n  ]\n}\n');
});
