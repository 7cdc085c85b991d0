import type { ServerPolicy } from "../../src/testing/policies/server-policy.ts";
import type { Renderer } from "../../src/renderer/renderer.ts";

/** The task that the scripted policy solves in every second attempt. */
export const codingTask = "Make the file made.txt with the word right. Let an agent look first.";

/** Succeeds if the attempt's folder has the solution. */
export const codingCheck = "grep -q right made.txt";

/**
 * Decides the turns of a coding client in the templates of Qwen. Each attempt delegates a part to a
 * sub-agent, fills its context, is summarised by the client, and writes a file. In attempts with an
 * even number the first summary is a call, which clients refuse.
 */
export class CodingScript {
  #attemptCount = 0;
  readonly #summarised = new Set<string>();

  /** Returns the text of the next turn. */
  decide(prompt: string): string {
    const { asked, results } = lastRequest(prompt);
    const { length } = results;
    const look = /LOOK (\d+)/.exec(asked)?.[1];
    if (look !== undefined) {
      return length === 0
        ? `I look.\n${shell("ls")}`
        : `The folder of attempt ${look} has no file made.txt yet.`;
    }
    const number = /attempt (\d+)/.exec(prompt)?.[1];
    if (asksForSummary(asked)) return this.#summarise(number ?? "");
    if (prompt.includes("This session is being continued")) return write(number ?? "", prompt);
    if (length === 0) return this.#delegate();
    return `I count in attempt ${number}.\n${shell("seq 1 1500")}`;
  }

  #delegate(): string {
    const number = this.#attemptCount++;
    const prompt = `LOOK ${number}: list the folder, and say whether made.txt is in it.`;
    const given = { description: "look", prompt, subagent_type: "general-purpose" };
    return `I delegate.\n${call("Agent", { ...given, run_in_background: false })}`;
  }

  #summarise(number: string): string {
    if (Number(number) % 2 === 0 && !this.#summarised.has(number)) {
      this.#summarised.add(number);
      return `I look again.\n${shell("ls")}`;
    }
    return `<summary>
The user wants the file made.txt with the word right in attempt ${number}.
An agent looked, and the file does not exist yet: it must be written next.
</summary>`;
  }
}

function asksForSummary(asked: string): boolean {
  return asked.includes("detailed summary of the conversation");
}

function write(number: string, prompt: string): string {
  if (prompt.includes("<tool_response>\nwritten")) return "The file is written.";
  const word = Number(number) % 2 === 0 ? "right" : "wrong";
  return `I write it.\n${shell(`echo ${word} > made.txt; echo written`)}`;
}

/** Returns the last message of a user, and the results of calls after it. */
function lastRequest(prompt: string): { asked: string; results: readonly string[] } {
  const blocks = prompt.split("<|im_start|>").filter((block) => block.startsWith("user\n"));
  const isResult = (block: string): boolean => block.startsWith("user\n<tool_response>");
  const at = blocks.findLastIndex((block) => !isResult(block));
  return { asked: blocks[at] ?? "", results: blocks.slice(at + 1) };
}

function shell(command: string): string {
  return call("Bash", { command, description: "Runs it" });
}

function call(name: string, given: object): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: given })}\n</tool_call>`;
}

/** A number that depends on an id and its place only, so that it can be computed again. */
const logprobAt = (id: number, place: number): number => -(1 + ((id + place * 7) % 31)) / 32;

/** Samples the turns of a script. */
export function scriptedPolicy(
  renderer: Pick<Renderer, "codec">,
  decide: (prompt: string) => string,
): ServerPolicy {
  return {
    name: "coding",
    async begin({ inputIds, stopTokenIds }) {
      const text = decide(await renderer.codec.decode(inputIds));
      const ids = [...(await renderer.codec.encode(text)), stopTokenIds[0]!];
      return ids.map((id, place) => ({ id, logprob: logprobAt(id, inputIds.length + place) }));
    },
    score: ({ inputIds }) => inputIds.map(logprobAt),
  };
}
