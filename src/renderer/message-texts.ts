import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import { pythonStrip } from "../../packages/python-values/src/text/strip.ts";
import { isPyDict, isPyList } from "../../packages/python-values/src/value.ts";

/** The texts of a message's content: the content itself, or the texts of its parts. */
export function messageTexts(message: PyDict): readonly string[] {
  return contentTexts(message.get("content"));
}

function contentTexts(content: PyValue | undefined): readonly string[] {
  if (typeof content === "string") return [content];
  if (isPyList(content)) return content.flatMap(contentTexts);
  return isPyDict(content) ? contentTexts(content.get("text")) : [];
}

/**
 * Checks that the texts of all messages occur in order in a rendering, trimmed or quoted as templates do it.
 *
 * @returns the index of the first message that is missing, or `undefined` if none is.
 */
export function occurInOrder(
  rendering: string,
  messages: readonly (readonly string[])[],
): number | undefined {
  let from = 0;
  for (let index = 0; index < messages.length; index++) {
    for (const text of messages[index] as readonly string[]) {
      const end = findText(rendering, text, from);
      if (end === undefined) return index;
      from = end;
    }
  }
  return undefined;
}

/** Returns the end of a text in a rendering, trimmed or quoted as templates do it; `undefined` if it is missing. */
export function findText(rendering: string, text: string, from: number): number | undefined {
  const trimmed = pythonStrip(text);
  const plain = rendering.indexOf(trimmed, from);
  if (plain >= 0) return plain + trimmed.length;
  for (const ensureAscii of [false, true]) {
    const quoted = stringifyPythonJson(trimmed, { ensureAscii }).slice(1, -1);
    const at = rendering.indexOf(quoted, from);
    if (at >= 0) return at + quoted.length;
  }
  return undefined;
}
