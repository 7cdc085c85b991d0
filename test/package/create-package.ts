import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { jsonLines, runCli } from "../support/run-cli.ts";
import { pack, packMain, root, run } from "./pack.fixture.ts";
import { startRegistry, type PackedPackage } from "./registry.fixture.ts";

const source = path.join(root, "packages/create-turnwright");

let scratch = "";
let create: PackedPackage;
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-create-"));
  const built = await run(process.execPath, [path.join(root, "scripts/build-create.mjs")], root);
  expect(built.status, built.output).toBe(0);
  create = await pack(source);
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** All files of a folder with their content, by their names. */
async function filesOf(dir: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const name of (await readdir(dir)).toSorted()) {
    files[name] = await readFile(path.join(dir, name), "utf8");
  }
  return files;
}

describe("create-turnwright", () => {
  test("matches the main package: same version, license and Node, and no dependencies", async () => {
    const read = async (folder: string) =>
      JSON.parse(await readFile(path.join(folder, "package.json"), "utf8")) as object;
    const own = await read(source);
    expect(own).toMatchObject(pick(await read(root), ["version", "license", "engines"]));
    for (const kind of ["dependencies", "optionalDependencies", "peerDependencies"]) {
      expect(own).not.toHaveProperty(kind);
    }
    // It runs when the package is packed, and never when it is installed.
    expect(own).toHaveProperty("scripts", { prepack: "node ../../scripts/build-create.mjs" });
    const files = await readdir(path.join(source, "dist"));
    expect(files.toSorted()).toEqual(["main.js", "start-main.cjs", "start.cjs", "template"]);
  });

  test("is what `npm create turnwright` runs, and does what `turnwright init` does", async () => {
    await using registry = await startRegistry();
    const sent = await run("npm", ["publish", create.tarball, ...registry.npmOptions], scratch);
    expect(sent.status, sent.output).toBe(0);
    const dir = path.join(scratch, "here");
    // npm caches what it has fetched once under the same name and version.
    const cache = path.join(scratch, "cache");
    await mkdir(dir);
    const npm = async (...args: readonly string[]) =>
      await run("npm", [...args, "--yes", ...registry.npmOptions, "--cache", cache], dir);
    const created = await npm("create", "turnwright", "My Agent");
    expect(created.status, created.output).toBe(0);
    const [project, twin] = [path.join(dir, "My Agent"), path.join(scratch, "twin/My Agent")];
    expect(created.stdout).toContain(
      `Created a project in ${project}. Next:\n  cd "My Agent"\n  npm install\n  npm test\n` +
        "  npx turnwright env check ./my-environment.js\n",
    );
    const init = await runCli(["init", twin]);
    expect(init.status, init.stderr).toBe(0);
    expect(await filesOf(project)).toEqual(await filesOf(twin));

    for (const flag of ["--typescript", "--python"]) {
      const [mine, other] = [path.join(scratch, "mine", flag), path.join(scratch, "other", flag)];
      await run(process.execPath, [path.join(source, "dist/start.cjs"), mine, flag], scratch);
      await runCli(["init", other, flag]);
      expect(await filesOf(mine)).toEqual(await filesOf(other));
    }

    const again = await npm("create", "turnwright", "My Agent");
    expect(again.status).not.toBe(0);
    expect(again.output).toContain(
      "create-turnwright: Cannot create a project in My Agent: turnwright.schema.json is there already, " +
        "expected a folder without it (name a new one)",
    );
  });

  const start = path.join(source, "dist/start.cjs");
  test.each([
    [["--version"], 0, /^\d+\.\d+\.\d+\S*\n$/],
    [["--help"], 0, /^Usage: npm create turnwright \[dir\] -- \[options\]\n/],
    [
      ["a", "b"],
      2,
      /^create-turnwright: Cannot take 2 folders, expected one at the most \(see npm create turnwright -- --help\)\n$/,
    ],
    [
      ["--typescript", "--python"],
      2,
      /^create-turnwright: Cannot take --typescript and --python together, expected one of them\n$/,
    ],
    [
      ["--ruby"],
      2,
      /^create-turnwright: Unknown option '--ruby' \(see npm create turnwright -- --help\)\n$/,
    ],
    [["/proc/1/nothing"], 2, /^create-turnwright: Cannot create a project in \/proc\/1\/nothing: /],
  ])("%j is answered with %i", async (args, status, said) => {
    const answer = await run(process.execPath, [start, ...args], scratch);
    expect(answer.output).toMatch(said);
    expect(answer.status).toBe(status);
  });

  test("says first that Node is too old", async () => {
    const old = path.join(scratch, "old-node.cjs");
    await writeFile(
      old,
      'Object.defineProperty(process.versions, "node", { value: "18.20.4" });\n',
    );
    const { status, output } = await run(process.execPath, ["--require", old, start, "x"], scratch);
    expect(output).toBe(
      "turnwright: Cannot run on Node 18.20.4, expected 20.19 or newer (https://nodejs.org)\n",
    );
    expect(status).toBe(2);
  });
});

test("from `npm create` to verified rows, as a stranger goes", async () => {
  const project = path.join(scratch, "stranger");
  await run(process.execPath, [path.join(source, "dist/start.cjs"), project], scratch);
  const main = await packMain();
  await using registry = await startRegistry({ modules: path.join(root, "node_modules") });
  const cache = ["--cache", path.join(scratch, "stranger-cache")];
  const options = [...registry.npmOptions, ...cache];
  const installed = await run("npm", ["install", ...options, main.tarball], project);
  expect(installed.status, installed.output).toBe(0);
  const { packages } = JSON.parse(
    await readFile(path.join(project, "node_modules/.package-lock.json"), "utf8"),
  ) as { readonly packages: Readonly<Record<string, unknown>> };
  expect(Object.keys(packages).filter((name) => name.includes("@turnwright"))).toEqual([]);

  const tested = await run("npm", ["test"], project);
  expect(tested.status, tested.output).toBe(0);
  const turnwright = async (...args: readonly string[]) =>
    await run("npx", ["--no-install", "turnwright", ...args], project);
  const checked = await turnwright("env", "check", "./my-environment.js");
  expect(checked.status, checked.output).toBe(0);

  const demo = await turnwright("demo", "--tasks", "2");
  expect(demo.status, demo.output).toBe(0);
  expect(demo.stdout).toContain("verified   all 8 samples");
  const program =
    'import { spawnTestServer } from "turnwright/testing";\n' +
    "const server = await spawnTestServer();\nawait server.close();\n";
  await writeFile(path.join(project, "server.mjs"), program);
  const server = await run(process.execPath, ["server.mjs"], project);
  expect(server.status, server.output).toBe(0);

  // The README of the project: a small model in this process.
  const [, command] = /\nnpx turnwright (rollout --env [^]+?) *\nnpx turnwright verify/.exec(
    await readFile(path.join(project, "README.md"), "utf8"),
  )!;
  const played = await turnwright(
    ...command!.replaceAll("\\\n", "").trim().split(/\s+/),
    "--quiet",
  );
  expect(played.status, played.output).toBe(0);
  const verified = await turnwright("verify", "runs/small");
  expect(verified.status, verified.output).toBe(0);
  const rows = jsonLines(await readFile(path.join(project, "runs/small/samples.jsonl"), "utf8"));
  // Three tasks of the training split, four times each.
  expect(new Set(rows.map((row) => row["rolloutId"])).size).toBe(12);
});

function pick(from: object, names: readonly string[]): object {
  return Object.fromEntries(Object.entries(from).filter(([name]) => names.includes(name)));
}
