import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

interface RunningServer {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** The tested functions of `interop/running-server.mjs`. */
interface Module {
  readonly findFreePort: () => Promise<number>;
  readonly startServer: (server: object, options: object) => Promise<RunningServer>;
}

/** The used functions of `interop/process-tree.mjs`. */
interface ProcessTree {
  readProcesses(): readonly { readonly pid: number; readonly isDead: boolean }[];
}

const treeUrl = new URL("../../interop/process-tree.mjs", import.meta.url).href;
const tree = (await import(treeUrl)) as ProcessTree;
const moduleUrl = new URL("../../interop/running-server.mjs", import.meta.url).href;

const { findFreePort, startServer } = (await import(moduleUrl)) as Module;

/** A server that computes in a worker of its own session, as the large ones may. */
const serverSource = `
  const worker = require("node:child_process").spawn(
    process.execPath, ["-e", "setInterval(() => {}, 1000)"], { detached: true, stdio: "ignore" });
  require("node:fs").writeFileSync(process.env.PIDS, process.pid + " " + worker.pid);
  require("node:http").createServer((_, reply) => reply.end()).listen(Number(process.env.PORT));
`;

let folder = "";
let pidFile = "";

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "turnwright-running-server-"));
  pidFile = path.join(folder, "pids");
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const logFile = (): string => path.join(folder, "server.log");

/** The command that starts the server. */
const toCommand = (_: unknown, { port }: { readonly port: number }): object => ({
  command: process.execPath,
  args: ["-e", serverSource],
  env: { PIDS: pidFile, PORT: String(port) },
});

const startedPids = (): number[] => readFileSync(pidFile, "utf8").split(" ").map(Number);

function isAlive(pid: number): boolean {
  return tree.readProcesses().some((each) => each.pid === pid && !each.isDead);
}

test("a server that is stopped takes along the workers that left its process group", async () => {
  const options = { folder, port: await findFreePort(), logFile: logFile() };
  const { url, stop } = await startServer({ name: "forking", toCommand }, options);
  expect((await fetch(url)).ok).toBe(true);
  const pids = startedPids();
  expect(pids.map(isAlive)).toEqual([true, true]);
  await stop();
  expect(pids.map(isAlive)).toEqual([false, false]);
});

test("a server that cannot be started is said to be so", async () => {
  const options = { folder, port: await findFreePort(), logFile: logFile() };
  const missing = { command: path.join(folder, "missing"), args: [], env: {} };
  await expect(startServer({ name: "missing", toCommand: () => missing }, options)).rejects.toThrow(
    /^Cannot start missing: it did not answer; see /,
  );
});

test("a server ends with the process that started it, even if that process is killed", async () => {
  const starter = `
    const { findFreePort, startServer } = await import(${JSON.stringify(moduleUrl)});
    const toCommand = (_, { port }) => ({
      command: process.execPath,
      args: ["-e", ${JSON.stringify(serverSource)}],
      env: { PIDS: ${JSON.stringify(pidFile)}, PORT: String(port) },
    });
    const logFile = ${JSON.stringify(logFile())};
    await startServer({ name: "forking", toCommand }, { port: await findFreePort(), logFile });
    console.log("started");
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", starter], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await said(child, "started");
  const pids = startedPids();
  expect(pids.map(isAlive)).toEqual([true, true]);
  child.kill("SIGKILL");
  await expect.poll(() => pids.filter(isAlive), { timeout: 600_000 }).toEqual([]);
  expect(existsSync(logFile())).toBe(true);
});

/** Waits until a process has written a word; fails if the process ends first. */
function said({ stdout }: ChildProcess, word: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = "";
    stdout?.setEncoding("utf8");
    stdout?.on("data", (chunk: string) => {
      text += chunk;
      if (text.includes(word)) resolve();
    });
    stdout?.once("end", () => {
      reject(new Error(`it ended after ${JSON.stringify(text)}`));
    });
  });
}
