import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

/** The folders of src in the order in which a task travels: each knows only itself and earlier ones. */
const layers: readonly (readonly string[])[] = [
  [
    "values",
    "text",
    "json",
    "async",
    "files",
    "http",
    "secrets",
    "python",
    "pattern",
    "schema",
    "message.ts",
    "errors.ts",
    "outside.ts",
    "task.ts",
  ],
  ["jinja", "tokenizer", "engine", "environment", "user", "hub"],
  ["renderer", "parser", "trajectory"],
  ["agent"],
  ["episode"],
  ["run"],
  ["export"],
  ["verify", "report", "metrics"],
  ["gateway"],
  ["composition"],
  ["queue"],
  ["api", "worlds"],
  ["service", "cli", "viewer"],
];

/** Public fakes and the public surface may look everywhere. */
const free = new Set(["testing", "index.ts"]);

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../src");

function layerOf(part: string): number {
  return layers.findIndex((layer) => layer.includes(part));
}

test("imports point from later folders to earlier ones", async () => {
  const files = (await readdir(root, { recursive: true })).filter(
    (file) => file.endsWith(".ts") && !/\.(test|fixture)\.ts$/.test(file),
  );
  const wrong: string[] = [];
  for (const file of files) {
    const part = file.split(path.sep)[0]!;
    if (free.has(part)) continue;
    expect(layerOf(part), `src/${part} has its place in the layers`).toBeGreaterThanOrEqual(0);
    const source = await readFile(path.join(root, file), "utf8");
    for (const [, target] of source.matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)) {
      const resolved = path.relative(root, path.resolve(root, path.dirname(file), target!));
      const targetPart = resolved.split(path.sep)[0]!;
      const isOutside = resolved.startsWith("..");
      if (
        isOutside ? layerOf(part) < layerOf("composition") : layerOf(targetPart) > layerOf(part)
      ) {
        wrong.push(`src/${file} imports ${target}`);
      }
      if (targetPart === "testing" && part !== "cli") wrong.push(`src/${file} imports ${target}`);
    }
  }
  expect(wrong).toEqual([]);
});

test("no file leads back to itself, by types neither", async () => {
  const imports = new Map<string, readonly string[]>();
  for (const folder of ["src", "environments"]) {
    const from = path.resolve(root, "..", folder);
    for (const name of await readdir(from, { recursive: true })) {
      if (!name.endsWith(".ts")) continue;
      const file = path.join(from, name);
      const found = (await readFile(file, "utf8")).matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g);
      imports.set(
        file,
        Array.from(found, ([, target]) => path.resolve(path.dirname(file), target!)),
      );
    }
  }
  const done = new Set<string>();
  const circles: string[] = [];
  const follow = (file: string, way: readonly string[]): void => {
    const start = way.indexOf(file);
    if (start >= 0) circles.push([...way.slice(start), file].map(nameOf).join(" → "));
    if (start >= 0 || done.has(file)) return;
    for (const target of imports.get(file) ?? []) follow(target, [...way, file]);
    done.add(file);
  };
  for (const file of imports.keys()) follow(file, []);
  expect(circles).toEqual([]);
});

function nameOf(file: string): string {
  return path.relative(path.dirname(root), file);
}

test("no file in src imports from test, its own tests included", async () => {
  const files = (await readdir(root, { recursive: true })).filter((file) => file.endsWith(".ts"));
  const wrong: string[] = [];
  for (const file of files) {
    const source = await readFile(path.join(root, file), "utf8");
    if (/from "(\.\.\/)+test\//.test(source)) wrong.push(`src/${file}`);
  }
  expect(wrong).toEqual([]);
});

test("the reference engine has one door", async () => {
  const inside = path.join(root, "engine/reference");
  const door = path.join(inside, "index.ts");
  // Programs that test the engine's own parts.
  const own = [inside, path.join(root, "../test/engine/reference")];
  const wrong: string[] = [];
  for (const folder of ["src", "environments", "bench", "test", "examples"]) {
    const from = path.resolve(root, "..", folder);
    for (const name of await readdir(from, { recursive: true })) {
      const file = path.join(from, name);
      if (!name.endsWith(".ts") || own.some((part) => file.startsWith(part))) continue;
      const source = await readFile(file, "utf8");
      for (const [, target] of source.matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)) {
        const resolved = path.resolve(path.dirname(file), target!);
        if (resolved.startsWith(inside + path.sep) && resolved !== door) {
          wrong.push(`${folder}/${name} imports ${target}`);
        }
      }
    }
  }
  expect(wrong).toEqual([]);
});
