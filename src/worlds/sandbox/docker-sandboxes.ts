import { randomUUID } from "node:crypto";
import { RolloutError, UsageError, describeError } from "../../errors.ts";
import { secretsOfNamed } from "../../secrets/find-secrets.ts";
import { hideEverywhere, Redactor } from "../../secrets/redactor.ts";
import {
  isSameMachine,
  thisMachine,
  type Machine,
  type ProcessPlace,
} from "../../run/disk/process-place.ts";
import { fitArguments } from "./fit-arguments.ts";
import { argumentsTooLong, cannotStart } from "./refuse-command.ts";
import { isShortage, isTooLong, runProcess } from "./run-process.ts";
import { completeSandboxes } from "./complete-sandboxes.ts";
import type { Sandbox, SandboxResult, Sandboxes } from "./sandbox.ts";

/** The containers' image and limits. */
export interface DockerSandboxOptions {
  /** The image, such as `python:3.13-slim`. It must have `sh` and `sleep`. */
  readonly image: string;
  /** Maximum memory including swap, in MiB. Default 512. */
  readonly memoryMiB?: number;
  /** Maximum number of processor cores. Default 1. */
  readonly cpus?: number;
  /** Maximum number of concurrent processes. Default 256. */
  readonly maxProcesses?: number;
  /** True to allow network access. Default false. */
  readonly network?: boolean;
  /** The working directory of commands. Default: the image's. */
  readonly cwd?: string;
  /**
   * Maximum lifetime of a container, in milliseconds. After it, the container ends even if this
   * process has died. Default one hour.
   */
  readonly lifetimeMs?: number;
  /**
   * The longest time for starting a container, in milliseconds. Includes fetching the image.
   * Default 5 minutes.
   */
  readonly openTimeoutMs?: number;
  /** Docker's program, or another with the same commands such as `podman`. Default `docker`. */
  readonly program?: string;
  /** The machine whose processes are checked. Default: this one. */
  readonly machine?: Machine;
}

/** The label with the process that owns the container. */
const ownerLabel = "turnwright.owner";
/** The longest time for removing or finding a container, in milliseconds. */
const housekeepingMs = 60_000;
/**
 * A container's first process, which no process in it can kill. It ends after the lifetime, by a
 * clock that a command cannot set. It is a shell, because a shell reaps the zombie processes that
 * commands leave, which would count as processes forever.
 */
const firstProcess = `read -r now rest < /proc/uptime; end=$((\${now%.*} + $1))
while [ "\${now%.*}" -lt "$end" ]; do
  sleep 5; [ $? -ne 127 ] || exit 127
  read -r now rest < /proc/uptime
done`;
/**
 * Changes to a folder relative to the working directory. Docker itself accepts only absolute
 * folders.
 */
const inFolder = ["sh", "-c", 'cd -- "$1" && shift && exec "$@"', "sh"];

/**
 * Creates sandboxes in containers, through Docker's command line. They have no network by default,
 * and limits on memory, processors, processes and lifetime. A label names the process that owns the
 * container. If that process dies, the next one on this machine removes the container, or it ends
 * after its lifetime.
 */
export function createDockerSandboxes(options: DockerSandboxOptions): Sandboxes {
  const { image, program = "docker", machine = thisMachine } = options;
  if (typeof image !== "string" || image === "" || image.startsWith("-")) {
    throw new UsageError(
      `Cannot make sandboxes: their image is ${JSON.stringify(image)}, expected one such as python:3.13-slim`,
    );
  }
  const docker = new Docker(program);
  const limits = limitsOf(options);
  return completeSandboxes({
    async open({ signal }) {
      const owner = JSON.stringify(await machine.here());
      const { openTimeoutMs: timeoutMs = 300_000 } = options;
      const name = `turnwright-${randomUUID()}`;
      const args = ["run", "--detach", "--rm", "--name", name, "--label", `${ownerLabel}=${owner}`];
      let started: SandboxResult;
      try {
        started = await docker.run([...args, ...limits], { signal, timeoutMs });
      } catch (error) {
        // The start was cancelled, but the container may have started.
        if (signal.aborted) await docker.remove(name);
        throw error;
      }
      const [id] = started.stdout.trim().split("\n").slice(-1);
      if (started.end === "exited" && started.exitCode === 0 && id) {
        return new DockerSandbox(docker, id, options.cwd);
      }
      await docker.remove(name);
      throw failure(`open a sandbox of image ${image}`, started, timeoutMs);
    },
    sweep: async () => await sweepContainers(docker, machine),
  });
}

