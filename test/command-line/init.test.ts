import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import Ajv from "ajv";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRenderer } from "../../src/renderer/create-renderer.ts";
import { startSglangTestServer, createTextPolicy } from "../../src/testing/index.ts";
import { smallModelFolder } from "../support/small-model.ts";
import { callCli } from "../support/call-cli.ts";
import { jsonLines, runCli } from "../support/run-cli.ts";
import { noPython } from "../../src/environment/python/python-environment.fixture.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

let scratch = "";
let project = "";
let created: Awaited<ReturnType<typeof callCli>>;
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-init-"));
  project = path.join(scratch, "My Lamps");
  created = await callCli(["init", project]);
  // The packages that `npm install` would install.
  await mkdir(path.join(project, "node_modules"));
  await symlink(root, path.join(project, "node_modules/turnwright"));
  await symlink(path.join(root, "node_modules/zod"), path.join(project, "node_modules/zod"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

async function content(file: string): Promise<string> {
  return await readFile(path.join(project, file), "utf8");
}

describe("turnwright init", () => {
  test("writes a project and prints the next steps", async () => {
    expect(created).toEqual({
      status: 0,
      stdout:
        `Created a project in ${project}. Next:\n  cd "${project}"\n  npm install\n  npm test\n` +
        "  npx turnwright env check ./my-environment.js\n",
      stderr: "",
    });
    expect((await readdir(project)).filter((name) => name !== "node_modules").toSorted()).toEqual([
      ".gitignore",
      "README.md",
      "my-environment.js",
      "my-environment.test.js",
      "package.json",
      "turnwright.json",
      "turnwright.schema.json",
    ]);
    const { version } = JSON.parse(await readFile(path.join(root, "package.json"), "utf8")) as {
      version: string;
    };
    expect(JSON.parse(await content("package.json"))).toMatchObject({
      name: "my-lamps",
      dependencies: { turnwright: `^${version}` },
    });
    expect(await content("README.md")).toMatch(/^# my-lamps\n/);
  });

  test("writes a test that passes", async () => {
    const { status, output } = await runNode(["--test"], project);
    expect(output).toMatch(/pass 1\b/);
    expect(status, output).toBe(0);
  });

  test("writes a configuration that fits its schema and can be read", async () => {
    const isValid = new Ajv.Ajv({ strict: true }).compile(
      JSON.parse(await content("turnwright.schema.json")) as object,
    );
    const configuration = JSON.parse(await content("turnwright.json")) as object;
    expect(isValid(configuration)).toBe(true);
    expect(isValid({ ...configuration, trials: 2 })).toBe(true);
    expect(isValid({ ...configuration, "max-turn": 2 })).toBe(false);
    const config = path.join(project, "turnwright.json");
    const { status, stderr } = await callCli(["rollout", "--config", config]);
    // The module is looked for in the folder that the command is called in.
    expect(stderr).toMatch(/^turnwright: Cannot find environment .\/my-environment.js: /);
    expect(status).toBe(2);
  });

  test("writes an environment that passes the check", async () => {
    const file = path.join(project, "my-environment.js");
    const { status, stdout } = await callCli(["env", "check", file]);
    expect(stdout).toMatch(
      /^my-environment: all 5 tasks, [\d,]+ episodes, [\d,]+ steps; 0 errors, 0 warnings\n$/,
    );
    expect(status).toBe(0);
  });

  test("writes a configuration whose rows verify", async () => {
    const turns = ['<tool_call>\n{"name": "list_lamps", "arguments": {}}\n</tool_call>', "Done."];
    const renderer = await createRenderer({ modelDir: smallModelFolder });
    await using server = await startSglangTestServer({
      policy: await createTextPolicy(turns, { renderer }),
    });
    const out = path.join(project, "runs/first");
    const { status, stderr } = await callCli([
      "rollout",
      "--config",
      path.join(project, "turnwright.json"),
      "--quiet",
      "--env",
      path.join(project, "my-environment.js"),
      "--out",
      out,
      "--url",
      server.url,
      "--model",
      smallModelFolder,
      "--samples",
      "3",
    ]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(await callCli(["verify", out])).toMatchObject({ status: 0 });
    const rows = jsonLines(await content("runs/first/samples.jsonl"));
    expect(rows.length).toBe(3 * 3);
  });

  test("refuses two languages", async () => {
    expect(await callCli(["init", scratch, "--typescript", "--python"])).toMatchObject({
      status: 2,
      stderr: "turnwright: Cannot take --typescript and --python together, expected one of them\n",
    });
  });

  test("leaves a folder alone that has one of its files", async () => {
    const dir = path.join(scratch, "taken");
    await mkdir(dir);
    await writeFile(path.join(dir, "package.json"), "{}");
    expect(await callCli(["init", dir])).toEqual({
      status: 2,
      stdout: "",
      stderr: `turnwright: Cannot create a project in ${dir}: package.json is there already, expected a folder without it (name a new one)\n`,
    });
    expect(await readdir(dir)).toEqual(["package.json"]);
  });
});

describe("turnwright init --typescript", () => {
  let typed = "";
  beforeAll(async () => {
    typed = path.join(scratch, "typed");
    created = await callCli(["init", typed, "--typescript"]);
    const packages = path.join(typed, "node_modules");
    await mkdir(path.join(packages, "tsx"), { recursive: true });
    await mkdir(path.join(packages, "@types"));
    await symlink(root, path.join(packages, "turnwright"));
    for (const name of ["zod", "@types/node"]) {
      await symlink(path.join(root, "node_modules", name), path.join(packages, name));
    }
    await writeTsx(path.join(packages, "tsx"));
  });

  test("writes a project and prints the next steps", async () => {
    expect(created.stdout).toBe(
      `Created a project in ${typed}. Next:\n  cd ${typed}\n  npm install\n  npm test\n  npm run check\n` +
        "  npx turnwright env check ./my-environment.ts\n",
    );
    expect((await readdir(typed)).filter((name) => name !== "node_modules").toSorted()).toEqual([
      ".gitignore",
      "README.md",
      "my-environment.test.ts",
      "my-environment.ts",
      "package.json",
      "tsconfig.json",
      "turnwright.json",
      "turnwright.schema.json",
    ]);
  });

  test("writes types that hold", async () => {
    const { status, output } = await runNode([path.join(root, "node_modules/.bin/tsc")], typed);
    expect(output).toBe("");
    expect(status).toBe(0);
  });

  test("writes a test that passes", async () => {
    const { scripts } = JSON.parse(await readFile(path.join(typed, "package.json"), "utf8")) as {
      scripts: { test: string };
    };
    const { status, output } = await runNode(scripts.test.split(" ").slice(1), typed);
    expect(output).toMatch(/pass 1\b/);
    expect(status, output).toBe(0);
  });

  test("writes an environment that passes the check", async () => {
    const file = path.join(typed, "my-environment.ts");
    const { status, stdout, stderr } = await runCli(["env", "check", file]);
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^my-environment: all 5 tasks, .*; 0 errors, 0 warnings\n$/);
    expect(status).toBe(0);
  });
});

describe("turnwright init --python", () => {
  test("writes an environment of 25 lines, with the commands to run it", async () => {
    const dir = path.join(scratch, "python");
    const { stdout } = await callCli(["init", dir, "--python"]);
    expect(stdout).toContain("npx turnwright env check ./my_environment.py\n");
    expect((await readdir(dir)).toSorted()).toEqual([
      ".gitignore",
      "README.md",
      "my_environment.py",
      "package.json",
      "pyrightconfig.json",
      "turnwright.json",
      "turnwright.schema.json",
    ]);
    const environment = await readFile(path.join(dir, "my_environment.py"), "utf8");
    expect(environment.trimEnd().split("\n").length).toBe(25);
  });

  test.skipIf(noPython !== undefined)("writes an environment that passes the check", async () => {
    const file = path.join(scratch, "python/my_environment.py");
    const { status, stdout } = await runCli(["env", "check", file, "--tasks", "1"]);
    expect(stdout).toMatch(/^my-environment: 2 of 5 tasks .*; 0 errors, 0 warnings\n$/);
    expect(status).toBe(0);
  });
});

/** Writes a package that does what tsx does for one file, for Node.js that runs no TypeScript. */
async function writeTsx(dir: string): Promise<void> {
  const compiler = pathToFileURL(path.join(root, "node_modules/typescript-5/lib/typescript.js"));
  const register =
    'import { register } from "node:module"; register("./hooks.mjs", import.meta.url);\n';
  const hooks = `import { readFile } from "node:fs/promises";
import ts from ${JSON.stringify(compiler.href)};
export async function load(url, context, next) {
  if (!url.endsWith(".ts")) return await next(url, context);
  const text = await readFile(new URL(url), "utf8");
  const { outputText } = ts.transpileModule(text, { compilerOptions: { module: "esnext", target: "es2022" } });
  return { format: "module", source: outputText, shortCircuit: true };
}
`;
  const exports = { ".": "./register.mjs", "./esm": "./register.mjs" };
  await writeFile(path.join(dir, "package.json"), JSON.stringify({ name: "tsx", exports }));
  await writeFile(path.join(dir, "register.mjs"), register);
  await writeFile(path.join(dir, "hooks.mjs"), hooks);
}

/** Runs Node.js in a folder. */
async function runNode(args: readonly string[], cwd: string) {
  const env = { ...process.env };
  // Else Node takes itself for a test of the runner that runs this one.
  delete env["NODE_TEST_CONTEXT"];
  const child = spawn(process.execPath, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
  const status = await new Promise((resolve) => child.once("close", resolve));
  return { status, output };
}
