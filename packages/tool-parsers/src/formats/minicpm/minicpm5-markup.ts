import { pythonStrip } from "../../../../python-values/src/index.ts";
import { pythonPattern } from "../../shared/text/python-pattern.ts";
import { parseXmlElement } from "../../shared/xml/xml-element.ts";
import { findClosed } from "../../shared/tags/between-tags.ts";

/** The start and the end of a call. */
export const miniCpmTags = { open: "<function", close: "</function>" } as const;

const namePattern = pythonPattern(String.raw`<function\s+name=['"]([^'"]+)['"][^>]*>`, "");
const parameterHead = pythonPattern(String.raw`<param\s+name=['"]([^'"]+)['"]>`, "g");
const parameterClose = "</param>";

/** A part of the text: a call's block, or the text between two blocks. */
interface MiniCpmPiece {
  readonly text: string;
  readonly isBlock: boolean;
}

/** Splits the text at its blocks, each of which reaches to the next closing tag. */
export function splitMiniCpmBlocks(text: string): MiniCpmPiece[] {
  const { open, close } = miniCpmTags;
  const pieces: MiniCpmPiece[] = [];
  let position = 0;
  for (const { start, end } of findClosed(text, open, close)) {
    pieces.push({ text: text.slice(position, start), isBlock: false });
    pieces.push({ text: text.slice(start, end), isBlock: true });
    position = end;
  }
  return [...pieces, { text: text.slice(position), isBlock: false }];
}

/** A parameter as it is written. The name is `undefined` if the parameter has none. */
interface MiniCpmParameter {
  readonly name: string | undefined;
  readonly text: string;
  /** True if the value stands in a CDATA section of a block that is not XML. */
  readonly isSection?: boolean;
}

/** A call as it is written. */
export interface MiniCpmCall {
  readonly name: string;
  readonly parameters: readonly MiniCpmParameter[];
}

/** Reads the call of a block that is well-formed XML. */
export function readMiniCpmXml(block: string): MiniCpmCall | undefined {
  const element = parseXmlElement(block);
  if (element?.tag !== "function") return undefined;
  const direct = element.children.filter(({ tag }) => tag === "param");
  const nested = element.children.find(({ tag }) => tag === "arguments")?.children ?? [];
  const parameters = direct.length > 0 ? direct : nested.filter(({ tag }) => tag === "param");
  return {
    name: pythonStrip(element.attributes.get("name") ?? ""),
    parameters: parameters.map(({ attributes, text }) => ({ name: attributes.get("name"), text })),
  };
}

/** Reads the call of a block that is not XML. A parameter without a name comes first. */
export function readMiniCpmPattern(block: string): MiniCpmCall | undefined {
  const name = pythonStrip(namePattern.exec(block)?.[1] ?? "");
  if (name === "") return undefined;
  const parameters: MiniCpmParameter[] = hasNameless(block) ? [{ name: undefined, text: "" }] : [];
  const head = new RegExp(parameterHead);
  for (let match = head.exec(block); match !== null; match = head.exec(block)) {
    const end = block.indexOf(parameterClose, head.lastIndex);
    if (end === -1) break;
    const text = block.slice(head.lastIndex, end);
    const isSection = text.startsWith("<![CDATA[") && text.endsWith("]]>");
    parameters.push({
      name: pythonStrip(match[1] ?? ""),
      text: isSection ? text.slice(9, -3) : text,
      isSection,
    });
    head.lastIndex = end + parameterClose.length;
  }
  return { name, parameters };
}

/** True if some `<param…>` tag has no name. */
function hasNameless(block: string): boolean {
  for (let start = block.indexOf("<param"); start !== -1;) {
    const end = block.indexOf(">", start);
    if (end === -1) return false;
    if (!/(?<![\p{L}\p{N}_])name=/u.test(block.slice(start, end))) return true;
    start = block.indexOf("<param", end);
  }
  return false;
}
