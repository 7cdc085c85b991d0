const nameStart = String.raw`[:A-Z_a-z\p{L}]`;
const nameSource = String.raw`${nameStart}[-.:\w\p{L}\p{M}\p{N}\xb7]*`;
const referenceSource = String.raw`&(?:#(\d+)|#x([\da-fA-F]+)|(${nameSource}));`;
const tagStart = new RegExp(`<(${nameSource})`, "uy");
const tagEnd = new RegExp(String.raw`</(${nameSource})[ \t\r\n]*>`, "uy");
const partialTagEnd = new RegExp(String.raw`</(?:${nameSource}[ \t\r\n]*)?$`, "uy");
const attribute = new RegExp(
  String.raw`(${nameSource})[ \t\r\n]*=[ \t\r\n]*(?:"([^"<]*)"|'([^'<]*)')`,
  "uy",
);
const partialAttribute = new RegExp(
  String.raw`(?:${nameSource}[ \t\r\n]*(?:=[ \t\r\n]*(?:"[^"<]*|'[^'<]*)?)?)?$`,
  "uy",
);
const reference = new RegExp(referenceSource, "uy");
const space = /[ \t\r\n]*/y;
const instruction = new RegExp(String.raw`<\?(?![xX][mM][lL][ \t\r\n?])${nameSource}`, "uy");
const entities: ReadonlyMap<string, string> = new Map(
  Object.entries({ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" }),
);

/** The token at a place: its end, an incomplete token, or an error. */
export type XmlToken = { readonly end: number } | "partial" | "invalid";

/** The tag that starts an element. */
interface XmlStartTag {
  readonly end: number;
  readonly element: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly isEmpty: boolean;
}

/** The start tag that begins at `position`. */
export function readStartTag(text: string, position: number): XmlStartTag | "partial" | "invalid" {
  tagStart.lastIndex = position;
  const element = tagStart.exec(text)?.[1];
  if (element === undefined) return position + 1 === text.length ? "partial" : "invalid";
  const attributes = new Map<string, string>();
  let at = tagStart.lastIndex;
  for (;;) {
    const next = skipXmlSpace(text, at);
    const hasSpace = next > at;
    at = next;
    if (at === text.length || (text[at] === "/" && at + 1 === text.length)) return "partial";
    const isEmpty = text.startsWith("/>", at);
    if (isEmpty || text[at] === ">") {
      const end = at + (isEmpty ? 2 : 1);
      return { end, element, attributes, isEmpty };
    }
    attribute.lastIndex = at;
    partialAttribute.lastIndex = at;
    const match = hasSpace ? attribute.exec(text) : null;
    if (match === null) return hasSpace && partialAttribute.test(text) ? "partial" : "invalid";
    const [, key = "", doubleQuoted, singleQuoted] = match;
    at = attribute.lastIndex;
    const value = readAttribute(doubleQuoted ?? singleQuoted ?? "");
    if (value === undefined || attributes.has(key)) return "invalid";
    attributes.set(key, value);
  }
}

/** The value of an attribute; `undefined` if it contains an unknown reference. */
function readAttribute(source: string): string | undefined {
  const parts: string[] = [];
  let position = 0;
  for (;;) {
    const next = source.indexOf("&", position);
    const plain = source.slice(position, next === -1 ? source.length : next);
    parts.push(plain.replaceAll(/\r\n|[\t\r\n]/g, " "));
    if (next === -1) return parts.join("");
    const found = readReference(source, next);
    if (found === undefined) return undefined;
    parts.push(found.character);
    position = found.end;
  }
}

/** The character of the reference at `position`; `undefined` if the reference is unknown. */
export function readReference(
  text: string,
  position: number,
): { readonly character: string; readonly end: number } | undefined {
  reference.lastIndex = position;
  const match = reference.exec(text);
  if (match === null) return undefined;
  const [whole, decimal, hexadecimal, name] = match;
  const code = decimal === undefined ? Number.parseInt(hexadecimal ?? "", 16) : Number(decimal);
  const character = name === undefined ? toCharacter(code) : entities.get(name);
  return character === undefined ? undefined : { character, end: position + whole.length };
}

function toCharacter(code: number): string | undefined {
  const isSurrogate = code >= 0xd800 && code <= 0xdfff;
  const isControl = code < 0x20 && code !== 0x09 && code !== 0x0a && code !== 0x0d;
  const isCharacter = code < 0xfffe || (code > 0xffff && code <= 0x10ffff);
  return isSurrogate || isControl || !isCharacter ? undefined : String.fromCodePoint(code);
}

/** The comment that starts at `position`. */
export function readComment(text: string, position: number): XmlToken {
  const dashes = text.indexOf("--", position + "<!--".length);
  if (dashes === -1 || dashes + 2 === text.length) return "partial";
  return text[dashes + 2] === ">" ? { end: dashes + 3 } : "invalid";
}

/** The processing instruction that starts at `position`. */
export function readInstruction(text: string, position: number): XmlToken {
  instruction.lastIndex = position;
  if (!instruction.test(text)) return position + 2 === text.length ? "partial" : "invalid";
  const isTargetOnly = text.startsWith("?>", instruction.lastIndex);
  if (!isTargetOnly && !/[ \t\r\n]/.test(text[instruction.lastIndex] ?? " ")) return "invalid";
  const close = text.indexOf("?>", instruction.lastIndex);
  return close === -1 ? "partial" : { end: close + 2 };
}

/** The end tag that starts at `position`. */
export function readEndTag(
  text: string,
  position: number,
): { readonly end: number; readonly element: string } | "partial" | "invalid" {
  tagEnd.lastIndex = position;
  const element = tagEnd.exec(text)?.[1];
  if (element !== undefined) return { end: tagEnd.lastIndex, element };
  partialTagEnd.lastIndex = position;
  return partialTagEnd.test(text) ? "partial" : "invalid";
}

/** The end of the white space that starts at `position`. */
export function skipXmlSpace(text: string, position: number): number {
  space.lastIndex = position;
  space.test(text);
  return space.lastIndex;
}