function limitsOf(options: DockerSandboxOptions): readonly string[] {
  const { image, memoryMiB = 512, cpus = 1, maxProcesses = 256, network = false } = options;
  const { cwd, lifetimeMs = 3_600_000 } = options;
  // Docker takes 0 and negative numbers for "no limit".
  for (const [name, value] of Object.entries({ memoryMiB, cpus, maxProcesses, lifetimeMs })) {
    if (Number.isFinite(value) && value > 0) continue;
    throw new UsageError(
      `Cannot make Docker sandboxes: ${name} is ${String(value)}, expected a number above 0`,
    );
  }
  return [
    "--memory",
    `${memoryMiB}m`,
    "--memory-swap",
    `${memoryMiB}m`,
    "--cpus",
    String(cpus),
    "--pids-limit",
    String(maxProcesses),
    "--cap-drop",
    "ALL",
    "--security-opt",
    "no-new-privileges",
    ...(network ? [] : ["--network", "none"]),
    ...(cwd === undefined ? [] : ["--workdir", cwd]),
    "--entrypoint",
    "sh",
    image,
    "-c",
    firstProcess,
    "sh",
    String(Math.ceil(lifetimeMs / 1000)),
  ];
}

/** Runs commands of Docker's program. */
class Docker {
  readonly #program: string;

  constructor(program: string) {
    this.#program = program;
  }

