import { spawn, type ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import { RolloutError } from "../../errors.ts";
import { secretsOfCommand } from "../../secrets/find-secrets.ts";
import { hideEverywhere, Redactor, withoutCutSecret } from "../../secrets/redactor.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import type { ForeignAgent, ForeignRun } from "./foreign-agent.ts";

/** So much of what the command writes to its standard error is told when it fails, in characters. */
const toldLength = 2000;
/** Characters of it that are kept: it is shorter without its secrets. */
const keptLength = 64 * 1024;

/** How long a command that is to end may take for it, in milliseconds. */
const graceMs = 5000;

/**
 * An agent that is a program of its own, in any language. It finds the policy where its SDK looks for it
 * (`OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL` and their keys), the task in `TURNWRIGHT_TASK` as JSON
 * (unless it is longer than a variable may be), and the same, the environment's tools and its user below
 * `TURNWRIGHT_TASK_URL`.
 *
 * It gets this process's variables, without those that hold secrets of ours, such as the engine's key.
 *
 * @param command - A line for the shell.
 */
export function commandAgent(command: string): ForeignAgent {
  hideEverywhere(secretsOfCommand(command));
  return {
    needsAddress: true,
    async run(run) {
      const { apiKey, signal } = run;
      signal.throwIfAborted();
      const child = spawn(command, {
        shell: true,
        // A group of its own: what the shell starts is ended with it.
        detached: process.platform !== "win32",
        stdio: ["ignore", "ignore", "pipe"],
        env: { ...openVariables(process.env), ...variablesOf(run) },
      });
      let told = "";
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        told = (told + text).slice(-keptLength);
      });
      const closed = withResolvers<readonly [code: number | null, killedBy: string | null]>();
      child.once("error", (error) => closed.reject(error));
      child.once("close", (code, killedBy) => closed.resolve([code, killedBy]));
      // What the command left running keeps nothing of ours alive.
      const stop = (): void => endGroup(child, child.stderr);
      child.once("exit", stop);
      signal.addEventListener("abort", stop, { once: true });
      try {
        const [code, killedBy] = await closed.promise;
        if (code !== 0) throw failed(command, { code, killedBy, told: quote(told, apiKey) });
      } finally {
        signal.removeEventListener("abort", stop);
      }
    },
  };
}

/** Our variables but for those that hold secrets of ours: the policy may have a shell there. */
function openVariables(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const redactor = new Redactor();
  const open = Object.entries(env).filter(([, value = ""]) => redactor.text(value) === value);
  return Object.fromEntries(open);
}

/** The end of what the command told, without its key and our secrets: cut behind that, so that none is cut in two. */
function quote(told: string, apiKey: string): string {
  const whole = told.length < keptLength ? told : withoutCutSecret(told, [apiKey]);
  return new Redactor().text(whole.replaceAll(apiKey, "…")).slice(-toldLength);
}

/** Longest variable that Linux takes, its name and the NUL at its end included, in bytes. */
const longestVariable = 131_072;

function variablesOf({ task, policyText, firstUserText, baseUrl, apiKey }: ForeignRun) {
  const taskText = JSON.stringify({ ...task, policyText, firstUserText });
  const isShort = Buffer.byteLength(`TURNWRIGHT_TASK=${taskText}`) < longestVariable;
  return {
    OPENAI_BASE_URL: `${baseUrl}/v1`,
    OPENAI_API_KEY: apiKey,
    ANTHROPIC_BASE_URL: baseUrl,
    ANTHROPIC_AUTH_TOKEN: apiKey,
    ANTHROPIC_API_KEY: apiKey,
    // Where it is longer, the command finds the same at its desk.
    TURNWRIGHT_TASK: isShort ? taskText : undefined,
    TURNWRIGHT_TASK_URL: `${baseUrl}/s/${apiKey}`,
  };
}

/** Ends a command with all that it started; what does not listen is killed. */
function endGroup(child: ChildProcess, stderr: Readable): void {
  signalGroup(child, "SIGTERM");
  const kill = setTimeout(() => {
    signalGroup(child, "SIGKILL");
    stderr.destroy();
  }, graceMs);
  child.once("close", () => clearTimeout(kill));
}

function signalGroup(child: ChildProcess, name: "SIGTERM" | "SIGKILL"): void {
  if (child.pid === undefined) return;
  try {
    if (process.platform === "win32") child.kill(name);
    else process.kill(-child.pid, name);
  } catch (error) {
    // Nothing of it runs any more.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function failed(
  command: string,
  end: { readonly code: number | null; readonly killedBy: string | null; readonly told: string },
): RolloutError {
  const how = end.code === null ? `was ended by ${end.killedBy}` : `ended with status ${end.code}`;
  const more = end.told.trim() === "" ? "" : `: ${end.told.trim()}`;
  return new RolloutError("agent/exit", `The agent ${command} ${how}${more}`, { retryable: true });
}
