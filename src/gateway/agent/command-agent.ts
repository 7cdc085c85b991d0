import { spawn } from "node:child_process";
import { RolloutError } from "../../errors.ts";
import type { ForeignAgent } from "./foreign-agent.ts";

/** So much of what the command writes to its standard error is told when it fails, in characters. */
const toldLength = 2000;

/**
 * An agent that is a program of its own, in any language. It finds the policy where its SDK looks for it
 * (`OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL` and their keys), and the task in `TURNWRIGHT_TASK` as JSON. It
 * needs an address that is listened to, and tools of its own.
 *
 * @param command - A line for the shell.
 */
export function commandAgent(command: string): ForeignAgent {
  return {
    async run({ task, policyText, firstUserText, baseUrl, apiKey, signal }) {
      const about = { ...task, policyText, firstUserText };
      const child = spawn(command, {
        shell: true,
        signal,
        stdio: ["ignore", "ignore", "pipe"],
        env: {
          ...process.env,
          OPENAI_BASE_URL: `${baseUrl}/v1`,
          OPENAI_API_KEY: apiKey,
          ANTHROPIC_BASE_URL: baseUrl,
          ANTHROPIC_AUTH_TOKEN: apiKey,
          TURNWRIGHT_TASK: JSON.stringify(about),
        },
      });
      let told = "";
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        told = (told + text).slice(-toldLength);
      });
      await new Promise<void>((resolve, reject) => {
        child.once("error", reject);
        child.once("close", (code, killedBy) => {
          if (code === 0) resolve();
          else reject(failed(command, { code, killedBy, told: told.replaceAll(apiKey, "…") }));
        });
      });
    },
  };
}

function failed(
  command: string,
  end: { readonly code: number | null; readonly killedBy: string | null; readonly told: string },
): RolloutError {
  const how = end.code === null ? `was ended by ${end.killedBy}` : `ended with status ${end.code}`;
  const more = end.told.trim() === "" ? "" : `: ${end.told.trim()}`;
  return new RolloutError("agent/exit", `The agent ${command} ${how}${more}`, { retryable: true });
}
