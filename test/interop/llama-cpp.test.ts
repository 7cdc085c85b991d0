import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { jsonLines } from "../support/run-cli.ts";

const script = fileURLToPath(new URL("../../interop/main.mjs", import.meta.url));

/** The script's exit status if a server cannot be installed. */
const CANNOT_INSTALL = 3;

/** For a machine that is busy with everything else. */
const LONGEST_MS = 60 * 60_000;

async function runInterop(
  args: readonly string[],
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [script, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const status = await new Promise<number | null>((resolve) => {
    child.once("close", resolve);
  });
  return { status, stdout, stderr };
}

test(
  "episodes are played, resumed, cancelled and scored again with llama.cpp's own server",
  { timeout: LONGEST_MS },
  async ({ skip }) => {
    if (process.env["CI"] === undefined) {
      const why = "it installs 166 MB: set CI, or run `npm run interop -- llama-cpp`";
      console.info(`skips llama.cpp's own server: ${why}`);
      skip(why);
    }
    const { status, stdout, stderr } = await runInterop(["llama-cpp", "--episodes", "6"]);
    if (status === CANNOT_INSTALL) {
      console.info(`skips llama.cpp's own server: ${stderr.trim()}`);
      skip(stderr.trim());
    }
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const rounds = jsonLines(stdout);
    expect(rounds.map(({ round }) => round)).toEqual([
      "start",
      "play",
      "rescore",
      "kill-run",
      "abort",
      "kill-server",
      "rescore kill-server",
      "play exact",
      "rescore exact",
    ]);
    const played = rounds.filter(({ episodes }) => episodes !== undefined);
    expect(played.map(({ episodes, verified }) => [episodes, verified])).toEqual([
      [6, true],
      [16, true],
      [16, true],
      [16, true],
    ]);
  },
);

test.each([
  [["llamacpp"], "Name one server"],
  [[], "Name one server"],
  [["vllm", "--episodes", "many"], "--episodes is many, expected a whole number of at least 1"],
  [["vllm", "--episodes", "0"], "--episodes is 0, expected a whole number of at least 1"],
  [
    ["sglang", "--skip", "updates"],
    "There is no round updates to skip, only play, kill-run, abort, update, kill-server, play exact",
  ],
])("%j is refused before anything is installed", async (args, message) => {
  const { status, stdout, stderr } = await runInterop(args);
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr.split("\n")[0]).toBe(message);
  expect(stderr).toContain("Usage: npm run interop -- llama-cpp|vllm|vllm-0.33|sglang");
});
