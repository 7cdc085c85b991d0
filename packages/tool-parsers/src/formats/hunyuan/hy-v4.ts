import { PythonError, pythonStrip, type PyValue } from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser } from "../../grammar.ts";
import {
  findHunyuanSchema,
  readHunyuanValue,
  alternativesOf,
  deserialize,
} from "./hunyuan-value.ts";
import { indexesOf } from "../../shared/text/indexes-of.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { splitArgPairs } from "../../shared/tags/arg-pairs.ts";
import { findTagBlocks, malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import { vllmReading, type VllmCall, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import { betweenTags } from "../../shared/tags/between-tags.ts";

/** The tags of the format as this model's vocabulary spells them. */
interface Tags {
  readonly calls: Tag;
  readonly call: Tag;
  readonly key: Tag;
  readonly value: Tag;
}

interface Tag {
  readonly open: string;
  readonly close: string;
}

/**
 * Resolves the tags. Released models put one suffix on every tag, such as `<tool_call:6124c78e>`.
 */
function resolveTags({ vocabulary }: ParseContext): Tags {
  const pattern = /^<(?:think|tool_calls|tool_call|arg_key|arg_value)(:[^\s>]+)?>$/;
  const suffix = vocabulary
    .map((token) => pattern.exec(token))
    .find((match) => match !== null)?.[1];
  const spell = (name: string): Tag => ({
    open: `<${name}${suffix ?? ""}>`,
    close: `</${name}${suffix ?? ""}>`,
  });
  return {
    calls: spell("tool_calls"),
    call: spell("tool_call"),
    key: spell("arg_key"),
    value: spell("arg_value"),
  };
}

function extract(text: string, context: ParseContext): VllmExtraction | undefined {
  const tags = resolveTags(context);
  const start = text.indexOf(tags.calls.open);
  const end = text.indexOf(tags.calls.close);
  if (start === -1 || end < start) return undefined;
  const section = text.slice(start + tags.calls.open.length, end);
  const inners = splitCalls(section, tags.call);
  if (inners === undefined || inners.length === 0) return undefined;
  const calls = inners.map((inner) => readCall(inner, tags, context));
  return { content: text.slice(0, start), calls };
}

/** The inside of every call; `undefined` if the tags do not pair. */
function splitCalls(section: string, { open, close }: Tag): string[] | undefined {
  const inners = betweenTags(section, open, close);
  const isPaired = [open, close].every((tag) => indexesOf(section, tag).length === inners.length);
  return isPaired ? inners : undefined;
}

/** Reads a call. @throws PythonError if the call is malformed. */
function readCall(inner: string, tags: Tags, context: ParseContext): VllmCall {
  const { name, values } = readInner(inner, tags, context);
  return { name, argumentsText: writeJson(values) };
}

/** Reads the inside of a call. @throws PythonError if the call is malformed. */
function readInner(
  inner: string,
  tags: Tags,
  context: ParseContext,
): { name: string; values: Map<string, PyValue> } {
  const bodyStart = inner.indexOf(tags.key.open);
  const name = pythonStrip(bodyStart === -1 ? inner : inner.slice(0, bodyStart));
  if (name === "") throw new PythonError("ValueError", "the call names no tool");
  const body = bodyStart === -1 ? "" : pythonStrip(inner.slice(bodyStart));
  for (const { open, close } of [tags.key, tags.value]) {
    if (indexesOf(body, open).length !== indexesOf(body, close).length) {
      throw new PythonError("ValueError", "the tags of the arguments do not pair");
    }
  }
  const { pairs, rest } = splitArgPairs(body, {
    keyOpen: tags.key.open,
    keyClose: tags.key.close,
    valueOpen: tags.value.open,
    valueClose: tags.value.close,
    noGap: true,
  });
  if (pythonStrip(rest) !== "")
    throw new PythonError("ValueError", "there is text beside the pairs");
  const values = new Map(
    pairs.map(([key, text]) => {
      const schema = alternativesOf(findHunyuanSchema(name, key, context));
      return [key, readHunyuanValue(text, schema, deserialize)] as const;
    }),
  );
  return { name, values };
}

function readBlock({ span, inner }: Frame, tags: Tags, context: ParseContext): Block[] {
  const read = catchPython(() => readInner(inner, tags, context));
  if (read !== undefined) return [{ span, name: read.name, argumentValue: read.values }];
  const [head = ""] = inner.split(tags.key.open);
  const problem = malformed("expected pairs of keys and values after the name");
  return [{ span, name: pythonStrip(head), problem }];
}

/**
 * Hunyuan 4: `<tool_call>name`, then keys and values in tags, inside `<tool_calls>`. A misplaced
 * tag anywhere loses all calls.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/hy_v4_tool_parser.py`.
 */
export const hyV4 = defineParser({
  name: "hy_v4",
  markers: ["<tool_calls>"],
  closers: /<\/?tool_calls(?::[^\s>]*)?>/g,
  readings: {
    vllm: vllmReading({
      release: { stops: ["<tool_calls"] },
      catchesAll: true,
      extract,
    }),
  },
  findBlocks: (text, context) => {
    const tags = resolveTags(context);
    const begins = /^[^<]*(?:<arg_key|$)/;
    const format = {
      ...tags.call,
      begins,
      read: (frame: Frame) => readBlock(frame, tags, context),
    };
    return findTagBlocks(text, format, context);
  },
});
