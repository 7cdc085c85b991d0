import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

test("the API reference tells of every export, each of which has a doc comment", async () => {
  const script = fileURLToPath(new URL("../../scripts/api-docs.mjs", import.meta.url));
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-api-"));
  const { status, stderr } = spawnSync(process.execPath, [script, dir], { encoding: "utf8" });
  expect(stderr).toBe("");
  expect(status).toBe(0);
  const page = await readFile(path.join(dir, "turnwright.md"), "utf8");
  const named = new Set([...page.matchAll(/^### (\w+)$/gm)].map(([, name]) => name));
  // As it was built, of which the reference tells.
  const built = new URL("../../dist/src/index.js", import.meta.url).href;
  const exported = Object.keys((await import(built)) as object);
  expect(exported.filter((name) => !named.has(name))).toEqual([]);
  expect(named).toContain("RolloutOptions");
  expect(page).toContain("### refuse\n\nEnds a tool's call as a mistake of the model's");
  await rm(dir, { recursive: true });
});
