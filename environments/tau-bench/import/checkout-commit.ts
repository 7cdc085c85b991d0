import { readFile } from "node:fs/promises";
import path from "node:path";

const commitPattern = /^[0-9a-f]{40}$/;

/**
 * Returns the commit that a folder has checked out; `undefined` if it is not a clone but, for example, an unpacked
 * archive.
 */
export async function checkoutCommit(directory: string): Promise<string | undefined> {
  const gitFolder = path.join(directory, ".git");
  const head = await readTrimmed(path.join(gitFolder, "HEAD"));
  if (head === undefined || commitPattern.test(head)) return head;
  const branch = /^ref: (refs\/[\w./-]+)$/.exec(head)?.[1];
  if (branch === undefined || branch.includes("..")) return undefined;
  const loose = await readTrimmed(path.join(gitFolder, branch));
  if (loose !== undefined && commitPattern.test(loose)) return loose;
  const packed = (await readTrimmed(path.join(gitFolder, "packed-refs"))) ?? "";
  return packed
    .split("\n")
    .map((line) => line.split(" "))
    .find(([commit, name]) => name === branch && commitPattern.test(commit ?? ""))?.[0];
}

async function readTrimmed(file: string): Promise<string | undefined> {
  return await readFile(file, "utf8").then(
    (text) => text.trim(),
    () => undefined,
  );
}
