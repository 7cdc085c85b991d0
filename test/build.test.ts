import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

test("the library, the environments and the command line are joined of the same modules", async () => {
  const { exports } = JSON.parse(await readFile(path.join(root, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, { readonly default?: string }>>;
  };
  const exported = Object.values(exports).flatMap((entry) => entry.default ?? []);
  const entries = [
    ...exported.filter((file) => !file.includes("*")).map((file) => file.slice(7, -3)),
    "src/cli/main",
    "environments/tau-bench/index",
  ];
  const chunks = (await readdir(path.join(root, "dist/chunks"))).filter((name) =>
    name.endsWith(".js"),
  );
  const files = [
    ...entries.map((name) => `dist/${name}.js`),
    ...chunks.map((name) => `dist/chunks/${name}`),
  ];
  const texts = await Promise.all(
    files.map(async (name) => await readFile(path.join(root, name), "utf8")),
  );
  const holders = (code: string) => texts.filter((text) => text.includes(code)).length;
  // If a class has two copies, an environment's error is not an instance of the class that is
  // caught.
  expect(holders("RolloutError = class ")).toBe(1);
  expect(holders("FrozenDict = class ")).toBe(1);
  for (const name of entries) {
    const text = await readFile(path.join(root, `dist/${name}.js`), "utf8");
    const imported = [...text.matchAll(/(?:from |import\()"(\.[^"]+)"/g)].map(([, file]) => file!);
    expect(imported.length, name).toBeGreaterThan(0);
    for (const file of imported) expect(file, name).toContain("/chunks/");
  }
});

test("no source looks for a packaged file relative to itself, because the build joins files", async () => {
  const found: string[] = [];
  for (const folder of ["src", "environments", "packages"]) {
    for (const name of await readdir(path.join(root, folder), { recursive: true })) {
      // The program of `npm create` is not joined with others.
      if (
        !name.endsWith(".ts") ||
        name.startsWith("create-turnwright/") ||
        /\.(?:test|fixture)\.ts$/.test(name)
      )
        continue;
      const text = await readFile(path.join(root, folder, name), "utf8");
      const bare = text.replaceAll("createRequire(import.meta.url)", "");
      if (bare.includes("import.meta")) found.push(`${folder}/${name}`);
    }
  }
  expect(found).toEqual([]);
});
