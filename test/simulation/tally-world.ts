import type { Agent } from "../../src/agent/agent.ts";
import { createToolCallingAgent } from "../../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../../src/agent/tool-use-policy.ts";
import type { Environment } from "../../src/environment/environment.ts";
import type { Random } from "../../src/environment/seeded-random.ts";
import { RolloutError } from "../../src/errors.ts";
import type { Clock } from "../../src/async/clock.ts";
import { toolFromOpenAi } from "../../src/message.ts";
import type { Outside } from "../../src/outside.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { toPyValue } from "../../packages/python-values/src/value.ts";
import { isLeaving, textOfLine, type User, type UserLine } from "../../src/user/user.ts";

/** The services that a process gives to the parts of a world. */
export interface Surroundings {
  readonly random: Random;
  readonly clock: Clock;
  /** The rate of faults, from 0 to 1. */
  readonly troubles: number;
  /** Draws a number that no replay can draw again. */
  readonly draw: () => number;
}

const name = "tally";

/** Lines of the user's before they leave. */
const patience = 3;

/** The user's first line; the seed determines the speaker. */
export function openingLine(taskIndex: number, seed: number): string {
  return `Add for ${taskIndex}, says ${seed}.`;
}

/** The user's answer to the nth message, from 1. */
export function replyLine(count: number, text: string): UserLine {
  const line = `Reply ${count} to ${text.length} letters.`;
  return count >= patience || text.includes("Goodbye") ? { text: line, leaves: true } : line;
}

/** The reward of a sum for a user who left. */
export function rewardOf(sum: number): number {
  return (sum % 3) / 2;
}

/** Adds numbers; every other call also returns a number that no replay can draw again. */
export function tallyEnvironment(
  taskCount: number,
  { random, clock, troubles, draw }: Surroundings,
): Environment {
  const tool = toPyValue({ type: "function", function: { name: "add", parameters: {} } });
  return {
    name,
    source: "test",
    splits: { test: taskCount },
    tools: [toolFromOpenAi(tool, "add")],
    policyText: "You add up.",
    repeatable: true,
    task: (split, index) => ({
      id: `${name}/${split}/${index}`,
      environment: name,
      split,
      index,
      instruction: "Add up.",
      data: undefined,
    }),
    async open(_task, { user, outside }) {
      let sum = 0;
      let callCount = 0;
      let isDone = false;
      return {
        begin: ({ signal }) => user.begin({ signal }),
        async step(action, { signal }) {
          if (action.type === "call") {
            sum += Number(action.arguments.get("by"));
            callCount += 1;
            const drawn = callCount % 2 === 1 ? "" : `, drew ${await look(outside!)}`;
            return { observation: `sum ${sum}${drawn}`, from: "tool", source: action.name };
          }
          const line = await user.reply(action.content, { signal });
          isDone = isLeaving(line);
          const step = { observation: textOfLine(line), from: "user", source: "user" } as const;
          return isDone ? { ...step, done: "user-left" } : step;
        },
        score: async () => ({ reward: isDone ? rewardOf(sum) : 0, details: { sum } }),
        userUsage: () => user.usage(),
        [Symbol.asyncDispose]: async () => {},
      };
    },
  };

  async function look(outside: Outside): Promise<number> {
    return await outside("draw", async () => {
      await clock.sleep(random.between(1, 200));
      if (!random.chance(0.03 * troubles)) return draw();
      throw new RolloutError("environment/away", "Cannot draw", { retryable: true });
    });
  }
}

/** Says lines that the task, the seed and the messages determine; fails sometimes. */
export function tallyUser({ random, clock, troubles }: Surroundings): User {
  return {
    strategy: "simulated",
    repeatable: true,
    open: (task, { seed, outside }) => {
      let count = 0;
      const wait = async (what: string): Promise<void> => {
        await outside!(what, async () => {
          await clock.sleep(random.between(1, 200));
          if (!random.chance(0.05 * troubles)) return "said";
          throw new RolloutError("user/overloaded", "Cannot reply: 429", { retryable: true });
        });
      };
      return {
        begin: async () => {
          await wait("begin");
          return openingLine(task.index, seed);
        },
        reply: async (text) => {
          await wait("reply");
          count += 1;
          return replyLine(count, text);
        },
        usage: () => ({ callCount: count, inputTokenCount: 0, outputTokenCount: 0 }),
      };
    },
  };
}

/** The suffix that a fickle agent sometimes adds to the text that it shows. */
export const whim = " (so it says)";

/** The tool-calling agent; a fickle one shows now and then something else than before. */
export function tallyAgent(kind: "steady" | "fickle", random: Random): Agent {
  const agent = createToolCallingAgent({
    parser: findToolCallParser("qwen25"),
    toolUsePolicy: toolUsePolicies.many,
  });
  if (kind === "steady") return agent;
  return {
    ...agent,
    open: (start) => {
      const policyText = random.chance(0.05) ? `${start.policyText}${whim}` : start.policyText;
      return agent.open({ ...start, policyText });
    },
    observe: (observed) => {
      if (random.chance(0.05)) throw new Error("a fickle agent cannot show that");
      const messages = agent.observe(observed);
      if (!random.chance(0.15)) return messages;
      return messages.map((message) => ({ ...message, content: `${message.content}${whim}` }));
    },
  };
}
