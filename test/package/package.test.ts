import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import "./create-package.ts";
import "./library-packages.ts";
import { packMain, removePacked, root, run } from "./pack.fixture.ts";
import { findUnexportedTypes } from "./unexported-types.ts";

const modules = path.join(root, "node_modules");

/** A project that has installed the package as it would be published, and Node's types. */
let project = "";
let tarball = "";
let packed: readonly string[] = [];
beforeAll(async () => {
  project = await mkdtemp(path.join(tmpdir(), "turnwright-consumer-"));
  const main = await packMain();
  tarball = main.tarball;
  packed = main.files;
  const installed = path.join(project, "node_modules/turnwright");
  await mkdir(installed, { recursive: true });
  const unpack = ["-xzf", tarball, "--strip-components=1", "-C", installed];
  expect((await run("tar", unpack, project)).status).toBe(0);
  await mkdir(path.join(project, "node_modules/@types"));
  for (const name of ["@types/node", "undici-types"]) {
    await symlink(path.join(modules, name), path.join(project, "node_modules", name));
  }
  await cp(
    fileURLToPath(new URL("consumer.ts", import.meta.url)),
    path.join(project, "consumer.ts"),
  );
  await writeFile(path.join(project, "package.json"), '{ "type": "module" }\n');
});
afterAll(async () => {
  await removePacked();
  await rm(project, { recursive: true });
});

describe("the package type-checks in a project of its own, the files of its dependencies not skipped", () => {
  const resolutions = {
    nodenext: ["--module", "nodenext"],
    bundler: ["--module", "esnext", "--moduleResolution", "bundler"],
  };
  test.each([
    ["TypeScript 7", "typescript", "nodenext"],
    ["TypeScript 7", "typescript", "bundler"],
    ["TypeScript 5.9", "typescript-5", "nodenext"],
  ] as const)("%s (%s), %s", async (_, compiler, resolution) => {
    const tsc = path.join(modules, compiler, "bin/tsc");
    const flags = ["--noEmit", "--strict", "--skipLibCheck", "false", "--types", "node"];
    const lib = ["--target", "es2022", "--lib", "es2023,esnext.disposable"];
    const { status, output } = await run(
      process.execPath,
      // A compiler that is written in JavaScript is done before code that is compiled for speed pays.
      ["--no-opt", tsc, ...flags, ...lib, ...resolutions[resolution], "consumer.ts"],
      project,
    );
    expect(output).toBe("");
    expect(status).toBe(0);
  });
});

describe("the package's declarations", () => {
  test("mention no types of dependencies", async () => {
    const dist = path.join(project, "node_modules/turnwright/dist");
    const entries = [
      ...(await listEntries()),
      "environments/storefront/index.d.ts",
      "environments/tau-bench/index.d.ts",
    ];
    const waiting = entries.map((entry) => path.join(dist, entry));
    const seen = new Set(waiting);
    const foreign: string[] = [];
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
      const text = (await readFile(file, "utf8")).replaceAll(/\/\*[^]*?\*\//g, "");
      for (const [, name] of text.matchAll(/(?:\bfrom\s+|import\()"([^"\n]+)"/g)) {
        if (name!.startsWith("node:")) continue;
        if (!name!.startsWith(".")) {
          foreign.push(`${path.relative(dist, file)} imports ${name}`);
          continue;
        }
        const next = path.resolve(path.dirname(file), name!).replace(/\.[jt]s$/, ".d.ts");
        if (!seen.has(next)) waiting.push(next);
        seen.add(next);
      }
    }
    expect(foreign).toEqual([]);
  });
});

/** Lists the declarations of the entries that `package.json` names, relative to `dist/`. */
async function listEntries(): Promise<readonly string[]> {
  const { exports } = JSON.parse(await readFile(path.join(root, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, { readonly types?: string }>>;
  };
  return Object.values(exports)
    .flatMap(({ types }) => types ?? [])
    .filter((types) => !types.includes("*"))
    .map((types) => path.posix.relative("./dist", types));
}

test("every type that a public signature mentions can be imported", async () => {
  const entries = await listEntries();
  expect(findUnexportedTypes(entries.map((entry) => path.join(root, "dist", entry)))).toEqual([]);
});

describe("tools that check packages find nothing wrong in the tarball:", () => {
  // The other entries have the same form, and attw takes seconds for each.
  const attw = ["--profile", "esm-only", "--no-definitely-typed", "--entrypoints", ".", "engine"];
  test.each([
    ["publint", "publint/src/cli.js", (file: string) => ["run", file, "--strict"]],
    ["attw", "@arethetypeswrong/cli/dist/index.js", (file: string) => [file, ...attw]],
  ])("%s", async (_, program, args) => {
    const { status, output } = await run(
      process.execPath,
      [path.join(modules, program), ...args(tarball)],
      project,
    );
    expect(status, output).toBe(0);
  });
});

describe("the package's files", () => {
  test("are those that people read and run", () => {
    for (const file of [
      "README.md",
      "LICENSE",
      "CHANGELOG.md",
      "dist/src/cli/main.js",
      "dist/src/index.d.ts",
    ]) {
      expect(packed).toContain(file);
    }
    expect(
      packed.filter(
        (file) =>
          !file.startsWith("environments/") &&
          /\.test\.|\.fixture\.|\.map$|^test\/|^src\//.test(file),
      ),
    ).toEqual([]);
  });

  test("have all that README and docs link to", async () => {
    const missing: string[] = [];
    for (const page of packed.filter(
      (file) => file.endsWith(".md") && !file.startsWith("models/"),
    )) {
      const text = await readFile(path.join(root, page), "utf8");
      for (const [, link] of text.matchAll(/\]\((?!https?:|#|mailto:)([^)#]+)/g)) {
        const target = path.posix.normalize(path.posix.join(path.posix.dirname(page), link!));
        const isThere = packed.some(
          (file) => file === target || file.startsWith(`${target.replace(/\/$/, "")}/`),
        );
        if (!isThere) missing.push(`${page} links to ${target}`);
      }
    }
    expect(missing).toEqual([]);
  });

  test("run nothing when they are installed", async () => {
    const { scripts } = JSON.parse(await readFile(path.join(root, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    for (const hook of ["preinstall", "install", "postinstall"])
      expect(scripts).not.toHaveProperty(hook);
  });
});
