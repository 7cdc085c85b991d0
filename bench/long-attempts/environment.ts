import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { defineEnvironment as DefineEnvironment } from "../../src/environment/define-environment.ts";

// The environment of the benchmark `long-attempts`, for the command line of this checkout or of an older one.
const {
  LONG_ATTEMPTS_CHECKOUT = "",
  LONG_ATTEMPTS_CORPUS = "",
  LONG_ATTEMPTS_UNICODE,
} = process.env;
const index = pathToFileURL(path.join(LONG_ATTEMPTS_CHECKOUT, "dist/src/index.js")).href;
const { defineEnvironment } = (await import(index)) as {
  readonly defineEnvironment: typeof DefineEnvironment;
};

/** UTF-16 units of a tool's result: some 2,800 tokens. */
const resultLength = 11_200;

/** UTF-16 units of the policy's text: with the tools, a prompt of some 5,000 tokens. */
const policyLength = 15_200;

/** The texts before every fiftieth line of a source that is not ASCII. */
const otherMarks = ["✓", "│", "🚀", "naïve", "→", "🤖", "├──"];

/** The text of source files. */
const corpus = readdirSync(LONG_ATTEMPTS_CORPUS, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && !name.includes("fixture"))
  .toSorted()
  .map((name) => readFileSync(path.join(LONG_ATTEMPTS_CORPUS, name), "utf8"))
  .join("\n")
  .replaceAll(/[^\t\n -~]/g, "?")
  .split("\n")
  .map((line, at) => (LONG_ATTEMPTS_UNICODE === undefined ? line : withMark(line, at)))
  .join("\n");

/** Puts a character that is not ASCII before every fiftieth line. */
function withMark(line: string, at: number): string {
  return at % 50 === 7 ? `${otherMarks[at % otherMarks.length]} ${line}` : line;
}

export default defineEnvironment({
  name: "long-attempts",
  tasks: Array.from({ length: 1024 }, (_, task) => ({
    instruction: `Please fix issue ${task} of the working copy.`,
    task,
  })),
  initialState: ({ task }) => ({ task, readCount: 0 }),
  policy: `You are a coding agent.\n${corpus.slice(0, policyLength)}`,
  tools: {
    read_file: {
      description: "Reads a file of the working copy.",
      parameters: {
        type: "object",
        properties: { from: { type: "integer", description: "The first line, from 1." } },
        required: ["from"],
      },
      execute: (args, state: { task: number; readCount: number }) => {
        const { from } = args as { readonly from: number };
        state.readCount += 1;
        const start = ((from * 131 + state.task * 7) * 977) % (corpus.length - resultLength);
        return corpus.slice(start, start + resultLength);
      },
    },
  },
  repeatable: true,
  score: ({ readCount }) => (readCount > 0 ? 1 : 0),
});
