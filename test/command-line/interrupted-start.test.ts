import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callCli } from "../support/call-cli.ts";
import { cliFile } from "../support/run-cli.ts";
import { smallModelFolder } from "../support/small-model.ts";

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-interrupted-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

const stopping = "\nstopping: finished episodes are kept (Ctrl-C again to quit at once)\n";

/** Starts a command, presses Ctrl-C on request, and returns its exit status and output. */
async function interrupt(
  args: readonly string[],
  when: (stderr: () => string, press: () => void) => void,
) {
  const child = spawn(process.execPath, [cliFile, ...args], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  let isPressed = false;
  const press = (): void => {
    if (!isPressed) child.kill("SIGINT");
    isPressed = true;
  };
  const look = (): void => when(() => stderr, press);
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    look();
  });
  look();
  const [status] = (await once(child, "close")) as [number | null];
  return { status, stderr };
}

describe("Ctrl-C ends a command that has not started to play", () => {
  test("while its engine does not answer", async () => {
    let press = (): void => {};
    const server = createServer(() => press()).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const out = path.join(scratch, "silent");
    const ended = await interrupt(
      [
        "rollout",
        "--env",
        "storefront",
        "--user",
        "scripted",
        "--tasks",
        "0",
        "--engine",
        "sglang",
        "--url",
        url,
        "--model",
        smallModelFolder,
        "--out",
        out,
      ],
      (_stderr, pressed) => (press = pressed),
    );
    server.closeAllConnections();
    server.close();
    expect(ended).toEqual({ status: 130, stderr: stopping });
  });

  test("while another machine holds the folder of its branches", async () => {
    const run = path.join(scratch, "run");
    await callCli([
      "rollout",
      "--env",
      "storefront",
      "--engine",
      "reference",
      "--model",
      smallModelFolder,
      "--user",
      "scripted",
      "--tasks",
      "0",
      "--max-turns",
      "2",
      "--threads",
      "1",
      "--quiet",
      "--out",
      run,
    ]);
    const out = path.join(scratch, "fork");
    await mkdir(out);
    const place = { pid: 5, host: "elsewhere", bootId: "other", pidNamespace: "other" };
    const holder = {
      format: 1,
      id: "abc",
      since: "2026-11-23T10:05:00.000Z",
      command: "x",
      ...place,
    };
    await writeFile(path.join(out, "run.lock"), `${JSON.stringify(holder)}\n`);
    const ended = await interrupt(
      ["fork", run, "0#0", "--turn", "0", "--out", out],
      (stderr, press) => {
        if (stderr().includes("waiting until")) press();
      },
    );
    expect(ended).toEqual({
      status: 130,
      stderr:
        `note: ${out} is locked by process 5 on elsewhere since 2026-11-23T10:05:00.000Z (x): waiting until it ` +
        `gives a sign of life or has given none for 120 s\n${stopping}`,
    });
    expect(await readdir(out)).toEqual(["run.lock"]);
  });
});
