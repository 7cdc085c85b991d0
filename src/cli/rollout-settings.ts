import { refusableNotes, repairableStatuses } from "../agent/call-policy.ts";
import { toolUsePolicies } from "../agent/tool-use-policy.ts";
import { defaultLimits } from "../episode/limits.ts";
import { engineNames } from "./build-engine.ts";
import type { Setting, SettingKind } from "./option.ts";

const text: SettingKind = { type: "text" };
const seconds: SettingKind = { type: "number", min: 0.001, max: 604_800 };
const price: SettingKind = { type: "number", min: 0, max: Infinity };

function count(min: number): SettingKind {
  return { type: "number", min, max: Infinity, whole: true };
}

/** Every setting of `turnwright rollout`: a flag each, and the keys of its configuration file. */
export const rolloutSettings: readonly Setting[] = [
  // What is played.
  {
    name: "env",
    kind: text,
    value: "name",
    help: "environment: a name (see `env list`), or a module such as ./lamps.js",
  },
  {
    name: "data",
    kind: text,
    value: "dir",
    help: "the environment's data: a τ-bench bundle folder",
  },
  { name: "split", kind: text, help: "which tasks", default: "test" },
  {
    name: "tasks",
    kind: text,
    value: "list",
    help: "task indexes: all, or such as 0-31,40",
    default: "all",
  },
  {
    name: "samples",
    kind: count(1),
    value: "n",
    help: "episodes per task: the group's size",
    default: 1,
  },
  { name: "seed", kind: count(0), value: "n", help: "seed of the run", default: 0 },
  // The policy.
  {
    name: "engine",
    kind: { type: "choice", choices: engineNames },
    help: "inference engine: a server's, or in this process (llama: GGUF, reference: small models)",
    default: "sglang",
  },
  {
    name: "url",
    kind: { type: "list" },
    help: "the engine's or router's address; several for several workers",
  },
  {
    name: "engine-mode",
    kind: { type: "choice", choices: ["auto", "router", "direct"] },
    help: "sglang: whether the address is a router or a worker (default: auto)",
  },
  {
    name: "engine-api",
    kind: { type: "choice", choices: ["auto", "generate", "completions"] },
    help: "vllm: /inference/v1/generate or /v1/completions (default: the first the server has)",
  },
  {
    name: "served-model",
    kind: text,
    value: "name",
    help: "vllm, llama-cpp: which of the server's models or LoRA adapters",
  },
  {
    name: "api-key-env",
    kind: text,
    value: "variable",
    help: "environment variable that holds the engine's API key",
  },
  {
    name: "gguf",
    kind: text,
    value: "file",
    help: "llama: the weights, a GGUF file or hf:owner/repo:file",
  },
  {
    name: "threads",
    kind: count(1),
    value: "n",
    help: "in this process: threads that compute (default: llama: cores but one, reference: cores)",
  },
  {
    name: "sequences",
    kind: count(1),
    value: "n",
    help: "in this process: turns computed at once (default: llama: 2, reference: 64 a thread)",
  },
  { name: "model", kind: text, value: "dir", help: "model folder: tokenizer.json, chat template" },
  {
    name: "parser",
    kind: text,
    value: "name",
    help: "tool-call parser (default: by the chat template)",
  },
  {
    name: "dialect",
    kind: { type: "choice", choices: ["sglang", "vllm"] },
    help: "whose tool-call parser (default: the engine's)",
  },
  {
    name: "engine-version",
    kind: text,
    value: "release",
    help: "engine release whose parsers are used (default: 2026-08, for vllm 0.24)",
  },
  {
    name: "reasoning-parser",
    kind: text,
    value: "name",
    help: "reasoning parser, or none (default: by the chat template)",
  },
  {
    name: "stop-token",
    kind: { type: "list" },
    value: "token",
    help: "what ends a turn, an id or a literal; several (default: by the model folder)",
  },
  {
    name: "delta-base",
    kind: { type: "choice", choices: ["measured", "full"] },
    help: "what a turn's continuation is rendered on: what suffices, or the whole history",
    default: "measured",
  },
  {
    name: "template-variable",
    kind: { type: "list" },
    value: "name=json",
    help: "variable for the chat template, such as enable_thinking=false",
  },
  {
    name: "history",
    kind: { type: "choice", choices: ["keep", "split", "refuse"] },
    help: "what to do with templates that rewrite history",
    default: "keep",
  },
  {
    name: "guard",
    kind: { type: "choice", choices: ["neutralise", "special-only", "hf-parity", "reject"] },
    help: "control tokens in tool results and user lines",
    default: "neutralise",
  },
  {
    name: "agent",
    kind: { type: "choice", choices: ["tool-calling", "act", "react", "few-shot"] },
    help: "strategy around the policy",
    default: "tool-calling",
  },
  {
    name: "tool-use",
    kind: { type: "choice", choices: Object.keys(toolUsePolicies) },
    help: "how many calls a turn may make, and where the model is told",
    default: "many",
  },
  {
    name: "unknown-tools",
    kind: { type: "choice", choices: ["refuse", "perform"] },
    help: "calls of unknown tools: refuse them, or leave the answer to the environment",
    default: "refuse",
  },
  {
    name: "execute-calls",
    kind: { type: "choice", choices: ["well-formed", "reported"] },
    help: "what a call is: what is well-formed, or what the engine's own parser would report",
    default: "well-formed",
  },
  {
    name: "refuse-calls",
    kind: { type: "list" },
    value: "note",
    help: `what keeps a call from being executed; several of ${refusableNotes.join(", ")}`,
  },
  {
    name: "repair-calls",
    kind: { type: "list" },
    value: "status",
    help: `malformed calls to mend, execute and mark; several of ${repairableStatuses.join(", ")}`,
  },
  {
    name: "invalid-action",
    kind: { type: "choice", choices: ["say", "refuse"] },
    help: "act and react: say an action that is no JSON to the user, or refuse it",
    default: "say",
  },
  {
    name: "few-shot-examples",
    kind: count(1),
    value: "n",
    help: "few-shot: examples shown",
    default: 5,
  },
  {
    name: "few-shot-file",
    kind: text,
    value: "file",
    help: "few-shot: JSON lines with messages_display (default: the bundle's for the environment)",
  },
  {
    name: "few-shot-draw",
    kind: { type: "choice", choices: ["episode", "task", "run"] },
    help: "few-shot: what examples are drawn anew for",
    default: "episode",
  },
  {
    name: "temperature",
    kind: { type: "number", min: 0, max: 100 },
    value: "t",
    help: "sampling temperature",
    default: 1,
  },
  {
    name: "top-p",
    kind: { type: "number", min: 0, max: 1 },
    value: "p",
    help: "nucleus sampling",
    default: 1,
  },
  {
    name: "top-k",
    kind: { type: "number", min: -1, max: Infinity, whole: true },
    value: "k",
    help: "most likely tokens kept; -1 for all",
    default: -1,
  },
  {
    name: "min-p",
    kind: { type: "number", min: 0, max: 1 },
    value: "p",
    help: "least share of the top token",
    default: 0,
  },
  {
    name: "sampling-seed",
    kind: count(0),
    value: "n",
    help: "makes the engine's sampling repeatable, where it can",
  },
  // The user.
  {
    name: "user",
    kind: {
      type: "choice",
      choices: ["scripted", "llm", "react", "verify", "reflection", "human"],
    },
    help: "who the agent talks to",
  },
  {
    name: "user-url",
    kind: text,
    value: "url",
    help: "OpenAI-compatible endpoint of the user model",
  },
  { name: "user-model", kind: text, value: "name", help: "name of the user model" },
  {
    name: "user-api-key-env",
    kind: text,
    value: "variable",
    help: "environment variable that holds the user model's API key",
  },
  {
    name: "user-temperature",
    kind: { type: "number", min: 0, max: 100 },
    value: "t",
    help: "temperature of the user model (default: the endpoint's)",
  },
  {
    name: "user-concurrency",
    kind: count(1),
    value: "n",
    help: "requests to the user model at once",
    default: 32,
  },
  {
    name: "user-input-price",
    kind: price,
    value: "usd",
    help: "US dollars per million tokens that the user model reads (default: no cost is reported)",
  },
  {
    name: "user-output-price",
    kind: price,
    value: "usd",
    help: "US dollars per million tokens that the user model writes",
  },
  {
    name: "user-script",
    kind: text,
    value: "file",
    help:
      "lines of the scripted user: a JSON list, or an object of lists by task; with " +
      '{"text": …, "leaves": true} the user leaves',
  },
  // Limits.
  {
    name: "max-turns",
    kind: count(1),
    value: "n",
    help: "policy calls per episode",
    default: defaultLimits.maxTurns,
  },
  {
    name: "max-tokens-per-turn",
    kind: count(1),
    value: "n",
    help: "tokens sampled in one turn",
    default: defaultLimits.maxTokensPerTurn,
  },
  { name: "max-episode-tokens", kind: count(1), value: "n", help: "tokens after the first prompt" },
  {
    name: "max-context",
    kind: count(1),
    value: "n",
    help: "prompt and output together (default: what the engine names)",
  },
  {
    name: "max-format-errors",
    kind: count(1),
    value: "n",
    help: "turns with only malformed calls",
    default: defaultLimits.maxFormatErrors,
  },
  {
    name: "on-length",
    kind: { type: "choice", choices: ["end", "close-and-continue"] },
    help: "what a turn cut by length does",
    default: defaultLimits.onLength,
  },
  {
    name: "episode-timeout",
    kind: seconds,
    value: "s",
    help: "seconds for a whole episode",
    default: defaultLimits.episodeTimeoutMs / 1000,
  },
  {
    name: "user-timeout",
    kind: seconds,
    value: "s",
    help: "seconds for one user reply, with its place in the queue and all attempts",
    default: defaultLimits.userTimeoutMs / 1000,
  },
  {
    name: "tool-timeout",
    kind: seconds,
    value: "s",
    help: "seconds for one tool call",
    default: defaultLimits.toolTimeoutMs / 1000,
  },
  {
    name: "engine-timeout",
    kind: seconds,
    value: "s",
    help: "seconds for one turn, with all repetitions",
    default: 1200,
  },
  // The run.
  {
    name: "concurrency",
    kind: count(1),
    value: "n",
    help: "episodes at once (default: 64; llama: its sequences)",
  },
  {
    name: "attempts",
    kind: count(1),
    value: "n",
    help: "plays of an episode before its failure is final",
    default: 2,
  },
  {
    name: "max-failures",
    kind: count(1),
    value: "n",
    help: "failed episodes in a row that stop the run",
    default: 20,
  },
  {
    name: "out",
    kind: text,
    value: "dir",
    help: "the run's folder; the same command on it resumes",
  },
  {
    name: "format",
    kind: { type: "choice", choices: ["slime"] },
    help: "also write the samples for this trainer",
  },
  { name: "retry-failed", kind: { type: "flag" }, help: "on resuming, play failed episodes again" },
  { name: "json", kind: { type: "flag" }, help: "print progress as JSON lines on standard output" },
  { name: "quiet", kind: { type: "flag" }, help: "print no progress" },
];

/** Settings that do not change what is played: a run may be resumed with others. */
export const operationalSettings: ReadonlySet<string> = new Set([
  "url",
  "engine-mode",
  "engine-api",
  "threads",
  "sequences",
  "api-key-env",
  "user-url",
  "user-api-key-env",
  "user-concurrency",
  "user-input-price",
  "user-output-price",
  "data",
  "model",
  "concurrency",
  "attempts",
  "max-failures",
  "out",
  "retry-failed",
  "json",
  "quiet",
  "engine-timeout",
]);
