import type { Command } from "commander";

/** The groups of commands, in the order of the help. */
type CommandGroup =
  | "Begin:"
  | "Play:"
  | "Look at runs:"
  | "Train:"
  | "Environments and servers:"
  | "Inspect models:";

/** A command as the list of commands shows it. */
interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly group: CommandGroup;
  /** Example calls for the command's help. */
  readonly examples?: readonly string[];
  /** The arguments in commander's notation, each with its description. */
  readonly arguments?: readonly (readonly [spelling: string, help: string])[];
  /** Loads the command's code. Returns a function that defines its options and its action. */
  readonly load: () => Promise<(command: Command) => void>;
}

const run = ["<run>", "a run's folder"] as const;
const recorded = ["<run>", "a run's folder, or a file of `turnwright bundle`"] as const;
const episode = ["[episode]", "its id, or the end of it such as 7#3 (default: all)"] as const;

/** All commands. Only the code of the called one is loaded. */
export const commandTable: readonly CommandEntry[] = [
  {
    name: "init",
    summary: "begin a project with an environment of its own, its test and its configuration",
    group: "Begin:",
    examples: [
      "turnwright init my-environment",
      "turnwright init my-environment --typescript",
      "turnwright init my-environment --python",
    ],
    arguments: [["[dir]", "its folder (default: this one)"]],
    load: async () => (await import("./commands/init.ts")).defineInit,
  },
  {
    name: "demo",
    summary: "show a complete run on this machine, without a GPU or a key",
    group: "Begin:",
    load: async () => (await import("./commands/demo.ts")).defineDemo,
  },
  {
    name: "completion",
    summary: "let the shell complete commands and flags",
    group: "Begin:",
    load: async () => {
      const { defineCompletion } = await import("./commands/completion.ts");
      return (command) => defineCompletion(command, commandTable);
    },
  },
  {
    name: "rollout",
    summary: "play episodes against an inference engine, write training samples",
    group: "Play:",
    examples: [
      "turnwright rollout --env storefront --user scripted --url http://127.0.0.1:30000 --model MODEL_FOLDER --out runs/first",
      "turnwright rollout --env ./my-environment.js --split train --tasks 0-31 --samples 8 --config turnwright.json",
    ],
    load: async () => (await import("./commands/rollout.ts")).defineRollout,
  },
  {
    name: "gateway",
    summary: "serve the policy to any agent, and write what it samples as training samples",
    group: "Play:",
    load: async () => (await import("./commands/gateway.ts")).defineGateway,
  },
  {
    name: "serve",
    summary: "play rollouts that a trainer requests over HTTP, and stream each group when it ends",
    group: "Train:",
    load: async () => (await import("./commands/serve.ts")).defineServe,
  },
  {
    name: "worker",
    summary: "play attempts from a queue, on any number of machines",
    group: "Play:",
    examples: [
      "turnwright worker --queue redis://127.0.0.1:6379 --env storefront --user scripted --url http://127.0.0.1:30000 --model MODEL_FOLDER",
    ],
    load: async () => (await import("./commands/worker.ts")).defineWorker,
  },
  {
    name: "top",
    summary: "watch a queue: its runs and workers, their speed, and what each waits for",
    group: "Look at runs:",
    examples: ["turnwright top --queue redis://127.0.0.1:6379"],
    load: async () => (await import("./commands/top.ts")).defineTop,
  },
  {
    name: "eval",
    summary: "measure a policy: pass^k, pass@k, reward, cost, and reasons for failures",
    group: "Play:",
    examples: [
      "turnwright eval --env storefront --user scripted --trials 4 --url http://127.0.0.1:30000 --model MODEL_FOLDER --out runs/eval",
    ],
    load: async () => (await import("./commands/eval.ts")).defineEval,
  },
  {
    name: "replay",
    summary: "play recorded episodes again without an engine, and report the first difference",
    group: "Play:",
    arguments: [recorded, episode],
    load: async () => (await import("./commands/replay.ts")).defineReplay,
  },
  {
    name: "fork",
    summary: "continue a recorded episode from one of its turns with new samples",
    group: "Play:",
    arguments: [recorded, ["<episode>", "its id, or the end of it such as 7#3"]],
    load: async () => (await import("./commands/fork.ts")).defineFork,
  },
  {
    name: "report",
    summary: "evaluate an existing run",
    group: "Look at runs:",
    arguments: [run],
    load: async () => (await import("./commands/report.ts")).defineReport,
  },
  {
    name: "eval-metrics",
    summary: "compute average reward, pass^k and pass@k from rewards",
    group: "Look at runs:",
    load: async () => (await import("./commands/eval-metrics.ts")).defineEvalMetrics,
  },
  {
    name: "show",
    summary: "print one conversation of a run, with its calls and the reasons for its reward",
    group: "Look at runs:",
    examples: ["turnwright show runs/first 7#3"],
    arguments: [run, ["[episode]", "its id, or the end of it such as 7#3, or a task's number"]],
    load: async () => (await import("./commands/show.ts")).defineShow,
  },
  {
    name: "bundle",
    summary: "write one episode with all data to play it again, for a bug report",
    group: "Look at runs:",
    arguments: [recorded, ["<episode>", "its id, or the end of it such as 7#3"]],
    load: async () => (await import("./commands/bundle.ts")).defineBundle,
  },
  {
    name: "view",
    summary: "show runs in the browser, down to the token",
    group: "Look at runs:",
    examples: ["turnwright view runs/first", "turnwright view runs/"],
    arguments: [["<runs...>", "runs' folders, or folders of runs"]],
    load: async () => (await import("./commands/view.ts")).defineView,
  },
  {
    name: "pack",
    summary: "compress the files of finished runs; all commands read them as before",
    group: "Look at runs:",
    examples: ["turnwright pack runs/first runs/second"],
    arguments: [["<runs...>", "runs' folders"]],
    load: async () => (await import("./commands/pack.ts")).definePack,
  },
  {
    name: "unpack",
    summary: "restore the files of packed runs",
    group: "Look at runs:",
    arguments: [["<runs...>", "runs' folders"]],
    load: async () => (await import("./commands/pack.ts")).defineUnpack,
  },
  {
    name: "compare",
    summary: "compare two runs task by task, with a paired test",
    group: "Look at runs:",
    examples: ["turnwright compare runs/before runs/after"],
    arguments: [
      ["<a>", "a run's folder, or a results file of τ-bench"],
      ["<b>", "another"],
    ],
    load: async () => (await import("./commands/compare.ts")).defineCompare,
  },
  {
    name: "identify-errors",
    summary: "let a judge model find the party and the error that caused unsuccessful episodes",
    group: "Look at runs:",
    arguments: [run],
    load: async () => (await import("./commands/identify-errors.ts")).defineIdentifyErrors,
  },
  {
    name: "export",
    summary: "write a run's rows as a trainer reads them",
    group: "Train:",
    arguments: [run],
    load: async () => (await import("./commands/export.ts")).defineExport,
  },
  {
    name: "score",
    summary: "add the logprobs of a teacher to a run's rows, for distillation",
    group: "Train:",
    examples: [
      "turnwright score runs/first --teacher http://127.0.0.1:30000 --top 20",
      "turnwright score runs/first --teacher-engine reference --teacher-model MODEL_FOLDER",
    ],
    arguments: [run],
    load: async () => (await import("./commands/score.ts")).defineScore,
  },
  {
    name: "verify",
    summary: "check runs and samples against the token invariants",
    group: "Train:",
    examples: ["turnwright verify runs/first"],
    arguments: [["<paths...>", "runs' folders, or samples.jsonl files"]],
    load: async () => (await import("./commands/verify.ts")).defineVerify,
  },
  {
    name: "doctor",
    summary: "find the cause of a mismatch between the trainer's logprobs and the engine's",
    group: "Train:",
    examples: [
      "turnwright doctor runs/first --trainer-logprobs trainer.jsonl",
      "turnwright doctor --url http://127.0.0.1:8799",
    ],
    arguments: [["[run]", "a run's folder"]],
    load: async () => (await import("./commands/doctor.ts")).defineDoctor,
  },
  {
    name: "env",
    summary: "list environments, and play them without a model",
    group: "Environments and servers:",
    load: async () => (await import("./commands/env.ts")).defineEnv,
  },
  {
    name: "serve-test",
    summary: "start a test server without a model, to try clients and environments",
    group: "Environments and servers:",
    examples: [
      "turnwright serve-test --protocol vllm --port 8000",
      'turnwright serve-test --policy text --policy-options \'{"turns":["Hello!"],"modelDir":"MODEL_FOLDER"}\'',
    ],
    load: async () => (await import("./commands/serve-test.ts")).defineServeTest,
  },
  {
    name: "parse",
    summary: "read tool calls from sampled text",
    group: "Inspect models:",
    load: async () => (await import("./commands/model/parse.ts")).defineParse,
  },
  {
    name: "reason",
    summary: "split sampled text into reasoning and the rest",
    group: "Inspect models:",
    load: async () => (await import("./commands/model/reason.ts")).defineReason,
  },
  {
    name: "render",
    summary: "render conversations with a chat template",
    group: "Inspect models:",
    load: async () => (await import("./commands/model/render.ts")).defineRender,
  },
  {
    name: "delta",
    summary: "print the ids that observations add to the ledger after a turn",
    group: "Inspect models:",
    load: async () => (await import("./commands/model/delta.ts")).defineDelta,
  },
  {
    name: "template",
    summary: "measure a chat template: the capability card",
    group: "Inspect models:",
    load: async () => (await import("./commands/model/template.ts")).defineTemplate,
  },
];
