import { type PyDict, pythonStrip, type PyValue } from "../../../../python-values/src/index.ts";
import type { EngineReading } from "../../grammar.ts";
import { unicodePattern } from "../../shared/text/python-pattern.ts";
import { engineReading } from "../../vllm/parser-engine.ts";
import { byVersion, sinceVllm033 } from "../../vllm/vllm-reading.ts";

/** The differences between the formats that share Qwen3-Coder's calls. */
interface Qwen3Format {
  /** The names of the tags around reasoning and calls. */
  readonly think: string;
  readonly call: string;
  /** Trims a value. */
  readonly trim: (text: string) => string;
  /** True if the start of another call closes a call, as since 0.33. */
  readonly closesEarly: boolean;
  /** True if white space beside calls is kept. Default false. */
  readonly keepsSpace?: boolean;
}

function qwen3Reading(format: Qwen3Format): EngineReading {
  const { think, call, trim, closesEarly, keepsSpace = false } = format;
  const [open, close] = [`<${call}>`, `</${call}>`];
  const thinkClose = `</${think}>`;
  const literals = [`<${think}>`, thinkClose, open, close, "<function=", "</function>"];
  const next = { to: "name", starts: true } as const;
  return engineReading({
    literals: [...literals, "<parameter=", "</parameter>", ">"],
    steps: {
      content: {
        [thinkClose]: { to: "content" },
        [open]: { to: "preamble", starts: true },
        "<function=": next,
      },
      preamble: { [close]: { to: "content" }, "<function=": { to: "name" } },
      name: {
        ">": { to: "arguments" },
        "</function>": { to: "between" },
        ...(closesEarly && {
          [close]: { to: "content" } as const,
          [open]: { to: "preamble", starts: true } as const,
          "<function=": next,
        }),
      },
      arguments: {
        "</function>": { to: "between" },
        ...(closesEarly && { "<function=": next }),
      },
      between: {
        [close]: { to: "content" },
        [open]: { to: "preamble", starts: true },
        "<function=": next,
      },
    },
    convertArguments: (body) => readParameters(body, trim),
    keepsSpace,
    keepsBlank: keepsSpace,
  });
}

/** Drops the line breaks that the template writes around a value. */
function trimBreaks(text: string): string {
  const start = text.startsWith("\n") ? 1 : 0;
  const rest = text.slice(start);
  return rest.endsWith("\n") ? rest.slice(0, -1) : rest;
}

const tags = { think: "think", call: "tool_call" };

/** vLLM's reading of Qwen3-Coder and MiMo up to 0.24. */
const old = qwen3Reading({ ...tags, trim: (text) => pythonStrip(text), closesEarly: false });

/**
 * vLLM's table for Qwen3-Coder: `<tool_call>` may be missing around `<function=`, and a call that
 * is cut off counts.
 *
 * **Source:** vllm-project/vllm, `vllm/parser/qwen3.py`.
 */
export const vllmQwen3Coder = byVersion(
  old,
  qwen3Reading({ ...tags, trim: trimBreaks, closesEarly: true }),
);

/**
 * vLLM's table for MiMo: since 0.33 values are not trimmed.
 *
 * **Source:** vllm-project/vllm, `vllm/parser/mimo.py`.
 */
export const vllmMimo = byVersion(
  old,
  qwen3Reading({ ...tags, trim: (text) => text, closesEarly: true }),
);

/**
 * vLLM's table for Seed-OSS: Qwen3-Coder's between tags of its own.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/parser/seed_oss.py`.
 */
export const vllmSeedOss = qwen3Reading({
  think: "seed:think",
  call: "seed:tool_call",
  trim: trimBreaks,
  closesEarly: true,
});

/**
 * vLLM's table for Step 5: Qwen3-Coder's, but white space beside calls is kept.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/step5_tool_parser.py`.
 */
export const vllmStep5 = sinceVllm033(
  qwen3Reading({ ...tags, trim: trimBreaks, closesEarly: true, keepsSpace: true }),
);

const headStart = unicodePattern(String.raw`<\s*parameter\s*=\s*`, "g");
/** Matches the end of a value: its closing tag, or the next parameter. */
const valueEnd = unicodePattern(String.raw`<\s*(?:/\s*parameter\s*>|parameter\s*=)`, "g");

function readParameters(body: string, trim: (text: string) => string): PyDict {
  const values = new Map<string, PyValue>();
  let position = 0;
  for (;;) {
    headStart.lastIndex = position;
    if (!headStart.test(body)) return values;
    const nameStart = headStart.lastIndex;
    const nameEnd = body.indexOf(">", nameStart);
    if (nameEnd === -1) return values;
    valueEnd.lastIndex = nameEnd + 1;
    const end = valueEnd.exec(body);
    if (end === null) return values;
    values.set(body.slice(nameStart, nameEnd), trim(body.slice(nameEnd + 1, end.index)));
    position = end[0].endsWith(">") ? valueEnd.lastIndex : end.index;
  }
}
