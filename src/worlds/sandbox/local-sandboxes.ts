import { lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { RolloutError, UsageError, describeError } from "../../errors.ts";
import { secretsOfNamed } from "../../secrets/find-secrets.ts";
import { hideEverywhere } from "../../secrets/redactor.ts";
import { removeFolder } from "../../files/remove-folder.ts";
import {
  isSameMachine,
  thisMachine,
  type Machine,
  type ProcessPlace,
} from "../../run/disk/process-place.ts";
import { killMarked } from "../../async/kill-processes.ts";
import { fitArguments } from "./fit-arguments.ts";
import { argumentsTooLong, cannotStart } from "./refuse-command.ts";
import { isShortage, isTooLong, runProcess } from "./run-process.ts";
import { completeSandboxes } from "./complete-sandboxes.ts";
import type { Sandbox, Sandboxes } from "./sandbox.ts";

/** Options for running commands on this machine. */
export interface LocalSandboxOptions {
  /**
   * The parent folder of the sandboxes. No other user of the machine can read them. Default: the
   * system's temporary folder.
   */
  readonly dir?: string;
  /** Maximum address space of a command, in MiB. Linux and macOS only. Default: no limit. */
  readonly memoryMiB?: number;
  /** The machine whose processes are checked. Default: this one. */
  readonly machine?: Machine;
}

/**
 * The start of each sandbox folder's name. The system adds random characters, so that the name is
 * new.
 */
const folderPrefix = "turnwright-sandbox-";

/**
 * The variable that identifies the processes of a sandbox, including those that left their process
 * group.
 */
const variable = "TURNWRIGHT_SANDBOX";

/**
 * Creates sandboxes that are folders and processes on this machine, for tests and for commands that
 * you trust. **Commands can reach the rest of the machine.** Use `createDockerSandboxes()` to
 * isolate them.
 */
export function createLocalSandboxes(options: LocalSandboxOptions = {}): Sandboxes {
  const { memoryMiB, machine = thisMachine } = options;
  const dir = path.resolve(options.dir ?? tmpdir());
  if (process.platform === "win32") {
    throw new UsageError(
      "Cannot make sandboxes of processes on Windows, expected createDockerSandboxes()",
    );
  }
  return completeSandboxes({
    async open({ signal }) {
      signal.throwIfAborted();
      let own: string | undefined;
      try {
        await mkdir(dir, { recursive: true, mode: 0o700 });
        // `mkdtemp()` creates a folder that only this user can enter.
        own = await mkdtemp(path.join(dir, folderPrefix));
        const work = path.join(own, "work");
        await mkdir(work);
        await writeFile(path.join(own, "owner.json"), JSON.stringify(await machine.here()));
        return new LocalSandbox({ id: path.basename(own), own, work, memoryMiB });
      } catch (error) {
        if (own !== undefined) await rm(own, { recursive: true, force: true }).catch(() => {});
        throw new RolloutError(
          "environment/unreachable",
          `Cannot open a sandbox in ${dir}: ${describeError(error)}`,
          { cause: error },
        );
      }
    },
    sweep: async () => await sweepDir(dir, machine),
  });
}

class LocalSandbox implements Sandbox {
  readonly id: string;
  readonly #parts: {
    readonly own: string;
    readonly work: string;
    readonly memoryMiB: number | undefined;
  };

  constructor({
    id,
    ...parts
  }: {
    readonly id: string;
    readonly own: string;
    readonly work: string;
    readonly memoryMiB: number | undefined;
  }) {
    this.id = id;
    this.#parts = parts;
  }

  run: Sandbox["run"] = async (given, options) => {
    const { work, memoryMiB } = this.#parts;
    const command = fitArguments(given);
    const limited =
      memoryMiB === undefined
        ? command
        : ["sh", "-c", `ulimit -v ${Math.round(memoryMiB * 1024)} && exec "$@"`, "sh", ...command];
    hideEverywhere(secretsOfNamed(options.env ?? {}));
    const env = {
      PATH: process.env["PATH"] ?? "",
      HOME: work,
      ...options.env,
      [variable]: this.id,
    };
    const cwd = path.resolve(work, options.cwd ?? ".");
    try {
      return await runProcess(limited, { ...options, env, cwd });
    } catch (error) {
      options.signal.throwIfAborted();
      if (isShortage(error)) {
        throw new RolloutError(
          "environment/unreachable",
          `Cannot run a command in sandbox ${this.id}: ${describeError(error)}`,
          { retryable: true, cause: error },
        );
      }
      // Other failures are the model's mistake and are reported as a shell reports them.
      if (isTooLong(error)) return cannotStart(126, argumentsTooLong);
      const isFolder = await stat(cwd).then(
        (found) => found.isDirectory(),
        () => false,
      );
      return isFolder
        ? cannotStart(127, describeError(error))
        : cannotStart(127, `${options.cwd ?? work} is not a folder`);
    }
  };

  /** Allows `JSON.stringify()` of a state that contains the sandbox. */
  toJSON(): object {
    return { sandbox: this.id };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await killMarked(variable, this.id);
    await removeFolder(this.#parts.own);
  }
}

async function sweepDir(dir: string, machine: Machine): Promise<number> {
  const ids = (await readdir(dir).catch(() => [])).filter((name) => name.startsWith(folderPrefix));
  const here = await machine.here();
  let count = 0;
  const errors: unknown[] = [];
  for (const id of ids) {
    const owner = await readOwner(path.join(dir, id));
    if (owner === undefined || !isSameMachine(here, owner)) continue;
    if (await machine.isRunning(owner)) continue;
    try {
      await killMarked(variable, id);
      await removeFolder(path.join(dir, id));
      count += 1;
    } catch (error) {
      // One odd folder must not keep the others.
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
  return count;
}

async function readOwner(own: string): Promise<ProcessPlace | undefined> {
  try {
    // Other users may create folders and links with such a name.
    const found = await lstat(own);
    if (!found.isDirectory() || found.uid !== process.getuid?.()) return undefined;
    return JSON.parse(await readFile(path.join(own, "owner.json"), "utf8")) as ProcessPlace;
  } catch {
    // The folder is still being created, or is not one of our sandboxes.
    return undefined;
  }
}
