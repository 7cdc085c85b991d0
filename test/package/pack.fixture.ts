import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { PackedPackage } from "./registry.fixture.ts";

/** The folder of the repository. */
export const root = fileURLToPath(new URL("../../", import.meta.url));

/** A package as `npm pack` has made it, with the names of its files. */
export interface PackedFiles extends PackedPackage {
  readonly files: readonly string[];
}

let scratch: Promise<string> | undefined;
let main: Promise<PackedFiles> | undefined;

/** Packs the repository's package once for all tests, because npm takes four seconds. */
export async function packMain(): Promise<PackedFiles> {
  main ??= pack(root);
  return await main;
}

/** Packs a folder as it is published. */
export async function pack(folder: string): Promise<PackedFiles> {
  scratch ??= mkdtemp(path.join(tmpdir(), "turnwright-packed-"));
  const manifest = JSON.parse(
    await readFile(path.join(folder, "package.json"), "utf8"),
  ) as PackedPackage["manifest"];
  const flags = ["pack", "--ignore-scripts", "--json", "--pack-destination", await scratch];
  const { status, stdout, output } = await run("npm", flags, folder);
  expect(status, output).toBe(0);
  const [{ filename, files }] = JSON.parse(stdout.slice(stdout.indexOf("["))) as [
    { filename: string; files: { path: string }[] },
  ];
  return {
    manifest,
    tarball: path.join(await scratch, filename),
    files: files.map((file) => file.path),
  };
}

/** Removes the packed files. */
export async function removePacked(): Promise<void> {
  if (scratch !== undefined) await rm(await scratch, { recursive: true });
}

/** Runs a command as a user in the folder would; returns its output, and both streams in order. */
export async function run(command: string, args: readonly string[], cwd: string) {
  const env = { ...process.env, NO_COLOR: "1", npm_config_update_notifier: "false" };
  // Else Node takes itself for a test of the runner that runs this one.
  delete (env as Record<string, unknown>)["NODE_TEST_CONTEXT"];
  const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    output += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return { status, stdout, output };
}
