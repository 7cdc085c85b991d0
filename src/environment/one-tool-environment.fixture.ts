import type { Action, Environment, Score, Step } from "./environment.ts";
import { toolFromOpenAi } from "../message.ts";
import { type PlainJson, toPyValue } from "../../packages/python-values/src/value.ts";
import { isLeaving, textOfLine } from "../user/user.ts";

/** Options of `oneToolEnvironment()`. */
export interface OneToolOptions {
  readonly name: string;
  /** The tool as OpenAI describes functions. */
  readonly tool: { readonly [key: string]: PlainJson; readonly name: string };
  readonly policyText: string;
  readonly instruction?: string;
  /** Opens the state of one episode. */
  readonly open: () => {
    /** Answers a call of any tool. */
    readonly call: (action: Extract<Action, { type: "call" }>) => string;
    readonly score: (isDone: boolean) => Score;
  };
  /** Intercepts an action. If it is absent or returns `undefined`, the action is performed as usual. */
  readonly onStep?: ((action: Action) => Step | undefined) | undefined;
}

/** An environment with one task and one tool. Its user ends the episode by leaving. */
export function oneToolEnvironment(options: OneToolOptions): Environment {
  const { name, tool, policyText, instruction = "", open, onStep } = options;
  const task = {
    id: `${name}/test/0`,
    environment: name,
    split: "test",
    index: 0,
    instruction,
    data: undefined,
  };
  return {
    name,
    source: "test",
    splits: { test: 1 },
    tools: [toolFromOpenAi(toPyValue({ type: "function", function: tool }), tool.name)],
    policyText,
    task: () => task,
    async open(_task, { user }) {
      const { call, score } = open();
      let isDone = false;
      return {
        begin: ({ signal }) => user.begin({ signal }),
        async step(action, { signal }) {
          const own = onStep?.(action);
          if (own !== undefined) return own;
          if (action.type === "call") {
            return { observation: call(action), from: "tool", source: action.name };
          }
          const line = await user.reply(action.content, { signal });
          isDone = isLeaving(line);
          const step = { observation: textOfLine(line), from: "user", source: "user" } as const;
          return isDone ? { ...step, done: "user-left" } : step;
        },
        score: async () => score(isDone),
        userUsage: () => user.usage(),
        [Symbol.asyncDispose]: async () => {},
      };
    },
  };
}
