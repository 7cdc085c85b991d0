import type { SyntaxNode } from "@lezer/common";
import { UsageError } from "../../../src/errors.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import type { PyValue } from "../../../packages/python-values/src/value.ts";
import { evaluateFormatString } from "./evaluate-format-string.ts";
import { evaluateLiteral } from "./evaluate-literal.ts";
import type { PythonModule } from "./python-module.ts";
import {
  assignedValue,
  childrenOf,
  findAssignment,
  methodBody,
  textOf,
  unreadable,
} from "./python-module.ts";

/** The system prompts of the agents that call tools by text, rendered for `probeWiki` and `probeTools`. */
interface AgentPrompts {
  readonly act: string;
  readonly react: string;
}

/** Stands for a domain's policy; the non-ASCII letter shows that the policy is inserted without escapes. */
const probeWiki = "WIKI \u00e9";

/** Stands for a domain's tools as `json.dumps()` writes them: with escapes. */
const probeTools: PyValue = [
  new Map<string, PyValue>([
    ["type", "function"],
    [
      "function",
      new Map<string, PyValue>([
        ["name", "t"],
        ["description", "d \u00e9"],
        ["parameters", new Map<string, PyValue>()],
      ]),
    ],
  ]),
];

/**
 * Reads the prompts of the `act` and `react` agents.
 *
 * @param agent - tau_bench/agents/chat_react_agent.py.
 * @param types - tau_bench/types.py, which defines names in the prompts.
 * @throws UsageError naming file and line of unexpected code.
 */
export function readAgentPrompts(agent: PythonModule, types: PythonModule): AgentPrompts {
  const names = new Map(
    ["RESPOND_ACTION_NAME", "RESPOND_ACTION_FIELD_NAME"].map((name) => [name, text(types, name)]),
  );
  const opening = probeWiki + readJoint(agent) + stringifyPythonJson(probeTools);
  const instruction = (name: string) =>
    evaluateFormatString(agent, assignedValue(agent, name), names);
  return {
    act: opening + instruction("ACT_INSTRUCTION"),
    react: opening + instruction("REACT_INSTRUCTION"),
  };
}

function text(module: PythonModule, name: string): string {
  const node = assignedValue(module, name);
  const value = evaluateLiteral(module, node);
  if (typeof value === "string") return value;
  throw unreadable(module, node, `another ${name}`, "a text");
}

/** The text between policy and tools: `wiki + "…" + json.dumps(tools_info) + instruction`. */
function readJoint(module: PythonModule): string {
  const body = methodBody(module, "ChatReActAgent", "__init__");
  const prompt = body === undefined ? undefined : findAssignment(module, body, "self.prompt");
  if (prompt === undefined) {
    throw new UsageError(
      `Cannot read ${module.file}: expected ChatReActAgent.__init__() to set self.prompt`,
    );
  }
  const [wiki, joint, tools, instruction, ...more] = operands(prompt);
  const parts = [wiki, tools, instruction].map((node) => (node ? textOf(module, node) : ""));
  const isExpected = parts.join(" + ") === "wiki + json.dumps(tools_info) + instruction";
  const value = joint === undefined || !isExpected ? null : evaluateLiteral(module, joint);
  if (typeof value === "string" && more.length === 0) return value;
  const expected = 'wiki + "…" + json.dumps(tools_info) + instruction';
  throw unreadable(module, prompt, "another prompt", expected);
}

/** The operands of a chain of `+`, from left to right. */
function operands(node: SyntaxNode): SyntaxNode[] {
  if (node.name === "ParenthesizedExpression")
    return childrenOf(node, ["(", ")"]).flatMap(operands);
  return node.name === "BinaryExpression"
    ? childrenOf(node, ["ArithOp"]).flatMap(operands)
    : [node];
}
