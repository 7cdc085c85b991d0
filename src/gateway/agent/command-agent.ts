import { spawn, type ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import { RolloutError } from "../../errors.ts";
import { killGroup, killMarked } from "../../async/kill-processes.ts";
import { secretsOfCommand } from "../../secrets/find-secrets.ts";
import { hideEverywhere, Redactor, withoutCutSecret } from "../../secrets/redactor.ts";
import { isSecretName } from "../../secrets/secret-name.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import type { ForeignAgent, ForeignRun } from "./foreign-agent.ts";

/** Maximum length of the standard error that a failure quotes, in characters. */
const quotedLength = 2000;
/**
 * Length of standard error to keep, in characters. It is larger than the quoted length, because secrets are removed
 * before the text is cut.
 */
const keptLength = 64 * 1024;

/** Milliseconds between SIGTERM and SIGKILL. */
const graceMs = 5000;

/**
 * Creates an agent that runs a shell command for each attempt.
 *
 * The command gets the policy's address and key in the variables of OpenAI's and Anthropic's SDKs. `TURNWRIGHT_TASK`
 * has the task as JSON, unless it exceeds the length limit of a variable. `TURNWRIGHT_TASK_URL` has the base URL of its
 * task, tools and user. The command inherits this process's variables except secrets, because its policy may have a
 * shell. Secrets are variables named like one, such as `GH_TOKEN`, and those with a known secret or a password in an
 * address. The message of a failure names the withheld variables.
 *
 * @param command - A line for the shell.
 */
export function createCommandAgent(command: string): ForeignAgent {
  hideEverywhere(secretsOfCommand(command));
  return {
    needsAddress: true,
    async run(run) {
      const { apiKey, signal } = run;
      signal.throwIfAborted();
      const own = variablesOf(run);
      const { open, withheldNames } = withoutSecrets(process.env, Object.keys(own));
      const child = spawn(command, {
        shell: true,
        // A process group of its own, so that the shell's children end with it.
        detached: process.platform !== "win32",
        stdio: ["ignore", "ignore", "pipe"],
        env: { ...open, ...own },
      });
      let stderrText = "";
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        stderrText = (stderrText + text).slice(-keptLength);
      });
      const closed = withResolvers<readonly [code: number | null, killedBy: string | null]>();
      child.once("error", (error) => closed.reject(error));
      child.once("close", (code, killedBy) => closed.resolve([code, killedBy]));
      // Processes that the command left running must not keep this one alive.
      const stop = (): void => endGroup(child, child.stderr);
      child.once("exit", stop);
      signal.addEventListener("abort", stop, { once: true });
      try {
        const [code, killedBy] = await closed.promise;
        if (code !== 0) {
          const text = quote(stderrText, apiKey);
          throw failed(command, { code, killedBy, stderrText: text, withheldNames });
        }
      } finally {
        signal.removeEventListener("abort", stop);
        await killMarked(addressVariable, own[addressVariable]);
      }
    },
  };
}

/** Matches an address with a password, such as `postgres://user:password@host/db`. */
const withPassword = /:\/\/[^\s/@:]*:[^\s/@]+@/;

/**
 * Returns the variables that are not secret, and the names of the secret ones. Leaves out the variables in `replaced`,
 * for which the agent gets other values.
 */
function withoutSecrets(env: NodeJS.ProcessEnv, replaced: readonly string[]) {
  const redactor = new Redactor();
  const isSecret = ([name, value = ""]: readonly [string, string | undefined]): boolean =>
    isSecretName(name) || withPassword.test(value) || redactor.text(value) !== value;
  const variables = Object.entries(env).filter(([name]) => !replaced.includes(name));
  const withheldNames = variables.filter(isSecret).map(([name]) => name);
  const open = Object.fromEntries(variables.filter(([name]) => !withheldNames.includes(name)));
  return { open, withheldNames };
}

/**
 * Returns the end of the command's standard error without its key and registered secrets. Secrets
 * are removed before the text is cut, so that no part of one remains.
 */
function quote(stderrText: string, apiKey: string): string {
  const complete =
    stderrText.length < keptLength ? stderrText : withoutCutSecret(stderrText, [apiKey]);
  return new Redactor().text(complete.replaceAll(apiKey, "…")).slice(-quotedLength);
}

/** The variable with the address of an attempt, which no other process has. */
const addressVariable = "TURNWRIGHT_TASK_URL";

/** Maximum size of a variable on Linux in bytes, including its name and the final NUL. */
const maxVariableBytes = 131_072;

function variablesOf({ task, policyText, firstUserText, baseUrl, apiKey }: ForeignRun) {
  const taskText = JSON.stringify({ ...task, policyText, firstUserText });
  const isShort = Buffer.byteLength(`TURNWRIGHT_TASK=${taskText}`) < maxVariableBytes;
  return {
    OPENAI_BASE_URL: `${baseUrl}/v1`,
    OPENAI_API_KEY: apiKey,
    ANTHROPIC_BASE_URL: baseUrl,
    ANTHROPIC_AUTH_TOKEN: apiKey,
    ANTHROPIC_API_KEY: apiKey,
    // A longer task is available from the task endpoint.
    TURNWRIGHT_TASK: isShort ? taskText : undefined,
    [addressVariable]: `${baseUrl}/s/${apiKey}`,
  };
}

/** Ends a command and its children: SIGTERM, then SIGKILL after the grace period. */
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
  if (process.platform === "win32") child.kill(name);
  else killGroup(child.pid, name);
}

function failed(
  command: string,
  end: {
    readonly code: number | null;
    readonly killedBy: string | null;
    readonly stderrText: string;
    readonly withheldNames: readonly string[];
  },
): RolloutError {
  const how = end.code === null ? `was ended by ${end.killedBy}` : `ended with status ${end.code}`;
  const more = end.stderrText.trim() === "" ? "" : `: ${end.stderrText.trim()}`;
  const names = end.withheldNames.join(", ");
  const hint = names === "" ? "" : ` (it is not given variables with secrets, here ${names})`;
  const message = `The agent ${command} ${how}${more}${hint}`;
  return new RolloutError("agent/exit", message, { retryable: true });
}
