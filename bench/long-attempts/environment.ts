import path from "node:path";
import { pathToFileURL } from "node:url";
import { toWellFormed } from "../../src/text/well-formed.ts";
import { readSources, withOtherCharacters } from "../source-text.ts";
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

const sources = readSources(LONG_ATTEMPTS_CORPUS);

/** The text of source files. */
const corpus = LONG_ATTEMPTS_UNICODE === undefined ? sources : withOtherCharacters(sources);

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
        // The ends may cut a pair of surrogates.
        return toWellFormed(corpus.slice(start, start + resultLength));
      },
    },
  },
  repeatable: true,
  score: ({ readCount }) => (readCount > 0 ? 1 : 0),
});
