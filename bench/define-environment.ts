import { z } from "zod";
import { defineEnvironment } from "../src/environment/define-environment.ts";
import type { Environment } from "../src/environment/environment.ts";
import { toolFromOpenAi } from "../src/message.ts";
import { toPyValue } from "../packages/python-values/src/value.ts";
import { createScriptedUser } from "../src/user/scripted-user.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { cpuMs, median } from "./cpu-time.ts";

const stepCount = 20_000;
const rounds = 7;
const recordCount = 1000;

const description = "Take copies of a book.";
const parameters = z.object({ book: z.string(), count: z.int() });

/**
 * Measures the CPU of a step that reads and writes one of a thousand records, with
 * `defineEnvironment()` and in an environment that is written by hand.
 */
export async function benchDefineEnvironment(): Promise<BenchFigure[]> {
  const own: number[] = [];
  const defined: number[] = [];
  // Alternates, so that both run under the same load.
  for (let round = 0; round < rounds; round++) {
    own.push(await stepMicroseconds(byHand()));
    defined.push(await stepMicroseconds(byDefinition()));
  }
  const figure = (name: string, value: number): BenchFigure => ({
    bench: "define-environment",
    figure: name,
    value,
    unit: "µs",
  });
  return [
    figure("CPU of a step by hand", median(own)),
    figure("CPU of a step by defineEnvironment()", median(defined)),
    figure("what defineEnvironment() adds to a step", median(defined) - median(own)),
  ];
}

function records(): Record<string, { copies: number }> {
  return Object.fromEntries(
    Array.from({ length: recordCount }, (_, index) => [`book-${index}`, { copies: 1e9 }]),
  );
}

function byDefinition(): Environment {
  const shelf = { books: records() };
  return defineEnvironment({
    name: "shelf",
    tasks: [{ instruction: "" }],
    initialState: () => shelf,
    policy: "",
    tools: {
      take: {
        description,
        parameters,
        execute({ book, count }, { books }) {
          const record = books[book]!;
          record.copies -= count;
          return { left: record.copies };
        },
      },
    },
    score: () => 0,
  });
}

function byHand(): Environment {
  const openai = toPyValue({
    type: "function",
    function: { name: "take", description, parameters: { type: "object" } },
  });
  const task = {
    id: "shelf/test/0",
    environment: "shelf",
    split: "test",
    index: 0,
    instruction: "",
    data: undefined,
  };
  return {
    name: "shelf",
    source: "bench",
    splits: { test: 1 },
    tools: [toolFromOpenAi(openai, "take")],
    policyText: "",
    task: () => task,
    async open(_, { user }) {
      const books = new Map(Object.entries(records()));
      return {
        begin: (options) => user.begin(options),
        async step(action) {
          if (action.type === "say") throw new Error("unexpected text");
          const book = action.arguments.get("book");
          const count = action.arguments.get("count");
          const record = typeof book === "string" ? books.get(book) : undefined;
          if (record === undefined || typeof count !== "bigint") {
            return { observation: "Error", from: "tool", source: "take", isError: true };
          }
          record.copies -= Number(count);
          const observation = JSON.stringify({ left: record.copies });
          return { observation, from: "tool", source: "take" };
        },
        score: async () => ({ reward: 0, details: {} }),
        userUsage: () => user.usage(),
        async [Symbol.asyncDispose]() {},
      };
    },
  };
}

async function stepMicroseconds(environment: Environment): Promise<number> {
  const { signal } = new AbortController();
  const task = environment.task("test", 0);
  const user = createScriptedUser({ lines: [""] }).open(task, { seed: 0 });
  await using world = await environment.open(task, { user, signal });
  const given = Array.from({ length: 100 }, (_, index) =>
    toPyValue({ book: `book-${index}`, count: 1 }),
  );
  const ms = await cpuMs(async () => {
    for (let index = 0; index < stepCount; index++) {
      const call = { type: "call", name: "take", arguments: given[index % 100] as never } as const;
      await world.step(call, { signal });
    }
  });
  return (ms * 1000) / stepCount;
}
