import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import { isPyList } from "../../../packages/python-values/src/value.ts";
import type { BoundTemplate } from "../bound-template.ts";
import { continues } from "../continues.ts";
import type { TurnChange } from "../delta/environment-delta.ts";
import { reasoningFields } from "../copy-reasoning.ts";
import { chooseNonce, withNonceArguments } from "../delta/environment-delta.ts";

/**
 * True if the rendering after a turn no longer shows what the prompt showed before: policy text is gone, or an earlier
 * part has moved. Policy text is replaced by unique words first, so that spelling, spacing and token boundaries do not
 * matter.
 */
export function rewritesHistory(template: BoundTemplate, change: TurnChange): boolean {
  const { history, assistant, environment, tools } = change;
  const nonce = chooseNonce([history, [assistant], environment, tools]);
  const before = history.map((message, index) => standIn(message, `${nonce}h${index}`));
  const turn = standIn(assistant, `${nonce}t`);
  const result = continues(template, {
    before: before.map((part) => part.message),
    turn: [turn.message, ...environment],
    tools,
    marks: { before: before.flatMap((part) => part.marks), turn: turn.marks },
  });
  return result === false;
}

interface StandIn {
  readonly message: PyDict;
  readonly marks: readonly string[];
}

/** Returns an assistant message with a unique word for each of its texts. Returns other messages unchanged. */
function standIn(message: PyDict, word: string): StandIn {
  if (message.get("role") !== "assistant") return { message, marks: [] };
  const marks: string[] = [];
  const mark = (part: string): string => {
    marks.push(`${word}${part}q`);
    return `${word}${part}q`;
  };
  const replaced = new Map(message);
  for (const field of reasoningFields) {
    if (isText(message.get(field))) replaced.set(field, mark("r"));
  }
  const content = message.get("content");
  if (isText(content)) replaced.set("content", standInContent(content, mark));
  const calls = message.get("tool_calls");
  if (isPyList(calls)) {
    replaced.set(
      "tool_calls",
      calls.map((call, index) => withNonceArguments(call, mark(`a${index}`))),
    );
  }
  return { message: replaced, marks };
}

/** Keeps the reasoning tags, since templates search for them. */
function standInContent(content: string, mark: (part: string) => string): string {
  const end = content.lastIndexOf("</think>");
  if (end < 0) return mark("c");
  const answer = content.slice(end + "</think>".length).trim();
  return `<think>\n${mark("r")}\n</think>\n\n${answer === "" ? "" : mark("c")}`;
}

function isText(value: PyValue | undefined): value is string {
  return typeof value === "string" && value.trim() !== "";
}
