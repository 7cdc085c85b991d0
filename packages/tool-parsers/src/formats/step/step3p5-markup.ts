import { unicodePattern } from "../../shared/text/python-pattern.ts";
import type { ParseContext } from "../../parse-context.ts";
import { hasStep3p5Function, mayBeStep3p5Parameter } from "./step3p5-schema.ts";

const spacedName = unicodePattern(String.raw`<function\s+([a-zA-Z_][a-zA-Z0-9_]*)\s*>`, "");
const joinedName = unicodePattern(String.raw`<function([a-zA-Z_][a-zA-Z0-9_]*)\s*>`, "");

/**
 * Repairs the first tags of a piece: `<function name>` gets its `=`, and a tag without `>` gets
 * one, if the function or the parameter exists.
 *
 * @throws PythonError if the function's properties are not a container of names.
 */
export function repairStep3p5Tags(
  piece: string,
  functionName: string | undefined,
  context: ParseContext,
): string {
  const named = addEquals(piece, context);
  const closed = closeTag(named, "parameter", (name) =>
    mayBeStep3p5Parameter(name, functionName, context),
  );
  return closeTag(closed, "function", () => true);
}

function addEquals(piece: string, context: ParseContext): string {
  if (piece.includes("<function=")) return piece;
  for (const pattern of [spacedName, joinedName]) {
    const match = pattern.exec(piece);
    const [tag = "", name = ""] = match ?? [];
    if (match !== null && hasStep3p5Function(name, context)) {
      return piece.replace(tag, () => `<function=${name}>`);
    }
  }
  return piece;
}

function closeTag(piece: string, tag: string, isMeant: (name: string) => boolean): string {
  const head = `<${tag}=`;
  const start = piece.indexOf(head);
  if (start === -1) return piece;
  const nameStart = start + head.length;
  const close = piece.indexOf(">", nameStart);
  const next = piece.indexOf("<", nameStart);
  if (close !== -1 && (next === -1 || close < next)) return piece;
  const stop = /[ \n<]/g;
  stop.lastIndex = nameStart;
  const nameEnd = stop.exec(piece)?.index ?? piece.length;
  const written = piece.slice(nameStart, nameEnd);
  const plain = written.startsWith(`${tag}=`) ? written.slice(tag.length + 1) : written;
  const name = trimEnd(plain);
  if (name === "" || !isMeant(name)) return piece;
  return `${piece.slice(0, nameStart)}${name}>${piece.slice(nameEnd)}`;
}

/** Drops characters at the end that no name ends with. */
function trimEnd(name: string): string {
  let end = name.length;
  while (end > 0) {
    const code = name.codePointAt(end - 2) ?? 0;
    const length = end > 1 && code > 0xffff ? 2 : 1;
    if (/^[-_\p{L}\p{N}]$/u.test(name.slice(end - length, end))) break;
    end -= length;
  }
  return name.slice(0, end);
}

/** Writes the tags of a piece as XML, with the name in an attribute. */
export function writeStep3p5Tags(piece: string): string {
  return piece
    .replaceAll(/<function=([^>]+)>/g, '<function name="$1">')
    .replaceAll(/<parameter=([^>]+)>/g, '<parameter name="$1">');
}

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
};

/** Escapes the text for XML. */
export function escapeXml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => escapes[character] ?? character);
}
