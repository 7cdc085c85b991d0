// Starts a server, waits until it answers, and ends it with all its descendants.
import { spawn } from "node:child_process";
import { openSync } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { killTree } from "./process-tree.mjs";

const guardFile = fileURLToPath(new URL("guard.mjs", import.meta.url));

/** The time limit of a start, in milliseconds. Large servers read gigabytes of Python. */
const START_MS = 20 * 60_000;

/** Returns a port that is free now. */
export async function findFreePort() {
  const probe = createServer();
  await new Promise((resolve) => {
    probe.listen(0, "127.0.0.1", resolve);
  });
  const { port } = probe.address();
  await new Promise((resolve) => {
    probe.close(resolve);
  });
  return port;
}

/** Starts a server. Writes its output to a file. */
export async function startServer(server, { folder, port, tag, model, logFile }) {
  const { command, args, env } = server.toCommand(folder, { port, tag, model });
  const log = openSync(logFile, "a");
  const child = spawn(command, args, {
    detached: true,
    stdio: ["ignore", log, log],
    env: { ...process.env, ...env },
  });
  const closed = new Promise((resolve) => {
    child.once("close", resolve);
    child.once("error", resolve);
  });
  const url = `http://127.0.0.1:${port}`;
  const end = () => {
    if (child.pid !== undefined) killTree(child.pid);
  };
  process.once("exit", end);
  const guard = child.pid === undefined ? undefined : startGuard(child.pid);
  const stop = async () => {
    end();
    process.off("exit", end);
    await closed;
    await guard?.end();
  };
  const deadline = Date.now() + START_MS;
  while (!(await answers(url))) {
    if (
      child.exitCode !== null ||
      child.signalCode !== null ||
      child.pid === undefined ||
      Date.now() > deadline
    ) {
      await stop();
      throw new Error(`Cannot start ${server.name}: it did not answer; see ${logFile}`);
    }
    await sleep(250);
  }
  return { url, stop };
}

/** Starts a process that ends the server if this one is killed. */
function startGuard(pid) {
  const guard = spawn(process.execPath, [guardFile, String(pid)], {
    detached: true,
    stdio: ["pipe", "ignore", "inherit"],
  });
  const closed = new Promise((resolve) => {
    guard.once("close", resolve);
  });
  return {
    end: async () => {
      guard.kill("SIGKILL");
      await closed;
    },
  };
}

async function answers(url) {
  try {
    return (await fetch(`${url}/health`)).ok;
  } catch {
    return false;
  }
}
