import { access, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");

async function exists(file: string): Promise<boolean> {
  return await access(path.join(root, file)).then(
    () => true,
    () => false,
  );
}

test("ARCHITECTURE.md names files that exist for each kind of change", async () => {
  const text = await readFile(path.join(root, "ARCHITECTURE.md"), "utf8");
  const [, table = ""] = /^## To change X.*?$([^]*?)^## /m.exec(text) ?? [];
  // Names in capitals stand for any name.
  const files = Array.from(
    table.matchAll(/`([\w./-]+\/[\w.-]+\.\w+)`/g),
    ([, file]) => file!,
  ).filter((file) => !/\b(?:NAME|TRAINER)\b/.test(file));
  expect(files.length).toBeGreaterThan(100);
  const absent: string[] = [];
  for (const file of files) {
    if (!(await exists(file)) && !(await exists(`src/${file}`))) absent.push(file);
  }
  expect(absent).toEqual([]);
});
