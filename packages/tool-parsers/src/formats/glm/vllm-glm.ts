import { pythonStrip, type PyValue } from "../../../../python-values/src/index.ts";
import { findArgPairs } from "../../shared/tags/arg-pairs.ts";
import { engineReading } from "../../vllm/parser-engine.ts";
import { sinceVllm033 } from "../../vllm/vllm-reading.ts";

/**
 * vLLM's table for GLM 4.5 to 4.7: a call that is cut off counts, and unknown tools are dropped.
 *
 * **Source:** vllm-project/vllm, `vllm/parser/glm47_moe.py`.
 */
export const vllmGlm = engineReading({
  literals: [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
  ],
  steps: {
    content: {
      "<think>": { to: "reasoning" },
      "</think>": { to: "content" },
      "<tool_call>": { to: "name", starts: true },
    },
    reasoning: {
      "<think>": { to: "reasoning" },
      "</think>": { to: "content" },
      "<tool_call>": { to: "name", starts: true },
    },
    name: {
      "<arg_key>": { to: "arguments", keeps: true },
      "</tool_call>": { to: "content" },
    },
    arguments: { "</tool_call>": { to: "content" } },
  },
  dropsUnknownTools: true,
  stripsNames: true,
  convertArguments: (body) =>
    new Map(
      findArgPairs(body, { unicodeSpace: true }).map(([key, text]): [string, PyValue] => [
        pythonStrip(key),
        text,
      ]),
    ),
});

/**
 * vLLM's table for Ling 3, which equals that of GLM.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/parser/ling3.py`.
 */
export const vllmLing3 = sinceVllm033(vllmGlm);
