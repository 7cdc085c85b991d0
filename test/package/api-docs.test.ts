import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

test("the API reference describes every export, each of which has a doc comment", async () => {
  const script = fileURLToPath(new URL("../../scripts/api-docs.mjs", import.meta.url));
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-api-"));
  const { status, stderr } = spawnSync(process.execPath, [script, dir], { encoding: "utf8" });
  expect(stderr).toBe("");
  expect(status).toBe(0);
  const pages = (await readdir(dir)).filter((name) => name !== "README.md");
  for (const name of pages.filter((name) => name !== "storefront.md")) {
    const page = await readFile(path.join(dir, name), "utf8");
    const named = new Set([...page.matchAll(/^### (\w+)$/gm)].map(([, symbol]) => symbol));
    const entry = name === "turnwright.md" ? "index" : `${name.slice(0, -3)}/index`;
    const built = new URL(`../../dist/src/${entry}.js`, import.meta.url).href;
    const exported = Object.keys((await import(built)) as object);
    expect(
      exported.filter((symbol) => !named.has(symbol)),
      name,
    ).toEqual([]);
  }
  expect(pages.length).toBeGreaterThan(15);
  const page = await readFile(path.join(dir, "turnwright.md"), "utf8");
  expect(page).toContain("### RolloutOptions");
  expect(page).toContain("### refuse\n\nEnds a tool's call as a mistake of the model.");
  await rm(dir, { recursive: true });
});
