import { describe, expect, test } from "vitest";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { createFewShotAgent, type FewShotOptions } from "./few-shot-agent.ts";
import { toolUsePolicies } from "./tool-use-policy.ts";

const examples = ["d0", "d1", "d2", "d3", "d4"];

function open(
  options: Partial<FewShotOptions>,
  start: { readonly seed: number; readonly taskIndex: number },
): string {
  const agent = createFewShotAgent({
    parser: findToolCallParser("qwen25"),
    toolUsePolicy: toolUsePolicies.many,
    examples,
    ...options,
  });
  const opening = agent.open({ policyText: "Policy.", tools: [], firstUserText: "Hi", ...start });
  return opening.messages[0]!.content;
}

describe("createFewShotAgent()", () => {
  test("shows the examples after the policy, in the order that Python draws", () => {
    expect(open({}, { seed: 3, taskIndex: 0 })).toBe(
      "Policy.\n\nExample 1:\nd1\n\nExample 2:\nd4\n\nExample 3:\nd3\n\nExample 4:\nd2\n\nExample 5:\nd0",
    );
  });

  test("shows the requested number of examples, and instructions after them", () => {
    const toolUsePolicy = toolUsePolicies.one;
    const content = open({ exampleCount: 1, toolUsePolicy }, { seed: 3, taskIndex: 0 });
    expect(content).toMatch(/^Policy\.\n\nExample 1:\nd1\n\nMake at most one tool call/);
  });

  test("draws for each episode, each task, or the run", () => {
    const first = { seed: 3, taskIndex: 7 };
    const sameTask = { seed: 4, taskIndex: 7 };
    const otherTask = { seed: 4, taskIndex: 8 };
    expect(open({ draw: "episode" }, first)).not.toBe(open({ draw: "episode" }, sameTask));
    expect(open({ draw: "task" }, first)).toBe(open({ draw: "task" }, sameTask));
    expect(open({ draw: "task" }, first)).not.toBe(open({ draw: "task" }, otherTask));
    expect(open({ draw: "task", seed: 1 }, first)).toBe(open({ draw: "task" }, otherTask));
    expect(open({ draw: "run" }, first)).toBe(open({ draw: "run" }, otherTask));
    expect(open({ draw: "run", seed: 1 }, first)).not.toBe(open({ draw: "run" }, first));
  });

  test("refuses to show more examples than it has", () => {
    expect(() => open({ exampleCount: 6 }, { seed: 0, taskIndex: 0 })).toThrow(
      "Cannot show 6 examples: only 5 are available",
    );
  });
});
