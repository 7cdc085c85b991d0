import { createHash } from "node:crypto";
import type { Action, Environment, Score, Step, World } from "../../src/environment/environment.ts";
import { InvariantError, UsageError } from "../../src/errors.ts";
import type { Task } from "../../src/task.ts";
import { isLeaving, textOfLine, type UserSession } from "../../src/user/user.ts";
import { type MadeCall, shopDifference } from "./difference.ts";
import { drawTask, type StorefrontData } from "./draw-task.ts";
import { fulfil, toInstruction, wantedOutputs } from "./goal.ts";
import { policyText } from "./policy-text.ts";
import { isSameState, openShop, shopState } from "./shop.ts";
import { callTool, toolDefinitions } from "./tools.ts";

const splits = { train: 100_000, test: 200 } as const;

/**
 * Creates a small shop with customers who ask about orders, change and return them, and sometimes make requests
 * that the policy forbids. Tasks are drawn by index. Names, numbers and products of the test split never occur in
 * the train split.
 */
export function createStorefront(): Environment<StorefrontData> {
  return {
    name: "storefront",
    source: "generated: each task is drawn from its split and index",
    splits,
    tools: toolDefinitions,
    policyText,
    repeatable: true,
    task(split, index) {
      const size = isSplit(split) ? splits[split] : 0;
      if (!isSplit(split) || !Number.isInteger(index) || index < 0 || index >= size) {
        throw new UsageError(
          `Cannot draw task ${index} of split "${split}" of storefront, expected ` +
            `train 0 to ${splits.train - 1} or test 0 to ${splits.test - 1}`,
        );
      }
      const data = drawTask(split, index);
      return {
        id: `storefront/${split}/${index}`,
        environment: "storefront",
        split,
        index,
        instruction: toInstruction(data.customer, data.goals),
        data,
      };
    },
    async open(task, { user, signal }) {
      signal.throwIfAborted();
      return openWorld(task, user);
    },
  };
}

function isSplit(name: string): name is keyof typeof splits {
  return Object.hasOwn(splits, name);
}

function openWorld({ id, data }: Task<StorefrontData>, user: UserSession): World {
  const shop = openShop(data.records);
  const said: string[] = [];
  const calls: MadeCall[] = [];
  let isDone = false;

  function call({ name, arguments: given }: Extract<Action, { type: "call" }>): Step {
    const { text, isError } = callTool(shop, name, given);
    calls.push(isError ? { name, arguments: given, error: text } : { name, arguments: given });
    return { observation: text, from: "tool", source: name, ...(isError && { isError }) };
  }

  return {
    async begin({ signal }) {
      signal.throwIfAborted();
      return await user.begin({ signal });
    },
    async step(action, { signal }) {
      signal.throwIfAborted();
      if (isDone) throw new InvariantError(`Cannot step task ${id}: the user has left`);
      if (action.type === "call") return call(action);
      said.push(action.content);
      const line = await user.reply(action.content, { signal });
      isDone = isLeaving(line);
      const observation = textOfLine(line);
      return { observation, from: "user", source: "user", ...(isDone && { done: "user-left" }) };
    },
    async score({ signal }): Promise<Score> {
      signal.throwIfAborted();
      const wanted = openShop(data.records);
      fulfil(wanted, data.goals);
      const stateMatches = isSameState(shop, wanted);
      const outputs = wantedOutputs(data.goals);
      const spoken =
        outputs.length === 0 ? [] : said.map((text) => text.toLowerCase().replaceAll(",", ""));
      const missingOutputs = outputs.filter(
        (output) => !spoken.some((text) => text.includes(output.toLowerCase())),
      );
      return {
        reward: stateMatches && missingOutputs.length === 0 ? 1 : 0,
        details: {
          level: data.level,
          stateMatches,
          missingOutputs,
          difference: shopDifference({ reached: shop, wanted }, data.goals, {
            stateMatches,
            calls,
            missingOutputs,
          }),
        },
      };
    },
    userUsage: () => user.usage(),
    stateHash: async () => createHash("sha256").update(shopState(shop)).digest("hex"),
    async [Symbol.asyncDispose]() {},
  };
}
