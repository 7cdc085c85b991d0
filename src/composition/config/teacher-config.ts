import { UsageError } from "../../errors.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { readEngineConfig, type EngineConfig } from "./engine-config.ts";
import { count, text, type Setting, type SettingValues } from "./setting.ts";

/** The engines that can score, in the words of `--teacher-engine`. */
const teacherEngines = ["sglang", "vllm", "reference", "llama"] as const;

/** The settings of a teacher's engine. No setting affects the episodes of a run. */
export const teacherEngineSettings = [
  {
    name: "teacher",
    kind: { type: "list" },
    value: "url",
    help: "address of the teacher's server; repeat it for several workers",
    operational: true,
  },
  {
    name: "teacher-engine",
    kind: { type: "choice", choices: teacherEngines },
    help: "the teacher's engine: a server, or in this process (llama: GGUF, reference: small models)",
    default: "sglang",
    operational: true,
  },
  {
    name: "teacher-model",
    kind: text,
    value: "folder",
    help:
      "in this process: the teacher's weights, a folder or (llama) a GGUF file; with a server: a folder whose " +
      "tokenizer is compared with the run's",
    operational: true,
  },
  {
    name: "teacher-served-model",
    kind: text,
    value: "name",
    help: "vllm: name of the server's model or LoRA adapter",
    operational: true,
  },
  {
    name: "teacher-api-key-env",
    kind: text,
    value: "variable",
    help: "environment variable that holds the teacher's API key",
    operational: true,
  },
  {
    name: "teacher-timeout",
    kind: { type: "number", min: 0.001, max: 604_800 },
    value: "seconds",
    help: "time limit of the scoring of a row, with all retries",
    default: 1800,
    operational: true,
  },
] as const satisfies readonly Setting[];

/** The settings of a scoring: rows, number of ids, concurrency. */
const choices = {
  name: {
    kind: text,
    value: "name",
    help: "the teacher's name in the run's folder (default: from its model)",
    operational: true,
  },
  top: {
    kind: { type: "number", min: 0, max: 100, whole: true },
    value: "k",
    help: "also keep the k most probable ids in each place, with their logprobs (default: 0)",
    operational: true,
  },
  concurrency: {
    kind: count(1),
    value: "n",
    help: "rows that are scored at once (default: 32)",
    operational: true,
  },
} as const;

/** The settings of `turnwright score`. */
export const scoreSettings = [
  ...teacherEngineSettings,
  { name: "name", ...choices.name },
  { name: "top", ...choices.top },
  { name: "concurrency", ...choices.concurrency },
] as const satisfies readonly Setting[];

/** The settings of a teacher that scores the episodes of a rollout as they end. */
export const teacherSettings = [
  ...teacherEngineSettings,
  { name: "teacher-name", ...choices.name },
  { name: "teacher-top", ...choices.top },
  { name: "teacher-concurrency", ...choices.concurrency },
] as const satisfies readonly Setting[];

/** The configuration of a teacher. */
export interface TeacherConfig {
  readonly engine: EngineConfig;
  /** A folder with the teacher's tokenizer. */
  readonly modelDir?: string;
  readonly name?: string;
  /** The number of most probable ids to list for each token. */
  readonly topCount: number;
  /** Number of rows that are scored at the same time. */
  readonly concurrency: number;
}

type TeacherChoices = Readonly<{ name?: string; top?: number; concurrency?: number }>;
type EngineValues = SettingValues<(typeof teacherEngineSettings)[number]>;

/**
 * Reads the settings of `turnwright score`.
 *
 * @throws UsageError for a setting that is missing, or that the engine does not have.
 */
export function readScoreConfig(
  values: SettingValues<(typeof scoreSettings)[number]>,
): TeacherConfig {
  const { name, top, concurrency } = values;
  return readTeacher(values, withoutUndefined({ name, top, concurrency }));
}

/**
 * Reads the settings of a rollout's teacher. Returns `undefined` for a rollout without a teacher.
 *
 * @throws UsageError for a setting that is missing, or that the engine does not have.
 */
export function readTeacherConfig(
  values: SettingValues<(typeof teacherSettings)[number]>,
): TeacherConfig | undefined {
  const { "teacher-name": name, "teacher-top": top, "teacher-concurrency": concurrency } = values;
  const isServer = values["teacher-engine"] === "sglang" || values["teacher-engine"] === "vllm";
  const given = isServer ? values.teacher : values["teacher-model"];
  if (given === undefined && name === undefined && top === undefined) return undefined;
  return readTeacher(values, withoutUndefined({ name, top, concurrency }));
}

function readTeacher(
  values: EngineValues,
  { name, top = 0, concurrency = 32 }: TeacherChoices,
): TeacherConfig {
  const { "teacher-engine": kind, "teacher-model": model } = values;
  const isLlama = kind === "llama";
  requirePlace(values);
  const engine = readEngineConfig({
    engine: kind,
    url: values.teacher,
    "engine-mode": undefined,
    "engine-api": undefined,
    "served-model": values["teacher-served-model"],
    "chat-body": undefined,
    "chat-return": undefined,
    "api-key-env": values["teacher-api-key-env"],
    gguf: isLlama ? model : undefined,
    threads: undefined,
    sequences: undefined,
    model: isLlama ? undefined : model,
    "max-context": undefined,
    "engine-timeout": values["teacher-timeout"],
  });
  return {
    engine,
    ...(!isLlama && model !== undefined && { modelDir: model }),
    ...(name !== undefined && { name }),
    topCount: top,
    concurrency,
  };
}

/** Checks that a setting gives the teacher's address or model. Messages name the teacher's own flags. */
function requirePlace(values: EngineValues): void {
  const { "teacher-engine": kind, "teacher-model": model, teacher: urls = [] } = values;
  const isServer = kind === "sglang" || kind === "vllm";
  if (isServer && urls.length === 0) {
    throw new UsageError(
      `Missing --teacher: the address of the teacher's ${kind} server, such as http://127.0.0.1:30000`,
    );
  }
  if (isServer) return;
  if (urls.length > 0) {
    throw new UsageError(
      `Cannot use --teacher with --teacher-engine ${kind}: it computes in this process; give --teacher-model`,
    );
  }
  if (model === undefined) {
    throw new UsageError(
      `Missing --teacher-model: the teacher's weights, for --teacher-engine ${kind}`,
    );
  }
}
