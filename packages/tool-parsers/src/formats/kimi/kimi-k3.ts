import type { PyValue } from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import {
  kimiK3 as markers,
  readKimiK3Arguments,
  readKimiK3Attributes,
  unwrapResponse,
} from "./kimi-k3-markup.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { pythonPattern } from "../../shared/text/python-pattern.ts";
import { malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmKimiK3 } from "./vllm-kimi-k3.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import { holdsAll } from "../../tool-call-stream.ts";

const separator = "<|sep|>";
const callOpen = "<|open|>call";
const callClose = "<|close|>call<|sep|>";
const argumentOpen = "<|open|>argument";
const argumentClose = "<|close|>argument<|sep|>";
const spacePattern = pythonPattern(String.raw`\s`, "y");

/** An element: its attributes, and the text inside it. */
interface Element {
  readonly attributes: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Finds closed elements, from left to right. An opening tag needs white space after its name. */
function findElements(text: string, open: string, close: string): Element[] {
  const found: Element[] = [];
  let start = text.indexOf(open);
  while (start !== -1) {
    const headStart = start + open.length;
    spacePattern.lastIndex = headStart;
    if (!spacePattern.test(text)) {
      start = text.indexOf(open, headStart);
      continue;
    }
    const headEnd = text.indexOf(separator, headStart);
    const bodyStart = headEnd + separator.length;
    const bodyEnd = headEnd === -1 ? -1 : text.indexOf(close, bodyStart);
    if (bodyEnd === -1) break;
    const attributes = readKimiK3Attributes(text.slice(headStart, headEnd));
    found.push({ attributes, body: text.slice(bodyStart, bodyEnd) });
    start = text.indexOf(open, bodyEnd + close.length);
  }
  return found;
}

/**
 * SGLang's detector for Kimi K3: the calls of the first tools channel.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/kimik3_detector.py`.
 */
function detect(text: string): EngineResult {
  const start = text.indexOf(markers.toolsOpen);
  if (start === -1) return { normalText: unwrapResponse(text), calls: [] };
  const sectionStart = start + markers.toolsOpen.length;
  const end = text.indexOf(markers.toolsClose, sectionStart);
  const section = text.slice(sectionStart, end === -1 ? text.length : end);
  const calls = catchPython(() => readCalls(section)) ?? [];
  return { normalText: unwrapResponse(text.slice(0, start)), calls };
}

function readCalls(section: string): CompatCall[] {
  const named = findElements(section, callOpen, callClose).flatMap(({ attributes, body }) => {
    const name = attributes.get("tool") ?? "";
    if (name === "") return [];
    return [
      {
        name,
        argumentsText: writeJson(
          readKimiK3Arguments(findElements(body, argumentOpen, argumentClose)),
        ),
      },
    ];
  });
  return named.map((call, toolIndex) => ({ ...call, toolIndex }));
}

function readBlock({ span, inner }: Frame): Block[] {
  const headEnd = inner.indexOf(separator);
  if (headEnd === -1) return [{ span, problem: malformed(`expected ${separator}`) }];
  const name = readKimiK3Attributes(inner.slice(0, headEnd)).get("tool");
  const body = inner.slice(headEnd + separator.length);
  const argumentValue: PyValue | undefined = catchPython(() =>
    readKimiK3Arguments(findElements(body, argumentOpen, argumentClose)),
  );
  const base = { span, ...(name !== undefined && { name }) };
  if (argumentValue === undefined)
    return [{ ...base, problem: malformed("the arguments cannot be read") }];
  const isClosed = body.split(argumentOpen).length === body.split(argumentClose).length;
  const problem = isClosed ? {} : { problem: malformed(`expected ${argumentClose}`) };
  return [{ ...base, argumentValue, ...problem }];
}

/** Kimi K3: call elements in the tools channel. Each argument declares its own type. */
export const kimiK3 = defineParser({
  name: "kimi_k3",
  closers: /<\|close\|>(?:tools|response|message)<\|sep\|>/g,
  markers: [markers.toolsOpen],
  readings: {
    sglang: sglangReading({
      release: holdsAll,
      hasToolCall: (text) => text.includes(markers.toolsOpen),
      detect,
    }),
    vllm: vllmKimiK3,
  },
  blocks: {
    open: callOpen,
    close: callClose,
    begins: /^\s+\w+="|^\s*$/,
    read: readBlock,
  },
});
