import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pack, packMain, root, run, type PackedFiles } from "./pack.fixture.ts";
import { startRegistry, type Registry } from "./registry.fixture.ts";
import { findUnexportedTypes } from "./unexported-types.ts";

const modules = path.join(root, "node_modules");
const names = ["python-values", "chat-template", "tool-parsers"] as const;

let scratch = "";
let registry: Registry;
const packed = new Map<string, PackedFiles>();

/** Runs npm in a folder, with this machine's registry and a cache of its own. */
async function npm(folder: string, ...args: readonly string[]) {
  const options = [...registry.npmOptions, "--cache", path.join(scratch, "cache")];
  const done = await run("npm", [...args, ...options], folder);
  expect(done.status, done.output).toBe(0);
  return done;
}

beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-libraries-"));
  registry = await startRegistry({ modules });
  await Promise.all(
    names.map(async (name) => {
      const folder = path.join(root, "packages", name);
      const script = path.join(root, "scripts/build-package.mjs");
      const built = await run(process.execPath, [script, folder], root);
      expect(built.status, built.output).toBe(0);
      packed.set(name, await pack(folder));
    }),
  );
  await Promise.all(
    [...packed.values(), await packMain()].map(async ({ tarball }) => {
      await npm(scratch, "publish", tarball);
    }),
  );
});
afterAll(async () => {
  await registry[Symbol.asyncDispose]();
  await rm(scratch, { recursive: true });
});

test("all packages can be published, with one version, license and range of Node", async () => {
  const expected = ["turnwright", ...names.map((name) => `@turnwright/${name}`)];
  expect(registry.published.toSorted()).toEqual(expected.toSorted());
  const read = async (folder: string) =>
    JSON.parse(await readFile(path.join(root, folder, "package.json"), "utf8")) as {
      readonly version: string;
      readonly license: string;
      readonly engines: object;
      readonly dependencies?: Readonly<Record<string, string>>;
    };
  const { version, license, engines, dependencies: ofRoot } = await read(".");
  for (const name of names) {
    const manifest = await read(`packages/${name}`);
    expect(manifest).toMatchObject({ version, license, engines });
    for (const [dependency, range] of Object.entries(manifest.dependencies ?? {})) {
      const isOurs = dependency.startsWith("@turnwright/");
      expect(range, `${name} ${dependency}`).toBe(isOurs ? version : ofRoot![dependency]);
    }
  }
});

describe.each(names)("@turnwright/%s", (name) => {
  let folder = "";
  let blocks: readonly string[] = [];
  beforeAll(async () => {
    folder = path.join(scratch, name);
    await mkdir(folder);
    await writeFile(path.join(folder, "package.json"), '{ "type": "module" }\n');
    await npm(folder, "install", `@turnwright/${name}`);
    const readme = await readFile(path.join(root, "packages", name, "README.md"), "utf8");
    blocks = Array.from(readme.matchAll(/```js\n([^]*?)```/g), ([, code]) => code!);
  });

  test("runs the program with which its README begins, and prints what it says", async () => {
    const [first, ...others] = blocks;
    const expected = Array.from(first!.matchAll(/console\.log\(.*\); \/\/ (.*)/g), ([, is]) => is);
    expect(first!.split("\n").filter((line) => /\S/.test(line)).length).toBeLessThanOrEqual(5);
    expect(expected.length).toBeGreaterThan(0);
    await writeFile(path.join(folder, "first.js"), first!);
    const { status, output } = await run(process.execPath, ["first.js"], folder);
    expect(output.trimEnd().split("\n")).toEqual(expected);
    expect(status).toBe(0);
    for (const [index, code] of others.entries()) {
      await writeFile(path.join(folder, `other-${index}.js`), code);
      const more = await run(process.execPath, [`other-${index}.js`], folder);
      expect(more.status, more.output).toBe(0);
    }
  });

  // TypeScript 5.9 takes seconds, and the package that imports most covers the others.
  test.each([
    ["typescript", ["--module", "nodenext"]],
    ["typescript", ["--module", "esnext", "--moduleResolution", "bundler"]],
    ...(name === "tool-parsers" ? [["typescript-5", ["--module", "nodenext"]] as const] : []),
  ] as const)("has types: %s, %j", async (compiler, resolution) => {
    for (const [index, code] of blocks.entries()) {
      await writeFile(path.join(folder, `program-${index}.ts`), code);
    }
    const tsc = path.join(modules, compiler, "bin/tsc");
    const flags = ["--noEmit", "--strict", "--skipLibCheck", "false", "--lib", "es2023,dom"];
    const programs = blocks.map((_, index) => `program-${index}.ts`);
    const args = ["--no-opt", tsc, ...flags, "--target", "es2022", ...resolution, ...programs];
    const { status, output } = await run(process.execPath, args, folder);
    expect(output).toBe("");
    expect(status).toBe(0);
  });

  test("has the files that people read and run", () => {
    const { files } = packed.get(name)!;
    expect(files).toEqual(expect.arrayContaining(["README.md", "LICENSE", "dist/index.js"]));
    expect(files.filter((file) => /\.test\.|\.fixture\.|\.map$|^src\//.test(file))).toEqual([]);
  });

  test("has nothing wrong for publint", async () => {
    const publint = [path.join(modules, "publint/src/cli.js"), "run", "--strict"];
    const { status, output } = await run(
      process.execPath,
      [...publint, packed.get(name)!.tarball],
      folder,
    );
    expect(status, output).toBe(0);
  });
});

test("the libraries export each type that their signatures mention", () => {
  const entries = names.map((name) => path.join(root, "dist/packages", name, "src/index.d.ts"));
  expect(findUnexportedTypes(entries)).toEqual([]);
});

test("attw finds nothing wrong in the library with the most entries", async () => {
  const attw = [path.join(modules, "@arethetypeswrong/cli/dist/index.js")];
  const flags = ["--profile", "esm-only", "--no-definitely-typed"];
  const args = [...attw, packed.get("python-values")!.tarball, ...flags];
  const { status, output } = await run(process.execPath, args, scratch);
  expect(status, output).toBe(0);
});
