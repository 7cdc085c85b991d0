import { type PyDict, pythonStrip, type PyValue } from "../../../../python-values/src/index.ts";
import { unicodePattern } from "../../shared/text/python-pattern.ts";
import { engineReading, type EngineStep, type EngineTable } from "../../vllm/parser-engine.ts";
import { byVersion } from "../../vllm/vllm-reading.ts";

const invocation: Readonly<Record<string, EngineStep>> = {
  '<invoke name="': { to: "name", starts: true },
  "<invoke name='": { to: "name", starts: true },
  "<invoke name=": { to: "name", starts: true },
};

const table: Omit<EngineTable, "convertArguments"> = {
  literals: [
    "<think>",
    "</think>",
    "<minimax:tool_call>",
    "</minimax:tool_call>",
    ...Object.keys(invocation),
    "</invoke>",
    '">',
    "'>",
    ">",
  ],
  steps: {
    content: {
      "</think>": { to: "content" },
      "<minimax:tool_call>": { to: "preamble" },
      "</minimax:tool_call>": { to: "content" },
      ...invocation,
    },
    preamble: { "</minimax:tool_call>": { to: "content" }, ...invocation },
    name: {
      '">': { to: "arguments" },
      "'>": { to: "arguments" },
      ">": { to: "arguments" },
    },
    arguments: { "</invoke>": { to: "between" } },
    between: { "</minimax:tool_call>": { to: "content" }, ...invocation },
  },
  dropsUnknownTools: true,
};

const head = unicodePattern(
  String.raw`<\s*parameter\s+name\s*=\s*(?:"([^"]*)"|'([^']*)'|([^>\s]+))\s*>`,
  "g",
);
const close = unicodePattern(String.raw`<\s*/\s*parameter\s*>`, "g");
/** Matches the end of a value. Since 0.33 the next parameter also ends it. */
const closeOrNext = unicodePattern(String.raw`<\s*/\s*parameter\s*>|<\s*parameter\s+name\s*=`, "g");

/**
 * vLLM's table for MiniMax M2: the outer tag may be missing, a call that is cut off counts, and
 * unknown tools are dropped. Since 0.33 values keep the white space around them.
 *
 * **Source:** vllm-project/vllm, `vllm/parser/minimax_m2.py`.
 */
export const vllmMinimaxM2 = byVersion(
  engineReading({ ...table, convertArguments: (body) => readParameters(body, close, pythonStrip) }),
  engineReading({
    ...table,
    convertArguments: (body) => readParameters(body, closeOrNext, (text) => text),
  }),
);

function readParameters(body: string, valueEnd: RegExp, trim: (text: string) => string): PyDict {
  const values = new Map<string, PyValue>();
  head.lastIndex = 0;
  for (;;) {
    const match = head.exec(body);
    if (match === null) return values;
    valueEnd.lastIndex = head.lastIndex;
    const end = valueEnd.exec(body);
    if (end === null) return values;
    const [, doubleQuoted, singleQuoted, bare] = match;
    const name = pythonStrip(doubleQuoted || singleQuoted || bare || "");
    if (name !== "") values.set(name, trim(body.slice(head.lastIndex, end.index)));
    head.lastIndex = end[0].endsWith("=") ? end.index : valueEnd.lastIndex;
  }
}