  /**
   * Runs a command of Docker's program.
   * @throws UsageError if the program is missing, RolloutError if this machine cannot start a
   *   process now, and the system's own error if the arguments are too long.
   */
  async run(
    args: readonly string[],
    options: Parameters<typeof runProcess>[1],
  ): Promise<SandboxResult> {
    try {
      return await runProcess([this.#program, ...args], options);
    } catch (error) {
      options.signal.throwIfAborted();
      if (isTooLong(error)) throw error;
      if (isShortage(error)) {
        throw new RolloutError(
          "environment/unreachable",
          `Cannot run ${this.#program}: ${describeError(error)}`,
          { retryable: true, cause: error },
        );
      }
      throw new UsageError(
        `Cannot run ${this.#program}: ${describeError(error)}, expected Docker's program (or another by the ` +
          "option program, such as podman)",
        { cause: error },
      );
    }
  }

  /** Removes containers with their files. */
  async remove(...containers: readonly string[]): Promise<SandboxResult> {
    return await this.keepHouse("rm", "--force", "--volumes", ...containers);
  }

  /** Runs a command that removes or finds containers. The episode's signal does not cancel it. */
  async keepHouse(...args: readonly string[]): Promise<SandboxResult> {
    const { signal } = new AbortController();
    const options = { signal, timeoutMs: housekeepingMs, maxOutputBytes: 4 * 2 ** 20 };
    return await this.run(args, options);
  }
}

class DockerSandbox implements Sandbox {
  readonly id: string;
  readonly #docker: Docker;
  readonly #cwd: string | undefined;

  constructor(docker: Docker, id: string, cwd: string | undefined) {
    this.#docker = docker;
    this.id = id;
    this.#cwd = cwd;
  }

  run: Sandbox["run"] = async (command, { cwd, env = {}, ...given }) => {
    hideEverywhere(secretsOfNamed(env));
    const { variables, passed } = passVariables(env);
    const options = { ...given, env: { ...process.env, ...passed } as Record<string, string> };
    const folder = this.#cwd === undefined ? [] : ["--workdir", this.#cwd];
    const within = cwd === undefined ? [] : [...inFolder, cwd];
    const args = ["exec", "--interactive", ...folder, ...variables, this.id, ...within];
    let result: SandboxResult;
    try {
      result = await this.#docker.run([...args, ...fitArguments(command)], options);
    } catch (error) {
      // The signal has killed Docker's program, but not the processes in the container.
      if (options.signal.aborted) await this.#killAll();
      if (isTooLong(error)) return cannotStart(126, argumentsTooLong);
      throw error;
    }
    if (result.end === "out-of-time") await this.#killAll();
    // A command can print the same text, so the container is checked.
    else if (soundsGone(result) && !(await this.#isRunning())) {
      throw failure(`run a command in sandbox ${this.id.slice(0, 12)}`, result, 0);
    }
    return result;
  };

  async #killAll(): Promise<void> {
    await this.#docker.keepHouse("exec", this.id, "sh", "-c", "kill -9 -1");
  }

  async #isRunning(): Promise<boolean> {
    // A paused container counts as running, but runs no commands.
    const format = "{{if .State.Paused}}false{{else}}{{.State.Running}}{{end}}";
    const { stdout } = await this.#docker.keepHouse("inspect", "--format", format, this.id);
    return stdout.trim() === "true";
  }

  /** Allows `JSON.stringify()` of a state that contains the sandbox. */
  toJSON(): object {
    return { sandbox: this.id };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const removed = await this.#docker.remove(this.id);
    if (removed.exitCode === 0 || /no such container/i.test(removed.stderr)) return;
    throw failure(`remove sandbox ${this.id.slice(0, 12)}`, removed, housekeepingMs);
  }
}

/**
 * Matches variables that affect Docker's program, podman, or the shell and the system that start
 * them.
 */
const programVariable = new RegExp(
  `^(?:${[
    "(?:docker|podman|containers?|buildah|buildkit|storage|registry|ld|dyld|xdg|ssl|ssh|dbus|lc)_.*",
    ".*_proxy|path|pathext|home|user|logname|shell|lang|term|pwd|te?mp(?:dir)?",
    "godebug|gogc|gomaxprocs|gomemlimit|gotraceback|bash_env|node_options|pythonpath",
    "systemroot|windir|comspec|(?:local)?appdata|programdata|userprofile",
  ].join("|")})$`,
  "is",
);

/**
 * Chooses how to pass variables to a container. Values go through the environment of Docker's
 * program, because all users of the machine can read its arguments. Variables that would affect
 * Docker's program itself are arguments, unless they are secrets.
 */
function passVariables(env: Readonly<Record<string, string>>): {
  readonly variables: readonly string[];
  readonly passed: Readonly<Record<string, string>>;
} {
  const isOwn = ([name, value]: readonly [string, string]): boolean => {
    if (!programVariable.test(name)) return true;
    const { secrets, urls } = secretsOfNamed({ [name]: value });
    // Docker's own addresses must not be set in its environment.
    return secrets.length > 0 || (!/^docker_/i.test(name) && urls.some(holdsSecret));
  };
  const entries = Object.entries(env);
  return {
    variables: entries.flatMap(([name, value]) => [
      "--env",
      isOwn([name, value]) ? name : `${name}=${value}`,
    ]),
    passed: Object.fromEntries(entries.filter(isOwn)),
  };
}

/** True if a URL contains a password or a key. */
function holdsSecret(url: string): boolean {
  const redactor = new Redactor();
  redactor.learnUrl(url);
  return redactor.text(url) !== url;
}

/** Docker's exit code for its own failures, and the code of a killed command. */
const suspectCodes: ReadonlySet<number> = new Set([125, 137]);
const lostWords =
  /no such container|no container with|not running|stopped container|state improper|is paused|cannot connect|error during connect|connection (refused|reset)|unexpected EOF|error response from daemon|OCI runtime/i;

/**
 * True if the result may mean that the container has failed. It is then checked, because a command
 * can print the same.
 */
function soundsGone({ exitCode, stderr }: SandboxResult): boolean {
  return exitCode !== 0 && (suspectCodes.has(exitCode) || lostWords.test(stderr));
}

function failure(doing: string, { end, exitCode, stderr }: SandboxResult, timeoutMs: number) {
  const lines = stderr.split("\n").filter((line) => !/^\s*$|--help/.test(line));
  const said = lines.map((line) => line.trim()).join(" | ");
  const why =
    end === "out-of-time"
      ? `no answer within ${timeoutMs} ms`
      : said || `it exited with ${exitCode}`;
  return new RolloutError("environment/unreachable", `Cannot ${doing}: ${why}`, {
    retryable: true,
  });
}

async function sweepContainers(docker: Docker, machine: Machine): Promise<number> {
  const here = await machine.here();
  const format = `{{.ID}} {{.Label "${ownerLabel}"}}`;
  const filter = ["--all", "--no-trunc", "--filter", `label=${ownerLabel}`, "--format", format];
  const { stdout } = await docker.keepHouse("ps", ...filter);
  const dead: string[] = [];
  for (const line of stdout.split("\n")) {
    const [, id, text] = /^(\w+) (\{.*\})$/.exec(line) ?? [];
    const owner = text === undefined ? undefined : parseOwner(text);
    if (id === undefined || owner === undefined || !isSameMachine(here, owner)) continue;
    if (!(await machine.isRunning(owner))) dead.push(id);
  }
  if (dead.length > 0) await docker.remove(...dead);
  return dead.length;
}

function parseOwner(text: string): ProcessPlace | undefined {
  try {
    const owner = JSON.parse(text) as Partial<ProcessPlace>;
    return typeof owner.pid === "number" ? (owner as ProcessPlace) : undefined;
  } catch {
    return undefined;
  }
}
