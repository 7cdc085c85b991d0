import { differenceOf } from "../environment/state/difference.ts";
import type { Message } from "../message.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import { isPyDict, type PyValue } from "../../packages/python-values/src/value.ts";
import type { EpisodeRow } from "../run/folder/run-folder.ts";
import { describeDifference } from "./describe-difference.ts";

/** Maximum length of a tool result in the judge's prompt, in characters. */
const maxToolText = 2_000;
/**
 * Maximum length of the conversation in the judge's prompt, in characters. The middle of a longer
 * one is left out.
 */
const maxConversation = 100_000;

/**
 * Returns the text that a judge sees of an episode: the user's instruction, the expected actions,
 * the differences that were found, and the conversation. τ-bench's own script leaves out the
 * conversation if a task expects outputs; this one always has it.
 * **Source:** sierra-research/tau-bench, auto_error_identification.py (the content; not its words).
 * @param task - `instruction` and, if they are known, `actions` and `outputs`.
 */
export function judgeContext(row: EpisodeRow, task: PyValue): string {
  const field = (name: string) => (isPyDict(task) ? task.get(name) : undefined);
  const instruction = field("instruction");
  const difference = differenceOf(row.rewardDetails);
  const differences = difference === undefined ? [] : describeDifference(difference);
  return [
    section("What the user was told to want", typeof instruction === "string" ? instruction : "–"),
    ...optionalJson("Calls that would have been right (one way of several)", field("actions")),
    ...optionalJson("What the agent had to tell the user", field("outputs")),
    section(
      "What was found to differ at the end",
      differences.length > 0 ? differences.join("\n") : describeScore(row),
    ),
    section("The conversation", showConversation(row.messages)),
    section("How it ended", `${row.outcome}: ${row.stopReason}`),
  ].join("\n\n");
}

function section(title: string, body: string): string {
  return `## ${title}\n\n${body}`;
}

function optionalJson(title: string, value: PyValue | undefined): readonly string[] {
  return value === undefined ? [] : [section(title, stringifyPythonJson(value, { indent: 1 }))];
}

function describeScore({ reward, rewardDetails = {} }: EpisodeRow): string {
  return cut(JSON.stringify({ reward, ...rewardDetails }), maxToolText);
}

function showConversation(messages: readonly Message[]): string {
  // The system message is the same in all episodes, and longer than the rest.
  const lines = messages.filter(({ role }) => role !== "system").map(showMessage);
  return cut(lines.join("\n"), maxConversation);
}

function showMessage(message: Message): string {
  switch (message.role) {
    case "assistant": {
      const calls = (message.toolCalls ?? []).map(
        ({ name, argumentsText }) => `Agent calls ${name} ${argumentsText}`,
      );
      return [...(message.content === "" ? [] : [`Agent: ${message.content}`]), ...calls].join(
        "\n",
      );
    }
    case "tool":
      return `${message.name} answers: ${cut(message.content, maxToolText)}`;
    case "user":
      return `User: ${message.content}`;
    case "system":
      return `System: ${message.content}`;
  }
}

function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const half = Math.floor(length / 2);
  return `${text.slice(0, half)}\n[… ${text.length - 2 * half} characters left out …]\n${text.slice(-half)}`;
}
