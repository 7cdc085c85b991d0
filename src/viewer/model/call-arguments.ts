/** An argument of a tool call, as a page shows it. */
export interface CallArgument {
  readonly name: string;
  /** The value as text: a text unchanged, another value as JSON, indented if it is long. Numbers keep their digits. */
  readonly text: string;
}

/** The largest length of a value on one line. */
const maxLineLength = 60;

/** Returns the arguments in a call's JSON. Returns `undefined` if the JSON is not an object. */
export function callArguments(json: string): readonly CallArgument[] | undefined {
  const text = json.trim();
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!text.startsWith("{")) return undefined;
  return splitMembers(text.slice(1, -1)).map((member) => {
    const colon = endOfString(member, 0);
    const value = member.slice(member.indexOf(":", colon) + 1).trim();
    return {
      name: JSON.parse(member.slice(0, colon)) as string,
      text: value.startsWith('"') ? (JSON.parse(value) as string) : indentJson(value),
    };
  });
}

/** Indents a valid JSON text that is longer than a line. Changes nothing but blanks outside of texts. */
export function indentJson(json: string, indent = ""): string {
  const text = json.trim();
  const [open] = text;
  if ((open !== "{" && open !== "[") || text.length <= maxLineLength) return text;
  const inner = `${indent}  `;
  const items = splitMembers(text.slice(1, -1)).map((item) => {
    const colon = open === "{" ? item.indexOf(":", endOfString(item, 0)) + 1 : 0;
    const name = colon === 0 ? "" : `${item.slice(0, colon)} `;
    return `${inner}${name}${indentJson(item.slice(colon), inner)}`;
  });
  if (items.length === 0) return `${open}${text.at(-1)}`;
  return `${open}\n${items.join(",\n")}\n${indent}${text.at(-1)}`;
}

/** Splits the inside of a valid list or object at its commas. */
function splitMembers(inside: string): readonly string[] {
  const members: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < inside.length; at++) {
    const character = inside[at]!;
    if (character === '"') at = endOfString(inside, at) - 1;
    else if (character === "{" || character === "[") depth++;
    else if (character === "}" || character === "]") depth--;
    else if (character === "," && depth === 0) {
      members.push(inside.slice(from, at).trim());
      from = at + 1;
    }
  }
  const last = inside.slice(from).trim();
  return last === "" ? members : [...members, last];
}

/** Returns the index after the text that starts at an index. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === "\\" ? 2 : 1;
  return at + 1;
}
