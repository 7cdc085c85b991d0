import type { Command } from "commander";

/** A command, as far as the list of commands shows it. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  /** Its arguments, as commander spells them, with what each is. */
  readonly arguments?: readonly (readonly [spelling: string, help: string])[];
  /** Imports what the command needs; gives it its options and its action. */
  readonly load: () => Promise<(command: Command) => void>;
}

const run = ["<run>", "a run's folder"] as const;
const recorded = ["<run>", "a run's folder, or a file of `turnwright bundle`"] as const;
const episode = [
  "[episode]",
  "its id, or the end of it such as 7#3; all where none is named",
] as const;

/** Every command. Only the one that is called is loaded. */
export const commandTable: readonly CommandEntry[] = [
  {
    name: "init",
    summary: "begin a project with an environment of its own, its test and its configuration",
    arguments: [["[dir]", "its folder (default: this one)"]],
    load: async () => (await import("./commands/init.ts")).defineInit,
  },
  {
    name: "rollout",
    summary: "play episodes against an inference engine, write training samples",
    load: async () => (await import("./commands/rollout.ts")).defineRollout,
  },
  {
    name: "gateway",
    summary: "serve agents of any kind, and write what they sample as training samples",
    load: async () => (await import("./commands/gateway.ts")).defineGateway,
  },
  {
    name: "demo",
    summary: "play the whole way on this machine alone, no GPU or key needed",
    load: async () => (await import("./commands/demo.ts")).defineDemo,
  },
  {
    name: "eval",
    summary: "measure a policy: pass^k, pass@k, reward, cost, what went wrong",
    load: async () => (await import("./commands/eval.ts")).defineEval,
  },
  {
    name: "report",
    summary: "evaluate a run that was played already",
    arguments: [run],
    load: async () => (await import("./commands/report.ts")).defineReport,
  },
  {
    name: "eval-metrics",
    summary: "compute average reward, pass^k and pass@k from rewards",
    load: async () => (await import("./commands/eval-metrics.ts")).defineEvalMetrics,
  },
  {
    name: "show",
    summary: "print one conversation of a run: what was said and called, and why it got its reward",
    arguments: [run, ["[episode]", "its id, or the end of it such as 7#3, or a task's number"]],
    load: async () => (await import("./commands/show.ts")).defineShow,
  },
  {
    name: "replay",
    summary: "play recorded episodes again without an engine: the same to the byte, or where not",
    arguments: [recorded, episode],
    load: async () => (await import("./commands/replay.ts")).defineReplay,
  },
  {
    name: "fork",
    summary: "sample a recorded episode anew from one of its turns on",
    arguments: [recorded, ["<episode>", "its id, or the end of it such as 7#3"]],
    load: async () => (await import("./commands/fork.ts")).defineFork,
  },
  {
    name: "bundle",
    summary: "write one episode with all that it takes to play it again, for a bug report",
    arguments: [recorded, ["<episode>", "its id, or the end of it such as 7#3"]],
    load: async () => (await import("./commands/bundle.ts")).defineBundle,
  },
  {
    name: "view",
    summary: "show runs in the browser, down to the token",
    arguments: [["<runs...>", "runs' folders"]],
    load: async () => (await import("./commands/view.ts")).defineView,
  },
  {
    name: "export",
    summary: "write a run's rows as a trainer reads them",
    arguments: [run],
    load: async () => (await import("./commands/export.ts")).defineExport,
  },
  {
    name: "compare",
    summary: "compare two runs task by task, with a paired test",
    arguments: [
      ["<a>", "a run's folder, or a results file of τ-bench"],
      ["<b>", "another"],
    ],
    load: async () => (await import("./commands/compare.ts")).defineCompare,
  },
  {
    name: "identify-errors",
    summary: "let a judge model say who is to blame for unsuccessful episodes, and for what",
    arguments: [run],
    load: async () => (await import("./commands/identify-errors.ts")).defineIdentifyErrors,
  },
  {
    name: "verify",
    summary: "check runs and samples against the token invariants",
    arguments: [["<paths...>", "runs' folders, or samples.jsonl files"]],
    load: async () => (await import("./commands/verify.ts")).defineVerify,
  },
  {
    name: "env",
    summary: "list environments, and play them without a model",
    load: async () => (await import("./commands/env.ts")).defineEnv,
  },
  {
    name: "serve-test",
    summary: "play an inference server without a model, to try clients and environments",
    load: async () => (await import("./commands/serve-test.ts")).defineServeTest,
  },
  {
    name: "parse",
    summary: "read tool calls from sampled text",
    load: async () => (await import("./commands/parse.ts")).defineParse,
  },
  {
    name: "reason",
    summary: "part reasoning from the rest of sampled text",
    load: async () => (await import("./commands/reason.ts")).defineReason,
  },
  {
    name: "render",
    summary: "render conversations with a chat template",
    load: async () => (await import("./commands/render.ts")).defineRender,
  },
  {
    name: "delta",
    summary: "show what the environment adds to the ledger after a turn",
    load: async () => (await import("./commands/delta.ts")).defineDelta,
  },
  {
    name: "template",
    summary: "measure a chat template: the capability card",
    load: async () => (await import("./commands/template.ts")).defineTemplate,
  },
];
