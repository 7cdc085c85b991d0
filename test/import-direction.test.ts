import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

/**
 * The folders of src in the order in which a task travels: each knows only itself and earlier ones. The library
 * packages, which come before all of them, know nothing of src.
 */
const layers: readonly (readonly string[])[] = [
  [
    "values",
    "text",
    "json",
    "async",
    "files",
    "http",
    "secrets",
    "columns",
    "python",
    "message.ts",
    "errors.ts",
    "outside.ts",
    "task.ts",
  ],
  ["tokenizer", "engine", "environment", "user", "hub"],
  ["renderer", "parser", "trajectory"],
  ["agent"],
  ["episode"],
  ["run"],
  ["teacher"],
  ["export"],
  ["verify", "report", "metrics", "doctor"],
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
      if (isLibrary(resolved)) continue;
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

/** True for a source of a package below packages/, by its path relative to src. */
function isLibrary(file: string): boolean {
  return /^\.\.\/packages\/[\w-]+\/src\//.test(file);
}

test("library packages import their own files, and entries of other packages", async () => {
  const packages = path.resolve(root, "../packages");
  const wrong: string[] = [];
  const used = new Map<string, Set<string>>();
  for (const name of await readdir(packages)) {
    const { exports } = await readManifest(path.join(packages, name));
    // The command `create-turnwright` is bundled from sources of turnwright.
    if (exports === undefined) continue;
    const folder = path.join(packages, name, "src");
    used.set(name, new Set());
    for (const file of await readdir(folder, { recursive: true })) {
      if (!file.endsWith(".ts")) continue;
      const isTest = /\.(?:test|fixture)\.ts$/.test(file);
      const source = await readFile(path.join(folder, file), "utf8");
      for (const [, target] of source.matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)) {
        const resolved = path.resolve(folder, path.dirname(file), target!);
        if (resolved.startsWith(folder + path.sep)) continue;
        const [other, ...inside] = path.relative(packages, resolved).split(path.sep);
        const entry = inside.join("/").replace(/^src\/(.*)\.ts$/, "./dist/$1.js");
        const entries = other === ".." ? [] : await entriesOf(path.join(packages, other!));
        if (entries.includes(entry)) {
          if (!isTest) used.get(name)!.add(other!);
        } else wrong.push(`packages/${name}/src/${file} imports ${target}`);
      }
    }
  }
  expect(wrong).toEqual([]);
  // Each package depends on those that it imports, and on no others of ours.
  for (const [name, others] of used) {
    const { dependencies = {} } = await readManifest(path.join(packages, name));
    const own = Object.keys(dependencies).filter((one) => one.startsWith("@turnwright/"));
    expect(own, name).toEqual([...others].map((other) => `@turnwright/${other}`).toSorted());
  }
});

interface PackageManifest {
  readonly exports?: Readonly<Record<string, { readonly default?: string }>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

async function readManifest(folder: string): Promise<PackageManifest> {
  return JSON.parse(await readFile(path.join(folder, "package.json"), "utf8")) as PackageManifest;
}

/** Lists the files that a package's entries are built to. */
async function entriesOf(folder: string): Promise<readonly string[]> {
  const { exports = {} } = await readManifest(folder);
  return Object.values(exports).flatMap((entry) => entry.default ?? []);
}

test("no file leads back to itself, by types neither", async () => {
  const imports = new Map<string, readonly string[]>();
  for (const folder of ["src", "environments", "packages"]) {
    const from = path.resolve(root, "..", folder);
    for (const name of await readdir(from, { recursive: true })) {
      if (!name.endsWith(".ts") || name.includes("/dist/")) continue;
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
