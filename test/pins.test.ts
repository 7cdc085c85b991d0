import { execFile, execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = fileURLToPath(new URL("../", import.meta.url));

/** What the index answers for a package: names of its files, or a release of npm. */
let answers: Record<string, object | undefined> = {};
let index: Server;
let repository = "";

beforeAll(async () => {
  repository = await mkdtemp(path.join(tmpdir(), "turnwright-pins-"));
  const git = (...args: readonly string[]) => execFileSync("git", ["-C", repository, ...args]);
  git("init", "--quiet");
  const author = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
  git(...author, "commit", "--quiet", "--allow-empty", "--message", "One");
  index = createServer((request, response) => {
    const name = decodeURIComponent(request.url!)
      .replace(/^\/(simple|npm)\//, "")
      .replace(/\/(latest)?$/, "");
    const isNpm = request.url!.startsWith("/npm/");
    const answer =
      name in answers ? answers[name] : isNpm ? { version: "0.0.1" } : filesOf("0.0.1");
    response.statusCode = answer === undefined ? 500 : 200;
    response.end(JSON.stringify(answer ?? {}));
  });
  await new Promise<void>((resolve) => index.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  index.close();
  await rm(repository, { recursive: true });
});

test("nothing moved: the indexes have no newer release", async () => {
  const { output, status } = await runPins({}, "--check");
  expect(status).toBe(0);
  expect(output).toMatch(/^skyrl +\S+ +0\.0\.1 +not released \(scripts\/trainers\.mjs\)$/m);
  expect(output).toMatch(/^\d+ pins: 0 moved, \d+ held, 0 not found$/m);
});

test("names the pin and the newest release that is not withdrawn, and fails with --check", async () => {
  const skyrl = filesOf("0.4.0", "99.10.0", "99.9.9", "100.0rc1", "101.0.0.dev3");
  skyrl.files.push({ filename: "skyrl-102.0.0.tar.gz", yanked: "broken" });
  const { output, status } = await runPins({ skyrl }, "--check");
  expect(output).toMatch(/^skyrl +\S+ +99\.10\.0 +moved \(scripts\/trainers\.mjs\)$/m);
  expect(output).toMatch(/^\d+ pins: 1 moved/m);
  expect(status).toBe(1);
  expect((await runPins({ skyrl })).status).toBe(0);
});

test("a pin is held by a comment, or by a Node.js that we do not require", async () => {
  const { output, status } = await runPins(
    { mcp: filesOf("99.0"), ai: { version: "99.0.0", engines: { node: ">=22" } } },
    "--check",
  );
  expect(output).toMatch(/^mcp +\S+ +99\.0 +held: nemo-gym \S+ asks for < 2 \(/m);
  expect(output).toMatch(
    /^ai +\S+ +99\.0\.0 +held: needs Node\.js 22 or newer \(package\.json\)$/m,
  );
  expect(status).toBe(0);
});

test("says which package could not be asked for, and fails with --check", async () => {
  const { output, status } = await runPins({ trl: undefined }, "--check");
  expect(output).toMatch(/^trl +\S+ +\? +not found: .*\/simple\/trl\/ answered HTTP 500 \(/m);
  expect(status).toBe(3);
});

function filesOf(...versions: readonly string[]) {
  const files: { filename: string; yanked: boolean | string }[] = versions.map((version) => ({
    filename: `name-${version}-py3-none-any.whl`,
    yanked: false,
  }));
  return { files };
}

async function runPins(given: typeof answers, ...args: readonly string[]) {
  answers = given;
  const { port } = index.address() as AddressInfo;
  const env = {
    ...process.env,
    PIP_INDEX_URL: `http://127.0.0.1:${port}/simple`,
    npm_config_registry: `http://127.0.0.1:${port}/npm/`,
    TURNWRIGHT_TRAINERS_GIT: `file://${repository}`,
  };
  return await new Promise<{ output: string; status: number }>((resolve) => {
    const program = path.join(root, "scripts/pins.mjs");
    execFile(process.execPath, [program, ...args], { env }, (error, stdout) => {
      resolve({ output: stdout, status: error === null ? 0 : Number(error.code) });
    });
  });
}
